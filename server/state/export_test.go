package state

import (
	"testing"
	"time"
)

// What the suite of storetest, which imports this package, needs of its inside.

// OpenReal opens an embedded Store on a real disk. The clock of the suite runs faster than a disk can sync.
func OpenReal(t *testing.T, o Options) Store {
	o.Dir, o.Sync = t.TempDir(), time.Hour
	return openReal(t, o)
}

// RestartReal kills a Store of OpenReal and opens what it left.
func RestartReal(t *testing.T, s Store, o Options) Store {
	o.Dir, o.Sync = copyOfFiles(t, s.(*embedded)), time.Hour
	must(t, s.Close())
	return openReal(t, o)
}

// OpenFake opens an embedded Store that syncs every write to a disk in memory.
func OpenFake(t *testing.T, o Options) Store { return openFake(t, newFakeDisk(nil), o) }

// RestartFake kills a Store of OpenFake and opens what it left.
func RestartFake(t *testing.T, s Store, o Options) Store { return restartFake(t, s.(*embedded), o) }

// Traces counts what a Store keeps of keys, alive or not, to end them in time.
func Traces(s Store) int {
	m, ok := s.(*memory)
	if !ok {
		m = s.(*embedded).memory
	}
	return len(m.table.ends) + len(m.table.due) + len(m.table.dueToo) + len(m.table.groups)
}
