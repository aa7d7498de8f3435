package permission

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"codehand/tools/bash"
)

// complete parses the commands that the caller has not parsed, and adds the files that they are known to touch, where
// the caller has not. Such a file counts by its spelling only, and not as inside a root. Where a caller has resolved a
// directory and says nothing of a name in it that might be touched (FileUse.InDir), there is no such name.
func (p *Policy) complete(r *Request) {
	targets := r.Targets
	copied := false
	own := func() {
		if !copied {
			targets, copied = append([]Target(nil), targets...), true
		}
	}
	known := knownFiles{targets: r.Targets}
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind != Command {
			continue
		}
		a := t.Analysis
		if a == nil {
			own()
			read := bash.Analyze(t.Value, p.insideText)
			a = &read
			targets[i].Analysis = a
		}
		for _, f := range a.Files {
			if f.Perhaps && !p.ComparesPaths() || f.Own && a.Held {
				continue
			}
			use := fileUse(f)
			value := p.absolute(r, f.Path)
			if known.find(value, use) != nil {
				continue
			}
			if dir := known.find(filepath.Dir(value), use); f.InDir && dir != nil && dir.Real != "" {
				continue
			}
			own()
			targets = append(targets, Target{Kind: Path, Value: value, Use: use})
			known.targets = targets
		}
	}
	r.Targets = targets
}

// knownFiles finds the files among targets, which are only added to. A command may name thousands of files.
type knownFiles struct {
	targets []Target
	seen    int // how many of targets are in at
	at      map[fileUseKey]int
}

type fileUseKey struct {
	value string
	use   Use
}

// fewFiles is how many targets are searched one by one, which costs less than a map.
const fewFiles = 32

func (k *knownFiles) find(value string, use Use) *Target {
	if len(k.targets) <= fewFiles {
		for i := range k.targets {
			if t := &k.targets[i]; t.Kind == Path && t.Use == use && t.Value == value {
				return t
			}
		}
		return nil
	}
	if k.at == nil {
		k.at = make(map[fileUseKey]int, 2*len(k.targets))
	}
	for ; k.seen < len(k.targets); k.seen++ {
		t := &k.targets[k.seen]
		key := fileUseKey{t.Value, t.Use}
		if _, has := k.at[key]; t.Kind == Path && !has {
			k.at[key] = k.seen
		}
	}
	if i, ok := k.at[fileUseKey{value, use}]; ok {
		return &k.targets[i]
	}
	return nil
}

func fileUse(f bash.FileUse) Use {
	switch {
	case f.Perhaps:
		return CommandPerhaps
	case f.Write:
		return CommandWrites
	}
	return CommandReads
}

// insideText says whether an absolute path lies in a root, as it is spelt.
func (p *Policy) insideText(path string) bool {
	path = clean(path)
	for _, root := range p.roots {
		if _, ok := below(root, path); ok || root == path {
			return true
		}
	}
	return false
}

// absolute is a path of a command line as its shell would open it.
func (p *Policy) absolute(r *Request, path string) string {
	switch {
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case p.home != "" && (path == "~" || strings.HasPrefix(path, "~/")):
		return filepath.Join(p.home, path[1:])
	}
	return filepath.Join(r.Cwd, path)
}

// changes says whether the call changes a path, or else reads it.
func (r *Request) changes(t *Target) bool {
	return t.Use == CommandWrites || t.Use == ByCall && (!r.ReadOnly || r.Tries)
}

// named says that a command surely reads or changes the path.
func (u Use) named() bool { return u == CommandReads || u == CommandWrites }

// spellings calls f with each name of a path that is known, clean, until f says that it is enough.
func (r *Request) spellings(t *Target, f func(path string) bool) {
	spelt := t.Value
	if !filepath.IsAbs(spelt) {
		spelt = filepath.Join(r.Cwd, spelt) // a spelling that no tool opens; judged all the same
	}
	if f(clean(spelt)) {
		return
	}
	if t.Real != "" && t.Real != spelt && f(clean(t.Real)) {
		return
	}
	for _, name := range t.Also {
		if f(clean(name)) {
			return
		}
	}
}

// A hit is the rule that decides, and its target. The words name a path only as it was spelt: a caller that may not
// follow a link must not learn where it leads.
type hit struct {
	rule  *rule
	about string
}

// find returns the first of the rules, which deny or ask, that matches anything that the call touches.
func (p *Policy) find(rules []rule, r *Request) hit {
	if len(rules) == 0 {
		return hit{}
	}
	cwd := clean(r.Cwd)
	for i := range r.Targets {
		t := &r.Targets[i]
		switch t.Kind {
		case Path:
			if t.Use == CommandPerhaps {
				continue // see perhapsRuled
			}
			if rule := p.findPath(rules, r, t, cwd); rule != nil {
				return hit{rule, t.Value}
			}
		case Command:
			for j := range rules {
				rule := &rules[j]
				if !rule.ofCommand() || !rule.names(r.Tool, r.Aliases, r.Family) {
					continue
				}
				if about, ok := rule.forbidsCommand(t.Value, t.Analysis); ok {
					return hit{rule, about}
				}
			}
		case Domain, Name:
			for j := range rules {
				if rule := &rules[j]; rule.forbidsText(t) && rule.names(r.Tool, r.Aliases, r.Family) {
					return hit{rule, t.Value}
				}
			}
		}
	}
	return findParameter(rules, r)
}

// findPath returns the first of the rules that matches any name of a path.
func (p *Policy) findPath(rules []rule, r *Request, t *Target, cwd string) (found *rule) {
	change := r.changes(t)
	r.spellings(t, func(path string) bool {
		if t.Folds {
			path = foldPath(path)
		}
		for i := range rules {
			rule := &rules[i]
			if !rule.about(change) && t.Use != CommandPerhaps {
				continue
			}
			if rule.path != nil && p.forbidden(rule, path, cwd, t.Folds) || t.Use.named() && rule.bare() {
				found = rule
				return true
			}
		}
		return false
	})
	return found
}

// ofCommand says that the rule's text is a command.
func (r *rule) ofCommand() bool { return r.text != nil && takes[r.name].what == aCommand }

// forbidsText says whether a rule that denies or asks is about a host or a name. A name without a star also stands for
// itself with arguments.
func (r *rule) forbidsText(t *Target) bool {
	if t.Kind == Domain {
		return r.host != nil && r.host.match(plainHost(t.Value))
	}
	if r.text == nil || takes[r.name].what != aName {
		return false
	}
	first, _, _ := strings.Cut(t.Value, " ")
	return r.text.match(t.Value) || r.text.match(first)
}

// findParameter returns the first of the rules that is about a parameter of the input.
func findParameter(rules []rule, r *Request) hit {
	var values map[string]json.RawMessage
	for i := range rules {
		rule := &rules[i]
		if rule.param == "" || !rule.names(r.Tool, r.Aliases, r.Family) {
			continue
		}
		if values == nil {
			if values = parameters(r.Input); values == nil {
				return hit{}
			}
		}
		if text, ok := scalar(values[rule.param]); ok && rule.value.match(text) {
			return hit{rule, rule.param}
		}
	}
	return hit{}
}

// parameters are those of an input; nil: it is no object.
func parameters(input json.RawMessage) (values map[string]json.RawMessage) {
	if json.Unmarshal(input, &values) != nil {
		return nil
	}
	return values
}

// scalar returns a text, a number, true or false as a rule writes it.
func scalar(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '{', '[', 'n':
		return "", false
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
	return string(raw), true
}
