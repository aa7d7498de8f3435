package filestate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// What a note is about.
const (
	kindChange    = "change"    // by a tool of ours
	kindExternal  = "external"  // what somebody else gave a file just when it was changed
	kindRecovered = "recovered" // what a process that died left in a temporary file
)

// How a change ended. It is the end of a note's name.
const (
	stateOpen   = "open"
	stateDone   = "done"
	stateUnsure = "unsure"
)

const (
	idDigits  = 16
	dayForm   = "20060102"
	maxHeader = 1 << 20 // bytes of the first line of a note
	headRead  = 1 << 10 // bytes that are read for it at once: a change of one file seldom has more
	// rawSize is the size from which a content is kept as it is. To compress 1 MB takes longer (8 ms) than all the rest of
	// its change; below it takes less than a sync of the disk.
	rawSize = 64 << 10

	keptMode = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky // the bits of a mode that a change keeps
)

// errDamaged says that a file of the journal is no whole note.
var errDamaged = errors.New("damaged note")

// A noteName is where a note is: a directory per day, and in it names that sort by time.
type noteName struct {
	at        int64 // nanoseconds since 1970, by which the name sorts
	id, state string
}

func (n noteName) day() string { return time.Unix(0, n.at).UTC().Format(dayForm) }

// base is its name in the directory of its day.
func (n noteName) base() string { return fmt.Sprintf("%019d-%s.%s", n.at, n.id, n.state) }

func (n noteName) path() string { return path.Join(n.day(), n.base()) }

// parseNoteName reads the last part of a path.
func parseNoteName(base string) (noteName, bool) {
	at, rest, _ := strings.Cut(base, "-")
	id, state, _ := strings.Cut(rest, ".")
	nanos, err := strconv.ParseInt(at, 10, 64)
	known := state == stateOpen || state == stateDone || state == stateUnsure
	return noteName{nanos, id, state}, err == nil && len(at) == 19 && validID(id) && known
}

// validID says whether id can name a note: 16 lower-case letters and digits.
func validID(id string) bool {
	return len(id) == idDigits && !strings.ContainsFunc(id, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z')
	})
}

// A header is the first line of a note, as JSON. The contents follow it, the smaller ones compressed: of every file the old
// one, and of the new one what does not stand in the old one at its beginning or end.
type header struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	By      By        `json:"by"`
	Process int       `json:"pid"`
	Started uint64    `json:"started"`
	Host    host      `json:"host"`
	Undoes  []string  `json:"undoes,omitempty"`
	Files   []noted   `json:"files"`
}

// noted is one file of a note.
type noted struct {
	Path    string      `json:"path"`
	Temp    string      `json:"temp,omitempty"`   // name of its temporary file
	Before  *digest     `json:"before,omitempty"` // nil: there was no file
	After   *digest     `json:"after,omitempty"`  // nil: there is none any more
	Mode    fs.FileMode `json:"mode,omitempty"`   // of the old file
	OldSize int64       `json:"old_size"`
	NewSize int64       `json:"new_size"`
	Added   int         `json:"added"` // lines
	Removed int         `json:"removed"`
	Kept    bool        `json:"kept"`             // the contents are here; false: too large
	Raw     bool        `json:"raw,omitempty"`    // they are not compressed
	Packed  int64       `json:"packed,omitempty"` // bytes of the old content here
	Head    int64       `json:"head,omitempty"`   // bytes that both contents begin with
	Tail    int64       `json:"tail,omitempty"`   // bytes that both contents end with
	Middle  int64       `json:"middle,omitempty"` // bytes of what is between in the new content, here
}

// contents are a file's contents before and after; nil: there was no file.
type contents struct{ before, after []byte }

// A note is a header with its contents; parts are nil if only the header was read.
type note struct {
	header
	parts []contents
	torn  bool // the change stopped half way: some of its files may be as they were before
}

// add notes one file of a change.
func (e *note) add(w *work) {
	f := noted{Path: w.path, Temp: w.temporary, OldSize: int64(len(w.old)), NewSize: int64(len(w.next))}
	c := contents{after: w.next}
	if w.file != nil {
		f.Before, f.Mode, c.before = &w.base, w.info.Mode()&keptMode, w.old
	}
	if w.edit.remove {
		c.after = nil
	} else {
		f.After = &w.after
	}
	f.Kept = max(f.OldSize, f.NewSize) <= maxKept
	f.Raw = f.Kept && max(f.OldSize, f.NewSize) >= rawSize
	head := commonPrefix(c.before, c.after)
	tail := commonSuffix(c.before[head:], c.after[head:])
	f.Head, f.Tail = int64(head), int64(tail)
	f.Added, f.Removed = changedLines(c.before, c.after, head, tail)
	e.Files, e.parts = append(e.Files, f), append(e.parts, c)
}

// changedLines counts the lines that a diff would show, from what both contents begin and end with.
func changedLines(before, after []byte, head, tail int) (added, removed int) {
	head = bytes.LastIndexByte(before[:head], '\n') + 1
	old, now := before[head:], after[head:]
	if rest := len(before) - tail; startsLine(before, rest) && startsLine(after, len(after)-tail) {
		old, now = old[:max(0, len(old)-tail)], now[:max(0, len(now)-tail)]
	} else if i := bytes.IndexByte(before[rest:], '\n'); i >= 0 {
		cut := tail - i - 1
		old, now = old[:max(0, len(old)-cut)], now[:max(0, len(now)-cut)]
	}
	names := make(map[string]int)
	was, is := splitLines(old, 0, len(old), names), splitLines(now, 0, len(now), names)
	var pairs []pair
	if len(was.names) <= maxMoveLines && len(is.names) <= maxMoveLines {
		align(was.names, is.names, 0, 0, maxMoveDepth, &pairs)
	}
	added, removed = len(is.names), len(was.names)
	for _, p := range pairs {
		added, removed = added-p.n, removed-p.n
	}
	return added, removed
}
