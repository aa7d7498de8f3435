package filestate

import (
	"context"
	"os"
	"sync"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
	"codehand/filestate/lock"
	"codehand/filestate/owner"
	"codehand/filestate/seen"
)

// A File is a file as it will be reached: Dir is a handle on the deepest existing directory on the
// way, Name the rest of the path below it, Path the canonical absolute path (links resolved), which
// is what memory and locks go by. workspace.Place has the same fields and converts.
type File struct {
	Dir    *os.Root
	Name   string
	Path   string
	Linked func(os.FileInfo) error // judges an open file with other names, before it is used; nil permits all
}

// Close closes Dir. The zero File has nothing to close.
func (f File) Close() error {
	if f.Dir == nil {
		return nil
	}
	return f.Dir.Close()
}

// OpenRegular opens a regular file for reading, without blocking, and remembers nothing of it. Errors are those of
// Ledger.Open.
func OpenRegular(f File) (*os.File, error) {
	file, _, err := disk.OpenAsked(f.Dir, f.Name, f.Path, f.Linked)
	return file, err
}

// Options of a Ledger. A nil field has the meaning given.
type Options struct {
	Memory   Memory      // what was seen; nil: in this process only
	Locker   lock.Locker // one writer per path; nil: one of its own, lock.New(Dir)
	Contents *Contents   // old contents for diffs; nil: one of its own, of 25 MiB
	// before and after of every change; nil: no undo, and what is saved by others at the moment of a change may be lost
	Journal *journal.Journal
	Dir     string // private directory for lock files; "": locks hold in this process only
	Fast    bool   // skip the fsyncs (config durability = "fast")

	// MayCommit is asked just before a file gets its new content. After an error nothing more is changed, and Update
	// returns that error. It must be fast, as from memory. nil: every change may be made.
	MayCommit func() error
}

// largeSize is the most bytes of a file that is hashed whole because a part of it is read. The head of a larger one
// must cost what any head costs.
const largeSize = 16 << 20

// A Ledger is one session's view of files. It is safe for concurrent use. All ledgers of a process
// must have the same Locker, or they do not see each other's locks.
type Ledger struct {
	records  *seen.Records
	locker   lock.Locker
	contents *Contents
	journal  *journal.Journal
	fast     bool
	large    int64 // largeSize, but for tests
	spliced  int64 // spliceSize, but for tests
	self     owner.Hand
	commit   func() error // Options.MayCommit
	steps    fault.Check

	mu    sync.Mutex
	swept map[dirID]bool // directories whose left-over temporary files were looked for
}

// New makes a Ledger. It touches no file.
func New(o Options) *Ledger {
	l := &Ledger{
		records:  seen.NewRecords(o.Memory),
		locker:   o.Locker,
		contents: o.Contents,
		journal:  o.Journal,
		fast:     o.Fast,
		commit:   o.MayCommit,
		large:    largeSize,
		spliced:  spliceSize,
		self:     owner.Hand{Process: owner.ProcessOf(os.Getpid()), Host: owner.ThisHost(), Swaps: o.Journal != nil},
		swept:    make(map[dirID]bool),
	}
	if l.locker == nil {
		l.locker = lock.New(o.Dir)
	}
	if l.contents == nil {
		l.contents = NewContents(0)
	}
	return l
}

// MayCommit returns why no file may be changed now; nil: it may.
func (l *Ledger) MayCommit() error {
	if l.commit == nil {
		return nil
	}
	return l.commit()
}

// Paths returns the files that the session has seen or changed, at most limit, those used last first. What an earlier
// process or another replica noted comes after what this process knows, in no order. The error is ErrMemory.
func (l *Ledger) Paths(ctx context.Context, limit int) ([]string, error) {
	return l.records.Paths(ctx, limit)
}

// Forget drops what was seen of path. The error is ErrMemory.
func (l *Ledger) Forget(ctx context.Context, path string) error {
	defer l.records.Lock(path)()
	return l.records.Forget(ctx, path)
}

// ForgetAll drops what was seen of every path, and returns of how many. A read that goes on meanwhile may be forgotten,
// too. The error is ErrMemory or the cause of ctx; what comes before it is forgotten nevertheless.
func (l *Ledger) ForgetAll(ctx context.Context) (int, error) {
	return l.records.ForgetAll(ctx)
}
