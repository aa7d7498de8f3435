package filestate

import (
	"context"
	"os"
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
