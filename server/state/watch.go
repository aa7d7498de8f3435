package state

import (
	"context"
	"slices"
	"strings"
)

// A watcher collects the keys that changed until its Watch gets to them. The lock of the Store covers it. A key that
// waits already is not added again, so a slow reader costs one entry per key and never a writer's time.
type watcher struct {
	prefix  string
	pending []string // in the order of the first change
	queued  map[string]bool
	wake    chan struct{} // holds one token while something is pending
}

func (w *watcher) add(key string) {
	if w.queued[key] {
		return
	}
	w.queued[key] = true
	w.pending = append(w.pending, key)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tell wakes the Watches of a key. The caller holds mu.
func (m *memory) tell(key string) {
	for _, w := range m.watchers {
		if len(key) > len(w.prefix) && key[len(w.prefix)] == '.' && strings.HasPrefix(key, w.prefix) {
			w.add(key)
		}
	}
}

func (m *memory) Watch(ctx context.Context, prefix string, changed func(key string)) error {
	if err := m.plan.prefix(prefix); err != nil {
		return err
	}
	w := &watcher{prefix: prefix, queued: map[string]bool{}, wake: make(chan struct{}, 1)}
	now, err := m.enter(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	m.watchers = append(m.watchers, w)
	for _, key := range m.table.below(prefix, now) {
		w.add(key)
	}
	m.mu.Unlock()
	defer m.unwatch(w)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.closed:
			return ErrClosed
		case <-w.wake:
		}
		for _, key := range m.changes(w) {
			if ctx.Err() != nil {
				return nil
			}
			changed(key)
		}
	}
}

// changes takes what is pending.
func (m *memory) changes(w *watcher) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := w.pending
	w.pending = nil
	clear(w.queued)
	return keys
}

func (m *memory) unwatch(w *watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers = slices.DeleteFunc(m.watchers, func(o *watcher) bool { return o == w })
}
