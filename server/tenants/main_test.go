package tenants

import (
	"log/slog"
	"path/filepath"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/config"
	"codehand/server/replaytest"
	"codehand/server/toolset"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// maker makes tenants without tools, whose local one works in a directory, with settings as an operator would give them.
func maker(t *testing.T, work string, settings map[string]string) *Maker {
	t.Helper()
	state := filepath.Join(leaktest.Dir(t), "state")
	flags := map[string]string{"state-dir": state}
	for k, v := range settings {
		flags[replaytest.FlagOf(k)] = v
	}
	cfg, _, err := config.Load(config.Sources{Roots: []string{work}, WorkDir: work, Home: t.TempDir(), Flags: flags})
	must(t, err)
	return &Maker{Config: cfg, Tools: new(toolset.Set), Log: slog.New(slog.DiscardHandler), State: state}
}

// localOf is the tenant of the person who started the process.
func localOf(t *testing.T, m *Maker) *Tenant {
	t.Helper()
	local, err := m.Local()
	must(t, err)
	t.Cleanup(func() { _ = local.Space.Close() })
	return local
}
