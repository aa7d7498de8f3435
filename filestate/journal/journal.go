package journal

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/owner"
)

const (
	keepDays  = 30      // days that a change is kept, unless told
	keepBytes = 1 << 30 // bytes of all kept changes of a workspace, unless told
	usedCalls = 4096    // call ids that a process remembers to have used
)

const (
	// MaxKept is the size in bytes up to which a content is kept.
	MaxKept = 32 << 20
	// MaxDiffer is how many bytes are kept of what differs between two contents one of which is larger.
	MaxDiffer = 8 << 20
)

// Options say how much a Journal keeps. Zero fields have the meaning given.
type Options struct {
	KeepDays int // 0: 30
	// of one workspace; 0: 1 GiB; the oldest changes go first, the last one always stays; kept saves of others count
	// for themselves
	MaxBytes int64
	Fast     bool // skip the fsyncs (config durability = "fast")

	// Alone: no other process changes these files now, whatever a note says of its process. Settle then settles at once
	// what one on another machine left open.
	Alone bool

	Indexes *Indexes // of the journals of a process; nil: one of its own
	// errors that no return value reports, as of contents that could not be kept; nil: nothing is logged
	Log   *slog.Logger
	Check fault.Check // runs before each step in the journal; nil: every step passes
}

// A Journal keeps the content of every changed file before and after the change, in files of mode 0600 below one
// private directory, which the sessions of one principal share, in all processes. Of a file over 32 MiB it keeps what
// the change replaced and what it put there, up to 8 MiB, and otherwise no content.
//
// A change is one file (note.go), which is on the disk before anything of the change can be seen, so that no
// acknowledged change lacks it. Its name says how the change ended: "open" while it is made, "done", and "unsure" if
// neither the old nor the new content was found when a process had died in the middle. A change that did not happen has
// no file. Settle settles what is open after a crash.
//
// It is safe for concurrent use. All ledgers of a process that share the directory should share the Journal.
type Journal struct {
	root *os.Root
	dir  string
	o    Options
	self owner.Hand

	index   index
	late    late
	unended unended
	packers sync.Pool // of *gzip.Writer: one costs a megabyte to make

	clock clock

	mu    sync.Mutex
	last  int64           // time in the name of the newest note that this process knows
	calls map[string]bool // ids in use
	added int64           // bytes since the last tidying
	day   string          // whose directory is on the disk
	page  page            // where the last History ended
}

