package search

import (
	"errors"
	"slices"
	"sync"
	"time"

	"codehand/tools/search/pattern"
)

// A GrepAnswer holds what was found, in order. Slices are the caller's.
type GrepAnswer struct {
	Files []FileHits
	// of all matches, also of those that were cut; with Multiline in mode Count, matches instead of lines
	NFiles, NLines int
	Exact          bool // false: NFiles and NLines are lower bounds
	More           bool // entries follow after Offset+Limit
	Ranked         bool // the order is that of Rank: a file with definitions and other lines is in Files twice
	// where entries after Offset+Limit are, the fullest first, at most 5; counts are as exact as the totals
	Rest     []InDir
	Work     int // files and directories looked at, with MaxWork
	Coverage Coverage
}

// FileHits are the hits of one file.
type FileHits struct {
	Path    string // absolute
	ModTime time.Time
	NLines  int    // matching lines; 1 in mode FilesOnly
	Binary  bool   // named by the query and binary: NLines is known, Lines is empty
	Lines   []Line // in mode Lines
}

// A Line is one line of text, without its end.
type Line struct {
	N        int // from 1
	Text     string
	Context  bool           // no match itself
	Defines  bool           // what matches is the name that the line defines; only with Rank
	Cut      bool           // Text is the window From:To (bytes of the line) around the first match
	From, To int            // the whole line unless Cut
	Spans    []pattern.Span // of matches in Text, if asked for
}

// A FileAnswer holds the newest files.
type FileAnswer struct {
	Files    []FileInfo
	N        int // all that match
	Coverage Coverage
}

// A FileInfo is one file of a listing.
type FileInfo struct {
	Path    string // absolute
	ModTime time.Time
	Size    int64
}

// A Reason says why an answer is not complete.
type Reason string

// The reasons.
const (
	NoReason Reason = ""
	Time     Reason = "time"
	Memory   Reason = "memory"
	TooLarge Reason = "too large"
	Work     Reason = "work" // MaxWork is done
)

// A Coverage says what an answer is about. Every path in it has passed Skip.
type Coverage struct {
	Complete bool   // all that could be read was searched to its end
	Why      Reason // the first that applied, if not Complete
	Searched int    // files
	Bytes    int64  // of files
	Left     Some   // with Time: directories and files not visited; a lower bound

	// What was left out for a reason that leaves the answer complete.
	Unreadable Some
	Binary     Some // a NUL in the first 64 KiB, in files with a match
	Partial    Some // a NUL later: searched up to there; or an ignore file over 1 MiB
	Links      Some // symbolic ones: what they lead to is found in its own place, if at all
	Special    Some // FIFOs, sockets, devices, and system file systems; with Files those whose name fits
	Omitted    Some // by Scope.Omit

	// What was not searched to its end, so that the answer is not complete.
	TooLarge  Some // over 64 MiB with Multiline
	LongLines Some // of a line over 16 MiB only the first 16 MiB

	Mode string // "walk": how files were chosen; for logs and tests
}

// Some is a number of things and the first five in path order.
type Some struct {
	N     int
	Paths []string // absolute
}

// keptPaths is how many paths a Some names.
const keptPaths = 5

// add counts one thing.
func (s *Some) add(path string) {
	s.N++
	at, _ := slices.BinarySearchFunc(s.Paths, path, comparePaths)
	if at < keptPaths {
		s.Paths = slices.Insert(s.Paths, at, path)
		s.Paths = s.Paths[:min(len(s.Paths), keptPaths)]
	}
}

// A PatternError says what is wrong with a pattern, a glob or a file pattern. Offset is a byte of it.
type PatternError = pattern.Error

// A TypeError says that a file type is not known.
type TypeError struct {
	Name string
	Near []string // names that look like it, at most 5
}

func (e *TypeError) Error() string { return "unknown file type " + e.Name }

// The errors about the place of a query.
var (
	ErrNotRegular = errors.New("neither a regular file nor a directory")
	ErrGone       = errors.New("the place of the query is gone")
)

// comparePaths orders paths component by component, by bytes: a/x comes before a-b/x. That is the order of a
// walk that sorts the names of each directory.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			if a[i] == '/' {
				return -1
			}
			if b[i] == '/' {
				return 1
			}
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}

// A ledger gathers the Coverage of one query from its workers.
type ledger struct {
	mu     sync.Mutex
	cov    Coverage
	failed error // why the one file that the query names could not be read to its end
}

// note counts one path in a field of the Coverage.
func (l *ledger) note(field func(*Coverage) *Some, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	field(&l.cov).add(path)
}

// The fields that note is called with.
func ofUnreadable(c *Coverage) *Some { return &c.Unreadable }
func ofBinary(c *Coverage) *Some     { return &c.Binary }
func ofPartial(c *Coverage) *Some    { return &c.Partial }
func ofLinks(c *Coverage) *Some      { return &c.Links }
func ofSpecial(c *Coverage) *Some    { return &c.Special }
func ofOmitted(c *Coverage) *Some    { return &c.Omitted }
func ofTooLarge(c *Coverage) *Some   { return &c.TooLarge }
func ofLongLines(c *Coverage) *Some  { return &c.LongLines }
func ofLeft(c *Coverage) *Some       { return &c.Left }

// incomplete says why the answer is not complete; the first reason stays.
func (l *ledger) incomplete(why Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cov.Why == NoReason {
		l.cov.Why = why
	}
}

// unread says why the file that the query names could not be read.
func (l *ledger) unread(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = err
}

// failure is what unread was told; nil: nothing.
func (l *ledger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// searched counts files and bytes.
func (l *ledger) searched(files int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cov.Searched += files
	l.cov.Bytes += bytes
}

// soFar returns what Progress is told.
func (l *ledger) soFar() (files, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.cov.Searched), l.cov.Bytes
}

// result returns the Coverage as it is now. Workers that are late change only the ledger afterwards.
func (l *ledger) result() Coverage {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cov
	for _, field := range []func(*Coverage) *Some{ofUnreadable, ofBinary, ofPartial, ofLinks, ofSpecial, ofOmitted,
		ofTooLarge, ofLongLines, ofLeft} {
		field(&c).Paths = slices.Clone(field(&c).Paths)
	}
	c.Mode = "walk"
	c.Complete = c.Why == NoReason
	return c
}
