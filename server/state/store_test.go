package state_test

import (
	"strings"
	"testing"

	"codehand/server/state"
	"codehand/server/state/storetest"
)

// Every Store that Open knows keeps the contract, and the embedded one also over a kill and with every write synced.
func TestStore(t *testing.T) {
	t.Parallel()
	kinds := map[string]storetest.Backend{
		"embedded": {Open: state.OpenReal, Restart: state.RestartReal, Traces: state.Traces},
		"memory":   {Open: open("memory:"), Traces: state.Traces},

		"embedded, every write synced": {Open: state.OpenFake, Restart: state.RestartFake, Traces: state.Traces},
	}
	for _, url := range state.URLs() {
		if name := strings.TrimSuffix(url, ":"); kinds[name].Open == nil {
			kinds[name] = storetest.Backend{Open: open(url)}
		}
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) { storetest.Run(t, kind) })
	}
}

// open opens the Store that url names in a directory of its own.
func open(url string) func(*testing.T, state.Options) state.Store {
	return func(t *testing.T, o state.Options) state.Store {
		o.Dir = t.TempDir()
		s, err := state.Open(t.Context(), url, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}
