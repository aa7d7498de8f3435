package filestate

import (
	"context"
	"errors"
	"slices"
)

// takeBack undoes works[:n] after works[n] went wrong because of err, and returns what the caller is
// told: err if everything is as before.
func (l *Ledger) takeBack(ctx context.Context, works []*work, n int, err error) error {
	left := make([]Left, len(works))
	failed := false
	if torn, ok := errors.AsType[*RollbackError](err); ok { // not even this file is as before
		err, left[n], failed = torn.Err, torn.Files[0], true
	}
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

// discard removes the temporary files that were not published.
func discard(works []*work) {
	for _, w := range works {
		if w.temp != nil && !w.displaced { // or the name stands for the old file
			_ = w.dir.Remove(w.temp.name) // sweep finds what stays
			w.temp = nil
		}
	}
}

// unmake removes the directories that were made for nothing. One that has entries by now stays.
func unmake(works []*work) {
	discard(works)
	for _, w := range slices.Backward(works) {
		for _, rel := range slices.Backward(w.dirs.made) {
			_ = w.edit.File.Dir.Remove(rel) // not empty: another program uses it now
		}
	}
}
