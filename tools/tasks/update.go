package tasks

import (
	"context"
	"encoding/json"
	"slices"
)

// A Change is what Update does to a task. Empty fields and nil leave it as it is.
type Change struct {
	Subject, Description, Status string
	ActiveForm, Owner            *string // an empty string takes it away

	AddBlocks, AddBlockedBy []string                   // ids
	Metadata                map[string]json.RawMessage // merged; null deletes
	Delete                  bool                       // the task and its links, whatever else is said
}

// Update changes a task, or deletes it, and returns it as it was and as it is; after a Delete the latter is the zero
// Task. Errors: *UnknownError, also for the ids of links; *CycleError; *SizeError; ErrDepth. Nothing is changed then.
func (l List) Update(ctx context.Context, id string, c Change) (before, after Task, err error) {
	if tooDeep(c.Metadata) {
		return Task{}, Task{}, ErrDepth
	}
	_, err = l.memory.Change(ctx, func(b Book) (Book, error) {
		var err error
		before, after, err = b.update(id, c)
		return b, err
	})
	if err != nil {
		return Task{}, Task{}, err
	}
	return before, after, nil
}

// update works on a Book that is the caller's.
func (b *Book) update(id string, c Change) (before, after Task, err error) {
	at := b.index(id)
	if at < 0 {
		return before, after, b.unknown(id)
	}
	size := b.size()
	before = b.Tasks[at]
	before.Blocks, before.BlockedBy = slices.Clone(before.Blocks), slices.Clone(before.BlockedBy)
	if c.Delete {
		b.Tasks = slices.Delete(b.Tasks, at, at+1)
		b.unlink(id)
		return before, after, nil
	}
	t := &b.Tasks[at]
	for _, f := range []struct {
		to *string
		is string
	}{{&t.Subject, c.Subject}, {&t.Description, c.Description}, {&t.Status, c.Status}} {
		if f.is != "" {
			*f.to = f.is
		}
	}
	if c.ActiveForm != nil {
		t.ActiveForm = *c.ActiveForm
	}
	if c.Owner != nil {
		t.Owner = *c.Owner
	}
	if len(c.Metadata) > 0 {
		t.Metadata = merged(t.Metadata, c.Metadata)
	}
	if err := b.link(id, c.AddBlocks, c.AddBlockedBy); err != nil {
		return before, after, err
	}
	return before, b.Tasks[at], b.fits(size)
}

// unknown is the error for ids that are no tasks.
func (b *Book) unknown(ids ...string) error {
	e := &UnknownError{IDs: ids, Known: b.ids()}
	for _, d := range b.Damaged {
		if slices.Contains(ids, d.ID) {
			e.Damaged = append(e.Damaged, d)
		}
	}
	return e
}

// link adds links in both directions.
func (b *Book) link(id string, blocks, blockedBy []string) error {
	var missing []string
	seen := map[string]bool{}
	for _, other := range slices.Concat(blocks, blockedBy) {
		if b.index(other) < 0 && !seen[other] {
			seen[other] = true
			missing = append(missing, other)
		}
	}
	if missing != nil {
		return b.unknown(missing...)
	}
	for _, other := range blocks {
		if err := b.join(id, other); err != nil {
			return err
		}
	}
	for _, other := range blockedBy {
		if err := b.join(other, id); err != nil {
			return err
		}
	}
	return nil
}

// join lets the task second wait for the task first. Both are there.
func (b *Book) join(first, second string) error {
	f, s := &b.Tasks[b.index(first)], &b.Tasks[b.index(second)]
	if _, there := slices.BinarySearchFunc(f.Blocks, second, byID); there {
		return nil
	}
	if way := b.way(second, first); way != nil {
		return &CycleError{Circle: append([]string{first}, way...)}
	}
	f.Blocks, s.BlockedBy = inserted(f.Blocks, second), inserted(s.BlockedBy, first)
	return nil
}

// way is a shortest way along Blocks from one task to another, both ends included; nil: there is none.
func (b *Book) way(from, to string) []string {
	cameFrom := map[string]string{from: ""}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		id := next[0]
		if id == to {
			var way []string
			for ; id != ""; id = cameFrom[id] {
				way = append(way, id)
			}
			slices.Reverse(way)
			return way
		}
		t, _ := b.task(id) // a link to a damaged file leads nowhere
		for _, other := range t.Blocks {
			if _, seen := cameFrom[other]; !seen {
				cameFrom[other] = id
				next = append(next, other)
			}
		}
	}
	return nil
}

// unlink takes an id out of all links.
func (b *Book) unlink(id string) {
	is := func(other string) bool { return other == id }
	for i := range b.Tasks {
		t := &b.Tasks[i]
		t.Blocks, t.BlockedBy = slices.DeleteFunc(t.Blocks, is), slices.DeleteFunc(t.BlockedBy, is)
	}
}

// inserted adds an id to ids in order.
func inserted(ids []string, id string) []string {
	at, there := slices.BinarySearchFunc(ids, id, byID)
	if there {
		return ids
	}
	return slices.Insert(ids, at, id)
}
