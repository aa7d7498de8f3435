package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// maxCaseEntries is how many entries of a directory are read to find a name as the disk spells it, or one with letters
// to try; some 5 ms.
const maxCaseEntries = 5000

const (
	// maxBlank is how many directories without letters are remembered.
	maxBlank = 64
	// blankSettled is how old a directory's time must be before an equal one proves that its names are the same.
	blankSettled = 2 * time.Second
	// blankKept is how long they are remembered: not every file system sets a directory's time with each name.
	blankKept = 5 * time.Second
)

// A caseIndex remembers which roots are on a file system that ignores letter case. It is shared by all copies of a
// Space and safe for concurrent use.
type caseIndex struct {
	mu    sync.Mutex // covers what follows
	folds map[*area]bool
	blank []blank // the oldest first
	reads int     // of directories, for tests
}

// A blank is a directory none of whose names has letters, so that it says nothing about letter case. To read all its
// names for each of them takes the square of their number.
type blank struct {
	dir fs.FileInfo
	at  time.Time
}

// knows says whether dir is a blank that has not changed.
func (x *caseIndex) knows(dir fs.FileInfo) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(x.blank, func(b blank) bool {
		return os.SameFile(b.dir, dir) && b.dir.ModTime().Equal(dir.ModTime()) && time.Since(b.at) < blankKept
	})
}

// remember notes that dir is a blank.
func (x *caseIndex) remember(dir fs.FileInfo) {
	now := time.Now()
	if now.Sub(dir.ModTime()) < blankSettled {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.blank = slices.DeleteFunc(x.blank, func(b blank) bool { return os.SameFile(b.dir, dir) })
	if len(x.blank) == maxBlank {
		x.blank = slices.Delete(x.blank, 0, 1)
	}
	x.blank = append(x.blank, blank{dir, now})
}

func (x *caseIndex) of(a *area) (folds, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	folds, ok = x.folds[a]
	return folds, ok
}

func (x *caseIndex) keep(a *area, folds bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.folds == nil {
		x.folds = map[*area]bool{}
	}
	x.folds[a] = folds
}

// Folds says whether the file system does not tell letter cases apart where path is, or would be: whether `A.TXT` is
// `a.txt` there. It is tried with a name that exists, the other way round in capitals: once for each root, and once
// for the directory of path, which may be another file system. What cannot be tried is said to fold if the root does.
func (s *Space) Folds(path string) bool {
	p, err := openBy(s, path, Write, nil)
	if err != nil {
		if p, err = openBy(s, path, Read, nil); err != nil {
			return onWindows
		}
	}
	defer p.Dir.Close()
	return s.foldsAt(p)
}

// foldsAt is Folds for a place.
func (s *Space) foldsAt(p Place) bool {
	if s.rootFolds(p.Path) {
		return true
	}
	first := firstComponent(p.Name)
	if folds, known := tryCase(p.Dir, first); known {
		return folds
	}
	folds, _ := s.cases.tryAny(p.Dir)
	return folds
}

// rootFolds says whether the area of path folds.
func (s *Space) rootFolds(path string) bool {
	a, _, ok := s.areas.find(path)
	if !ok {
		return onWindows
	}
	if a.readOnly || a.file { // made anew for each call, so that nothing could be remembered about it
		return onWindows
	}
	if a.within != nil {
		a = a.within
	}
	if folds, ok := s.cases.of(a); ok {
		return folds
	}
	dir, err := a.open()
	if err != nil {
		return onWindows
	}
	defer dir.Close()
	folds, known := s.cases.tryAny(dir)
	if known { // an empty directory says something tomorrow
		s.cases.keep(a, folds)
	}
	return folds
}

// tryAny tries the names in dir, until one has letters.
func (x *caseIndex) tryAny(dir *os.Root) (folds, known bool) {
	info, err := dir.Stat(".")
	if err == nil && x.knows(info) {
		return false, false
	}
	x.mu.Lock()
	x.reads++
	x.mu.Unlock()
	_ = eachName(dir, func(name string) bool { // what cannot be read is not known
		folds, known = tryCase(dir, name)
		return !known
	})
	if err == nil && !known {
		x.remember(info) // as it was before it was read
	}
	return folds, known
}

// tryCase looks whether name in dir is the same file in the other case. Two hard links that are spelled so pass for
// one file, which is the careful answer. known is false if there is no such name, or none with letters.
func tryCase(dir *os.Root, name string) (folds, known bool) {
	other := swapCase(name)
	if other == name {
		return false, false
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return false, false
	}
	swapped, err := dir.Lstat(other)
	if err != nil {
		return false, gone(err)
	}
	return os.SameFile(info, swapped), true
}

// swapCase returns name with every letter in its other case.
func swapCase(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLower(r):
			return unicode.ToUpper(r)
		case unicode.IsUpper(r):
			return unicode.ToLower(r)
		}
		return r
	}, name)
}

// eachName calls f with the names in dir until it returns false, at most maxCaseEntries times.
func eachName(dir *os.Root, f func(name string) bool) error {
	list, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer list.Close()
	for seen := 0; seen < maxCaseEntries; {
		names, err := list.Readdirnames(256)
		for _, name := range names {
			if !f(name) {
				return nil
			}
		}
		if seen += len(names); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
	return nil
}

// asStored returns the path of p with every component below its area as the disk spells it, where the file system
// takes other spellings, too: other letter cases and short names. What does not exist stays as it is.
func (s *Space) asStored(p Place) string {
	a, rest, ok := s.areas.find(p.Path)
	if !ok || a.file || len(rest) == 0 || !s.foldsAt(p) { // trying costs more than all the rest of a listing
		return p.Path
	}
	dir, err := a.open()
	if err != nil {
		return p.Path
	}
	stored := []string{a.path}
	for i, name := range rest {
		stored = append(stored, storedName(dir, name))
		if i == len(rest)-1 {
			break
		}
		below, err := openDir(dir, name)
		if err != nil {
			stored = append(stored, rest[i+1:]...)
			break
		}
		_ = dir.Close() // only looked at
		dir = below
	}
	_ = dir.Close() // likewise
	return filepath.Join(stored...)
}

// storedName returns the entry of dir that name is. In a directory with more than maxCaseEntries it may not be found.
func storedName(dir *os.Root, name string) string {
	info, err := dir.Lstat(name)
	if err != nil {
		return name
	}
	stored := name
	_ = eachName(dir, func(entry string) bool { // what was found until an error is what is known
		if entry == name {
			stored = name
			return false
		}
		if strings.EqualFold(entry, name) || strings.ContainsRune(name, '~') {
			if other, err := dir.Lstat(entry); err == nil && os.SameFile(info, other) {
				stored = entry
			}
		}
		return true
	})
	return stored
}

// firstComponent is the part of a Place's Name that may exist.
func firstComponent(name string) string {
	if i := strings.IndexByte(name, filepath.Separator); i >= 0 {
		return name[:i]
	}
	return name
}
