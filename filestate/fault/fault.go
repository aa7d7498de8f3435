// Package fault names the steps of a change that can fail, as error texts name them, and lets tests make a step fail.
// It makes no step itself.
package fault

// A Step is a system call of a change that can fail, as errors name it.
type Step string

// The steps of a change, in their order. Those of the journal happen in its directory, all others beside the file.
const (
	Lock      Step = "lock"
	Note      Step = "note in the journal"
	NoteWrite Step = "write to the journal"
	NoteSync  Step = "sync the journal"
	NoteRead  Step = "read the journal"
	Read      Step = "read"
	Open      Step = "open"
	OpenDir   Step = "open directory"
	Make      Step = "make directory"
	Create    Step = "create"
	Write     Step = "write"
	Metadata  Step = "metadata" // to look at that of the old file, or of the new one
	Owner     Step = "owner"
	Attrs     Step = "attributes"
	Mode      Step = "mode"
	Sync      Step = "sync"
	Close     Step = "close"
	Rename    Step = "rename" // the exchange, or what stands in for it
	Verify    Step = "verify"
	PutBack   Step = "put back"
	SyncDir   Step = "sync directory"
	Remove    Step = "remove" // the old file
	End       Step = "close the journal"
	InPlace   Step = "write in place"
)

// A Check runs before each step, and its error counts as the step's own. Tests set it, to fail and to kill. A nil Check
// lets every step pass.
type Check func(Step) error

// Before asks the check, if there is one.
func (s Check) Before(at Step) error {
	if s == nil {
		return nil
	}
	return s(at)
}
