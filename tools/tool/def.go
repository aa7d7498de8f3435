package tool

import (
	"context"
	"encoding/json"

	"codehand/tools/agent"
	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
)

// DetailsIndent is by how many characters a question indents each line of Def.Details.
const DetailsIndent = 4

// Def is a tool as its author writes it. Spec and Run are required (Forward instead of Run for a
// dispatcher). A nil function means: nothing to add. All but Weigh, Complete, Details, Question and Run are pure and
// fast. A tool of the product also needs Activity, and Paths or Targets unless it is Private or reaches only jobs: its
// tests demand both.
//
// In is a struct of strings, whole numbers, booleans, json.RawMessage (any object), structs of these, and
// lists of these. A *string is an optional string that may be given and empty; nil: it was not given. Each
// field has three tags:
//
//	json        the parameter's name; with omitempty it is optional, else required
//	jsonschema  the description, plain text; a comma needs no escape
//	rule        limits, parted by blanks: min=1 max=9 default=5, enum=a|b, minlen=1 maxlen=200,
//	            maxrunes=200, minitems=1 maxitems=100; on a list, all but the last two hold for its items.
//	            Two are not published: also=c:a|d:b after enum takes c for a and d for b, and absent=5
//	            is what a call means that leaves out this required parameter
//
// Lengths: maxlen is in bytes (4 MiB without it) and minlen in characters, so that whatever Bind
// accepts, a client that counts characters accepts, too. maxrunes, instead of maxlen, is in characters,
// for what a person reads. A list without maxitems holds 10,000 items.
type Def[In any] struct {
	Spec Spec

	// Accept maps parameter names that are accepted to the real ones (path: file_path); one of an object or
	// of the items of a list is edits.path, and its real one file_path. Hidden lists optional parameters of
	// In that are accepted, too, as edits.old_string. Neither is published.
	Accept map[string]string
	Hidden []string

	// Available says whether this session can use the tool at all (a back-end is configured, the
	// client can answer questions): "" or the reason why not. A tool that is not available is neither
	// listed nor run.
	Available func(*session.State) string

	// Traits refines Spec.Traits for one input: run_shell is not read-only, run_shell{"ls"} is.
	// It may promise more than Spec.Traits, never less.
	Traits func(*session.State, In) Traits

	// Paths points at the fields of In that name files. Bind makes them absolute and clean, so
	// rules, hooks, the audit and Run all see the same path. A required one must not be empty; an
	// optional one may be, and is then no target.
	Paths func(*In) []*string

	// Targets adds what rules match besides Paths: a command, a host, a name.
	Targets func(*session.State, In) []permission.Target

	// Command is the shell command line of the input. Bind reads it with the grammar, once: it becomes a target, and
	// a call whose command is proved to change nothing is ReadOnly and Parallel. Run finds what was read in
	// Env.Analysis.
	Command func(In) string

	// Weigh sees what Bind has read of Command before anything is made of it, and may only make it worse: what hangs on
	// the machine, as the git configuration of a repository does, is in no text. It may refuse the input. It runs
	// before anyone is asked, reads little of the disk, and changes nothing.
	Weigh func(*session.State, In, *bash.Analysis) error

	// Verdict is the tool's own opinion. It can only tighten: Allow here means no objection.
	Verdict func(*session.State, In) permission.Verdict

	// Activity says in at most 100 characters what is going on ("Reading main.go"), for progress notes
	// and the page.
	Activity func(In) string

	// Check refuses an input that is wrong whatever the disk holds. It runs before anyone is asked.
	Check func(In) error

	// Complete fills in what the input leaves open and only the session knows, such as which change of a file was the
	// last one, so that rules, a person, hooks and Run mean the same. What it sets stands in Call.Input, and set again
	// it stays the same; a field with the tag json:"-" is for Targets and Run alone. It may refuse the input. It runs
	// after Check, before anyone is asked, ends with ctx, and changes nothing.
	Complete func(context.Context, *session.State, *In) error

	// Details is what a person who is asked about the call should see besides its input, such as the lines that an undo
	// would bring back; "": nothing. It reads little. The question has room for so many characters, of which each line
	// takes DetailsIndent more; what does not fit is cut, so Details itself says what it leaves out.
	Details func(ctx context.Context, s *session.State, in In, room int) string

	// Question is what a person must answer before Run; nil, nil: nothing. A tool never asks from
	// within Run, so that nobody holds the gate while a person thinks.
	Question func(context.Context, *session.State, In) (*Question, error)

	// Forward says that this call is really a call of another tool (call_tool). The other tool
	// then walks the pipeline with its own traits, rules and hooks.
	Forward func(In) (name string, input json.RawMessage)

	// Run does the work. It honours ctx within one second until it has begun to change something.
	Run func(context.Context, Env, In) (Result, error)
}

