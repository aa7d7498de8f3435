package server

import (
	"cmp"
	"context"
	"flag"
	"io"
	"path/filepath"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/replaytest"
	"codehand/server/toolset"
	"codehand/tools"
	"codehand/tools/agent/loop"
	"codehand/tools/tool"
)

var update = flag.Bool("update", false, "rewrite session answers and wire transcripts")

// testSettings makes the configuration of a test: everything below a temporary directory, settings as an operator
// would give them.
func testSettings(t testing.TB, work, state string, settings map[string]string) config.Config {
	t.Helper()
	// With numbers answers show which lines of a file they are; TestLineFormat shows what is there by default.
	flags := map[string]string{"state-dir": state, "read-line-format": "tab"}
	for k, v := range settings {
		flags[replaytest.FlagOf(k)] = v
	}
	cfg, _, err := config.Load(config.Sources{
		Roots: []string{work}, WorkDir: work, Home: t.TempDir(), Flags: flags,
		Env: []string{"CODEHAND_SESSION=" + replaytest.Handle},
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A fixture is a server in process with one client on it.
type fixture struct {
	*replaytest.Wire
	server *Server
	work   string
	ended  chan error // what Stdio returned
}

// A setup says what a fixture is made of. Zero fields: defaults.
type setup struct {
	tools    []tool.Tool                     // that need none of the server's engines
	make     func(tools.Engines) []tool.Tool // in place of tools; neither: tools.All
	sources  []toolset.Source
	settings map[string]string
	client   string
	modern   bool
	silent   bool          // do not say hello
	roots    time.Duration // that a client has to name its roots; 0: as long as it likes

	change func(*config.Config) // what settings cannot say; nil: nothing
	model  loop.Model           // of sub-agents; nil: none

	onPage bool // codehand page can reach it, and its commands count as confined
}

// making is what makes the tools of a test server.
func making(fixed []tool.Tool, make func(tools.Engines) []tool.Tool) func(tools.Engines) []tool.Tool {
	switch {
	case make != nil:
		return make
	case fixed == nil:
		return tools.All
	}
	return only(fixed...)
}

// only makes no tools but these.
func only(these ...tool.Tool) func(tools.Engines) []tool.Tool {
	return func(tools.Engines) []tool.Tool { return these }
}

// allAnd makes all tools and some more.
func allAnd(more ...tool.Tool) func(tools.Engines) []tool.Tool {
	return func(e tools.Engines) []tool.Tool { return append(tools.All(e), more...) }
}

// start makes a server over a new workspace and connects a client. Its end is checked when the test ends.
func start(t testing.TB, o setup) *fixture {
	t.Helper()
	work := leaktest.Dir(t)
	if o.client == "" {
		o.client = "session-test"
	}
	cfg := testSettings(t, work, filepath.Join(t.TempDir(), "state"), replaytest.Placed(o.settings, work))
	if o.change != nil {
		o.change(&cfg)
	}
	proven := limitsOnly
	if o.onPage {
		proven = confined
	}
	s, err := New(Options{Options: engines.Options{Proven: proven, Config: cfg, Tools: making(o.tools, o.make), Sources: o.sources, Version: "test", Model: o.model}})
	if err != nil {
		t.Fatal(err)
	}
	s.patience = replaytest.HangAfter // however slow this machine is, a test loses no note
	patient(s, o.roots)
	f := &fixture{server: s, work: work, ended: make(chan error, 1)}
	unreachable := func() {}
	if o.onPage {
		unreachable = s.Reachable(context.Background())
	}
	f.Wire = connect(s, f.ended, o.client, o.modern)
	t.Cleanup(func() {
		_ = f.In.Close()
		go func() { // what the test did not read
			for range f.Lines {
			}
		}()
		select {
		case err := <-f.ended:
			if err != nil {
				t.Errorf("Stdio: %v", err)
			}
		case <-time.After(replaytest.HangAfter):
			t.Fatal("Stdio does not return")
		}
		unreachable()
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if !o.silent {
		if err := f.Hello(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// patient makes the limits of a server such that only a hang reaches them: however slow this machine is, a test lists no
// changes in doubt, a client that answers has named its roots (unless it has a time for that), all skills are found, and
// hooks hear of the end.
func patient(s *Server, roots time.Duration) {
	s.notices.Resources.Glance, s.notices.SkillTime, s.calls.Waits.Roots = replaytest.HangAfter, replaytest.HangAfter, cmp.Or(roots, replaytest.HangAfter)
	s.engines.Hooks.Grace = replaytest.HangAfter
}

// connect runs Stdio on two pipes.
func connect(s *Server, ended chan<- error, client string, modern bool) *replaytest.Wire {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		err := s.Stdio(context.Background(), inR, outW)
		_ = outW.Close()
		ended <- err
	}()
	return replaytest.NewWire(inW, outR, client, modern)
}

// TestSessions replays every session file against the server in process.
func TestSessions(t *testing.T) {
	for _, path := range replaytest.Scripts(t) {
		t.Run(replaytest.ScriptName(path), func(t *testing.T) {
			t.Parallel()
			file, err := replaytest.ReadScript(path)
			if err != nil {
				t.Fatal(err)
			}
			o := setup{settings: file.Settings(t), client: file.Client, modern: file.Modern}
			if file.Fixed {
				o.make = fixedTools
			}
			f := start(t, o)
			replaytest.Play(t, file, f.Wire, f.work, f.server.engines.Dir, f.server.cfg.Home, *update)
		})
	}
}
