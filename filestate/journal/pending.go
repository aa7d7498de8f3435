package journal

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"codehand/filestate/fault"
)

// mostUnended is how many ends are kept for later at most. More are rare: a process without a file descriptor for the
// end of a change seldom has one for the next change. The oldest is dropped first, and the next start settles it.
const mostUnended = 256

// A Pending is a change that is noted and not yet made, or not known to be. One of its methods ends it.
type Pending struct {
	ID      string // of the change
	journal *Journal
	name    noteName
}

// Done says that the change was made. It need not be synced, and may fail, as without a file descriptor: it is tried
// again before the next change or question, and at the end. An open note of a change that is made says no less, and
// Settle finds the same from the files unless another program has changed them since. It also removes what is too old
// or too much, when enough was added.
func (p Pending) Done(ctx context.Context) {
	p.journal.endOrLater(ending{p.name, stateDone})
	p.journal.tidyIfDue(ctx)
}

// Unsure says that the change stopped half way, and could not be taken back. It may fail as Done may.
func (p Pending) Unsure() { p.journal.endOrLater(ending{p.name, stateUnsure}) }

// Drop removes the note of a change that did not happen. It may fail as Done may.
func (p Pending) Drop() { p.journal.endOrLater(ending{p.name, ""}) }

// unended are ends that could not be noted. The zero unended is ready.
type unended struct {
	mu   sync.Mutex
	ends []ending
}

// An ending is how a change ended.
type ending struct {
	note noteName
	as   string // "": it did not happen
}

func (j *Journal) endOrLater(e ending) {
	err := j.endAs(e)
	if err == nil || errors.Is(err, fs.ErrNotExist) { // another process has settled it
		return
	}
	j.unended.mu.Lock()
	defer j.unended.mu.Unlock()
	if j.unended.ends = append(j.unended.ends, e); len(j.unended.ends) > mostUnended {
		j.unended.ends = j.unended.ends[1:]
	}
}

// endLate notes the ends that could not be noted when they came.
func (j *Journal) endLate() {
	j.unended.mu.Lock()
	ends := j.unended.ends
	j.unended.ends = nil
	j.unended.mu.Unlock()
	for _, e := range ends {
		j.endOrLater(e)
	}
}

func (j *Journal) endAs(e ending) error {
	if e.as == "" {
		return j.drop(e.note)
	}
	return j.end(e.note, e.as)
}

// end says how a change ended. It need not be synced: Settle finds the same from the files.
func (j *Journal) end(name noteName, as string) error {
	if err := j.o.Check.Before(fault.End); err != nil {
		return err
	}
	now := name
	now.state = as
	return j.root.Rename(name.path(), now.path())
}

// drop removes the note of a change that did not happen.
func (j *Journal) drop(name noteName) error { return j.root.Remove(name.path()) }
