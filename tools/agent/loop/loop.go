// Package loop runs a model with tools until it has an answer: it asks for a turn, does the tool calls of the answer,
// sends the results back, and stops at the end or when a budget is used up.
//
// It knows no wire format, no client and no tool: a Model makes the turns, and Task.Do does the calls. It starts no
// program, opens no connection and keeps nothing: what a run needs to go on later is in its Outcome.
package loop

import (
	"context"
	"encoding/json"
	"time"
)

// A Model makes one turn of a conversation. It is safe for concurrent use.
type Model interface {
	// Turn sends the conversation and returns the whole answer. Pieces of text go to say as they arrive, from the
	// goroutine that called; say may be nil. A turn that is repeated after a broken stream says its text again. The
	// error is an *Error or that of ctx.
	Turn(ctx context.Context, t Turn, say func(text string)) (Answer, error)
}

// A Turn is what a model is sent. The model does not change it.
type Turn struct {
	System    string
	Tools     []Tool
	Messages  []Message
	MaxOutput int    // tokens that the answer may have; 0: the model's own setting
	Effort    string // how much the model is to think, in the provider's words; "": its default
}

// A Tool is what a model may call.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage // a JSON schema of an object
	ReadOnly          bool            // calls may run beside other calls that only read
}

// A Message is one side's part of a conversation. Sides alternate, and the user begins.
type Message struct {
	Role  string // RoleUser or RoleAssistant
	Parts []Part
}

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// A Part is a piece of a message. Exactly one of its fields is set.
type Part struct {
	Text   string
	Call   *Call           // of the assistant
	Result *Result         // of the user: of a call in the message before
	Opaque json.RawMessage // a provider's own block, such as a signed thought: goes back to it as it came
}

// A Call is a tool call that a model wants.
type Call struct {
	ID, Name  string
	Arguments json.RawMessage // a JSON object, also if Broken is set
	Broken    string          // what the model sent is no JSON object: why, and how it began. Such a call is not done.
}

// A Result is what a call returned, for the model.
type Result struct {
	CallID, Text string // Run sets CallID
	IsError      bool
	Images       []Image
}

// An Image is a picture in a result.
type Image struct {
	MIME string // such as image/png
	Data []byte
}

// An Answer is what a model said in one turn.
type Answer struct {
	Parts  []Part // without results
	Stop   string // one of the Stop constants
	Tokens Tokens
}

// Why a model ended its turn.
const (
	StopEnd    = "end"    // it has finished, or waits for the results of its calls
	StopLength = "length" // the answer reached MaxOutput: its last part may be cut
	StopFull   = "full"   // the conversation reached the size of the model's context
	StopRefuse = "refuse" // the model or its provider's filter declined
	StopPause  = "pause"  // the provider wants the conversation sent again as it is
)

// Tokens are what turns cost, as the provider counts. The four do not overlap.
type Tokens struct {
	Input, Output         int
	CacheRead, CacheWrite int  // parts of the prompt that the provider had, or keeps
	Estimated             bool // the provider told nothing: four bytes are taken for one token
}

// Total returns all tokens.
func (t Tokens) Total() int { return t.Input + t.Output + t.CacheRead + t.CacheWrite }

// spent returns what a budget counts: as Total, with a tenth of what was read from the cache, as providers bill it.
func (t Tokens) spent() int { return t.Input + t.Output + t.CacheWrite + t.CacheRead/10 }

// add returns the sum.
func (t Tokens) add(o Tokens) Tokens {
	return Tokens{
		Input: t.Input + o.Input, Output: t.Output + o.Output,
		CacheRead: t.CacheRead + o.CacheRead, CacheWrite: t.CacheWrite + o.CacheWrite,
		Estimated: t.Estimated || o.Estimated,
	}
}

// A Kind says what a caller can do about an Error.
type Kind string

// The kinds of errors of models.
const (
	Full   Kind = "full"   // the conversation does not fit into the model's context
	Denied Kind = "denied" // the key is missing, wrong or may not use the model, or the account has no credit
	Wrong  Kind = "wrong"  // the provider does not take the request: an unknown model, a setting, an address
	Spent  Kind = "spent"  // it has made all the turns that it makes for this run; counts as a used budget of turns
	Busy   Kind = "busy"   // too many requests or an overloaded provider, and all tries are used up
	Broken Kind = "broken" // no connection, a broken answer or an error of the provider, and all tries are used up
)

// An Error is why a model made no turn. Its text holds no key and says what to do.
type Error struct {
	Kind Kind
	Text string // a sentence for a person, without a full stop
}

func (e *Error) Error() string { return e.Text }

// A Budget bounds a run. A zero of Turns, Tokens or Time allows none, so Run ends at once.
type Budget struct {
	Turns    int           // answers of the model
	Tokens   int           // all, with a tenth of CacheRead; looked at between turns, so the last one may go over it
	Time     time.Duration // of the whole run
	Stall    time.Duration // the longest time without any Step; 0: ten minutes
	Parallel int           // calls that run at once; 0: four
}

// A Task is what Run does.
type Task struct {
	Model     Model
	System    string
	Prompt    string    // may be empty if History ends with a message of the user
	History   []Message // the Messages of an earlier Outcome that go on; not changed
	Tools     []Tool
	MaxOutput int    // as in Turn
	Effort    string // as in Turn
	// Do does one call of a tool in Tools whose arguments are an object, and returns when ctx ends. It is called from
	// several goroutines at once for tools that are ReadOnly, else alone. It shortens the result.
	Do     func(ctx context.Context, c Call) Result
	Budget Budget
	Step   func(Step)    // receives each step, one at a time; nil: steps are not reported
	Inbox  <-chan string // messages of the user that arrive meanwhile: read before each turn and at the end; nil: none
}

// A Step is something that happened in a run.
type Step struct {
	Kind  string // one of the Step constants
	Text  string // of StepText: a piece of the answer
	Tool  string // of StepCall and StepResult: the tool's name
	Error bool   // of StepResult: the result is an error
	// So far in this run:
	Turns, Calls int
	Tokens       Tokens
}

// What happens in a run.
const (
	StepTurn   = "turn"   // the model is asked
	StepText   = "text"   // a piece of its answer arrived
	StepCall   = "call"   // a call begins
	StepResult = "result" // a call has ended
)

// An Outcome is how a run ended. It is filled in also if there is an error.
type Outcome struct {
	Text     string    // the last text of the model in this run
	Messages []Message // History and all that followed; each call has a result, so it can go on
	Tokens   Tokens
	Calls    int    // of tools, also those that were refused
	Turns    int    // answers of the model
	Stopped  string // one of the Stopped constants
}

// Why a run stopped. There is an error with Failed and Cancelled, and with no other.
const (
	Done      = "done"      // the model has finished
	Cut       = "cut"       // its last answer was cut at MaxOutput
	Refused   = "refused"   // StopRefuse
	NoRoom    = "full"      // the conversation is as large as the model's context
	NoTurns   = "turns"     // Budget.Turns
	NoTokens  = "tokens"    // Budget.Tokens
	NoTime    = "time"      // Budget.Time
	Stalled   = "stalled"   // Budget.Stall
	Failed    = "failed"    // the model made no turn: the error is its *Error
	Cancelled = "cancelled" // ctx ended: the error is its cause
)
