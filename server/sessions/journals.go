package sessions

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/lock"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/state"
)

// journalsDir is where the changes of each principal are kept, below the state directory: a directory for each, named
// by the hash of its name.
const journalsDir = "journal"

// Journals are the journals of a process, one for each principal. It is safe for concurrent use.
type Journals struct {
	dir    string
	locker lock.Locker
	o      journal.Options
	log    *slog.Logger

	mu     sync.Mutex
	open   map[string]*journal.Journal
	closed bool
}

// A StateError says that nothing can be kept in the state directory.
type StateError struct{ Err error }

// Error names the directory.
func (e *StateError) Error() string { return "state directory: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StateError) Unwrap() error { return e.Err }

// NewJournals makes Journals below a directory. It opens none.
func NewJournals(state string, locker lock.Locker, cfg config.Config, log *slog.Logger) *Journals {
	return &Journals{
		dir: filepath.Join(state, journalsDir), locker: locker, log: log, open: map[string]*journal.Journal{},
		o: journal.Options{KeepDays: cfg.Journal.KeepDays, MaxBytes: cfg.Journal.MaxBytes,
			Fast: cfg.Write.Durability == "fast", Indexes: journal.NewIndexes(0), Log: log},
	}
}

// Recover settles what processes that were killed left in the journals that there are, and beside the files that they
// were changing.
func (j *Journals) Recover() {
	entries, err := os.ReadDir(j.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.log.Warn("cannot look for unfinished changes", "error", err)
	}
	for _, e := range entries {
		if err := j.recover(e.Name(), j.o); err != nil {
			j.log.Warn("unfinished changes could not be settled; the next start tries again",
				"journal", e.Name(), "error", err)
		}
	}
}

// Take settles what other processes left of the changes of a principal which from now on only this one makes. Those
// processes may still run, on another machine: they change nothing more.
func (j *Journals) Take(principal string) {
	name := JournalOf(principal)
	if _, err := os.Lstat(filepath.Join(j.dir, name)); errors.Is(err, fs.ErrNotExist) {
		return // it has made no change yet
	}
	j.mu.Lock()
	if book := j.open[name]; book != nil {
		book.OthersNoted()
	}
	j.mu.Unlock()
	alone := j.o
	alone.Alone = true
	if err := j.recover(name, alone); err != nil {
		j.log.Warn("unfinished changes of a principal that was taken over could not be settled", "principal", principal,
			"error", err)
	}
}

// recover settles one journal, and says what it did.
func (j *Journals) recover(name string, o journal.Options) error {
	book, err := journal.Open(filepath.Join(j.dir, name), o)
	if err != nil {
		return err
	}
	repairs, err := filestate.New(filestate.Options{Journal: book, Locker: j.locker,
		Fast: j.o.Fast}).Recover(context.Background())
	for _, r := range repairs {
		j.log.Warn("settled an unfinished change of a process that ended", "change", r.ID, "outcome", r.Outcome,
			"files", len(r.Paths))
	}
	return errors.Join(err, book.Close())
}

// JournalOf names the directory of a principal's journal.
func JournalOf(principal string) string { return state.Hash(principal)[:16] }

// JournalDir is the directory of a principal's journal in a state directory.
func JournalDir(stateDir, principal string) string {
	return filepath.Join(stateDir, journalsDir, JournalOf(principal))
}

// Worked says whether a principal has changed files or had sessions, as far as a state directory shows.
func Worked(stateDir, principal string) bool {
	for _, dir := range []string{
		JournalDir(stateDir, principal),
		filepath.Join(stateDir, area, state.Hash(principal)[:16]),
	} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return true
		}
	}
	return false
}

// Of opens a journal by the name of its directory.
func (j *Journals) Of(principal string) (*journal.Journal, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, errClosed
	}
	if book := j.open[principal]; book != nil {
		return book, nil
	}
	book, err := journal.Open(filepath.Join(j.dir, principal), j.o)
	if err != nil {
		return nil, err // which names the directory
	}
	j.open[principal] = book
	return book, nil
}

// Close closes all of them. None is opened after it.
func (j *Journals) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	var errs []error
	for _, book := range j.open {
		errs = append(errs, book.Close())
	}
	clear(j.open)
	return errors.Join(errs...)
}

// A Recovered is a content that a killed process left in a temporary file as its only copy: the journal keeps it.
type Recovered struct {
	ID   string // of the journal's entry
	Path string
	Time time.Time // when it was found
	Mine bool      // it is in the journal of who starts codehand, not of a principal of serve
}

// RecoveredFiles are those in all journals of a state directory, each journal's newest first. Nothing is made or
// changed.
func RecoveredFiles(ctx context.Context, state string) ([]Recovered, error) {
	dir := filepath.Join(state, journalsDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Recovered
	for _, e := range entries {
		if !e.IsDir() {
			continue // doctor tries beside this whether a file can be made here
		}
		book, err := journal.Open(filepath.Join(dir, e.Name()), journal.Options{})
		if err != nil {
			return all, err
		}
		found, err := book.History(ctx,
			journal.Query{Kept: true, Fits: func(e journal.Entry) bool { return e.Kept == "recovered" }})
		for _, r := range found {
			for _, f := range r.Files {
				all = append(all, Recovered{r.ID, f.Path, r.Time, e.Name() == JournalOf(auth.LocalID)})
			}
		}
		if err := errors.Join(err, book.Close()); err != nil {
			return all, err
		}
	}
	return all, nil
}
