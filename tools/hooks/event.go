package hooks

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"codehand/tools/permission"
	"codehand/tools/sandbox"
)

// The events. The first four are about a call and may be answered, but for an asynchronous hook; so may the start of a
// sub-agent. The others are for information only.
const (
	PreToolUse         = "PreToolUse"
	PermissionRequest  = "PermissionRequest"  // a person would be asked now
	PostToolUse        = "PostToolUse"        // the call went well
	PostToolUseFailure = "PostToolUseFailure" // it did not

	PermissionDenied = "PermissionDenied"
	SessionStart     = "SessionStart"
	SessionEnd       = "SessionEnd"
	SubagentStart    = "SubagentStart"
	SubagentStop     = "SubagentStop"
	FileChanged      = "FileChanged"
)

// events are all of them, in the order of a call and of a session.
var events = [...]string{
	PreToolUse, PermissionRequest, PermissionDenied, PostToolUse, PostToolUseFailure, FileChanged,
	SessionStart, SessionEnd, SubagentStart, SubagentStop,
}

// decides says whether hooks may decide at this event whether something is done.
func decides(event string) bool { return aboutCall(event) || event == SubagentStart }

// aboutCall says whether it is a call that hooks decide about at this event.
func aboutCall(event string) bool { return event == PreToolUse || event == PermissionRequest }

// comments says whether hooks may comment on a result at this event.
func comments(event string) bool { return event == PostToolUse || event == PostToolUseFailure }

// An Event is what hooks are told.
type Event struct {
	Name string // one of the above; Before, Asked, After and Starting set it themselves

	Session   string // as the audit names it
	Agent     string // id of the sub-agent that starts, has ended or makes the call; "": none
	AgentType string
	Mode      permission.Mode
	Place

	// Of a call; else zero.
	Call    string
	Tool    string
	Aliases []string
	Input   json.RawMessage    // canonical
	Request permission.Request // what `if` is held against

	// After only.
	Response string // as bounded
	Failed   bool
	Took     time.Duration // of Run

	Reason string // PermissionDenied, SessionEnd: why; SubagentStop: how it ended
	Source string // SessionStart: startup, resume
	File   string // FileChanged: absolute
}

// A Place is where programs run.
type Place struct {
	Roots []string // canonical; the first is the project's directory
	Cwd   string
	// Confine says how a program of a project is confined; background: no call waits for it. nil: as little as those of
	// the operator
	Confine func(background bool) (Confined, error)
}

// Confined is how the kernel confines a program. The zero value confines nothing.
type Confined struct {
	Profile *sandbox.Profile
	Level   sandbox.Level
	Groups  *sandbox.Groups                           // limits its memory and processes; nil: nothing does
	Env     []string                                  // besides its usual environment
	Serve   func(context.Context, net.Listener) error // its way to the network, until ctx ends; nil: it has none
}

// An Outcome is what hooks said. The zero value says nothing.
type Outcome struct {
	Opinions []permission.Verdict // one Deny blocks the call; of After: it objects to the result
	Reason   string               // of the strictest opinion
	Origin   string               `json:",omitempty"` // of the hooks that have it
	Input    json.RawMessage      `json:",omitempty"` // Before only: the whole input that takes the place of the old one; nil: unchanged, also after a journey with a question
	Context  string               // added to the text
	Output   *string              // After only: takes the place of the text; nil: unchanged
}
