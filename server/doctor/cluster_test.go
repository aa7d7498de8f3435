package doctor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/config"
	"codehand/server/nodes"
	"codehand/server/pauses"
	"codehand/server/relay"
	"codehand/server/replaytest"
	"codehand/server/state"
)

// goodCluster is one in which all is well.
func goodCluster() clusterView {
	now := time.Now()
	v := clusterView{url: "nats://n:4222", self: "a", volume: "/srv/shared", mark: "M", sights: map[string]sight{},
		stats: state.Stats{Server: "2.12.3", Copies: 3}, places: []nodes.Owner{{Who: "alice", Node: "a"}, {Who: "bob", Node: "b"}}}
	for _, name := range []string{"a", "b"} {
		v.live = append(v.live, nodes.Node{Holder: state.Holder{Host: "host-" + name, PID: 7}, Name: name, Version: "v1", Capacity: 2,
			Shared: true, Renewed: now.Add(-1200 * time.Millisecond)})
		v.sights[name] = sight{Sight: relay.Sight{Version: "v1", Time: now, Volume: "M"}, took: 800 * time.Microsecond}
	}
	return v
}

// TestClusterFindings: each thing that can be wrong with several machines has a line, at its level, with what to do; where
// all is well nothing else is said.
func TestClusterFindings(t *testing.T) {
	t.Parallel()
	for _, f := range goodCluster().findings() {
		if f.Level != OK || f.Fix != "" {
			t.Errorf("where all is well: %+v", f)
		}
	}
	if got := goodCluster().nodes()[0].Text; got != "a on host-a (process 7): version v1, 1 of 2 principals, renewed 1.2s ago, answers in 800µs" {
		t.Errorf("a node is %q", got)
	}
	answers := func(v *clusterView, node string, change func(*sight)) {
		s := v.sights[node]
		change(&s)
		v.sights[node] = s
	}
	for name, c := range map[string]struct {
		change func(*clusterView)
		id     string
		level  Level
		says   string
	}{
		"one copy":       {func(v *clusterView) { v.stats.Copies = 1 }, "store", Note, "1 copy of what is stored"},
		"no node":        {func(v *clusterView) { v.live = nil }, "nodes", Fail, "no node lives"},
		"silent":         {func(v *clusterView) { answers(v, "b", func(s *sight) { s.err = errors.New("no answer within 3s") }) }, "nodes", Fail, "b on host-b (process 7): version v1, 1 of 2 principals. Its record lives, but it does not answer: no answer within 3s"},
		"other kind":     {func(v *clusterView) { v.live[1].Shared = false }, "nodes", Fail, "Its cluster.workspaces is another one"},
		"drains":         {func(v *clusterView) { v.live[1].Draining = true }, "nodes", Note, "it drains"},
		"full":           {func(v *clusterView) { v.live[0].Capacity, v.live[1].Draining = 1, true }, "nodes", Warn, "no node takes one more principal"},
		"not here":       {func(v *clusterView) { v.self = "c" }, "nodes", Note, "c, the node of this configuration, does not live"},
		"versions":       {func(v *clusterView) { v.live[1].Version = "v2" }, "versions", Warn, "v1 (a), v2 (b)"},
		"clock ahead":    {func(v *clusterView) { answers(v, "b", func(s *sight) { s.skew = 5 * time.Second }) }, "clocks", Warn, "the clock of b is 5s ahead of that of this machine"},
		"clock behind":   {func(v *clusterView) { answers(v, "b", func(s *sight) { s.skew = -31 * time.Second }) }, "clocks", Fail, "the clock of b is 31s behind that of this machine"},
		"another volume": {func(v *clusterView) { answers(v, "b", func(s *sight) { s.Volume = "N" }) }, "volume", Fail, "b does not see the directory"},
		"no volume":      {func(v *clusterView) { answers(v, "b", func(s *sight) { s.Volume = "" }) }, "volume", Fail, "b does not see the directory"},
		"not mounted":    {func(v *clusterView) { v.mounted = &nodes.VolumeError{Dir: "/srv/shared", Unmarked: true} }, "volume", Fail, "on this machine /srv/shared is not"},
		"moves":          {func(v *clusterView) { v.live = v.live[:1] }, "places", Note, "b does not live; another node serves bob from the next call on"},
		"waits": {func(v *clusterView) {
			v.live = v.live[:1]
			v.volume, v.live[0].Shared = "", false
			for i := range 6 {
				v.places = append(v.places, nodes.Owner{Who: fmt.Sprint("p", i), Node: "b"})
			}
		}, "places", Warn, "b does not live, and has the workspaces of bob, p0, p1, p2, p3 and 2 more"},
	} {
		v := goodCluster()
		c.change(&v)
		if found := v.findings(); !slices.ContainsFunc(found, func(f Finding) bool {
			return f.ID == c.id && f.Level == c.level && strings.Contains(f.Text, c.says) && f.Fix != ""
		}) {
			t.Errorf("%s: no %s of %s that says %q in %+v", name, c.level, c.id, c.says, found)
		}
	}
}

