package mounts

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"codehand/tools/mounts/upstream"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

const (
	maxDescription = 2_000 // bytes
	maxTitle       = 60
	maxHint        = 120
)

// make makes tools of what a server says that it has, which run runs. x.mu is held, or nobody else has x yet.
func (x *mount) make(all []upstream.Definition, run func(name, own string) runFunc) []tool.Tool {
	var tools []tool.Tool
	taken := map[string]bool{}
	for _, d := range all {
		if len(x.Only) > 0 && !slices.Contains(x.Only, d.Name) {
			continue
		}
		name := nameOf(x.Name, d.Name)
		if taken[strings.ToLower(name)] {
			name = distinct(name, x.Name, d.Name)
		}
		if taken[strings.ToLower(name)] {
			x.log.Warn("a tool of a mounted server is left out: its name is that of another", "tool", name)
			continue
		}
		var t tool.Tool
		var err error
		if was, changed := x.changed[d.Name]; changed {
			t, err = x.asking(name, was, d)
		} else {
			t, err = tool.Foreign(x.spec(name, d), fit(d.Schema), checker(d.Schema), run(name, d.Name))
		}
		if err != nil {
			x.log.Warn("a tool of a mounted server is left out", "cause", err)
			continue
		}
		taken[strings.ToLower(name)] = true
		tools = append(tools, t)
	}
	return tools
}

// spec says what is known of a tool.
func (x *mount) spec(name string, d upstream.Definition) tool.Spec {
	words := plain(d.Description, maxDescription-len(x.Name)-len(": "))
	if words == "" {
		words = plain(d.Name, maxTitle) + " of " + x.Name
	}
	title := d.Title
	if title == "" {
		title = d.Hints.Title
	}
	if title = plain(strings.Join(strings.Fields(title), " "), maxTitle); title == "" {
		title = plain(d.Name, maxTitle)
	}
	first, _, _ := strings.Cut(words, "\n")
	return tool.Spec{
		Name: name, Title: title, Description: x.Name + ": " + words, Hint: cut(x.Name+" "+title+" "+first, maxHint),
		Deferred: !slices.Contains(x.Listed, d.Name), Scope: tool.ScopeAll, Family: permission.FamilyNone,
		Traits: x.traits(d.Hints), ForAgents: audience(x.traits(d.Hints)),
	}
}

// traits are what a tool promises: nothing, unless the operator trusts what its server says. Its calls take no turn at
// the gate, so that a slow server holds up no other call of the session.
func (x *mount) traits(h upstream.Hints) tool.Traits {
	t := tool.Traits{Ungated: true}
	if !x.Trusted {
		return t
	}
	said := func(b *bool) bool { return b != nil && *b }
	t.ReadOnly, t.Idempotent = said(h.ReadOnly), said(h.Idempotent)
	t.Additive = h.Destructive != nil && !*h.Destructive
	t.Local = h.OpenWorld != nil && !*h.OpenWorld
	return t
}

// audience is which sub-agents get a tool with such traits.
func audience(t tool.Traits) tool.Audience {
	if t.ReadOnly {
		return tool.AllAgents
	}
	return tool.ChangingAgents
}

// runFunc is how a tool is run.
type runFunc = func(context.Context, tool.Env, json.RawMessage) (tool.Result, error)

// lateRunner is what runs a tool that the server had in an earlier run. What it says of it by then counts: one that it
// describes in another way waits for a person.
func (x *mount) lateRunner(name, _ string) runFunc {
	return func(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Result, error) {
		return x.runLate(ctx, env, name, input)
	}
}

// late makes the tool that stands for one that is not known yet.
func (x *mount) late(name string) (tool.Tool, error) {
	spec := tool.Spec{
		Name: name, Title: x.Name, Description: "A tool of the server " + x.Name + ", which has not been started yet.",
		Hint: "tool of " + x.Name, Deferred: true, Scope: tool.ScopeAll, Family: permission.FamilyNone,
		Traits: tool.Traits{Ungated: true}, ForAgents: tool.ChangingAgents,
	}
	run := func(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Result, error) {
		return x.runLate(ctx, env, name, input)
	}
	return tool.Foreign(spec, anyObject, nil, run)
}
