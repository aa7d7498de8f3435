package agent

import (
	"slices"
	"strings"

	"codehand/tools/agent/loop"
	"codehand/tools/catalog"
)

// An Audience is which sub-agents get a tool. The zero value is the strictest: none does.
type Audience int

// The audiences.
const (
	// NoAgents: no sub-agent gets the tool.
	NoAgents Audience = iota
	// ProgramAgents: only programs that bring a server of their own, which shows them what is not listed.
	ProgramAgents
	// StartingAgents: those that may start sub-agents. Programs get it, too: their depth decides about each call.
	StartingAgents
	// ChangingAgents: those whose type may change something.
	ChangingAgents
	// AllAgents: also those whose type only reads.
	AllAgents
)

// A Tool is what the model of a sub-agent is told of a tool.
type Tool = loop.Tool

// An Offered is a tool that the session of a sub-agent could use.
type Offered struct {
	loop.Tool
	Aliases   []string
	Elsewhere []string // names that agent files of other programs have for it, in lower case
	For       Audience
}

// fits says whether a tool is for sub-agents of the type. deeper says that they may start sub-agents.
func (x *Offered) fits(t Type, deeper bool) bool {
	switch x.For {
	case AllAgents:
		return true
	case ChangingAgents:
		return !t.ReadOnly
	case StartingAgents:
		return !t.ReadOnly && deeper
	}
	return false
}

// Pick returns those of all that a sub-agent of the type gets, and the names in its list that are none of them. deeper
// says that it may start sub-agents of its own. A name with a pattern, as in Bash(git *), is not given, since the
// pattern would not be kept; in a list of what is taken away it stands for the whole tool.
func (t Type) Pick(all []Offered, deeper bool) (given []loop.Tool, unknown []string) {
	want := map[string]bool{}
	for _, name := range t.Tools {
		found := false
		for i := range all {
			if !strings.ContainsRune(name, '(') && goesBy(&all[i], name) {
				want[all[i].Name], found = true, true
			}
		}
		if !found && name != "*" {
			unknown = append(unknown, name)
		}
	}
	everything := t.Tools == nil || slices.Contains(t.Tools, "*")
	for i := range all {
		x := &all[i]
		switch {
		case !everything && !want[x.Name], !x.fits(t, deeper):
		case slices.ContainsFunc(t.Without, func(name string) bool {
			name, _, _ = strings.Cut(name, "(")
			return name == "*" || goesBy(x, name)
		}):
		default:
			given = append(given, x.Tool)
		}
	}
	return given, unknown
}

// goesBy says whether a tool has this name, in any case: its own, an alias, or one of other programs.
func goesBy(x *Offered, name string) bool {
	short := catalog.Short(name)
	same := func(other string) bool { return strings.EqualFold(other, name) || strings.EqualFold(other, short) }
	return same(x.Name) || slices.ContainsFunc(x.Aliases, same) || slices.ContainsFunc(x.Elsewhere, same)
}
