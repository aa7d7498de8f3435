package blackbox

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// An adder adds numbers to a file, one edit each, until it is told to end. Whatever it meets, it sends the same call
// again; so each number must be there once, and in order.
type adder struct {
	*talker
	c     *cluster
	file  string
	named bool // its calls have ids

	unread bool // the last call was refused, because the session must read the file first

	mu      sync.Mutex
	at      string // URL of the node that it talks to
	cancel  context.CancelFunc
	done    atomic.Int32 // edits that were acknowledged
	repeats atomic.Int32
	end     atomic.Bool
	ended   sync.WaitGroup
}

// count begins to count in a session of its own, at a URL.
func (c *cluster) count(name, at string, k wireKind, named bool) *adder {
	c.t.Helper()
	n := &adder{talker: c.talk(at, &http.Client{Transport: &http.Transport{}}, k), c: c, file: name + ".txt", named: named, at: at}
	meta := fmt.Sprintf(`,"codehand/session":"count-%s"`, name)
	if text, failed := n.say("1", "write_file", fmt.Sprintf(`{"file_path":%q,"content":"end\n"}`, n.file), meta); failed {
		c.t.Fatal(text)
	}
	n.ended.Go(func() {
		for i := 1; !n.end.Load(); i++ {
			for try := 0; ; try++ {
				with := meta
				if named {
					with += fmt.Sprintf(`,"codehand/call":"edit-%d-%d"`, i, try)
				}
				body := n.CallBody(fmt.Sprint(i+1), "edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"end","new_string":"%d end"}`, n.file, i), with)
				for !n.once(i, body) {
					n.repeats.Add(1)
				}
				if !n.unread {
					break
				}
				// the edit before was made, and its node died before it had noted what the session knows now
				n.once(i, n.CallBody(fmt.Sprint(i+1), "read_file", fmt.Sprintf(`{"file_path":%q}`, n.file), meta))
			}
			n.done.Store(int32(i))
		}
	})
	c.t.Cleanup(func() { n.end.Store(true) })
	return n
}

// once sends a call, and says whether it was made.
func (n *adder) once(i int, body string) bool {
	ctx, cancel := context.WithCancel(n.c.t.Context())
	defer cancel()
	n.mu.Lock()
	n.cancel = cancel
	n.URL = n.at + "/mcp"
	n.mu.Unlock()
	text, failed, err := "", true, error(nil)
	if a, tryErr := n.try(ctx, body); tryErr == nil {
		text, failed, err = a.outcome()
	} else {
		err = tryErr
	}
	n.unread = err == nil && failed && (strings.Contains(text, "FILE_CHANGED") || strings.Contains(text, "FILE_NOT_READ"))
	switch {
	case err == nil && (!failed || n.unread):
		return true
	case !n.named:
		n.c.t.Errorf("%s: edit %d failed: %s, %v", n.file, i, text, err)
	case err == nil && !strings.Contains(text, "STATE_UNAVAILABLE") && !strings.Contains(text, "NODE_DOWN") && !strings.Contains(text, "INTERRUPTED"):
		n.c.t.Errorf("%s: edit %d: %s", n.file, i, text)
		n.end.Store(true)
		return true
	}
	return !n.named || n.c.t.Context().Err() != nil
}

// turn lets it talk to another node from now on, and give up what it waits for.
func (n *adder) turn(at string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at = at
	n.cancel()
}

// goesOn waits until it has done some more.
func (n *adder) goesOn() {
	n.c.t.Helper()
	want := n.done.Load() + 5
	replaytest.Until(n.c.t, n.file+" goes on", func() bool { return n.done.Load() >= want })
}

// stop ends it, and looks at its file.
func (n *adder) stop(root string) {
	n.c.t.Helper()
	n.end.Store(true)
	n.ended.Wait()
	var want strings.Builder
	for i := range n.done.Load() {
		fmt.Fprintf(&want, "%d ", i+1)
	}
	got, err := os.ReadFile(filepath.Join(root, n.file))
	if err != nil || string(got) != want.String()+"end\n" {
		n.c.t.Errorf("%s holds %q, %v, want 1 to %d", n.file, got, err, n.done.Load())
	}
}

// notes counts the changes in the journals, by how they ended.
func (c *cluster) notes() map[string]int {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.shared, "journal", "*", "*", "*"))
	must(c.t, err)
	n := map[string]int{}
	for _, path := range found {
		n[filepath.Ext(path)]++
	}
	return n
}

// others are the nodes but for one.
func (c *cluster) others(but *clusterNode) (all []*clusterNode) {
	for _, n := range c.nodes {
		if n != but {
			all = append(all, n)
		}
	}
	return all
}

