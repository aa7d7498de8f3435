package tool

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
)

var (
	errZero       = errors.New("tool: the zero Tool cannot be called")
	errDispatcher = errors.New("tool: a dispatcher does not run; call what Forward names")
)

// maxActivity is the length of an activity in characters. It is the first progress note and the first line of a
// question, and most commands fit.
const maxActivity = 100

// A binder is a definition with the shape of its input. It does not change, so calls share it.
type binder[In any] struct {
	form
	def *Def[In]
}

// A form is what of a binder does not depend on the type of the input: the compiler makes the methods of a binder again
// for each tool.
type form struct {
	spec *Spec
	root *shape
}

// bind is Tool.Bind. The order is fixed: nothing later sees what an earlier step refuses.
func (b *binder[In]) bind(ctx context.Context, s *session.State, raw json.RawMessage) (Call, error) {
	in := new(In)
	v := reflect.ValueOf(in).Elem()
	if err := b.decode(raw, v); err != nil {
		return Call{}, err
	}
	var targets []permission.Target
	if b.def.Paths != nil {
		var err error
		if targets, err = b.paths(s, v, b.def.Paths(in)); err != nil {
			return Call{}, err
		}
	}
	if b.def.Check != nil {
		if err := b.def.Check(*in); err != nil {
			return Call{}, err
		}
	}
	if b.def.Complete != nil {
		if err := b.def.Complete(ctx, s, in); err != nil {
			return Call{}, err
		}
	}
	command, err := b.command(s, *in)
	if err != nil {
		return Call{}, err
	}
	return b.call(s, *in, len(raw), targets, command), nil
}

// command reads the command of an input; nil: it has none.
func (b *binder[In]) command(s *session.State, in In) (*bash.Analysis, error) {
	if b.def.Command == nil {
		return nil, nil
	}
	var weigh func(*bash.Analysis) error
	if b.def.Weigh != nil {
		weigh = func(a *bash.Analysis) error { return b.def.Weigh(s, in, a) }
	}
	return analyzed(s, b.def.Command(in), weigh)
}

// analyzed parses a command, and calls weigh if there is one.
func analyzed(s *session.State, command string, weigh func(*bash.Analysis) error) (*bash.Analysis, error) {
	a := bash.Analyze(command, insideOf(s))
	if weigh == nil {
		return &a, nil
	}
	proved := a.Class
	err := weigh(&a)
	if proved != bash.ReadOnly && a.Class == bash.ReadOnly && !a.Contained {
		a.Class = proved // weigh proves nothing
	}
	return &a, err
}

// insideOf says by its text alone whether an absolute path lies in a root: no disk is looked at for a command's class.
func insideOf(s *session.State) func(string) bool {
	if s == nil || s.Space == nil {
		return nil
	}
	roots := s.Space.Roots()
	return func(path string) bool {
		return filepath.IsAbs(path) && slices.ContainsFunc(roots, func(root string) bool {
			rel, err := filepath.Rel(root, path)
			return err == nil && filepath.IsLocal(rel)
		})
	}
}

// forward is Tool.Forward.
func (b *binder[In]) forward(raw json.RawMessage) (string, json.RawMessage, bool) {
	in := new(In)
	if b.decode(raw, reflect.ValueOf(in).Elem()) != nil || b.def.Check != nil && b.def.Check(*in) != nil {
		return "", nil, false
	}
	name, input := b.def.Forward(*in)
	return name, input, true
}

// decode fills in, or returns one refusal with everything that is wrong.
func (b *form) decode(raw json.RawMessage, in reflect.Value) error {
	obj, wrong := arguments(raw)
	if wrong != "" {
		return Invalid(b.spec.Name, wrong)
	}
	var f filler
	f.object(b.root, &place{}, obj, in)
	if f.problems != nil {
		return Invalid(b.spec.Name, f.problems...)
	}
	return nil
}

// arguments returns raw as a valid JSON object, or half a sentence that says what it is instead.
func arguments(raw json.RawMessage) (obj []byte, wrong string) {
	obj = trim(raw)
	switch {
	case len(obj) == 0 || string(obj) == "null":
		return []byte("{}"), ""
	case !json.Valid(obj):
		return nil, "the arguments are not valid JSON"
	case obj[0] != '{':
		return nil, "the arguments must be an object, not " + describe(obj)
	}
	return obj, ""
}

