package seen

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// A watched memory says what is about to be deleted, and what was just written.
type watchedMemory struct {
	*processMemory
	deleting, written func(key string)
}

func (m *watchedMemory) Delete(ctx context.Context, key string) error {
	if m.deleting != nil {
		m.deleting(key)
	}
	return m.processMemory.Delete(ctx, key)
}

func (m *watchedMemory) Set(ctx context.Context, key string, value []byte) error {
	err := m.processMemory.Set(ctx, key, value)
	if m.written != nil {
		m.written(key)
	}
	return err
}

// fullRecords are as many as are remembered; of "oldest" the last use is longest ago.
func fullRecords(t *testing.T) (*Records, *watchedMemory) {
	t.Helper()
	m := &watchedMemory{processMemory: &processMemory{values: make(map[string][]byte)}}
	r := NewRecords(m)
	save(t, r, "oldest")
	for i := range maxFiles - 1 {
		save(t, r, fmt.Sprint(i))
	}
	return r, m
}

// A file was read again while another read made it the one to forget. Its new record was deleted for the old one, and the
// edit after it was refused: the file must be read first.
func TestSavedWhileForgotten(t *testing.T) {
	t.Parallel()
	t.Run("chosen already", func(t *testing.T) {
		t.Parallel()
		r, m := fullRecords(t)
		var saving sync.WaitGroup
		m.deleting = func(key string) {
			m.deleting = nil
			if key != keyOf("oldest") {
				t.Errorf("%s goes", key)
			}
			saving.Go(func() { save(t, r, "oldest") })
			if r.mu.TryLock() { // else that Save waits until this is done
				r.mu.Unlock()
				saving.Wait()
			}
		}
		save(t, r, "new")
		saving.Wait()
		if !has(t, r, "oldest") || !has(t, r, "new") {
			t.Error("what was just seen is forgotten")
		}
	})
	t.Run("to be chosen", func(t *testing.T) {
		t.Parallel()
		r, m := fullRecords(t)
		m.written = func(string) {
			m.written = nil
			save(t, r, "new")
		}
		save(t, r, "oldest")
		if !has(t, r, "oldest") || !has(t, r, "new") || has(t, r, "0") {
			t.Error("it is not the oldest that was forgotten")
		}
	})
}
