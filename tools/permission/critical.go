package permission

import (
	"path"
	"slices"
	"strings"
)

// closed finds what the operator may not open: the secrets of the person and the machine, and changes of what is our
// own. The plan file is our own, and is there to be written.
func (p *Policy) closed(r *Request) (d Decision, denied bool) {
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind != Path || t.Use == CommandPerhaps {
			continue
		}
		change := r.changes(t) && !(r.PlanFile && t.Use == ByCall)
		r.spellings(t, func(path string) bool {
			if rule := p.secret(path); rule != "" {
				d, denied = Decision{Rule: rule, Origin: BuiltIn, About: t.Value,
					Reason: "secrets are closed to every tool"}, true
			} else if own := p.ownFile(path); own != "" && change {
				d, denied = Decision{Rule: "Edit(/" + own + ")", Origin: BuiltIn, About: t.Value,
					Reason: "no tool changes codehand's own files"}, true
			}
			return denied
		})
		if denied {
			return d, true
		}
	}
	return Decision{}, false
}

// ownFile returns which of codehand's own paths a clean path is or lies below, "": none. A root within such a path is
// there to be worked in.
func (p *Policy) ownFile(path string) string {
	for _, own := range p.own {
		if isFolded(own, path) && !slices.ContainsFunc(p.roots, func(root string) bool {
			_, in := below(root, path)
			return (in || root == path) && isFolded(own, root)
		}) {
			return own
		}
	}
	return ""
}