// paths makes every path of the input, named by Def.Paths, absolute and returns them as targets. A tool with
// ScopeWrite is given files: of `new/` a clean path would be that of a file named new, and it would be made.
func (b *form) paths(s *session.State, in reflect.Value, named []*string) ([]permission.Target, error) {
	at := map[*string]leaf{}
	b.root.leaves(&place{}, in, at)
	var targets []permission.Target
	var wrong problems
	var dir error
	done := map[*string]bool{}
	for _, p := range named {
		if p == nil || done[p] {
			continue
		}
		done[p] = true
		leaf := at[p]
		optional := leaf.shape != nil && leaf.shape.optional
		if optional && (*p == "" || *p == "null" || *p == "undefined") {
			*p, _ = leaf.shape.preset.(string) // what some clients send for a value that they do not have
		}
		switch {
		case *p == "" && optional:
			continue
		case *p == "":
			wrong.add("%q must not be empty", leaf.at)
			continue
		case strings.ContainsRune(*p, 0):
			wrong.add("%q must not contain a NUL character", leaf.at)
			continue
		}
		if dir == nil && b.spec.Scope == ScopeWrite && s.Space.NamesDir(*p) {
			dir = Refuse(IsDirectory,
				"%.200s can only be a directory: the name of a file is missing at its end. Give the path of a file, "+
					"without a slash at its end.", *p)
		}
		*p = s.Space.Abs(*p)
		targets = append(targets, permission.Target{Kind: permission.Path, Value: *p})
	}
	if wrong != nil {
		return nil, Invalid(b.spec.Name, wrong...)
	}
	return targets, dir
}

// A leaf is a string of an input: where it stands and what is known of it.
type leaf struct {
	shape *shape
	at    *place
}

// leaves finds all strings of v by their address, which is how Def.Paths names them.
func (s *shape) leaves(at *place, v reflect.Value, found map[*string]leaf) {
	switch s.kind {
	case text:
		if p, ok := v.Addr().Interface().(*string); ok {
			found[p] = leaf{s, at}
		}
	case list:
		if s.item.kind == text || s.item.kind == object {
			for i := range v.Len() {
				s.item.leaves(&place{up: at, index: i}, v.Index(i), found)
			}
		}
	case object:
		for _, f := range s.fields {
			f.leaves(&place{up: at, name: f.name}, v.Field(f.field), found)
		}
	}
}

// call puts together what the definition says about an input that passed.
func (b *binder[In]) call(s *session.State, in In, size int, targets []permission.Target,
	command *bash.Analysis) Call {
	d := b.def
	var c Call
	b.fill(&c, reflect.ValueOf(&in).Elem(), size, targets)
	c.Run = func(ctx context.Context, env Env) (Result, error) {
		if d.Run == nil {
			return Result{}, errDispatcher
		}
		env.Analysis = command
		return d.Run(ctx, env, in)
	}
	if command != nil {
		c.runs(command, d.Command(in))
	}
	if d.Traits != nil {
		c.Traits = c.Traits.or(d.Traits(s, in))
	}
	if d.Targets != nil {
		c.Targets = append(c.Targets, d.Targets(s, in)...)
	}
	if d.Verdict != nil {
		c.Verdict = d.Verdict(s, in)
	}
	if d.Activity != nil {
		c.Activity = oneLine(d.Activity(in))
	}
	if d.Details != nil {
		c.Details = func(ctx context.Context, s *session.State, room int) string {
			return d.Details(ctx, s, in, room)
		}
	}
	if d.Question != nil {
		c.Question = func(ctx context.Context, s *session.State) (*Question, error) { return d.Question(ctx, s, in) }
	}
	return c
}

// fill sets what needs no function of the definition.
func (b *form) fill(c *Call, in reflect.Value, size int, targets []permission.Target) {
	input := make([]byte, 0, size+64) // the canonical form of a large string is as large as it was sent
	*c = Call{Spec: *b.spec, Input: b.root.appendValue(input, in), Traits: b.spec.Traits, Targets: targets,
		Verdict: permission.Allow}
}

// runs adds the command of the input.
func (c *Call) runs(command *bash.Analysis, text string) {
	c.Targets = append(c.Targets, permission.Target{Kind: permission.Command, Value: text, Analysis: command})
	if command.Class == bash.ReadOnly {
		c.Traits = c.Traits.or(Traits{ReadOnly: true, Parallel: true})
	}
}

// Contain makes of a call one that changes nothing, where the kernel holds its command and the text names no change: it
// runs in the profile of commands that only read. not ok: nothing has changed.
func (c *Call) Contain() (ok bool) {
	for i := range c.Targets {
		a := c.Targets[i].Analysis
		if c.Targets[i].Kind != permission.Command || a == nil || !a.Held || a.Settled || a.NamesChange() {
			continue
		}
		a.Contain()
		c.Traits = c.Traits.or(Traits{ReadOnly: true, Parallel: true})
		return true
	}
	return false
}

// or returns all promises of both: what holds for every input holds for this one, too.
func (t Traits) or(u Traits) Traits {
	return Traits{
		ReadOnly:   t.ReadOnly || u.ReadOnly,
		Tries:      t.Tries || u.Tries,
		Private:    t.Private || u.Private,
		Parallel:   t.Parallel || u.Parallel,
		Ungated:    t.Ungated || u.Ungated,
		Additive:   t.Additive || u.Additive,
		Idempotent: t.Idempotent || u.Idempotent,
		Local:      t.Local || u.Local,
	}
}

// oneLine returns s as an activity: control characters become blanks, what is too long is cut.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= maxActivity {
		return s
	}
	return string([]rune(s)[:maxActivity-1]) + "…"
}
