package filestate

import (
	"context"
	"fmt"
	"slices"
)

// takeBack undoes works[:n] after works[n] went wrong because of err, and returns what the caller is
// told: err if everything is as before.
func (l *Ledger) takeBack(ctx context.Context, works []*work, n int, err error) error {
	left := make([]Left, len(works))
	failed := false
	for i, w := range slices.Backward(works) {
		left[i].Path = w.path
		if i < n && !w.same {
			left[i].Err = l.restore(ctx, w)
			left[i].Changed = left[i].Err != nil
			failed = failed || left[i].Changed
		}
	}
	discard(works)
	unmake(works)
	if failed {
		return &RollbackError{Err: err, Files: left}
	}
	return err
}

// restore gives a published file its old content again, unless somebody has changed it since.
func (l *Ledger) restore(ctx context.Context, w *work) error {
	file, _, err := openRegular(w.dir, w.name, w.path)
	if err != nil {
		return err
	}
	ours := holds(ctx, file, w.next)
	_ = file.Close() // only read
	if !ours {
		return fmt.Errorf("%s: %w", w.path, ErrMoved)
	}
	if w.file == nil {
		err = w.dir.Remove(w.name)
	} else {
		t, step, tempErr := l.writeTemp(ctx, w.dir, w.old, w.file)
		if tempErr != nil {
			return w.failed(step, tempErr)
		}
		if err = w.dir.Rename(t.name, w.name); err != nil {
			_ = w.dir.Remove(t.name) // the first error counts; sweep finds what stays
		}
	}
	if err != nil {
		return w.failed("rename", err)
	}
	if l.fast {
		return nil
	}
	if err := syncDir(w.dir); err != nil && !unsynced(err) {
		return w.failed("sync directory", err)
	}
	return nil
}

// discard removes the temporary files that were not published.
func discard(works []*work) {
	for _, w := range works {
		if w.temp != nil {
			_ = w.dir.Remove(w.temp.name) // sweep finds what stays
			w.temp = nil
		}
	}
}

// unmake removes the directories that were made for nothing. One that somebody uses by now stays.
func unmake(works []*work) {
	discard(works)
	for _, w := range slices.Backward(works) {
		for _, rel := range slices.Backward(w.made) {
			_ = w.edit.File.Dir.Remove(rel) // not empty: it is somebody's now
		}
	}
}
