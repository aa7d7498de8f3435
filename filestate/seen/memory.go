package seen

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ErrMemory says that the Memory failed: what was seen could not be looked up or noted.
var ErrMemory = errors.New("read state is not available")

// Memory keeps what was seen. Any Store narrowed to a session will do.
type Memory interface {
	// Get returns nil, 0, nil for a key that is not there.
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	Set(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
	// Keys returns the keys that begin with prefix and a dot.
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// processMemory is a Memory that ends with the process.
type processMemory struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (m *processMemory) Get(_ context.Context, key string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], 0, nil
}

func (m *processMemory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
	return nil
}

func (m *processMemory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

func (m *processMemory) Keys(_ context.Context, prefix string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(func(yield func(string) bool) {
		for key := range maps.Keys(m.values) {
			if strings.HasPrefix(key, prefix+".") && !yield(key) {
				return
			}
		}
	}), nil
}