// Open opens the journal in dir, which is made with mode 0700 if need be, and must be a directory that this user owns
// and no other user may enter.
func Open(dir string, o Options) (*Journal, error) {
	if o.KeepDays == 0 {
		o.KeepDays = keepDays
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = keepBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Indexes == nil {
		o.Indexes = NewIndexes(0)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("journal: %s is no directory", dir)
	}
	if runtime.GOOS != "windows" && (info.Mode().Perm()&0o077 != 0 || !disk.OwnedByUs(info)) {
		return nil, fmt.Errorf("journal: %s is not private to this user (mode %#o)", dir, info.Mode().Perm())
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if !o.Fast {
		syncNew(root, dir)
	}
	return &Journal{
		root: root, dir: dir, o: o,
		self:  owner.Hand{Process: owner.ProcessOf(os.Getpid()), Host: owner.ThisHost(), Swaps: true},
		calls: make(map[string]bool),
		index: index{all: o.Indexes},
	}, nil
}

// Close closes the directory, after no ledger uses it any more.
func (j *Journal) Close() error {
	j.settleAllLate()
	j.endLate()
	j.index.close()
	return j.root.Close()
}

// Begin notes a change before it is made. The error is of the journal's own directory.
func (j *Journal) Begin(by By, undoes []string, parts []Part) (Pending, error) {
	return j.begin(Header{Undoes: undoes}, by, parts)
}

// BeginPortion notes, before it is made, a change that takes a part of another one back.
func (j *Journal) BeginPortion(by By, of Portion, parts []Part) (Pending, error) {
	return j.begin(Header{Portion: &of}, by, parts)
}

func (j *Journal) begin(h Header, by By, parts []Part) (Pending, error) {
	h.Kind = KindChange
	e := &Note{Header: h}
	for _, p := range parts {
		e.add(p)
	}
	name, err := j.put(e, by, stateOpen)
	return Pending{ID: name.id, journal: j, name: name}, err
}

// Keep notes a content that another program gave a file and that would be lost otherwise.
func (j *Journal) Keep(kind string, by By, path string, content []byte) error {
	e := &Note{Header: Header{Kind: kind}}
	sum := disk.DigestOf(content)
	e.Files = []File{{Path: path, Before: &sum, OldSize: int64(len(content)), Kept: true, Raw: len(content) >= rawSize}}
	e.Parts = []Sides{{Before: content}}
	_, err := j.put(e, by, stateDone)
	return err
}

// Hold notes what files are before something may discard it: the Old of each part. It is on the disk when Hold returns.
// Who finds that nothing was discarded, or notes that as a change, drops the note.
func (j *Journal) Hold(by By, parts []Part) (Pending, error) {
	e := &Note{Header: Header{Kind: KindHeld}}
	for _, p := range parts {
		e.add(p)
	}
	name, err := j.put(e, by, stateDone)
	return Pending{ID: name.id, journal: j, name: name}, err
}

// Room is how many bytes are kept at most for one workspace.
func (j *Journal) Room() int64 { return j.o.MaxBytes }

// TryKeep is Keep for callers that cannot return an error: it goes to the log, with the path that still has the
// content.
func (j *Journal) TryKeep(kind string, by By, path string, content []byte, place string) (kept bool) {
	err := j.Keep(kind, by, path, content)
	if err == nil {
		return true
	}
	what := "what somebody else saved just when a file was changed is not in the journal"
	if kind == KindRecovered {
		what = "what a process that was killed left is not in the journal"
	}
	j.o.Log.Warn(what, "path", path, "call", by.Call, "place", place, "error", err)
	return false
}

// put writes a note, whole and synced.
func (j *Journal) put(e *Note, by By, as string) (noteName, error) {
	if err := j.o.Check.Before(fault.Note); err != nil {
		return noteName{}, err
	}
	j.endLate()
	j.goOn()
	e.By, e.Process, e.Started, e.Host = by, j.self.Process.ID, j.self.Process.Started, j.self.Host
	var name noteName
	e.ID, e.Time, name = j.name(by.Call, e.Kind, as)
	pieces, err := j.encode(e)
	if err != nil {
		return noteName{}, err
	}
	if err := j.write(name, pieces); err != nil {
		_ = j.root.Remove(name.path()) // a part of a note is none
		return noteName{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, piece := range pieces {
		j.added += int64(len(piece))
	}
	return name, nil
}

// name makes the name of a new note: under the id of its call, if no other note of this process has that.
func (j *Journal) name(call, kind, state string) (id string, now time.Time, name noteName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	id = call
	if kind != KindChange || !validID(id) || j.calls[id] {
		id = strings.ToLower(rand.Text()[:idDigits])
	}
	if len(j.calls) >= usedCalls {
		clear(j.calls) // a call makes its changes within one run of it
	}
	j.calls[id] = true
	now = time.Now()
	if now.UnixNano() <= j.last {
		now = time.Unix(0, j.last+1)
	}
	j.last = now.UnixNano()
	return id, now, noteName{at: j.last, id: id, state: state}
}

// write writes a file of the journal. Only a whole one is ever read (note.go), so that it needs no second name.
func (j *Journal) write(name noteName, pieces [][]byte) error {
	day := name.day()
	if err := j.makeDay(day); err != nil {
		return err
	}
	f, err := j.root.OpenFile(name.path(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = j.o.Check.Before(fault.NoteWrite)
	for _, piece := range joined(pieces) {
		if err == nil {
			_, err = f.Write(piece)
		}
	}
	if err == nil {
		err = j.o.Check.Before(fault.NoteSync)
	}
	if err == nil && !j.o.Fast {
		if err = f.Sync(); disk.Unsynced(err) {
			err = nil
		}
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil || j.o.Fast {
		return err
	}
	return j.syncDay(day)
}

// joined puts small neighbours together, so that a small note is one call of the system.
func joined(pieces [][]byte) [][]byte {
	out := [][]byte{pieces[0]}
	for _, piece := range pieces[1:] {
		if last := len(out) - 1; len(out[last])+len(piece) < rawSize {
			out[last] = slices.Concat(out[last], piece) // never into a content
		} else {
			out = append(out, piece)
		}
	}
	return out
}

func (j *Journal) syncDay(day string) error {
	d, err := j.root.Open(day)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing was written through it
	if runtime.GOOS == "windows" {
		return nil // see disk.SyncDir
	}
	if err := d.Sync(); err != nil && !disk.Unsynced(err) {
		return err
	}
	return nil
}