// TestClusterShared: where all nodes have the same workspaces, people move when their node dies, stands still or drains.
// Whatever happens in the middle of their edits, each edit is made once.
func TestClusterShared(t *testing.T) {
	leaktest.OutsideGate(t, "starts a server of NATS and several of codehand")
	c := startCluster(t, 3, true)
	who := "person-0"
	c.token = c.people[who]
	root := filepath.Join(c.work, who)
	legacy, modern := wireKind{"http", "legacy"}, wireKind{"http", "modern"}
	c.talk(c.proxy, http.DefaultClient, legacy)

	t.Run("killed", func(t *testing.T) {
		all := []*adder{c.count("killed-a", c.proxy, legacy, true), c.count("killed-b", c.proxy, modern, true)}
		for range 2 {
			n := c.owner(who)
			through := c.others(n)[0] // whose clients notice nothing
			quiet := c.count("quiet-"+n.name, through.url, modern, false)
			running := c.talk(through.url, http.DefaultClient, legacy)
			held := hold(t, c.home, "held-by-"+n.name)
			letEnd(t, c.home, "held-by-"+n.name)
			cut := running.start(running.CallBody("1", "run_shell", held.command("echo done"), noted))
			cut.must() // it has begun
			for _, x := range append(all, quiet) {
				x.goesOn()
			}
			must(t, n.cmd.Process.Signal(syscall.SIGKILL))
			for _, x := range append(all, quiet) {
				x.goesOn()
			}
			if text, failed := cut.result(); !failed || !strings.Contains(text, "OUTCOME_UNKNOWN") {
				t.Errorf("the command that ran got %q", text)
			}
			held.release()
			quiet.stop(root)
			if now := c.owner(who); now == n {
				t.Errorf("%s is still served by %s", who, n.name)
			}
			n.exit()
			c.start(n)
		}
		for _, x := range all {
			x.stop(root)
			t.Logf("%s: %d edits, %d sent again", x.file, x.done.Load(), x.repeats.Load())
		}
	})

	t.Run("stopped", func(t *testing.T) {
		n := c.owner(who)
		other := c.others(n)[0]
		before := c.notes()
		all := []*adder{c.count("stopped-a", n.url, legacy, true), c.count("stopped-b", n.url, modern, true), c.count("stopped-c", n.url, modern, true)}
		for _, x := range all {
			x.goesOn()
		}
		must(t, n.cmd.Process.Signal(syscall.SIGSTOP))
		t.Cleanup(func() { _ = n.cmd.Process.Signal(syscall.SIGCONT) }) // it may run
		replaytest.Until(t, "another node serves", func() bool {
			x := c.talk(other.url, http.DefaultClient, legacy)
			_, failed := x.say("1", "read_file", `{"file_path":"stopped-a.txt"}`, "")
			return !failed
		})
		if now := c.owner(who); now == n { // which of the others it is depends on the load
			t.Errorf("%s is served by %s", who, now.name)
		}
		for _, x := range all {
			x.turn(other.url)
		}
		for _, x := range all {
			x.goesOn()
		}
		must(t, n.cmd.Process.Signal(syscall.SIGCONT))
		for _, x := range all { // the node that stood still hands on
			x.turn(n.url)
			x.goesOn()
		}
		if now := c.owner(who); now == n {
			t.Errorf("%s is served by %s again", who, now.name)
		}
		edits := 0
		for _, x := range all {
			x.stop(root)
			edits += int(x.done.Load()) + 1
			t.Logf("%s: %d edits, %d sent again", x.file, x.done.Load(), x.repeats.Load())
		}
		if after := c.notes(); after[".done"]-before[".done"] != edits || after[".open"] > 0 || after[".unsure"] > 0 {
			t.Errorf("of %d changes the journals had %v, and have %v", edits, before, after)
		}
	})

	t.Run("drain", func(t *testing.T) {
		n := c.owner(who)
		all := []*adder{c.count("drain-a", c.proxy, legacy, false), c.count("drain-b", c.others(n)[0].url, modern, false)}
		for _, x := range all {
			x.goesOn()
		}
		if out := c.run("drain", n.name); !strings.Contains(out, "serves nobody any more") {
			t.Errorf("it says %q", out)
		}
		if now := c.owner(who); now == n {
			t.Errorf("%s is still served by %s", who, n.name)
		}
		for _, x := range all {
			x.goesOn()
			x.stop(root)
		}
		c.run("drain", n.name, "--end")
	})

	t.Run("ended", func(t *testing.T) { // in good order, and nobody drained it before
		n := c.owner(who)
		quiet := []*adder{c.count("ended-a", c.others(n)[0].url, legacy, false), c.count("ended-b", c.others(n)[1].url, modern, false)}
		for _, x := range quiet {
			x.goesOn()
		}
		must(t, n.cmd.Process.Signal(syscall.SIGTERM))
		for _, x := range quiet {
			x.goesOn()
			x.stop(root)
		}
		n.exit()
		if now := c.owner(who); now == n {
			t.Errorf("%s is still served by %s", who, n.name)
		}
	})
}