// A Tool is a finished tool. The zero Tool is not usable.
type Tool struct {
	Spec   Spec
	Schema json.RawMessage // of the input, as tools/list sends it; property order as in In

	available func(*session.State) string
	forward   func(json.RawMessage) (string, json.RawMessage, bool)
	bind      func(context.Context, *session.State, json.RawMessage) (Call, error)
}

// Define finishes a tool. It panics if the definition is wrong, which the test of All() finds first.
func Define[In any](d Def[In]) Tool {
	d.Spec = d.Spec.trimmed()
	b, err := newBinder(&d)
	if err != nil {
		panic("tool.Define: " + d.Spec.Name + ": " + err.Error())
	}
	t := Tool{Spec: d.Spec, Schema: b.root.schema(), available: d.Available, bind: b.bind}
	if d.Forward != nil {
		t.forward = b.forward
	}
	return t
}

// Limited is the tool with another Spec.MaxRunes.
func (t Tool) Limited(maxRunes int) Tool {
	bind := t.bind
	t.Spec.MaxRunes = maxRunes
	t.bind = func(ctx context.Context, s *session.State, raw json.RawMessage) (Call, error) {
		c, err := bind(ctx, s, raw)
		c.Spec.MaxRunes = maxRunes
		return c, err
	}
	return t
}

// Asking is the tool with a question that a person must answer before each call runs; nil, nil: there is none. It takes
// the place of Def.Question.
func (t Tool) Asking(question func(context.Context, *session.State) (*Question, error)) Tool {
	bind := t.bind
	t.bind = func(ctx context.Context, s *session.State, raw json.RawMessage) (Call, error) {
		c, err := bind(ctx, s, raw)
		c.Question = question
		return c, err
	}
	return t
}

// Unavailable says why this session cannot use the tool; "": it can.
func (t Tool) Unavailable(s *session.State) string {
	if t.available == nil {
		return ""
	}
	return t.available(s)
}

// Offered is the tool as sub-agents are given it.
func (t Tool) Offered() agent.Offered {
	return agent.Offered{
		Tool: agent.Tool{
			Name: t.Spec.Name, Description: t.Spec.Description, Schema: t.Schema, ReadOnly: t.Spec.Traits.ReadOnly,
		},
		Aliases: t.Spec.Aliases, Elsewhere: t.Spec.Elsewhere, For: t.Spec.ForAgents,
	}
}

// Forward says which tool a dispatcher's call is really for. ok is false for a tool that runs itself, and for an
// input that Bind refuses: call Bind then, it has the words.
func (t Tool) Forward(raw json.RawMessage) (name string, input json.RawMessage, ok bool) {
	if t.forward == nil {
		return "", nil, false
	}
	return t.forward(raw)
}

// Dispatches says whether the tool runs nothing itself: its calls are for other tools, which Forward names.
func (t Tool) Dispatches() bool { return t.forward != nil }

// Bind checks raw and returns the call it describes. It reads no file but what Def.Weigh and Def.Complete look at, and
// asks nobody. Absent arguments (nil or empty) mean {}. The error is a *Refusal: INPUT_INVALID with all problems of the
// input, or what Def.Check, Def.Weigh or Def.Complete said, which may have met a fault, too.
func (t Tool) Bind(s *session.State, raw json.RawMessage) (Call, error) {
	return t.BindWithin(context.Background(), s, raw)
}

// BindWithin is Bind for a caller who may not wait for the end: what Def.Complete looks for in the journal ends with
// ctx, and the error is its cause then.
func (t Tool) BindWithin(ctx context.Context, s *session.State, raw json.RawMessage) (Call, error) {
	if t.bind == nil {
		return Call{}, errZero
	}
	return t.bind(ctx, s, raw)
}

// A Call is a tool together with an input that has been checked. No later stage decodes again.
type Call struct {
	Spec     Spec
	Input    json.RawMessage // canonical: coerced, defaults filled in, paths absolute; what hooks and audit see
	Traits   Traits          // for this input
	Targets  []permission.Target
	Verdict  permission.Verdict // Allow when the tool has no opinion
	Activity string             // one line, at most 100 characters

	Details  func(context.Context, *session.State, int) string        // nil: none
	Question func(context.Context, *session.State) (*Question, error) // nil: none
	Run      func(context.Context, Env) (Result, error)
}
