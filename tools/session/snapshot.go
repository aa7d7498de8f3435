package session

import (
	"context"
	"fmt"
	"slices"
)

// A Snapshot is what the cells that say how a call begins held at one moment: Cwd, Isolated, Choices, Plan, Mode and
// Limit, read in one operation of the Store. The zero Snapshot shows nothing, so In reads the Store.
//
// The moment is when the call has its place in the queue of its principal, so it shows what calls wrote that were
// answered before. What another call or process writes later, it does not show. That is enough for these uses only:
//
//   - Cwd, Isolated and Choices: a call works where, and with the options that, held when it began. A call that
//     changes them meanwhile runs beside it, and the order of the two is promised to no client.
//   - Plan, for the name of the plan file, which Space opens for the call. Opened or not, stage 2 of the pipeline
//     decides whether the call may change it.
//   - Mode and Limit, for the first look of stage 2 of the pipeline, directly after the call was located; Limit
//     also for what the call tells of it.
//
// Everything else is read from the Store when it is used:
//
//   - Mode and Limit, for a call that may change something, again behind the gate, and for each call again after a hook
//     gave it another input: it may have waited long for a hook, a person or its turn. So plan mode that was entered
//     meanwhile refuses the call, though the Snapshot would let it through.
//   - Plan, when it decides that a call touches the plan file alone.
//   - Grants and Declines, when a decision needs them: a person may have answered another question meanwhile.
//   - Cursors, Told, Todos, Active and Searches, which calls change, by the tool or stage that needs them.
//
// Change never looks at a Snapshot: it compares and swaps with what the Store holds.
type Snapshot struct {
	memory Memory // nil: it shows nothing
	keys   []string
	values [][]byte
	revs   []uint64
}

// Look takes a Snapshot now. An error means that the Store did not answer.
func (s *State) Look(ctx context.Context) (Snapshot, error) {
	shown := Snapshot{memory: s.Cwd.memory, keys: make([]string, 0, 6)}
	if shown.memory == nil {
		return Snapshot{}, nil
	}
	shown.add(s.Cwd.memory, s.Cwd.key)
	shown.add(s.Isolated.memory, s.Isolated.key)
	shown.add(s.Choices.memory, s.Choices.key)
	shown.add(s.Plan.memory, s.Plan.key)
	shown.add(s.Mode.memory, s.Mode.key)
	shown.add(s.Limit.memory, s.Limit.key)
	if err := shown.read(ctx); err != nil {
		return Snapshot{}, err
	}
	return shown, nil
}

// read reads what the Snapshot shows.
func (s *Snapshot) read(ctx context.Context) (err error) {
	if s.values, s.revs, err = s.memory.GetAll(ctx, s.keys...); err != nil {
		return fmt.Errorf("load the cells of a session: %w", err)
	}
	return nil
}

// add makes the Snapshot show a cell, if it is kept where the others are.
func (s *Snapshot) add(memory Memory, key string) {
	if memory == s.memory {
		s.keys = append(s.keys, key)
	}
}

// of returns what a cell held. ok is false if the Snapshot does not show it.
func (s Snapshot) of(memory Memory, key string) (value []byte, rev uint64, ok bool) {
	i := slices.Index(s.keys, key)
	if i < 0 || memory != s.memory {
		return nil, 0, false
	}
	return s.values[i], s.revs[i], true
}
