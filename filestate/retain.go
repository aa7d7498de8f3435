package filestate

import (
	"cmp"
	"context"
	"io/fs"
	"iter"
	"slices"
	"time"
)

const (
	tidyShare = 64        // the journal is tidied after each such part of its size limit was added
	leftNote  = time.Hour // age from which a part of a note is one of a process that died
)

// names goes over the notes, newest first. What is no note is passed over.
func (j *Journal) names() iter.Seq[noteName] {
	return func(yield func(noteName) bool) {
		days, _ := fs.ReadDir(j.root.FS(), ".") // what cannot be read holds no note
		for _, day := range slices.Backward(days) {
			if !day.IsDir() {
				continue
			}
			entries, _ := fs.ReadDir(j.root.FS(), day.Name())
			var found []noteName
			for _, e := range entries {
				if n, ok := parseNoteName(e.Name()); ok && n.day() == day.Name() {
					found = append(found, n)
				}
			}
			slices.SortFunc(found, func(a, b noteName) int { return cmp.Compare(b.at, a.at) })
			for _, n := range found {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// tidyIfDue tidies when enough was added since the last time.
func (j *Journal) tidyIfDue(ctx context.Context) {
	j.mu.Lock()
	due := j.added >= max(1, j.o.MaxBytes/tidyShare)
	if due {
		j.added = 0
	}
	j.mu.Unlock()
	if due {
		j.tidy(ctx)
	}
}

// tidy removes what is too old or too much, the oldest first, but never the newest note, and none of a change that is
// being made. It never fails; what stays is removed the next time.
func (j *Journal) tidy(ctx context.Context) {
	oldest := j.now().AddDate(0, 0, -j.o.KeepDays).UnixNano()
	left := j.o.MaxBytes
	first := true
	for n := range j.names() {
		if ctx.Err() != nil {
			return
		}
		info, err := j.root.Lstat(n.path())
		if err != nil {
			continue
		}
		left -= info.Size()
		if !first && n.state != stateOpen && (left < 0 || n.at < oldest) {
			_ = j.root.Remove(n.path()) // another process may have been faster
		}
		first = false
	}
	days, _ := fs.ReadDir(j.root.FS(), ".")
	for _, day := range days[:max(0, len(days)-1)] {
		_ = j.root.Remove(day.Name()) // only an empty one goes
	}
}
