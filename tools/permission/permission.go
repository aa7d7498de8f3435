// Package permission decides whether a call may run.
//
// It owns rules, modes and the one decision about a call, for server/pipeline. It never looks at the disk, asks no
// person, and knows no tool by name beyond what a rule says: everything that a decision depends on is in a Request.
package permission

import (
	"encoding/json"
	"time"

	"codehand/tools/bash"
)

// BuiltIn is the Decision.Origin of rules that no operator wrote and none can take away.
const BuiltIn = "built in"

// Granted is the Decision.Origin of a rule that a person allowed for the session, OnPage of one that a person set for
// it on a page and that denies or asks.
const (
	Granted = "granted for this session"
	OnPage  = "set for this session on the page"
)

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

// A Target is one thing that a call touches. Tools set Kind and Value; the pipeline's permission stage fills in the
// rest.
type Target struct {
	Kind  Kind
	Value string
	Real  string // Path: with links resolved; "": not known, only Value is matched
	// Path: further names of the same file inside the roots, canonical; rules that deny or ask count them
	Also []string
	// Path: it may have more names than Also, see workspace.Space.Names; a person decides about a change, and about
	// reading if any rule closes files
	Unsure   bool
	Inside   bool           // Path: Value and Real are both inside the roots
	Folds    bool           // Path: the file system does not tell letter cases apart
	Use      Use            // Path
	Obeyed   Obeyed         // Path that the call changes
	Analysis *bash.Analysis // Command: nil if it is not parsed yet; it is parsed when rules need it
}

// An Obeyed says that git obeys a file, whatever its name is. The zero value: it does not.
type Obeyed struct {
	Key  string // of git's configuration that says so, as core.hooksPath
	Name string // the protected name that the file counts as
}

// A Use says what a call does with a path.
type Use int

// The uses.
const (
	ByCall       Use = iota // reads it if the call is ReadOnly, else changes it
	CommandReads            // a command of the call names it
	CommandWrites
	CommandPerhaps // a command names it to a program with unknown effects
)

// A Request is all that a decision depends on; Decide looks at nothing else.
type Request struct {
	Tool     string
	Aliases  []string
	Family   Family          // of the tool; the zero value is the strictest
	Input    json.RawMessage // for rules on one parameter
	Targets  []Target
	Cwd      string
	ReadOnly bool
	Tries    bool // ReadOnly, but its paths are judged as those of the change that it tries
	Private  bool
	PlanFile bool      // the pipeline's plan stage found that all targets are the plan file
	Own      Verdict   // the tool's; Allow means no objection
	Opinions []Verdict // of hooks
	Judged   []Verdict // of the operator's classifier command, mode auto only; empty: it said nothing
	// a command, in a sandbox that is proven and that the operator trusts to take the place of a question
	Confined bool
	Mode     Mode
	Grants   []Grant
	Now      time.Time // for the age of grants

	parsed *[]rule // of Grants; nil: not yet; see granted
}

// A Decision names what decided, for the model, for people and for the audit.
type Decision struct {
	Verdict Verdict
	Hard    bool // Ask only: a person must decide; a client's own dialog is not enough
	// Ask only: a command of class Dangerous. A person decides where one can be asked; elsewhere it is any other ask
	Dangerous bool
	Off       bool   // Deny only: a bare rule switches the whole tool off
	Rule      string // as written; "" for a mode's default
	Origin    string // file and line, flag, Granted, or the skill that lends it
	// what the decision is about: a path as it was spelt, a sub-command, a host, a name; "": the call as a whole
	About  string
	Obeyed string // the key of git's configuration that makes About count as what the rule covers; "": none
	Reason string // half a sentence
	// Names are the protected names that commands of the call change, at most 10, that of Rule first; nil: none does
	Names []string
}
