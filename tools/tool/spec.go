package tool

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"codehand/tools/agent"
	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
)

// Traits are promises that a tool makes. Each one lets the server treat a call less
// carefully, so the zero value is the strictest: run alone, ask first, assume that it
// destroys, assume that it reaches the network.
type Traits struct {
	ReadOnly   bool // changes nothing; allowed in plan mode, and inside the roots without a question
	Tries      bool // ReadOnly, and tells what a change would do: rules about paths judge it as that change
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
	Stands      []string // other tools whose rules and hooks hold for it, too; hooks are told that it is the first
	Title       string   // two or three words, for people
	Description string   // for the model: all of x.md, at most 2,000 bytes; Define trims blanks and newlines around it
	Hint        string   // 3 to 10 words for tool_search; required
	Deferred    bool     // not part of the core: listed after it
	ForPatchers bool     // nevertheless listed for clients whose models are trained to write patches
	Card        Card     // what it is to clients that show cards; the zero value: nothing
	Backed      bool     // there only where the operator named what answers it
	Personal    bool     // its Question is for a person: a client that cannot be asked is told to ask one itself
	MaxRunes    int      // of one result; 0 is DefaultMaxRunes
	Scope       Scope
	Family      permission.Family // which rules without its name cover it; the zero value is the strictest
	Traits      Traits            // promises for every input: what tools/list publishes
	ForAgents   Audience          // which sub-agents get it; the zero value: none
	Simple      bool              // part of the tool profile "simple", with which everything can be done
	Guarded     bool              // the setting edit.guard is about it
	Reports     bool              // its result is what a sub-agent reports: agent.max_output limits it
	Answers     string            // which back-end of the operator answers, in a sentence; "": none does
	Elsewhere   []string          // names that agent files of other programs have for it, in lower case
	Advice      Advice            // what the server's instructions say of it

	// What follows is for tests, and never shown to a client or a model.

	// Example is the arguments of a good call, as JSON: the contract suite and foreign clients make it. In it $WORK is
	// a directory with f (the line one), n.ipynb (one cell) and h (written by write_file), and $JOB is a job that runs.
	Example string
	// NoTargets says why calls reach nothing that a rule could name; "": each has a target, or is Private.
	NoTargets string
	// Finds are what models type into tool_search when they want this tool. It must come first for them.
	Finds []string
}

// A Card is what a tool is to a client that shows cards (server/cards).
type Card int

// The kinds of Card.
const (
	NoCard     Card = iota
	Drawn           // its results are drawn
	CardButton      // likewise, and a button of a card calls it, so it is listed though it is deferred
)

// An Audience is which sub-agents get a tool.
type Audience = agent.Audience

// The audiences, each with the one before it.
const (
	NoAgents       = agent.NoAgents
	ProgramAgents  = agent.ProgramAgents
	StartingAgents = agent.StartingAgents
	ChangingAgents = agent.ChangingAgents
	AllAgents      = agent.AllAgents
)

// OtherNames are those under which rules and hooks know the tool besides Name, in the order in which hooks are told.
func (s *Spec) OtherNames() []string { return slices.Concat(s.Stands, s.Aliases) }

// Advice is what the server's instructions say of a tool, where the client has it. The zero value says nothing.
type Advice struct {
	Verb string   // what the tool lets the model do, for the first sentence: "read"; "": it is not named there
	Text string   // whole sentences; "": none
	With []string // the other tools that Text needs: where one of them is missing, Text is not said
	// Rank orders the texts, lower ones first, since some clients cut the rest. What is said of no tool has CommonRank.
	Rank int
}

// CommonRank is the Advice.Rank of what the instructions say of all tools.
const CommonRank = 50

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
	Inner    bool      // another call made this one, and reads its result

	// Call runs another tool as a call of its own, through the whole corridor, from within an Ungated call. Nobody is
	// asked: what is not allowed is refused. The rules of a loan count for this call alone; nil: none. The error is a
	// *Refusal, or a fault of ours. nil: this call may make none.
	Call func(ctx context.Context, name string, input json.RawMessage, loan *Loan) (Result, error)

	// Sample asks the model of the client that calls, which its person may see and decline, and returns the text of the
	// answer. It waits at most 120 s. Only an Ungated call may wait for it. nil: the model may not be asked.
	Sample func(ctx context.Context, system, prompt string, maxTokens int) (string, error)

	// Elicit passes a question of another program on to the person, whose form is a JSON schema as elicitation has it.
	// message says whose question it is. It waits as long as a question of ours. An error means that no answer came.
	// nil: nobody can be asked during this call.
	Elicit func(ctx context.Context, message string, schema json.RawMessage) (Elicited, error)

	// Library is what clients read of this server by an address; nil: this call may read none.
	Library Library

	// Hands open sessions for sub-agents, from within an Ungated call; nil: this call may start none.
	Hands agent.Hands

	Analysis *bash.Analysis // of Def.Command; nil: the tool has none. It is shared: only read
}
