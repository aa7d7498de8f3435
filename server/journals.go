package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"codehand/filestate"
	"codehand/server/config"
)

// journalsDir is where the changes of each principal are kept, below the state directory: a directory for each, named by
// the hash of its name.
const journalsDir = "journal"

// journals are the journals of a process, one for each principal. It is safe for concurrent use.
type journals struct {
	dir    string
	locker filestate.Locker
	o      filestate.JournalOptions
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]*filestate.Journal
}

// newJournals settles what processes that were killed left in the journals that there are, and beside the files that they
// were changing.
func newJournals(state string, locker filestate.Locker, cfg config.Config, log *slog.Logger) *journals {
	j := &journals{
		dir: filepath.Join(state, journalsDir), locker: locker, log: log, open: map[string]*filestate.Journal{},
		o: filestate.JournalOptions{KeepDays: cfg.Journal.KeepDays, MaxBytes: cfg.Journal.MaxBytes, Fast: cfg.Write.Durability == "fast"},
	}
	entries, err := os.ReadDir(j.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("what changes were left half made is not known", "error", err)
	}
	for _, e := range entries {
		if err := j.recover(e.Name()); err != nil {
			log.Warn("changes that were left half made could not be settled; the next start tries again", "journal", e.Name(), "error", err)
		}
	}
	return j
}

// recover settles one journal, and says what it did.
func (j *journals) recover(name string) error {
	journal, err := filestate.OpenJournal(filepath.Join(j.dir, name), j.o)
	if err != nil {
		return err
	}
	repairs, err := journal.Recover(context.Background(), j.locker)
	for _, r := range repairs {
		j.log.Warn("a change was left half made by a process that ended", "change", r.ID, "outcome", r.Outcome, "files", len(r.Paths))
	}
	return errors.Join(err, journal.Close())
}

// of opens the journal of a principal, named by its hash.
func (j *journals) of(principal string) (*filestate.Journal, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if journal := j.open[principal]; journal != nil {
		return journal, nil
	}
	journal, err := filestate.OpenJournal(filepath.Join(j.dir, principal), j.o)
	if err != nil {
		return nil, fmt.Errorf("journal of a principal: %w", err)
	}
	j.open[principal] = journal
	return journal, nil
}

func (j *journals) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for _, journal := range j.open {
		errs = append(errs, journal.Close())
	}
	clear(j.open)
	return errors.Join(errs...)
}

// A Recovered is a content that a process which was killed left in a temporary file, and that nobody else has: the journal
// keeps it.
type Recovered struct {
	ID   string // of the journal's entry
	Path string
	Time time.Time // when it was found
}

// RecoveredFiles are those in all journals of a state directory, each journal's newest first. Nothing is made or changed.
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
		journal, err := filestate.OpenJournal(filepath.Join(dir, e.Name()), filestate.JournalOptions{})
		if err != nil {
			return all, err
		}
		found, err := journal.History(ctx, filestate.Query{Kept: true, Fits: func(e filestate.Entry) bool { return e.Kept == "recovered" }})
		for _, r := range found {
			for _, f := range r.Files {
				all = append(all, Recovered{r.ID, f.Path, r.Time})
			}
		}
		if err := errors.Join(err, journal.Close()); err != nil {
			return all, err
		}
	}
	return all, nil
}
