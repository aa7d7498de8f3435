package filestate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
)

// writeNoted notes the change in the journal and makes it. It returns its id there.
func (l *Ledger) writeNoted(ctx context.Context, why purpose, works []*work) (id string, err error) {
	changes := slices.ContainsFunc(works, func(w *work) bool { return !w.same })
	if l.journal == nil || !changes || why.silent {
		return "", l.write(ctx, works)
	}
	for _, w := range works {
		if !w.same {
			w.temporary, w.by = l.self.TempName(), why.By
		}
	}
	hashed(works)
	// Before anything else is on the disk: what a crash leaves can be found and explained from here on.
	pending, err := l.begin(why, parts(works))
	if err != nil {
		return "", noteFailed(works, err)
	}
	err = l.write(ctx, works)
	torn, isTorn := errors.AsType[*RollbackError](err)
	switch {
	case err == nil:
		pending.Done(ctx)
	case isTorn && l.MayCommit() != nil:
		torn.ID = pending.ID // whoever may change the files now settles it
	case isTorn:
		torn.ID = pending.ID
		pending.Unsure()
	default:
		pending.Drop()
	}
	return pending.ID, err
}

func (l *Ledger) begin(why purpose, parts []journal.Part) (journal.Pending, error) {
	if why.of != nil {
		return l.journal.BeginPortion(why.By, *why.of, parts)
	}
	return l.journal.Begin(why.By, why.undoes, parts)
}

// parts are what the journal notes of the files that change.
func parts(works []*work) []journal.Part {
	var out []journal.Part
	for _, w := range works {
		if w.same {
			continue
		}
		out = append(out, w.part())
	}
	return out
}

// noteFailed says that a change was not made because the journal could not be written.
func noteFailed(works []*work, err error) error {
	for _, w := range works {
		if !w.same {
			return w.stateFailed(fault.Note, err)
		}
	}
	return err
}

// write gives all files their new contents, or none. All are on the disk before the first one gets its
// name, so that a full disk shows while nothing has changed yet.
func (l *Ledger) write(ctx context.Context, works []*work) error {
	defer discard(works)
	for _, w := range works {
		if w.same {
			continue
		}
		if err := l.stage(ctx, w); err != nil {
			unmake(works)
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		unmake(works)
		return err
	}
	ctx = context.WithoutCancel(ctx)
	for i, w := range works {
		if w.same {
			continue
		}
		err := l.MayCommit()
		if err == nil {
			err = l.publish(ctx, w)
		}
		if err != nil {
			return l.takeBack(ctx, works, i, err)
		}
	}
	if !l.fast {
		l.syncDirs(works)
	}
	if l.MayCommit() != nil {
		return nil // whoever may now has perhaps dropped the note of this change: what was displaced stays
	}
	for _, w := range works {
		l.clean(ctx, w)
	}
	return nil
}

// syncDirs writes the new names to the disk: once for each directory, and for those above that were made.
func (l *Ledger) syncDirs(works []*work) {
	done := make(map[string]error)
	for _, w := range works {
		if w.same {
			continue
		}
		key := filepath.Dir(w.path)
		err, ok := done[key]
		if !ok {
			if err = l.steps.Before(fault.SyncDir); err == nil {
				err = disk.SyncDir(w.dir)
			}
			done[key] = err
		}
		for _, rel := range w.dirs.fresh {
			err = errors.Join(err, syncAbove(w.edit.File.Dir, rel))
		}
		w.sync = errors.Join(w.sync, disk.Cause(err))
	}
}

func syncAbove(dir *os.Root, rel string) error {
	above, err := disk.Descend(dir, filepath.Dir(rel))
	if err != nil {
		return err
	}
	err = disk.SyncDir(above)
	_ = above.Close() // a directory handle holds no data
	return disk.Cause(err)
}
