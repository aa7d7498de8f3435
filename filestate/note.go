package filestate

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	maxHeader = 1 << 20 // bytes of the first line of a note
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

func (n noteName) day() string { return time.Unix(0, n.at).UTC().Format("20060102") }

func (n noteName) path() string {
	return path.Join(n.day(), fmt.Sprintf("%019d-%s.%s", n.at, n.id, n.state))
}

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

// encode gives a note the form of its file, in pieces: a content that is kept as it is is not copied.
func (j *Journal) encode(e *note) ([][]byte, error) {
	pieces := [][]byte{nil} // the first is the header, which tells the sizes of the others
	for i := range e.Files {
		f, c := &e.Files[i], e.parts[i]
		if !f.Kept {
			continue
		}
		before, err := j.pack(c.before, f.Raw)
		if err != nil {
			return nil, err
		}
		f.Packed, pieces = int64(len(before)), append(pieces, before)
		if f.After == nil {
			continue
		}
		middle, err := j.pack(c.after[f.Head:int64(len(c.after))-f.Tail], f.Raw)
		if err != nil {
			return nil, err
		}
		f.Middle, pieces = int64(len(middle)), append(pieces, middle)
	}
	line, err := json.Marshal(e.header)
	if err != nil {
		return nil, err
	}
	pieces[0] = append(line, '\n')
	return pieces, nil
}

// pack returns content as it is kept: compressed unless it is raw. Of an empty one nothing is kept.
func (j *Journal) pack(content []byte, raw bool) ([]byte, error) {
	if len(content) == 0 || raw {
		return content, nil
	}
	var to bytes.Buffer
	z, ok := j.packers.Get().(*gzip.Writer)
	if ok {
		z.Reset(&to)
	} else {
		var err error
		if z, err = gzip.NewWriterLevel(&to, gzip.BestSpeed); err != nil {
			return nil, err
		}
	}
	defer j.packers.Put(z)
	if _, err := z.Write(content); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// header reads the first line of a note, and says errDamaged unless all of the note is there.
func (j *Journal) header(name noteName) (*header, error) {
	f, stamp, err := openRegular(j.root, name.path(), name.path())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	r := bufio.NewReader(io.LimitReader(f, maxHeader))
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, errDamaged
	}
	return parseHeader(line, stamp.Size)
}

func parseHeader(line []byte, size int64) (*header, error) {
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, errDamaged
	}
	want := int64(len(line))
	for _, f := range h.Files {
		if f.Packed < 0 || f.Middle < 0 || f.Head < 0 || f.Tail < 0 {
			return nil, errDamaged
		}
		want += f.Packed + f.Middle
	}
	if want != size || !validID(h.ID) {
		return nil, errDamaged
	}
	return &h, nil
}

// read reads a note with its contents, and proves each by its hash.
func (j *Journal) read(name noteName) (*note, error) {
	f, stamp, err := openRegular(j.root, name.path(), name.path())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	r := bufio.NewReader(f)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, errDamaged
	}
	h, err := parseHeader(line, stamp.Size)
	if err != nil {
		return nil, err
	}
	e := &note{header: *h}
	for _, f := range h.Files {
		var c contents
		if f.Kept {
			if c, err = f.unpack(r); err != nil {
				return nil, err
			}
		}
		e.parts = append(e.parts, c)
	}
	return e, nil
}

func (f noted) unpack(r io.Reader) (c contents, err error) {
	if f.Before != nil {
		if c.before, err = f.unpackOne(r, f.Packed, f.OldSize); err != nil {
			return c, err
		}
		if digestOf(c.before) != *f.Before {
			return c, errDamaged
		}
	}
	if f.After == nil {
		return c, nil
	}
	middle, err := f.unpackOne(r, f.Middle, f.NewSize)
	if err != nil || max(f.Head, f.Tail) > int64(len(c.before)) {
		return c, errors.Join(err, errDamaged)
	}
	c.after = make([]byte, 0, f.NewSize)
	c.after = append(c.after, c.before[:f.Head]...)
	c.after = append(c.after, middle...)
	c.after = append(c.after, c.before[int64(len(c.before))-f.Tail:]...)
	if digestOf(c.after) != *f.After {
		return c, errDamaged
	}
	return c, nil
}

// unpackOne reads a content of at most size bytes that takes packed bytes here.
func (f noted) unpackOne(r io.Reader, packed, size int64) ([]byte, error) {
	if !f.Raw {
		return unpack(r, packed, size)
	}
	if packed > size {
		return nil, errDamaged
	}
	content := make([]byte, packed)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, errDamaged
	}
	return content, nil
}

// unpack is unpackOne for what is compressed.
func unpack(r io.Reader, packed, size int64) ([]byte, error) {
	if packed == 0 {
		return []byte{}, nil
	}
	part := &io.LimitedReader{R: r, N: packed}
	z, err := gzip.NewReader(bufio.NewReader(part))
	if err != nil {
		return nil, errDamaged
	}
	z.Multistream(false)
	var out bytes.Buffer
	if _, err := io.Copy(&out, io.LimitReader(z, size+1)); err != nil || int64(out.Len()) > size {
		return nil, errDamaged
	}
	if _, err := io.Copy(io.Discard, part); err != nil {
		return nil, errDamaged
	}
	return out.Bytes(), nil
}
