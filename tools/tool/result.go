package tool

import (
	"context"
	"encoding/json"
	"time"
)

// A Result is what a call gives back when it ran.
type Result struct {
	Text string // what the model reads; what happened comes first
	// it ran but the work failed (COMMAND_FAILED, TIMEOUT): isError, kept and cut as usual; "": it did not
	Failed Code
	Media  []Media // images; at most one unless the client profile allows more
	Meta   Meta    // for programs; goes to the result's _meta, never to structuredContent
	// characters that Run has claimed for Text from what the calls of its turn may show; 0: none
	Counted     int
	Shows       []string // absolute paths whose content Text shows; forgotten if a hook replaces Text
	ListChanged bool     // the tool list of this session changed; the notice goes out before the answer
	Lends       *Loan    // rules that a skill brings; nil: the call lends none, and earlier loans stay

	// Saw notes what Text shows of files; nil: Run has done it, or there is nothing. It is called at most once, when
	// the model gets all of Text.
	Saw func(context.Context)
}

// A Loan is rules that a skill of the operator or the user allows for a while. It takes the place of the loan of an
// earlier skill. The pipeline keeps it, as a session keeps what a person granted; a session that several conversations
// share gets none.
type Loan struct {
	Skill string        // its name, for the record
	Rules []string      // as in a configuration; empty: it only ends the earlier one
	Life  time.Duration // from the end of the call
}

// Meta is what a tool knows for programs; the pipeline adds decision, kept result, error and time.
// A struct of plain types, so that encoding cannot fail.
type Meta struct {
	Version string // of the file read or written
	Files   []FileChange
	Job     *Job
	Sandbox *Confinement    // of a command; nil: there was none
	Data    json.RawMessage // the tool's own fields, at most 4 KiB
	// Diff is what changed in files, as unified hunks under the names of each, at most 8 KiB, for a view of the person:
	// the model is told in fewer words. "": nothing, or no text.
	Diff string
	// Changed are the files of the git work tree that a command changed, for the record of the call; nil: none, or they
	// are not known. The call's own files are in Files.
	Changed    []FileChange
	ChangedCut bool // there are more than Changed, or they are not known yet

	// Set by the pipeline.
	Kept     *Kept
	Decision *Decided
	Millis   int64
}

// A Confinement is how far the kernel confined a command.
type Confinement struct {
	Level int      `json:"level"`          // 0 to 3, as tools/sandbox counts
	Gaps  []string `json:"gaps,omitempty"` // what the level promises and this machine does not keep
}

// A FileChange is one file that a call changed.
type FileChange struct {
	Path, Op, Before, After string // Op: create, change, delete; Before and After are versions
	// SHA-256 of the whole content, hex, for the audit; "": there was none, or it is not known
	SumBefore, SumAfter string
	// what a command did, where Op says only that it was one: create, change, delete; else ""
	Did   string
	Files int // how many new files a new directory has that stands for them; 0: this is one file
}

// Job is the state of a background command.
type Job struct {
	ID, State string
	Exit      int
}

// Kept says where the whole of a shortened text is. The pipeline sets it, but for texts that a tool has kept itself.
type Kept struct {
	ID    string // of the call, under which clients read it as a resource; "": they do not
	Path  string
	Bytes int64
	Lines int
	Shown int // characters
}

// Decided is the permission decision about a call.
type Decided struct {
	Verdict, Rule string
	Asked         bool
}

// Media is one image, as it is sent.
type Media struct {
	MIME string
	Data []byte // not base64
}
