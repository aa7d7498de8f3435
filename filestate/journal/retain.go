package journal

import (
	"context"
	"time"
)

const (
	tidyShare = 64        // the journal is tidied after each such part of its size limit was added
	leftNote  = time.Hour // age from which a part of a note is one of a process that died
)

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
	oldest := time.Now().AddDate(0, 0, -j.o.KeepDays).UnixNano()
	var all int64
	newest := true
	for n, day := range j.names() {
		if ctx.Err() != nil {
			return
		}
		if n.at < oldest && !newest && n.state != stateOpen {
			_ = day.Remove(n.base())
			continue
		}
		if info, err := day.Lstat(n.base()); err == nil { // else another process was faster
			all += info.Size()
			newest = false
		}
	}
	if all > j.o.MaxBytes { // only then it matters whose each is, for which its note must be read
		j.shrink(ctx)
	}
	days, _ := sortedNames(j.root) // what stays is removed the next time
	for _, day := range days[:max(0, len(days)-1)] {
		_ = j.root.Remove(day) // only an empty one goes
	}
}

// shrink removes the oldest notes of each workspace that has too much. The limit is one workspace's, so that much work
// in one takes nothing from the others. Kept contents of other programs have a limit of their own: their size is not
// ours to choose, and one such save may be as large as the limit.
func (j *Journal) shrink(ctx context.Context) {
	type purse struct {
		workspace string
		kept      bool
	}
	used := make(map[purse]int64)
	for n, day := range j.names() {
		if ctx.Err() != nil {
			return
		}
		var of purse
		if h, err := n.header(day); err == nil {
			of = purse{h.By.Workspace, h.Kind != KindChange}
		} // else it is damaged, and counts with what belongs nowhere
		info, err := day.Lstat(n.base())
		if err != nil {
			continue // another process was faster
		}
		sum, known := used[of]
		used[of] = sum + info.Size()
		if known && n.state != stateOpen && used[of] > j.o.MaxBytes {
			_ = day.Remove(n.base())
		}
	}
}
