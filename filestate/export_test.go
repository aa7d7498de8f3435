package filestate

import (
	"context"
	"os"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/owner"
)

// Settle makes the record of path as if its stamp had been noted 2 s after the last change. The caller
// sees to it that the next change gets another time.
func Settle(ctx context.Context, l *Ledger, path string) error {
	rec, err := l.records.Load(ctx, path)
	if err != nil || rec == nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil || !rec.Stamp.Same(disk.StampOf(info)) {
		return nil
	}
	rec.Stamp.Racy = false
	return l.records.Save(ctx, rec)
}

// LargeFrom makes files over size bytes large ones, which are not hashed whole because a part of them is read.
func LargeFrom(l *Ledger, size int64) { l.large = size }

// SpliceFrom lets files over size bytes be changed at one place without their content in memory.
func SpliceFrom(l *Ledger, size int64) { l.spliced = size }

// TempNameOf names a temporary file as a process would that has that id and start.
func TempNameOf(pid int, started uint64) string {
	return owner.Hand{Process: owner.Process{ID: pid, Started: started}, Host: owner.ThisHost()}.TempName()
}

// TempNameElsewhere names a temporary file as a process of another host or container would.
func TempNameElsewhere(pid int, started uint64) string {
	return owner.Hand{Process: owner.Process{ID: pid, Started: started}, Host: owner.Host{Name: "elsewhere"}}.TempName()
}

// OwnStart is when this process started.
func OwnStart() uint64 { return owner.ProcessOf(os.Getpid()).Started }

// KeepStamp makes the file of r look as it did when r was opened, as after a change within one tick of
// the clock.
func KeepStamp(r *Reading) {
	now, err := disk.Restamp(r.file)
	if err != nil {
		return
	}
	now.Racy = true
	r.stamp = now
}

// StartOf returns when a process started, 0 if that is not known.
func StartOf(pid int) uint64 {
	return owner.ProcessOf(pid).Started
}

// Steps are all steps of a change, by the names that errors give them.
func Steps() []string {
	var names []string
	for _, s := range []fault.Step{
		fault.Note, fault.NoteWrite, fault.NoteSync, fault.Make, fault.Create, fault.Write, fault.Metadata, fault.Owner, fault.Attrs, fault.Mode, fault.Sync,
		fault.Close, fault.Rename, fault.Verify, fault.PutBack, fault.SyncDir, fault.Remove, fault.End, fault.InPlace,
	} {
		names = append(names, string(s))
	}
	return names
}

// BeforeSteps has do asked before each step of l's changes, those in the journal excepted. An error is taken for that of
// the step.
func BeforeSteps(l *Ledger, do func(step string) error) {
	l.steps = func(at fault.Step) error { return do(string(at)) }
}

// SwapNameOf names a temporary file as a ledger with a journal would in the process that has that id and start.
func SwapNameOf(pid int, started uint64) string {
	return owner.Hand{Process: owner.Process{ID: pid, Started: started}, Host: owner.ThisHost(), Swaps: true}.TempName()
}
