package bash

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/pattern"
)

// A NameGlob is one component of Word.Glob: what stands between two slashes.
type NameGlob struct {
	Literal string         // the only name that it stands for, if it is no glob
	match   *regexp.Regexp // nil: it is none
	hidden  bool           // names that begin with a dot match
}

// GlobName reads one component as bash does without options: `**` is `*`, and hidden names must be asked for.
func GlobName(component string) NameGlob {
	g := NameGlob{Literal: component, hidden: strings.HasPrefix(component, ".")}
	if strings.IndexByte(component, '\\') >= 0 {
		g.Literal = unquoted(component)
	}
	if !pattern.HasMeta(component, 0) {
		return g
	}
	text, err := pattern.Regexp(component, pattern.EntireString|pattern.NoGlobStar)
	if err == nil { // else bash, too, takes it as it is
		g.match, _ = regexp.Compile(text)
	}
	return g
}

// Several says whether it may stand for any name but Literal.
func (g NameGlob) Several() bool { return g.match != nil }

// Matches says whether it stands for a name.
func (g NameGlob) Matches(name string) bool {
	if g.match == nil {
		return name == g.Literal
	}
	return (g.hidden || !strings.HasPrefix(name, ".")) && g.match.MatchString(name)
}

func unquoted(component string) string {
	var text strings.Builder
	for i := 0; i < len(component); i++ {
		if component[i] == '\\' && i+1 < len(component) {
			i++
		}
		text.WriteByte(component[i])
	}
	return text.String()
}
