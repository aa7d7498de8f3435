// Package permission decides whether a call may run.
//
// It owns rules, modes and the one decision that the corridor asks for. It never
// looks at the disk, asks nobody, and knows no tool by name beyond what a rule
// says: everything that a decision depends on is in a Request.
package permission

import "encoding/json"

// A Verdict answers "may this call run?". The zero value is Deny, so a path that forgets to answer refuses.
type Verdict int

// The verdicts, strictest first.
const (
	Deny Verdict = iota
	Ask
	Allow
)

// A Kind says how rules match a Target. A Target without a kind is denied.
type Kind int

// The kinds of targets.
const (
	NoKind  Kind = iota
	Path         // absolute path; gitignore patterns; link and its destination both count
	Command      // shell command
	Domain       // host name
	Name         // a skill, an agent type, a server
)

// A Target is one thing that a call touches. Tools set Kind and Value; the corridor's permission stage fills in the rest.
type Target struct {
	Kind   Kind
	Value  string
	Real   string // Path: with links resolved
	Inside bool   // Path: Value and Real are both inside the roots
}

// A Mode is a session's permission mode. The zero value asks before every change.
type Mode int

// The modes. What each allows is the table in Decide.
const (
	Default Mode = iota
	Plan
	AcceptEdits
	DontAsk
	Bypass
)

// A Request is all that a decision depends on; Decide looks at nothing else.
type Request struct {
	Tool     string
	Aliases  []string
	Input    json.RawMessage // for rules on one parameter
	Targets  []Target
	Cwd      string
	ReadOnly bool
	Private  bool
	Own      Verdict   // the tool's
	Opinions []Verdict // of hooks
	Mode     Mode
}

// A Decision names what decided, for the model, for people and for the audit.
type Decision struct {
	Verdict Verdict
	Hard    bool   // Ask only: a person must decide; a client's own dialog is not enough
	Off     bool   // Deny only: a bare rule switches the whole tool off
	Rule    string // as written; "" for a mode's default
	Origin  string // file and line, or flag
	Reason  string // half a sentence
}

// A Rule is one entry of a rule list, as its source wrote it.
type Rule struct {
	Text   string // `run_shell`, `Read(secrets/**)`
	Origin string // file and line, flag or environment variable
	Dir    string // directory that `/x` patterns are relative to: that of the file, or the cwd at start
}

// Options of a Policy.
type Options struct {
	Deny []Rule
	Home string // what `~/` in a pattern means; "": such patterns are refused
}

// A Policy is a set of parsed rules. It does not change after New and is safe for concurrent use.
type Policy struct {
	// unexported: helper A
}

// New parses the rules. A rule that does not parse, can never match, or has a form that this version does not
// understand is an error that names its origin: a rule that is silently ignored would be a hole.
func New(o Options) (*Policy, error) { panic("skeleton") }

// Decide returns the one decision about a call. It is pure.
func (p *Policy) Decide(r Request) Decision { panic("skeleton") }

// Off says whether a bare deny rule switches a tool off altogether: it is then not listed either.
func (p *Policy) Off(tool string, aliases []string) bool { panic("skeleton") }

// Hidden says that a deny rule keeps path (absolute) out of listings and searches.
func (p *Policy) Hidden(path string) bool { panic("skeleton") }

// ParseMode reads a mode as configuration and hooks write it: default (or manual), acceptEdits, plan, dontAsk,
// bypassPermissions.
func ParseMode(s string) (Mode, error) { panic("skeleton") }

// String returns the mode's name as ParseMode reads it.
func (m Mode) String() string { panic("skeleton") }
