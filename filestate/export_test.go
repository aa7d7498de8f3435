package filestate

import (
	"context"
	"os"
	"time"
)

// Settle makes the record of path as if its stamp had been noted 2 s after the last change. The caller
// sees to it that the next change gets another time.
func Settle(ctx context.Context, l *Ledger, path string) error {
	rec, err := l.records.load(ctx, path)
	if err != nil || rec == nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil || !rec.Stamp.same(stampOf(info)) {
		return nil
	}
	rec.Stamp.Racy = false
	return l.records.save(ctx, rec)
}

// LargeFrom makes files over size bytes large ones, which are not hashed whole because a part of them is read.
func LargeFrom(l *Ledger, size int64) { l.large = size }

// MaxFiles is how many paths a ledger remembers.
const MaxFiles = maxFiles

// TempNameOf names a temporary file as a process would that has that id and start.
func TempNameOf(pid int, started uint64) string {
	return hand{process: process{pid, started}, host: thisHost()}.tempName()
}

// TempNameElsewhere names a temporary file as a process of another host or container would.
func TempNameElsewhere(pid int, started uint64) string {
	return hand{process: process{pid, started}, host: host{Name: "elsewhere"}}.tempName()
}

// OwnStart is when this process started.
func OwnStart() uint64 { return thisProcess().started }

// KeepStamp makes the file of r look as it did when r was opened, as after a change within one tick of
// the clock.
func KeepStamp(r *Reading) {
	now, err := restamp(r.file)
	if err != nil {
		return
	}
	now.Racy = true
	r.stamp = now
}

// Fits says whether v is a version of content, partial or not.
func (v Version) Fits(content string) bool { return v.names(digestOf([]byte(content))) }

// StartOf returns when a process started, 0 if that is not known.
func StartOf(pid int) uint64 {
	started, _ := startOf(pid)
	return started
}

// Steps are all steps of a change, by the names that errors give them.
func Steps() []string {
	var names []string
	for _, s := range []step{
		stepNote, stepNoteWrite, stepNoteSync, stepMake, stepCreate, stepWrite, stepOwner, stepAttrs, stepMode, stepSync,
		stepClose, stepRename, stepVerify, stepPutBack, stepSyncDir, stepRemove, stepEnd, stepInPlace,
	} {
		names = append(names, string(s))
	}
	return names
}

// BeforeSteps has do asked before each step of l's changes, those in the journal included. An error is taken for that of
// the step.
func BeforeSteps(l *Ledger, do func(step string) error) {
	s := func(at step) error { return do(string(at)) }
	l.steps = s
	if l.journal != nil {
		l.journal.steps = s
	}
}

// At sets the clock of j.
func At(j *Journal, now func() time.Time) { j.now = now }

// Tidy removes what is too old or too much.
func Tidy(ctx context.Context, j *Journal) { j.tidy(ctx) }

// LeaveOpen makes the note of a change one that a process left open which has died.
func LeaveOpen(ctx context.Context, j *Journal, id string) error {
	return LeaveOpenAt(ctx, j, id, j.self.host.Boot)
}

// LeaveOpenAt does so for a process of a start of the machine.
func LeaveOpenAt(ctx context.Context, j *Journal, id, boot string) error {
	n, e, err := j.find(ctx, id)
	if err != nil {
		return err
	}
	if err := j.drop(n); err != nil {
		return err
	}
	e.Process, e.Started = 1<<22+1, 1 // no such process: beyond the largest id that Linux gives
	e.Host = j.self.host
	e.Host.Boot = boot
	b, err := j.encode(e)
	if err != nil {
		return err
	}
	n.state = stateOpen
	return j.write(n, b)
}

// SwapNameOf names a temporary file as a ledger with a journal would in the process that has that id and start.
func SwapNameOf(pid int, started uint64) string {
	return hand{process: process{pid, started}, host: thisHost(), swaps: true}.tempName()
}

// SettleLate looks at all files that were just replaced for the last time, as Close does.
func SettleLate(j *Journal) { j.settleAllLate() }

// TempOf is the name of the temporary file of a change of one file; "": there is no such change.
func TempOf(ctx context.Context, j *Journal, id string) string {
	_, e, err := j.find(ctx, id)
	if err != nil {
		return ""
	}
	return e.Files[0].Temp
}
