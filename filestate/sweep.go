package filestate

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/filestate/owner"
)

const (
	maxSwept = 1024 // directories that a ledger knows to be swept; beyond it starts anew
)

// A dirID names a directory for as long as it exists.
type dirID struct{ dev, ino uint64 }

// sweep removes what processes that were killed left in a directory, before the first change there.
//
// Since a change exchanges two names, a temporary file can hold the only copy of a content: if the journal does not
// have it, sweep copies it there first. A ledger without a journal exchanges nothing, and removes only what such
// ledgers left.
//
// It never fails: a left-over is a nuisance and no danger.
func (l *Ledger) sweep(ctx context.Context, dir *os.Root, path string) {
	d, err := dir.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }() // nothing is written to it
	stamp, err := disk.Restamp(d)
	if err != nil || !l.firstIn(dirID{stamp.Dev, stamp.Ino}) {
		return
	}
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			l.sweepOne(ctx, dir, name, filepath.Join(path, name))
		}
		if err != nil {
			return
		}
	}
}

// firstIn says whether this ledger has not swept the directory yet.
func (l *Ledger) firstIn(id dirID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.swept[id] {
		return false
	}
	if len(l.swept) >= maxSwept {
		clear(l.swept)
	}
	l.swept[id] = true
	return true
}

// sweepOne removes a temporary file if its process has ended and nothing is lost by it.
func (l *Ledger) sweepOne(ctx context.Context, dir *os.Root, name, path string) {
	maker, mark, isTemp := owner.Of(name)
	if !isTemp || maker == l.self.Process || !maker.Dead() {
		return
	}
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || !disk.OwnedByUs(info) {
		return
	}
	plain := owner.Hand{Host: l.self.Host}.Mark()
	here := mark == plain || mark == owner.Hand{Host: l.self.Host, Swaps: true}.Mark()
	switch {
	case !here && time.Since(info.ModTime()) <= owner.LeftAfter:
	case mark == plain:
		_ = dir.Remove(name) // only ever a new content, whose change was never acknowledged
	case l.journal != nil:
		l.settleLeft(ctx, dir, name, path)
	}
}

// settleLeft removes a temporary file that no process uses any more. If this file alone holds a content, the journal
// gets it first.
func (l *Ledger) settleLeft(ctx context.Context, dir *os.Root, name, path string) {
	file, stamp, err := disk.OpenRegular(dir, name, path)
	if err != nil || stamp.Size > disk.MaxSize {
		return
	}
	content, err := disk.ReadAll(ctx, file, stamp.Size)
	_ = file.Close() // only read
	if err != nil {
		return
	}
	if !l.journal.Knows(ctx, name, content) &&
		!l.journal.TryKeep(journal.KindRecovered, journal.By{}, path, content, path) {
		return
	}
	_ = dir.Remove(name) // another process may have been faster
}
