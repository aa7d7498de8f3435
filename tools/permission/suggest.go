package permission

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"codehand/tools/bash"
	"codehand/tools/guarded"
)

// maxSuggested is how many runes a suggested rule has at most: who is asked must be able to read it.
const maxSuggested = 200

// Suggest returns the rule that would allow a call for which a default ask came out, as a person may be offered it: the
// first two words of a command, the literal path, the host. "": there is none that would be wise, as for a dangerous
// command, or none that would help, as against a rule that asks.
func (p *Policy) Suggest(r Request) string {
	if p == nil || !p.made {
		return ""
	}
	p.complete(&r)
	r.granted() // for all decisions below
	if d := p.Decide(r); d.Verdict != Ask || d.Hard || dangerous(&r) != "" {
		return ""
	}
	for _, text := range suggestions(&r, p.readsOutside(&r)) {
		if utf8.RuneCountInString(text) > maxSuggested || strings.ContainsFunc(text, guarded.Invisible) {
			continue
		}
		rule, err := parseGrant(text, Granted)
		if err != nil {
			continue
		}
		with := *p
		with.allow = append(slices.Clip(p.allow), rule)
		if with.Decide(r).Verdict == Allow {
			return text
		}
	}
	return ""
}

// SuggestForSession returns the rule that would allow a call, and others of the same program and verb, which is asked
// about only because it may discard content that cannot be kept; "": there is none. It is to be granted for one session
// (Grant.Discards), and allows nothing in a file.
func (p *Policy) SuggestForSession(r Request) string {
	if p == nil || !p.made {
		return ""
	}
	p.complete(&r)
	if d := p.Decide(r); d.Verdict != Ask || d.Hard {
		return ""
	}
	var own *Target
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Use == ByCall {
			if own != nil || t.Kind != Command || len(t.Analysis.Losses()) == 0 {
				return ""
			}
			own = t
		}
	}
	if own == nil || len(own.Analysis.Parts) != 1 {
		return ""
	}
	words := strings.Fields(own.Analysis.Parts[0].Text)
	if len(words) > 1 && words[0] == "git" {
		words = words[:2]
	} else {
		words = words[:min(len(words), 1)]
	}
	if len(words) == 0 || slices.ContainsFunc(words, notPlain) || words[len(words)-1][0] == '-' {
		return ""
	}
	text := "Bash(" + strings.Join(words, " ") + " *)"
	r.parsed = nil
	r.Grants = append(slices.Clip(r.Grants), Grant{Rule: text, At: r.Now, Discards: true})
	if utf8.RuneCountInString(text) > maxSuggested || p.Decide(r).Verdict != Allow {
		return ""
	}
	return text
}

// suggestions are rules that might allow the call, the best first. outside is a file outside the roots that a command
// of the call reads; "": none.
func suggestions(r *Request, outside string) []string {
	var own *Target
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Use == ByCall {
			if own != nil {
				return nil // one rule for several things would be a wide one
			}
			own = t
		}
	}
	if own == nil || own.Kind == Domain && r.Tool != "web_fetch" { // whose rules name no hosts
		return []string{r.Tool}
	}
	switch own.Kind {
	case Path:
		if r.changes(own) {
			return []string{"Edit(" + absolutePattern(own.Value) + ")"}
		}
		return []string{"Read(" + absolutePattern(own.Value) + ")"}
	case Command:
		texts := commandSuggestions(own)
		if outside != "" && r.ReadOnly {
			texts = append(texts, "Read("+absolutePattern(outside)+")")
		}
		return texts
	case Domain:
		return []string{"WebFetch(domain:" + plainHost(own.Value) + ")"}
	}
	for _, name := range []string{"Agent", "Skill"} {
		if takes[name].tool == r.Tool {
			return []string{name + "(" + escapeText(own.Value) + ")"}
		}
	}
	return nil
}

// commandSuggestions are the beginning of the first part that needs a rule, and the whole text.
func commandSuggestions(t *Target) []string {
	whole := "Bash(" + escapeText(strings.TrimSpace(t.Value)) + ")"
	for _, part := range t.Analysis.Parts {
		if part.Inner || part.Class == bash.ReadOnly {
			continue
		}
		words := strings.Fields(part.Text)
		if lead := strings.Fields(part.Lead); len(lead) > 1 && !slices.ContainsFunc(lead, notPlain) &&
			!bash.RunsAnything(path.Base(lead[len(lead)-1])) {
			return []string{"Bash(" + part.Lead + " *)", whole}
		}
		if len(words) < 2 || !plainWord(words[0]) || !plainWord(words[1]) || words[1][0] == '-' ||
			part.Lead != "" || bash.RunsAnything(path.Base(words[0])) {
			break
		}
		return []string{"Bash(" + words[0] + " " + words[1] + " *)", whole}
	}
	return []string{whole}
}

func notPlain(word string) bool { return !plainWord(word) }

// absolutePattern writes a path as a pattern that stands for it alone, wherever a rule with it is kept.
func absolutePattern(path string) string {
	path = strings.TrimPrefix(clean(path), "/")
	b := strings.Builder{}
	b.WriteString("//")
	for i := range len(path) {
		if strings.IndexByte(`*?[\`, path[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
