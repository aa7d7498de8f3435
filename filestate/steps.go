package filestate

// A step is a system call of a change that can fail, as errors name it.
type step string

// The steps of a change, in their order. Those of the journal happen in its directory, all others beside the file.
const (
	stepLock      step = "lock"
	stepNote      step = "note in the journal"
	stepNoteWrite step = "write to the journal"
	stepNoteSync  step = "sync the journal"
	stepNoteRead  step = "read the journal"
	stepRead      step = "read"
	stepOpen      step = "open"
	stepOpenDir   step = "open directory"
	stepMake      step = "make directory"
	stepCreate    step = "create"
	stepWrite     step = "write"
	stepOwner     step = "owner"
	stepAttrs     step = "attributes"
	stepMode      step = "mode"
	stepSync      step = "sync"
	stepClose     step = "close"
	stepRename    step = "rename" // the exchange, or what stands in for it
	stepVerify    step = "verify"
	stepPutBack   step = "put back"
	stepSyncDir   step = "sync directory"
	stepRemove    step = "remove" // the old file
	stepEnd       step = "close the journal"
	stepInPlace   step = "write in place"
)

// steps is asked before each step, and its error is taken for the step's own. Tests set it, to fail and to kill; nil asks
// nobody.
type steps func(step) error

func (s steps) before(at step) error {
	if s == nil {
		return nil
	}
	return s(at)
}
