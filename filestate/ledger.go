package filestate

import (
	"context"
	"os"
	"sync"
)

// A File is a file as it will be reached: Dir is a handle on the deepest existing directory on the
// way, Name the rest of the path below it, Path the canonical absolute path (links resolved), which
// is what memory and locks go by. workspace.Place has the same fields and converts.
type File struct {
	Dir  *os.Root
	Name string
	Path string
}

// Close closes Dir. The zero File has nothing to close.
func (f File) Close() error {
	if f.Dir == nil {
		return nil
	}
	return f.Dir.Close()
}

// Options of a Ledger. A nil field has the meaning given.
type Options struct {
	Memory   Memory    // what was seen; nil: in this process only
	Locker   Locker    // one writer per path; nil: one of its own, NewLocker(Dir)
	Contents *Contents // old contents for diffs; nil: one of its own, of 25 MiB
	Journal  *Journal  // before and after of every change; nil: no undo, and what is saved by others at the moment of a change may be lost
	Dir      string    // private directory for lock files; "": locks hold in this process only
	Fast     bool      // skip the fsyncs (config durability = "fast")
}

// A Ledger is one session's view of files. It is safe for concurrent use. All ledgers of a process
// must have the same Locker, or they do not see each other's locks.
type Ledger struct {
	records  *records
	locker   Locker
	contents *Contents
	journal  *Journal
	fast     bool
	large    int64 // largeSize, but for tests
	self     hand
	steps    steps

	mu    sync.Mutex
	swept map[dirID]bool // directories whose left-over temporary files were looked for
}

// New makes a Ledger. It touches no file.
func New(o Options) *Ledger {
	l := &Ledger{
		records:  newRecords(o.Memory),
		locker:   o.Locker,
		contents: o.Contents,
		journal:  o.Journal,
		fast:     o.Fast,
		large:    largeSize,
		self:     hand{process: thisProcess(), host: thisHost(), swaps: o.Journal != nil},
		swept:    make(map[dirID]bool),
	}
	if l.locker == nil {
		l.locker = NewLocker(o.Dir)
	}
	if l.contents == nil {
		l.contents = NewContents(0)
	}
	return l
}

// Forget drops what was seen of path. The error is ErrMemory.
func (l *Ledger) Forget(ctx context.Context, path string) error {
	defer l.records.lock(path)()
	return l.records.forget(ctx, path)
}

// forgetRounds is how often ForgetAll looks for what is left: a memory lists its keys up to a limit, and other ledgers of
// the session may add some meanwhile.
const forgetRounds = 3

// ForgetAll drops what was seen of every path, and returns of how many. A read that goes on meanwhile may be forgotten,
// too. The error is ErrMemory or the cause of ctx; what comes before it is forgotten nevertheless.
func (l *Ledger) ForgetAll(ctx context.Context) (int, error) {
	n := 0
	for range forgetRounds {
		keys, err := l.records.memory.Keys(ctx, family)
		if err != nil {
			return n, lost(err)
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			if err := context.Cause(ctx); err != nil {
				return n, err
			}
			if err := l.forgetKey(ctx, key); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

func (l *Ledger) forgetKey(ctx context.Context, key string) error {
	defer l.records.lockKey(key)()
	return l.records.forgetKey(ctx, key)
}
