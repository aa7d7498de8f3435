// Package tool is the contract between a tool and the house: what can be said about
// a tool without running it, how its input is bound, and what it gives back.
//
// The contract is free of MCP. Zero values are the strictest: a forgotten trait
// means run alone, ask first, assume the worst.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"codehand/tools/permission"
	"codehand/tools/session"
)

// Traits are promises that a tool makes. Each one lets the server treat a call less
// carefully, so the zero value is the strictest: run alone, ask first, assume that it
// destroys, assume that it reaches the network.
type Traits struct {
	ReadOnly   bool // changes nothing; allowed in plan mode, and inside the roots without a question
	Private    bool // changes only this session's own memory: todo list, mode, its own jobs; never asked about
	Parallel   bool // may run beside other Parallel calls
	Ungated    bool // touches only what guards itself, or works through calls of its own; takes no turn at the gate
	Additive   bool // may change things but never loses any
	Idempotent bool // the same call twice is the same as once
	Local      bool // talks to nothing outside this machine
}

// A Scope is the part of a token's rights that a tool needs. The zero value needs all of them.
type Scope int

// The scopes.
const (
	ScopeAll Scope = iota
	ScopeRead
	ScopeWrite
	ScopeShell
	ScopeWeb
)

// Unbounded is the MaxRunes of a tool that pages by itself to Env.Limit.
const Unbounded = -1

// DefaultMaxRunes is what MaxRunes 0 means.
const DefaultMaxRunes = 50_000

// Spec is all that can be said about a tool without running it.
type Spec struct {
	Name        string   // snake_case, at most 40 of [a-z0-9_]; names the files, too
	Aliases     []string // accepted on call and in rules; never listed
	Title       string   // for people
	Description string   // for the model: all of x.md, at most 2,000 bytes
	Hint        string   // 3 to 10 words for tool_search
	Deferred    bool     // listed only as protocol.md says
	MaxRunes    int      // of one result; 0 is DefaultMaxRunes
	Scope       Scope
	Traits      Traits // promises for every input: what tools/list publishes
}

// Def is a tool as its author writes it. Spec and Run are required (Forward instead of Run for a
// dispatcher). A nil function means: nothing to add. All but Question and Run are pure and fast.
type Def[In any] struct {
	Spec Spec

	// Accept maps parameter names that are accepted to the real ones (path: file_path). Hidden lists
	// parameters of In that are accepted, too. Neither is published.
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
	// rules, hooks, the audit and Run all see the same path.
	Paths func(*In) []*string

	// Targets adds what rules match besides Paths: a command, a host, a name.
	Targets func(*session.State, In) []permission.Target

	// Verdict is the tool's own opinion. It can only tighten: Allow here means no objection.
	Verdict func(*session.State, In) permission.Verdict

	// Activity says in at most 50 characters what is going on ("Reading main.go"), for progress notes
	// and the page.
	Activity func(In) string

	// Check refuses an input that is wrong whatever the disk holds. It runs before anyone is asked.
	Check func(In) error

	// Question is what a person must answer before Run; nil, nil: nothing. A tool never asks from
	// within Run, so that nobody holds the gate while a person thinks.
	Question func(context.Context, *session.State, In) (*Question, error)

	// Forward says that this call is really a call of another tool (call_tool). The other tool
	// then walks the corridor with its own traits, rules and hooks.
	Forward func(In) (name string, input json.RawMessage)

	// Run does the work. It honours ctx within one second until it has begun to change something.
	Run func(context.Context, Env, In) (Result, error)
}

// Progress tells the client how far a call is. It never blocks and has no answer. total 0: unknown.
type Progress func(done, total float64, note string)

// Env is what one running call may use.
type Env struct {
	*session.State
	CallID   string    // 16 characters, unique; names the journal entry and the kept result
	Limit    int       // runes of one result for this tool and this client
	AnswerBy time.Time // a client without a progress token must have its answer by then; zero: no limit
	Answer   Answer    // to Def.Question; zero when nothing was asked
	Progress Progress  // never nil
}

// A Tool is a finished tool. The zero Tool is not usable.
type Tool struct {
	Spec   Spec
	Schema json.RawMessage // of the input, as tools/list sends it; property order as in In

	// unexported: helper A
}

// Define finishes a tool. It panics if the definition is wrong, which the test of All() finds first.
func Define[In any](d Def[In]) Tool { panic("skeleton") }

// Wrap makes a Tool from a schema and a function, for mounted tools and test fixtures.
func Wrap(spec Spec, schema json.RawMessage, run func(context.Context, Env, json.RawMessage) (Result, error)) Tool {
	panic("skeleton")
}

// Unavailable says why this session cannot use the tool; "": it can.
func (t Tool) Unavailable(s *session.State) string { panic("skeleton") }

// Forward says which tool a dispatcher's call is really for; ok is false for a tool that runs itself.
func (t Tool) Forward(raw json.RawMessage) (name string, input json.RawMessage, ok bool) {
	panic("skeleton")
}

// Bind checks raw and returns the call it describes. It reads no file and asks nobody.
func (t Tool) Bind(s *session.State, raw json.RawMessage) (Call, error) { panic("skeleton") }

// A Call is a tool together with an input that has been checked. No later stage decodes again.
type Call struct {
	Spec     Spec
	Input    json.RawMessage // canonical: coerced, defaults filled in, paths absolute; what hooks and audit see
	Traits   Traits          // for this input
	Targets  []permission.Target
	Verdict  permission.Verdict // Allow when the tool has no opinion
	Activity string
	Question func(context.Context, *session.State) (*Question, error) // nil: none
	Run      func(context.Context, Env) (Result, error)
}
