package state

import (
	"context"
	"fmt"
	"time"
)

// defaultTimeout is how long one operation may take if nothing else is configured.
const defaultTimeout = 2 * time.Second

// Options of Open.
type Options struct {
	Dir         string        // data directory, absolute; it is made if it is missing. memory: does not use it
	SessionLife time.Duration // of family sess; 0: 30 days
	MaxBytes    int64         // of all values; 0: 4 GiB
	// how long what was written may stay in the operating system's cache; 0: every write is synced
	Sync    time.Duration
	Timeout time.Duration // of one operation; 0: 2 s

	compact int64 // size of a log below which it is left as it is; 0: compactBytes
}

// Open makes the Store that url names, checks what it needs, and pings it. The Store is a Stater.
//
// memory: dies with the process. embedded: keeps what it holds in o.Dir, for this process alone: a process that is
// killed loses nothing that was acknowledged, a machine that loses power at most the writes of the last o.Sync. Lives
// go on while nothing runs, and no revision comes again. Half a record at the end of the log, as a kill leaves it, is
// cut off; see Stats.Cut. Files have mode 0600, and no link is followed to one. The disk needs up to four times what is
// alive, and 16 MiB.
//
// Errors of embedded: *InUseError if another process has o.Dir, *DamagedError if a file is broken in its middle,
// ErrNewer if a newer program wrote it, and those of the operating system.
func Open(ctx context.Context, url string, o Options) (Store, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	switch url {
	case "memory:":
		return NewMemory(MemoryOptions{SessionLife: o.SessionLife, MaxBytes: o.MaxBytes}), nil
	case "embedded:":
		s, err := openEmbedded(ctx, o)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, fmt.Errorf("store %q is not known: it is \"memory:\" or \"embedded:\"", url)
}