// The time that an answer was on its way says nothing about a clock.
func TestSkew(t *testing.T) {
	t.Parallel()
	from := time.Now()
	to := from.Add(time.Second)
	for at, want := range map[time.Duration]time.Duration{-3 * time.Second: -3 * time.Second, 0: 0, time.Second: 0, 4 * time.Second: 3 * time.Second} {
		if got := skew(from, to, from.Add(at)); got != want {
			t.Errorf("at %v it is %v, want %v", at, got, want)
		}
	}
}

// TestClusterLook: what a store in NATS and its nodes say comes together, and what serve would refuse of the store is said.
func TestClusterLook(t *testing.T) {
	leaktest.OutsideGate(t, "starts a server of NATS")
	program, err := exec.LookPath("nats-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no nats-server in PATH; .ci/nats/build DIR makes one")
		}
		t.Skip("there is no nats-server in PATH; .ci/nats/build DIR makes one")
	}
	host, dir, shared := replaytest.Reserved(t), t.TempDir(), t.TempDir()
	cfg := config.Config{Store: config.Store{URL: "nats://" + host, NATS: state.NATSOptions{Prefix: "codehand"}},
		Cluster: config.Cluster{Node: "a", Workspaces: "shared", SharedDir: shared}}
	if f := (Cluster{cfg}).run(t.Context()); len(f) != 1 || f[0].ID != "store" || f[0].Level != Fail {
		t.Errorf("without NATS: %+v", f)
	}
	file := filepath.Join(dir, "nats.conf")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "listen: %s\njetstream { store_dir: %q }\n", host, dir), 0o600))
	nats := exec.Command(program, "-c", file, "-l", file+".log")
	must(t, leaktest.Start(nats))
	t.Cleanup(func() {
		_ = nats.Process.Kill()
		_ = nats.Wait() // it was killed
	})
	s, err := state.Open(t.Context(), cfg.Store.URL, cfg.StoreOptions())
	must(t, err)
	n, err := nodes.Join(t.Context(), nodes.Options{Store: s, Name: "a", Version: "v1", Capacity: 1, Shared: true, Volume: shared, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer func() {
		n.Close()
		must(t, n.Store().Close())
		must(t, s.Close())
	}()
	_, err = n.Owner(t.Context(), "alice")
	must(t, err)
	find := func(id string, level Level, says string) {
		t.Helper()
		found := (Cluster{cfg}).run(t.Context())
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.ID == id && f.Level == level && strings.Contains(f.Text, says) }) {
			t.Errorf("no %s of %s that says %q in %+v", level, id, says, found)
		}
	}
	find("nodes", Fail, "it does not answer: relay: no node of that name is there")
	conn, err := state.Connect(t.Context(), cfg.Store.URL, cfg.Store.NATS)
	must(t, err)
	defer conn.Close()
	h, err := relay.NewHost(relay.HostOptions{Wire: relay.NATS(conn), Prefix: "codehand", Node: "a",
		Sight: func() relay.Sight { return relay.Sight{Version: "v1", Volume: n.Mark()} }})
	must(t, err)
	defer h.Close()
	find("store", Note, "1 copy of what is stored")
	find("nodes", OK, "version v1, 1 of 1 principals, renewed ")
	find("nodes", Warn, "no node takes one more principal")
	find("clocks", OK, "within 2s")
	find("volume", OK, "same directory")
	find("places", OK, "1 principal served")
	paused, err := pauses.NewTable(t.Context(), s, func(string, map[string]any) {}, slog.New(slog.DiscardHandler))
	must(t, err)
	defer paused.Close()
	must(t, paused.Pause(t.Context(), "alice", false))
	find("pause", Warn, "by alice: no call of alice runs in codehand serve")
	must(t, os.Remove(filepath.Join(shared, "cluster.id")))
	find("volume", Fail, "a does not see the directory that the others share")
	find("volume", Fail, "on this machine "+shared)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
