package filestate

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	tempPrefix = ".codehand-"
	tempSuffix = ".tmp"
	maxSwept   = 1024 // directories that a ledger knows to be swept; beyond it starts anew
	// leftAfter is how old a temporary file must be to be a left-over. A process on another host or in
	// another container looks dead from here; no change takes this long.
	leftAfter = 10 * time.Minute
)

// tempName names a new temporary file of process p.
func tempName(p process) string {
	var random [8]byte
	rand.Read(random[:]) // never fails (crypto/rand, Go 1.24)
	return fmt.Sprintf("%s%d-%d-%s%s", tempPrefix, p.pid, p.started, hex.EncodeToString(random[:]), tempSuffix)
}

// tempOwner returns the process that made the temporary file of that name.
func tempOwner(name string) (process, bool) {
	inner, isTemp := strings.CutPrefix(name, tempPrefix)
	inner, ends := strings.CutSuffix(inner, tempSuffix)
	parts := strings.Split(inner, "-")
	if !isTemp || !ends || len(parts) != 3 || len(parts[2]) != 16 {
		return process{}, false
	}
	pid, pidErr := strconv.Atoi(parts[0])
	started, startErr := strconv.ParseUint(parts[1], 10, 64)
	return process{pid, started}, pidErr == nil && startErr == nil
}

// A dirID names a directory for as long as it exists.
type dirID struct{ dev, ino uint64 }

// sweep removes what processes that were killed left in a directory, before the first change there.
//
// That is safe because a temporary file only ever holds new content, whose change was never
// acknowledged, since the rename that takes the name away comes first. Once a change exchanges the two
// names, a temporary file can hold the only copy of somebody's content: then its hash must be looked at
// before it is removed.
//
// It never fails: a left-over is a nuisance and no danger.
func (l *Ledger) sweep(dir *os.Root) {
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
			if owner, ok := tempOwner(name); ok && owner != l.self && owner.dead() {
				removeLeft(dir, name)
			}
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

// removeLeft removes a temporary file if it is a regular file of this user and old enough.
func removeLeft(dir *os.Root, name string) {
	info, err := dir.Lstat(name)
	if err == nil && info.Mode().IsRegular() && ownedByUs(info) && time.Since(info.ModTime()) > leftAfter {
		_ = dir.Remove(name) // somebody else may have been faster
	}
}
