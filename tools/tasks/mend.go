package tasks

import (
	"maps"
	"slices"
)

// mend makes a Book of files that keeps the rules, but for circles that a person wrote by hand: tasks are in order,
// each link stands at both ends, and none leads to a task that is gone. A link that stands at one end only is
// completed: its writer died before it wrote the other end. A link to a damaged file stays, for the file may be mended.
func (b *Book) mend() {
	slices.SortFunc(b.Tasks, func(x, y Task) int { return byID(x.ID, y.ID) })
	blocks, blockedBy := map[string]map[string]bool{}, map[string]map[string]bool{}
	there := map[string]bool{}
	for _, t := range b.Tasks {
		there[t.ID] = true
		blocks[t.ID], blockedBy[t.ID] = map[string]bool{}, map[string]bool{}
	}
	damaged := map[string]bool{}
	for _, d := range b.Damaged {
		damaged[d.ID] = true
	}
	join := func(first, second string) {
		if first == second || !there[first] && !damaged[first] || !there[second] && !damaged[second] {
			return
		}
		if there[first] {
			blocks[first][second] = true
		}
		if there[second] {
			blockedBy[second][first] = true
		}
	}
	for _, t := range b.Tasks {
		for _, other := range t.Blocks {
			join(t.ID, other)
		}
		for _, other := range t.BlockedBy {
			join(other, t.ID)
		}
	}
	for i := range b.Tasks {
		t := &b.Tasks[i]
		t.Blocks, t.BlockedBy = ordered(blocks[t.ID]), ordered(blockedBy[t.ID])
	}
}

// ordered returns the ids of a set; never nil, which JSON would write as null.
func ordered(set map[string]bool) []string {
	ids := slices.AppendSeq(make([]string, 0, len(set)), maps.Keys(set))
	slices.SortFunc(ids, byID)
	return ids
}
