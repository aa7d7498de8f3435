package filestate

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	tempPrefix = ".codehand-"
	tempSuffix = ".tmp"
	maxSwept   = 1024 // directories that a ledger knows to be swept; beyond it starts anew
	// leftAfter is how old a temporary file of elsewhere must be to be a left-over. A process on another host or in
	// another container looks dead from here; no change takes this long.
	leftAfter = 10 * time.Minute
)

// A hand makes temporary files.
type hand struct {
	process process
	host    host
	swaps   bool // its temporary files can hold somebody's only copy, since names are exchanged
}

// mark is the first half of the 16 digits in the names of this hand's temporary files. It says whether a process id in
// a name means anything here, and what the file can hold.
func (h hand) mark() string {
	use := "replaces"
	if h.swaps {
		use = "swaps"
	}
	return short(use, h.host.Name, h.host.Boot, h.host.IDs)
}

// tempName names a new temporary file.
func (h hand) tempName() string {
	var random [4]byte
	rand.Read(random[:]) // never fails (crypto/rand, Go 1.24)
	return fmt.Sprintf("%s%d-%d-%s%s%s", tempPrefix, h.process.pid, h.process.started, h.mark(), hex.EncodeToString(random[:]), tempSuffix)
}

// tempOwner returns the process that made the temporary file of that name, and its mark.
func tempOwner(name string) (p process, mark string, ok bool) {
	inner, isTemp := strings.CutPrefix(name, tempPrefix)
	inner, ends := strings.CutSuffix(inner, tempSuffix)
	parts := strings.Split(inner, "-")
	if !isTemp || !ends || len(parts) != 3 || len(parts[2]) != 16 {
		return process{}, "", false
	}
	pid, pidErr := strconv.Atoi(parts[0])
	started, startErr := strconv.ParseUint(parts[1], 10, 64)
	return process{pid, started}, parts[2][:8], pidErr == nil && startErr == nil
}

// Temporary says whether name, of one component, is that of a temporary file of a change: no listing shows one.
func Temporary(name string) bool {
	if !strings.HasPrefix(name, tempPrefix) {
		return false // nearly all names, at no cost
	}
	_, _, is := tempOwner(name)
	return is
}

// A dirID names a directory for as long as it exists.
type dirID struct{ dev, ino uint64 }

// sweep removes what processes that were killed left in a directory, before the first change there.
//
// Since a change exchanges two names, a temporary file can hold the only copy of somebody's content: what the journal
// does not know is kept there first. A ledger without a journal exchanges nothing, and removes only what its like left.
//
// It never fails: a left-over is a nuisance and no danger.
func (l *Ledger) sweep(ctx context.Context, dir *os.Root, path string) {
	d, err := dir.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }() // nothing is written to it
	stamp, err := restamp(d)
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
	owner, mark, isTemp := tempOwner(name)
	if !isTemp || owner == l.self.process || !owner.dead() {
		return
	}
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || !ownedByUs(info) {
		return
	}
	plain := hand{host: l.self.host}.mark()
	here := mark == plain || mark == hand{host: l.self.host, swaps: true}.mark()
	switch {
	case !here && time.Since(info.ModTime()) <= leftAfter:
	case mark == plain:
		_ = dir.Remove(name) // only ever a new content, whose change was never acknowledged
	case l.journal != nil:
		l.journal.settleLeft(ctx, dir, name, path)
	}
}

// settleLeft removes a temporary file that nobody uses any more, after it has kept what only this file holds.
func (j *Journal) settleLeft(ctx context.Context, dir *os.Root, name, path string) {
	file, stamp, err := openRegular(dir, name, path)
	if err != nil || stamp.Size > maxSize {
		return
	}
	content, err := readAll(ctx, file, stamp.Size)
	_ = file.Close() // only read
	if err != nil {
		return
	}
	if !j.knows(ctx, name, content) && j.keep(kindRecovered, By{}, path, content) != nil {
		return
	}
	_ = dir.Remove(name) // somebody else may have been faster
}

// knows says whether the journal holds a content, or the change that made this temporary file was still writing it.
func (j *Journal) knows(ctx context.Context, temp string, content []byte) bool {
	sum := digestOf(content)
	for n, day := range j.names() {
		if ctx.Err() != nil {
			return false
		}
		h, err := n.header(day)
		if err != nil {
			continue
		}
		for i, f := range h.Files {
			if f.Kept && (f.Before != nil && *f.Before == sum || f.After != nil && *f.After == sum) {
				return true
			}
			if !f.Kept || f.Temp != temp || f.After == nil {
				continue
			}
			if e, err := n.read(day); err == nil && bytes.HasPrefix(e.parts[i].after, content) {
				return true
			}
		}
	}
	return false
}
