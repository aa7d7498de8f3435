package hooks

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"codehand/tools/bash"
	"codehand/tools/catalog"
	"codehand/tools/permission"
)

// A matcher says which events of one name a hook is told of. The zero value matches all of them.
type matcher struct {
	names   []string       // exact; one is enough
	pattern *regexp.Regexp // unanchored
}

// plainMatcher is a list of names: anything else is an expression.
var plainMatcher = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_ ,|-]*$`) })

// newMatcher reads a matcher. Of letters, digits, `_`, `-`, blanks, commas and bars alone it is a list of exact names,
// divided by commas or bars, with names of other agents for tools (BashTool); else an unanchored RE2 expression. "" and
// "*" match everything.
func newMatcher(text string) (matcher, error) {
	if text == "" || text == "*" {
		return matcher{}, nil
	}
	if !plainMatcher().MatchString(text) {
		re, err := regexp.Compile(text)
		return matcher{pattern: re}, err
	}
	var m matcher
	for name := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ',' || c == '|' }) {
		if name = strings.TrimSpace(name); name != "" {
			m.names = append(m.names, name)
			if short := catalog.Short(name); short != name {
				m.names = append(m.names, short)
			}
		}
	}
	if m.names == nil {
		return matcher{}, fmt.Errorf("%q names nothing", text)
	}
	return m, nil
}

// matches says whether one of the spellings of a thing is meant.
func (m matcher) matches(spellings []string) bool {
	if m.names == nil && m.pattern == nil {
		return true
	}
	return slices.ContainsFunc(spellings, func(s string) bool {
		return slices.Contains(m.names, s) || m.pattern != nil && m.pattern.MatchString(s)
	})
}

// subjects are what the matcher of a hook is held against: every name of the tool, or what tells events of this name
// apart.
func (e Event) subjects() []string {
	switch e.Name {
	case SessionStart:
		return []string{e.Source}
	case SessionEnd:
		return []string{e.Reason}
	case SubagentStart, SubagentStop:
		return []string{e.AgentType}
	case FileChanged:
		return []string{filepath.Base(e.File), e.File}
	}
	return append([]string{e.Tool}, e.Aliases...)
}

// matching returns the hooks that are to be run, in the order of the configuration, identical ones once.
func (r *Runner) matching(e Event) []hook {
	var list []hook
	subjects := e.subjects()
	for _, h := range r.hooks[e.Name] {
		same := func(o hook) bool {
			return slices.Equal(o.Command, h.Command) && o.Async == h.Async && o.Project == h.Project
		}
		if h.matcher.matches(subjects) && !slices.ContainsFunc(list, same) && h.applies(e) {
			list = append(list, h)
		}
	}
	return list
}

// applies holds the condition of a hook against a call. A hook whose condition cannot be evaluated applies: what cannot
// be parsed must not pass a guard.
func (h hook) applies(e Event) bool {
	if h.when == nil || e.Tool == "" || h.when.Matches(e.Request, e.Roots) {
		return true
	}
	if !h.when.Names(e.Tool, e.Aliases, e.Request.Family) {
		return false
	}
	_, pattern, _ := strings.Cut(strings.TrimSuffix(h.If.Text, ")"), "(")
	return slices.ContainsFunc(e.Request.Targets, func(t permission.Target) bool {
		if t.Kind != permission.Command {
			return false
		}
		if t.Analysis == nil {
			a := bash.Analyze(t.Value, nil)
			t.Analysis = &a
		}
		return t.Analysis.Unclear || t.Analysis.Hidden != "" ||
			slices.ContainsFunc(t.Analysis.Parts, func(p bash.Part) bool {
				return mayBecome(p, pattern) || permission.MayRun(pattern, p)
			})
	})
}

// computed begins what a shell puts together when it runs a command.
const computed = "$`*?[{\\"

// mayBecome says whether a command with words that are put together when it runs can be one that a pattern means: what
// stands before the first of them, and before the first `*`, does not contradict.
func mayBecome(p bash.Part, pattern string) bool {
	meant, _, _ := strings.Cut(pattern, "*")
	meant = strings.TrimRight(meant, " :")
	return p.Exact && slices.ContainsFunc(p.Forms, func(form string) bool {
		at := strings.IndexAny(form, computed)
		return at >= 0 && (strings.HasPrefix(meant, form[:at]) || strings.HasPrefix(form[:at], meant))
	})
}
