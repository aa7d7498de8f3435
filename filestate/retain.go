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
	var kept []sized
	var all int64
	for n := range j.names() {
		if ctx.Err() != nil {
			return
		}
		info, err := j.root.Lstat(n.path())
		if err != nil {
			continue // another process may have been faster
		}
		if n.at < oldest && len(kept) > 0 && n.state != stateOpen {
			_ = j.root.Remove(n.path())
			continue
		}
		kept = append(kept, sized{n, info.Size()})
		all += info.Size()
	}
	if all > j.o.MaxBytes { // only then it matters whose each is, for which its note must be read
		j.shrink(ctx, kept)
	}
	days, _ := fs.ReadDir(j.root.FS(), ".")
	for _, day := range days[:max(0, len(days)-1)] {
		_ = j.root.Remove(day.Name()) // only an empty one goes
	}
}

// sized is a note with the size of its file.
type sized struct {
	noteName
	size int64
}

// shrink removes the oldest notes of each workspace that has too much. The limit is one workspace's, so that much work in
// one takes nothing from the others.
func (j *Journal) shrink(ctx context.Context, kept []sized) {
	used := make(map[string]int64)
	for _, n := range kept {
		if ctx.Err() != nil {
			return
		}
		var workspace string
		if h, err := j.header(n.noteName); err == nil {
			workspace = h.By.Workspace
		} // else it is damaged, and counts with what belongs nowhere
		sum, known := used[workspace]
		used[workspace] = sum + n.size
		if known && n.state != stateOpen && used[workspace] > j.o.MaxBytes {
			_ = j.root.Remove(n.path())
		}
	}
}
