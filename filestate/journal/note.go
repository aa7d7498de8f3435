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
	"codehand/filestate/splices"
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
	maxCuts   = 200     // of a file: the header has room for those of many
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
	Portion *Portion   `json:"portion,omitempty"` // it takes this back of a change; nil: whole changes or none
	Files   []File     `json:"files"`
}

// A Portion is a part of a change, which another change took back by itself: one hunk of one file, or whole files.
type Portion struct {
	ID string `json:"id"` // of the change that it is a part of
	// Hunk is its first line in the diff of the contents that the change found and left; "": the portion is what that
	// change did to the files that the change which took it back names.
	Hunk string `json:"hunk,omitempty"`
}

// Whole says whether the portion is whole files. A nil p is none.
func (p *Portion) Whole() bool { return p != nil && p.Hunk == "" }

// File is one file of a note.
type File struct {
	Path   string       `json:"path"`
	From   string       `json:"from,omitempty"`   // the path of the file that moved here, in the same change
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
	Raw     bool        `json:"raw,omitempty"` // what is here is not compressed
	Extents
}

// Extents are where the contents of a file are in its note.
type Extents struct {
	Packed int64 `json:"packed,omitempty"` // bytes of the old content here
	Head   int64 `json:"head,omitempty"`   // bytes that both contents begin with
	Tail   int64 `json:"tail,omitempty"`   // bytes that both contents end with
	Middle int64 `json:"middle,omitempty"` // bytes of what is between in the new content, here
	// Cuts are the places where the contents differ, which is what is here of them; nil: Kept, or nothing is here
	Cuts []Cut `json:"cuts,omitempty"`
}

// A Cut is where a splice of a large file is: its place, lines in front of it, and its bytes before and after. Those of
// all cuts are here one after the other, as Packed the old ones, and as Middle the new ones.
type Cut struct {
	At   int64 `json:"at"`
	Line int   `json:"line"`
	Old  int64 `json:"old"`
	New  int64 `json:"new"`
}

// Sides are a file's contents before and after; nil: there was no file.
type Sides struct {
	Before, After []byte
	Splices       splices.List // of a file that is kept as Cuts, whose contents are nil
}

// A Note is a header with its contents; parts are nil if only the header was read.
type Note struct {
	Header
	Parts []Sides
	Torn  bool // the change stopped half way, or is being made: some of its files may be as they were before
}

// A Part is one file of a change that is to be noted.
type Part struct {
	Path          string
	From          string      // as File.From
	Temp          string      // name of its temporary file
	Old, New      []byte      // nil: there was no file, or is to be none
	Before, After disk.Digest // of Old and New, where they are not nil
	Mode          fs.FileMode // of the old file
	NewMode       fs.FileMode // as File.NewMode
	// Why the contents are not known or not kept; "": they are. Else Old and New only say whether there is a file.
	Why string
	// Files is how many new files a new directory has that is noted as one; 0: this is one file
	Files int
	// Splices make New of Old, of a file that is too large to be kept. Where those are not in memory, they only say
	// that there is a file, and OldSize and NewSize are set.
	Splices          splices.List
	OldSize, NewSize int64
}

// Undoes says whether the journal keeps of p what an undo needs.
func (p Part) Undoes() bool { return p.whole() || p.differs() }

func (p Part) whole() bool {
	old, now := p.size()
	return p.Why == "" && p.Splices == nil && max(old, now) <= MaxKept
}

func (p Part) differs() bool {
	return p.Why == "" && p.Splices != nil && p.Splices.Bytes() <= MaxDiffer && len(p.Splices) <= maxCuts
}

func (p Part) size() (old, now int64) {
	if p.OldSize > 0 {
		return p.OldSize, p.NewSize
	}
	return int64(len(p.Old)), int64(len(p.New))
}

// add notes one file of a change.
func (e *Note) add(p Part) {
	f := File{Path: p.Path, From: p.From, Temp: p.Temp}
	f.OldSize, f.NewSize = p.size()
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
	if f.Kept = p.whole(); !f.Kept && p.Splices != nil {
		e.addSplices(f, p)
		return
	}
	f.Raw = f.Kept && max(f.OldSize, f.NewSize) >= rawSize
	head := lines.Prefix(c.Before, c.After)
	tail := lines.Suffix(c.Before[head:], c.After[head:])
	f.Head, f.Tail = int64(head), int64(tail)
	f.Added, f.Removed = lines.Changed(c.Before, c.After, head, tail)
	e.Files, e.Parts = append(e.Files, f), append(e.Parts, c)
}

// addSplices is add for a file of which only what differs is kept, or nothing if that is too much, too.
func (e *Note) addSplices(f File, p Part) {
	var c Sides
	f.Added, f.Removed = p.Splices.LinesChanged()
	if p.differs() {
		c.Splices = p.Splices
		f.Raw = p.Splices.Bytes() >= rawSize
		for _, s := range p.Splices {
			f.Cuts = append(f.Cuts, Cut{s.At, s.Line, int64(len(s.Old)), int64(len(s.New))})
		}
	}
	e.Files, e.Parts = append(e.Files, f), append(e.Parts, c)
}

// Undoes says whether what an undo needs is here.
func (f File) Undoes() bool { return f.Kept || f.Cuts != nil }

// By says on whose behalf a change is made; it goes to the journal. A Call of 16 lower-case letters and digits becomes
// the id of its first change.
type By struct {
	Principal, Workspace, Session, Call, Tool string

	Command string `json:",omitempty"` // that ran while the files changed, of a change that no tool of ours made
}
