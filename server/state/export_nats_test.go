package state

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// NATSLease is the life of family lease in Stores of OpenNATS.
const NATSLease = 2 * time.Second

// OpenNATS opens a Store in NATS with shorter lives.
func OpenNATS(t *testing.T, url string, o Options) Store {
	t.Helper()
	o.NATS.lives = map[string]time.Duration{Lease: NATSLease}
	s, err := Open(t.Context(), url, o)
	must(t, err)
	return s
}

func natsOf(s Store) *natsStore { return s.(*heldStore).Store.(*natsStore) }

// EmptyNATS removes all but the record of who has the Store.
func EmptyNATS(t *testing.T, s Store) {
	t.Helper()
	n := natsOf(s)
	for _, c := range n.wanted(1) {
		if c.Name == n.bucket(Replica) {
			continue
		}
		stream, err := n.js.Stream(t.Context(), c.Name)
		must(t, err)
		must(t, stream.Purge(t.Context(), jetstream.WithPurgeKeep(0)))
	}
}

// NATSMessages counts all messages but that of the record.
func NATSMessages(s Store) int {
	ctx, cancel := natsOf(s).whileOpen()
	defer cancel()
	stats, err := natsOf(s).measure(ctx)
	if err != nil {
		return -1
	}
	return stats.Keys - 1
}

// OpenNATSBeside opens a Store in NATS that another process may have, too.
func OpenNATSBeside(t *testing.T, url string, o Options) Store {
	t.Helper()
	servers, err := natsServers(url)
	must(t, err)
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	s, err := dialNATS(t.Context(), servers, o, func() error { return nil })
	must(t, err)
	must(t, s.prepare(t.Context()))
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// LoseNATS makes a Store believe that it could not renew its record for long, as a process that was stopped.
func LoseNATS(s Store) {
	h := s.(*heldStore).hold
	h.mu.Lock()
	defer h.mu.Unlock()
	h.good = time.Now().Add(-time.Second)
}
