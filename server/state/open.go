package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// defaultTimeout is how long one operation may take if nothing else is configured.
const defaultTimeout = 2 * time.Second

// Options of Open.
type Options struct {
	Dir         string        // data directory, absolute; made if it is missing. memory: unused; nats: only locked
	SessionLife time.Duration // of family sess; 0: 30 days
	MaxBytes    int64         // of all values; 0: 4 GiB
	// how long what was written may stay in the operating system's cache; 0: every write is synced
	Sync    time.Duration
	Timeout time.Duration // of one operation; 0: 2 s
	NATS    NATSOptions   // how servers of NATS are reached

	// Nodes opens a Store that several processes share, in NATS alone: each must keep a record below NodeRecords, and
	// use the Store as Held says.
	Nodes bool
	// Impatient makes Open give up at once where a server of NATS does not answer. For those who only look.
	Impatient bool

	compact int64 // size of a log below which it is left as it is; 0: compactBytes
}

// OnDisk is the URL of the Store that keeps what it holds in Options.Dir.
const OnDisk = "embedded:"

// An opener makes the Store of one kind.
type opener func(context.Context, Options) (Store, error)

// openers has every kind of Store by the URL that names it. A new one is a line here, and passes storetest.
var openers = map[string]opener{
	OnDisk:    openOnDisk,
	"memory:": openMemory,
}

// URLs returns the URLs that name a Store as they are, sorted.
func URLs() []string { return slices.Sorted(maps.Keys(openers)) }

func openMemory(_ context.Context, o Options) (Store, error) {
	return NewMemory(MemoryOptions{SessionLife: o.SessionLife, MaxBytes: o.MaxBytes}), nil
}

func openOnDisk(ctx context.Context, o Options) (Store, error) {
	s, err := openEmbedded(ctx, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Open makes the Store that url names, checks what it needs, and pings it. The Store is a Stater. url is one of URLs,
// or nats://HOST:PORT or tls://HOST:PORT, several servers with commas.
//
// memory: dies with the process. embedded: keeps what it holds in o.Dir, for this process alone: a process that is
// killed loses nothing that was acknowledged, a machine that loses power at most the writes of the last o.Sync. Lives
// go on while nothing runs, and no revision comes again. Half a record at the end of the log, as a kill leaves it, is
// cut off; see Stats.Cut. Files have mode 0600, and no link is followed to one. The disk needs up to four times what is
// alive, and 16 MiB.
//
// nats: keeps what it holds in NATS, for this process alone: a record there, which it renews, keeps others out, but
// with Options.Nodes. Open makes the streams that it needs, and refuses servers older than 2.12.3, a cluster that
// cannot keep three copies, and streams of another make. Servers that do not answer are tried for 30 s. Whether they
// sync what they write, no client can see. Lives are those of the clock of the servers; an end is seen up to a second
// late, never early. A write that one of three servers acknowledged outlives any one of them. Without servers every
// operation ends with ErrDown or ErrUnsure within o.Timeout, and after three such ends at once, until the servers are
// back.
//
// *InUseError says that another process has o.Dir. Errors of embedded: *DamagedError if a file is broken in its middle,
// ErrNewer if a newer program wrote it, and those of the operating system. Of nats: *HeldError if another process has
// it.
func Open(ctx context.Context, url string, o Options) (Store, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Nodes && !isNATS(url) {
		return nil, fmt.Errorf("store.url is %q, a store of one process: cluster.node needs one in NATS", url)
	}
	if isNATS(url) {
		return openNATS(ctx, url, o)
	}
	opener, ok := openers[url]
	if !ok {
		return nil, fmt.Errorf("store %q is not known: it is one of %s", url, strings.Join(URLs(), ", "))
	}
	return opener(ctx, o)
}
