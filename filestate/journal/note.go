package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/lines"
	"codehand/filestate/owner"
)

// What a note is about.
const (
	KindChange    = "change"    // by a tool of ours
	KindExternal  = "external"  // content of another program, saved just when we changed the file
	KindRecovered = "recovered" // what a process that died left in a temporary file
	KindHeld      = "held"      // what files were before a command that may discard it
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
	// rawSize is the size from which a content is kept as it is. To compress 1 MB takes longer (8 ms) than all the rest
	// of its change; below it takes less than a sync of the disk.
	rawSize = 64 << 10
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

// A Header is the first line of a note, as JSON. The contents follow it, the smaller ones compressed: of every file the
// old one, and of the new one what does not stand in the old one at its beginning or end.
type Header struct {
	ID      string     `json:"id"`
	Time    time.Time  `json:"time"`
	Kind    string     `json:"kind"`
	By      By         `json:"by"`
	Process int        `json:"pid"`
	Started uint64     `json:"started"`
	Host    owner.Host `json:"host"`
	Undoes  []string   `json:"undoes,omitempty"`
	Files   []File     `json:"files"`
}

// File is one file of a note.
type File struct {
	Path   string       `json:"path"`
	Temp   string       `json:"temp,omitempty"`   // name of its temporary file
	Before *disk.Digest `json:"before,omitempty"` // nil: there was no file
	After  *disk.Digest `json:"after,omitempty"`  // nil: there is none any more
	Mode   fs.FileMode  `json:"mode,omitempty"`   // of the old file
	// of the new file, if the change set it: an undo then wants it there, and gives the file Mode again; 0: it did not
	NewMode fs.FileMode `json:"new_mode,omitempty"`
	Why     string      `json:"why,omitempty"`   // why the contents are not here, if they are not too large
	Files   int         `json:"files,omitempty"` // how many a new directory has that is noted as one; 0: one file
	OldSize int64       `json:"old_size"`
	NewSize int64       `json:"new_size"`
	Added   int         `json:"added"` // lines
	Removed int         `json:"removed"`
	Kept    bool        `json:"kept"`          // the contents are here; false: too large, or see Why
	Raw     bool        `json:"raw,omitempty"` // they are not compressed
	Extents
}

// Extents are where the contents of a file are in its note.
type Extents struct {
	Packed int64 `json:"packed,omitempty"` // bytes of the old content here
	Head   int64 `json:"head,omitempty"`   // bytes that both contents begin with
	Tail   int64 `json:"tail,omitempty"`   // bytes that both contents end with
	Middle int64 `json:"middle,omitempty"` // bytes of what is between in the new content, here
}

// Sides are a file's contents before and after; nil: there was no file.
type Sides struct{ Before, After []byte }

// A Note is a header with its contents; parts are nil if only the header was read.
type Note struct {
	Header
	Parts []Sides
	Torn  bool // the change stopped half way, or is being made: some of its files may be as they were before
}

// A Part is one file of a change that is to be noted.
type Part struct {
	Path          string
	Temp          string      // name of its temporary file
	Old, New      []byte      // nil: there was no file, or is to be none
	Before, After disk.Digest // of Old and New, where they are not nil
	Mode          fs.FileMode // of the old file
	NewMode       fs.FileMode // as File.NewMode
	// Why the contents are not known or not kept; "": they are. Else Old and New only say whether there is a file.
	Why string
	// Files is how many new files a new directory has that is noted as one; 0: this is one file
	Files int
	// bytes that both contents have in front of Old and New and behind them, of a file that is too large to be kept
	Head, Tail int64
}

// add notes one file of a change.
func (e *Note) add(p Part) {
	around := p.Head + p.Tail
	f := File{Path: p.Path, Temp: p.Temp, OldSize: around + int64(len(p.Old)), NewSize: around + int64(len(p.New))}
	c := Sides{Before: p.Old, After: p.New}
	if f.Why, f.Files = p.Why, p.Files; p.Why != "" { // hashes that nothing has
		p.Before, p.After, c = disk.Digest{}, disk.Digest{}, Sides{}
	}
	if p.Old != nil {
		f.Before, f.Mode = &p.Before, p.Mode&disk.KeptMode
	}
	if p.New != nil {
		f.After, f.NewMode = &p.After, p.NewMode&disk.KeptMode
	}
	f.Kept = p.Why == "" && around == 0 && max(f.OldSize, f.NewSize) <= MaxKept
	f.Raw = f.Kept && max(f.OldSize, f.NewSize) >= rawSize
	head := lines.Prefix(c.Before, c.After)
	tail := lines.Suffix(c.Before[head:], c.After[head:])
	f.Head, f.Tail = p.Head+int64(head), p.Tail+int64(tail)
	f.Added, f.Removed = lines.Changed(c.Before, c.After, head, tail)
	e.Files, e.Parts = append(e.Files, f), append(e.Parts, c)
}

// By says on whose behalf a change is made; it goes to the journal. A Call of 16 lower-case letters and digits becomes
// the id of its first change.
type By struct {
	Principal, Workspace, Session, Call, Tool string

	Command string `json:",omitempty"` // that ran while the files changed, of a change that no tool of ours made
}
