package mounts

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"codehand/tools/mounts/pins"
	"codehand/tools/mounts/upstream"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// An Altered is a tool that its server describes in another way than when it was first used.
type Altered struct {
	Tool string // as clients call it
	What string // "its description and schema"
}

// Changes are those of a server that nobody has accepted, by name. They are known once it has answered.
func (m *Mounts) Changes(server string) []Altered {
	x := m.named(server)
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []Altered
	for _, d := range x.defined {
		if p, ok := x.changed[d.Name]; ok {
			all = append(all, Altered{Tool: nameOf(x.Name, d.Name), What: whatChanged(p, d)})
		}
	}
	slices.SortFunc(all, func(a, b Altered) int { return strings.Compare(a.Tool, b.Tool) })
	return all
}

// Accept pins all tools of a server as it describes them now, as far as it has answered.
func (m *Mounts) Accept(ctx context.Context, server string) error {
	x := m.named(server)
	if x == nil {
		return nil
	}
	x.mu.Lock()
	all := slices.Clone(x.defined)
	x.mu.Unlock()
	if err := x.of.pins.Accept(ctx, x.Name, all...); err != nil {
		return err
	}
	x.again(ctx)
	return nil
}

// hold pins what is new and remembers what changed. The caller holds no lock.
func (x *mount) hold(ctx context.Context, all []upstream.Definition) map[string]pins.Pin {
	changed, err := x.of.pins.Hold(ctx, x.Name, all)
	if err != nil {
		x.log.Warn("how a mounted server describes its tools cannot be kept", "cause", err)
	}
	for _, d := range all {
		if p, ok := changed[d.Name]; ok {
			x.log.Warn("a mounted server describes a tool in another way than before; a person must accept it",
				"tool", nameOf(x.Name, d.Name), "changed", whatChanged(p, d))
		}
	}
	return changed
}

// again makes the tools anew of what the server said last, by the pins as they are now.
func (x *mount) again(ctx context.Context) {
	x.mu.Lock()
	all := slices.Clone(x.defined)
	x.mu.Unlock()
	changed, err := x.of.pins.Hold(ctx, x.Name, all)
	if err != nil {
		x.log.Warn("how a mounted server describes its tools cannot be kept", "cause", err)
	}
	x.mu.Lock()
	x.changed = changed
	x.tools = x.make(all, x.runner)
	x.mu.Unlock()
	x.tell()
}

// whatChanged says what is not as in the pin.
func whatChanged(p pins.Pin, now upstream.Definition) string {
	parts := pins.Differs(p, now)
	switch len(parts) {
	case 0:
		return "its description as a whole"
	case 1:
		return "its " + parts[0]
	}
	return "its " + strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// asking makes a tool that changed: models see it as it was, and its next call waits until a person has accepted what
// it is now. Nothing that the server says of it now counts until then.
func (x *mount) asking(name string, was pins.Pin, now upstream.Definition) (tool.Tool, error) {
	shown := upstream.Definition{
		Name: now.Name, Description: "Its description changed, and a person has not accepted it yet.",
	}
	if was.Definition != nil {
		shown = *was.Definition
		shown.Name = now.Name
	}
	spec := x.spec(name, shown)
	spec.Traits = tool.Traits{Ungated: true}
	spec.ForAgents = audience(spec.Traits)
	t, err := tool.Foreign(spec, fit(shown.Schema), checker(shown.Schema),
		func(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Result, error) {
			return x.runChanged(ctx, env, changedCall{name, was, now, input})
		})
	if err != nil {
		return t, err
	}
	return t.Asking(func(ctx context.Context, _ *session.State) (*tool.Question, error) {
		if x.of.shared || x.of.pins.Same(ctx, x.Name, now) {
			return nil, nil // nobody here may accept it, or a person did so elsewhere
		}
		return x.changedQuestion(name, was, now), nil
	}), nil
}

const (
	changedField  = "decision"
	changedAccept = "accept the change"
	changedRefuse = "refuse"
	// changedRoom is how many characters of a description, before and now, a question shows.
	changedRoom = 1_200
)

func (x *mount) changedQuestion(name string, was pins.Pin, now upstream.Definition) *tool.Question {
	text := "It changed " + whatChanged(was, now) + ". A server that does so can try to mislead the model.\n"
	show := func(head, words string) {
		words = results.CutMiddle(plain(words, maxDescription), changedRoom)
		text += head + ":\n    " + strings.ReplaceAll(words, "\n", "\n    ") + "\n"
	}
	if was.Definition != nil && was.Definition.Description != now.Description {
		show("Description before", was.Definition.Description)
	}
	if was.Definition == nil || was.Definition.Description != now.Description {
		show("Description now", now.Description)
	}
	if was.Definition == nil || slices.Contains(pins.Differs(was, now), "schema") {
		show("Schema now", string(fit(now.Schema)))
	}
	return &tool.Question{
		Title:  "Server " + x.Name + " describes " + name + " in another way than when it was first used.",
		Text:   strings.TrimSuffix(text, "\n"),
		Fields: []tool.Field{{Name: changedField, Label: "Decision", Choices: []string{changedAccept, changedRefuse}}},
		Seen:   pins.Sum(now),
	}
}

// A changedCall is a call of a tool that changed.
type changedCall struct {
	name  string
	was   pins.Pin
	now   upstream.Definition
	input json.RawMessage
}

func (x *mount) runChanged(ctx context.Context, env tool.Env, c changedCall) (tool.Result, error) {
	said := env.Answer.Values[changedField]
	accepted := !x.of.shared && env.Answer.Outcome == tool.Accepted && env.Answer.Seen == pins.Sum(c.now) &&
		len(said) == 1 && said[0] == changedAccept
	switch {
	case accepted:
		if err := x.of.pins.Accept(ctx, x.Name, c.now); err != nil {
			x.log.Warn("that a person accepted a tool cannot be kept", "tool", c.name, "cause", err)
			return tool.Result{}, tool.Refuse(tool.DefinitionChanged, "That the user accepted %s cannot be kept; the "+
				"server's log says why. Nothing was called.", c.name)
		}
	case x.of.pins.Same(ctx, x.Name, c.now):
	case !x.of.shared && env.Answer.Outcome != tool.Unanswered && !env.Answer.Silent:
		return tool.Result{}, tool.Refuse(tool.UserDeclined, "The user did not accept that server %s changed %s of "+
			"%s. Nothing was called. Go on without it.", x.Name, whatChanged(c.was, c.now), c.name)
	default:
		who := "The user"
		if x.of.shared {
			who = "The operator"
		}
		return tool.Result{}, tool.Refuse(tool.DefinitionChanged, "Server %s has changed %s of %s since it was first "+
			"used, and a person must accept that before it is called. Nothing was called. %s can look at it and "+
			"accept it with: codehand mcp test %s --accept", x.Name, whatChanged(c.was, c.now), c.name, who, x.Name)
	}
	x.again(ctx)
	return x.runNamed(ctx, env, c.name, c.input)
}

// runNamed runs the tool of this name as it is known now.
func (x *mount) runNamed(ctx context.Context, env tool.Env, name string, input json.RawMessage) (tool.Result, error) {
	for _, t := range x.now() {
		if t.Spec.Name == name {
			c, err := t.Bind(env.State, input)
			if err != nil {
				return tool.Result{}, err
			}
			return c.Run(ctx, env)
		}
	}
	return tool.Result{}, tool.Refuse(tool.UnknownTool, "Server %s has no tool %s. Use tool_search to find its tools.",
		x.Name, results.Line(name, 80))
}