// isFolded says whether path is dir, which is folded, or lies below it, without regard to letter case.
func isFolded(dir, path string) bool {
	for i := range len(path) {
		if path[i] >= 0x80 {
			path = foldPath(path)
			break
		}
	}
	if len(path) < len(dir) || len(path) > len(dir) && path[len(dir)] != '/' {
		return false
	}
	for i := range len(dir) {
		c := path[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != dir[i] {
			return false
		}
	}
	return true
}

// guarded is check 4: a change of a protected name, and the removal of what everything hangs on.
func (p *Policy) guarded(r *Request) (d Decision, found bool) {
	for i := range r.Targets {
		t := &r.Targets[i]
		switch {
		case t.Kind == Command:
			for _, operand := range t.Analysis.Removes {
				if !found && p.isCritical(operand, clean(r.Cwd)) {
					return critical(operand), true
				}
			}
		case t.Kind != Path || !r.changes(t) || r.PlanFile && t.Use == ByCall:
			continue
		}
		if t.Kind != Path {
			continue
		}
		name, obeyed := "", ""
		r.spellings(t, func(path string) bool {
			rel, _ := p.inRoot(path)
			name = p.protected.Find(rel)
			return name != ""
		})
		if name == "" {
			name, obeyed = t.Obeyed.Name, t.Obeyed.Key
		}
		if name != "" && !found {
			found = true
			d = Decision{
				Verdict: Ask, Hard: true, Rule: "Edit(**/" + name + ")", Origin: BuiltIn, About: t.Value,
				Obeyed: obeyed, Reason: "it changes a protected name, " + name,
			}
		}
		if name != "" && t.Use != ByCall && len(d.Names) < maxNames && !slices.Contains(d.Names, name) {
			d.Names = append(d.Names, name)
		}
	}
	if found {
		return d, true
	}
	return p.removesByLink(r)
}

// maxNames is how many protected names a decision tells.
const maxNames = 10

func critical(operand string) Decision {
	return Decision{Verdict: Ask, Hard: true, About: operand, Reason: "it would remove " + operand}
}

// removesByLink finds what is critical behind a link, where a command removes something.
func (p *Policy) removesByLink(r *Request) (Decision, bool) {
	removes := false
	for i := range r.Targets {
		removes = removes || r.Targets[i].Kind == Command && len(r.Targets[i].Analysis.Removes) > 0
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		if removes && t.Kind == Path && t.Use == CommandWrites && t.Real != "" && t.Real != t.Value &&
			p.isCriticalPath(clean(t.Real), clean(r.Cwd)) {
			return critical(t.Value), true
		}
	}
	return Decision{}, false
}

// isCritical says whether an operand of rm or rmdir means `/`, one of its direct children, the home directory, the cwd,
// a root, a directory above one of these, or all that is in one; or would mean it if a variable were empty.
func (p *Policy) isCritical(operand, cwd string) bool {
	text, unknown := p.expand(operand, cwd)
	switch {
	case text == "":
		return false
	case unknown: // `"$x"/*`: with an empty variable, all there is
		text = path.Clean(text)
		last := operand[len(operand)-1]
		return (last == '/' || last == '*') && (text == "/" || onlyStars(path.Base(text)) && path.Dir(text) == "/")
	case strings.HasPrefix(text, "~"): // the home of another user
		_, rest, _ := strings.Cut(text, "/")
		return rest == "" || onlyStars(rest)
	case !strings.HasPrefix(text, "/"):
		text = cwd + "/" + text
	}
	text = path.Clean(text)
	if dir := path.Dir(text); onlyStars(path.Base(text)) && dir != cwd && !p.isRoot(dir) {
		return p.isCriticalPath(dir, cwd) && (dir == "/" || strings.Count(dir, "/") > 1 || p.isCriticalPlace(dir, cwd))
	}
	return p.isCriticalPath(text, cwd)
}

// isCriticalPath is isCritical for an absolute clean path, in which components may have stars.
func (p *Policy) isCriticalPath(text, cwd string) bool {
	return strings.Count(text, "/") == 1 || p.isCriticalPlace(text, cwd)
}

// isCriticalPlace says whether text is the home directory, the cwd, a root or above one of them.
func (p *Policy) isCriticalPlace(text, cwd string) bool {
	if holds(text, p.home) || holds(text, cwd) {
		return true
	}
	for _, root := range p.roots {
		if holds(text, root) {
			return true
		}
	}
	return false
}

func (p *Policy) isRoot(dir string) bool {
	for _, root := range p.roots {
		if root == dir {
			return true
		}
	}
	return false
}

// holds says whether the pattern of a path stands for place or a directory above it, without regard to letter case.
func holds(pattern, place string) bool {
	if place == "" {
		return false
	}
	pattern, place = strings.ToLower(pattern), strings.ToLower(place)
	for {
		if ok, err := path.Match(pattern, place); ok || err != nil && pattern == place {
			return true
		}
		if place == "/" || place == "." {
			return false
		}
		place = path.Dir(place)
	}
}

// onlyStars says that a component is a pattern for all that there is.
func onlyStars(component string) bool {
	return strings.Contains(component, "*") && strings.Trim(component, "*.?!{},[]") == ""
}

// expand puts in what is known of the expansions of an operand, and nothing for the others; unknown: there were some.
func (p *Policy) expand(operand, cwd string) (text string, unknown bool) {
	if p.home != "" && (operand == "~" || strings.HasPrefix(operand, "~/")) {
		operand = p.home + operand[1:]
	}
	var b strings.Builder
	for i := 0; i < len(operand); {
		length, value, known := p.expansion(operand[i:], cwd)
		if length == 0 {
			b.WriteByte(operand[i])
			i++
			continue
		}
		b.WriteString(value)
		unknown = unknown || !known
		i += length
	}
	return b.String(), unknown
}

// expansion reads one expansion at the start of text; length 0: there is none.
func (p *Policy) expansion(text, cwd string) (length int, value string, known bool) {
	name := ""
	switch {
	case strings.HasPrefix(text, "`"), strings.HasPrefix(text, "$("):
		length = expansionEnd(text)
		if strings.TrimSpace(strings.Trim(text[:length], "$()`")) == "pwd" {
			return length, cwd, true
		}
		return length, "", false
	case strings.HasPrefix(text, "${"):
		length = expansionEnd(text)
		name = strings.TrimSuffix(text[2:length], "}")
	case strings.HasPrefix(text, "$"):
		length = 1
		for length < len(text) && isNameByte(text[length]) {
			length++
		}
		name = text[1:length]
	}
	name, otherwise, hasOther := strings.Cut(name, "-") // ${x:-word}
	switch strings.TrimSuffix(name, ":") {
	case "HOME":
		return length, p.home, p.home != ""
	case "PWD":
		return length, cwd, true
	}
	return length, otherwise, hasOther
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// expansionEnd returns where an expansion that text begins with has its end.
func expansionEnd(text string) int {
	depth := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '(' || c == '{':
			depth++
		case c == ')' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case c == '`' && text[0] == '`' && i > 0:
			return i + 1
		}
	}
	return len(text)
}

// secretAsked finds a file inside the roots whose name says that it holds a secret, and that would be read.
func (p *Policy) secretAsked(r *Request) (Decision, bool) {
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind != Path || t.Use == CommandPerhaps || r.changes(t) {
			continue
		}
		rule := ""
		r.spellings(t, func(path string) bool {
			rule = p.secretInside(path)
			return rule != ""
		})
		if rule != "" {
			return Decision{Verdict: Ask, Hard: true, Rule: rule, Origin: BuiltIn, About: t.Value,
				Reason: "its name says that it holds a secret"}, true
		}
	}
	return Decision{}, false
}
