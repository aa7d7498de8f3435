package filestate

import (
	"context"

	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/filestate/splices"
)

// History returns what Journal.History does; nothing without a journal.
func (l *Ledger) History(ctx context.Context, q journal.Query) ([]journal.Entry, error) {
	if l.journal == nil {
		return nil, nil
	}
	return l.journal.History(ctx, q)
}

// Last returns what Journal.Last does; ErrNoChange without a journal. A change that did not end is judged by what came
// after it, or by what its files hold, since only the start of a process settles what another left that was killed.
// Last passes over a change that was never made, and one that such an undo did take back. It writes nothing, and does
// not ask q.Fits.
func (l *Ledger) Last(ctx context.Context, q journal.Query) (journal.Entry, error) {
	if l.journal == nil {
		return journal.Entry{}, journal.ErrNoChange
	}
	p := past{found: make(map[string]string), back: make(map[string]bool)}
	q.Fits = func(e journal.Entry) bool { return p.made(ctx, e) && !p.back[e.ID] }
	return l.journal.Last(ctx, q)
}

// Contents returns what Journal.Contents does; ErrNoChange without a journal.
func (l *Ledger) Contents(ctx context.Context, id, path string) (before, after []byte, err error) {
	if l.journal == nil {
		return nil, nil, journal.ErrNoChange
	}
	return l.journal.Contents(ctx, id, path)
}

// Splices returns what Journal.Splices does; ErrNoChange without a journal.
func (l *Ledger) Splices(ctx context.Context, id, path string) (splices.List, error) {
	if l.journal == nil {
		return nil, journal.ErrNoChange
	}
	return l.journal.Splices(ctx, id, path)
}

// Record notes in l's journal what changed while a command ran, so that history shows it and Undo takes it back; "":
// there is no journal, or nothing to note. It sets the hashes of files.
func Record(ctx context.Context, l *Ledger, by journal.By, files []journal.Part) (id string, err error) {
	if l.journal == nil || len(files) == 0 {
		return "", nil
	}
	for i := range files {
		f := &files[i]
		f.Before, f.After = disk.DigestOf(f.Old), disk.DigestOf(f.New)
	}
	pending, err := l.journal.Begin(by, nil, files)
	if err != nil {
		return "", err
	}
	pending.Done(ctx)
	return pending.ID, nil
}

// Hold notes in l's journal what files are before a command that may discard it: the Old and Mode of each. It is on the
// disk when Hold returns. It sets the hashes of files. ErrNoChange: there is no journal.
func Hold(l *Ledger, by journal.By, files []journal.Part) (journal.Pending, error) {
	if l.journal == nil {
		return journal.Pending{}, journal.ErrNoChange
	}
	for i := range files {
		files[i].Before = disk.DigestOf(files[i].Old)
	}
	return l.journal.Hold(by, files)
}

// Held reads what Hold noted. The error is that of Journal.Find.
func Held(ctx context.Context, l *Ledger, id string) (*journal.Note, error) {
	if l.journal == nil {
		return nil, journal.ErrNoChange
	}
	return l.journal.Find(ctx, id)
}

// Room is how many bytes the journal keeps at most for one workspace; 0: there is no journal.
func (l *Ledger) Room() int64 {
	if l.journal == nil {
		return 0
	}
	return l.journal.Room()
}
