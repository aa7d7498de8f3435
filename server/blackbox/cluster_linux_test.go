package blackbox

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A cluster is some nodes on one nats-server, with a proxy before them that deals requests to them in turn.
type cluster struct {
	*deployment
	nodes  []*clusterNode
	proxy  string
	store  string
	shared string            // what all nodes keep, besides their workspaces; "": each has workspaces of its own
	people map[string]string // of people, who are known when the nodes begin
}

type clusterNode struct {
	*daemon
	name, data string
}

// startCluster starts nodes a, b, ... with workspaces of their own, or shared ones; it skips the test where there is no
// nats-server.
func startCluster(t *testing.T, count int, shared bool) *cluster {
	t.Helper()
	program, err := exec.LookPath("nats-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no nats-server in PATH; .ci/nats/build DIR makes one")
		}
		t.Skip("there is no nats-server in PATH; .ci/nats/build DIR makes one")
	}
	d := deploy(t)
	c := &cluster{deployment: d, store: "nats://" + replaytest.Reserved(t)}
	if shared {
		c.shared = filepath.Join(d.home, "shared")
	}
	c.people = map[string]string{}
	for i := range 12 {
		for _, who := range []string{fmt.Sprint("person-", i), fmt.Sprint("late-", i)} {
			c.people[who] = d.issue(who, append([]string{"--mode", "acceptEdits"}, unbounded...)...)
		}
	}
	host := strings.TrimPrefix(c.store, "nats://")
	file := filepath.Join(d.home, "nats.conf")
	replaytest.WriteFile(t, file, fmt.Appendf(nil, "listen: %s\njetstream { store_dir: %q }\n", host, d.home))
	nats := exec.Command(program, "-c", file, "-l", file+".log")
	must(t, leaktest.Start(nats))
	t.Cleanup(func() {
		_ = nats.Process.Kill()
		_ = nats.Wait() // it was killed
	})
	for i := range count {
		n := &clusterNode{name: string(rune('a' + i))}
		n.data = filepath.Join(d.home, n.name)
		must(t, os.Mkdir(filepath.Join(d.work, n.name), 0o700))
		c.nodes = append(c.nodes, n)
		c.start(n)
	}
	var turn atomic.Uint64
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse(c.nodes[int(turn.Add(1))%count].url)
			if err != nil {
				panic(err) // it is ours
			}
			r.SetURL(to)
		},
	})
	t.Cleanup(proxy.Close)
	c.proxy = proxy.URL
	return c
}

// serving is how a node is started.
func (c *cluster) serving(name, data string, more ...string) *exec.Cmd {
	roots := filepath.Join(c.work, name, "{principal}")
	if c.shared != "" {
		roots = filepath.Join(c.work, "{principal}")
		more = append(more, "--cluster-workspaces", "shared", "--cluster-shared-dir", c.shared)
	}
	return c.codehand(append([]string{"serve", roots, "--listen", "127.0.0.1:0", "--auth-mode", "token", "--store-url",
		c.store, "--http-data-dir", data, "--auth-token-file", filepath.Join(c.home, "state", "codehand", "tokens.jsonl")}, more...)...)
}

func (c *cluster) start(n *clusterNode) {
	c.t.Helper()
	n.daemon = startDaemon(c.t, c.serving(n.name, n.data, "--cluster-node", n.name))
}

// run runs codehand cluster and returns what it prints.
func (c *cluster) run(args ...string) string {
	c.t.Helper()
	cmd := c.codehand(append([]string{"cluster"}, args...)...)
	cmd.Env = append(cmd.Env, "CODEHAND_STORE_URL="+c.store, "CODEHAND_CLUSTER_NODE=operator")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("cluster %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// owner is the node that serves a principal.
func (c *cluster) owner(who string) *clusterNode {
	c.t.Helper()
	var v struct {
		Places []struct{ Who, Node string }
	}
	out := c.run("nodes", "--json")
	must(c.t, json.Unmarshal([]byte(out), &v))
	for _, p := range v.Places {
		for _, n := range c.nodes {
			if p.Who == who && p.Node == n.name {
				return n
			}
		}
	}
	c.t.Fatalf("nobody serves %s: %s", who, out)
	return nil
}

// TestCluster: behind a proxy that deals requests in turn, everything works as on one machine, whichever node has the
// workspace; only that node's people wait while it is down.
func TestCluster(t *testing.T) {
	leaktest.OutsideGate(t, "starts a server of NATS and several of codehand")
	c := startCluster(t, 2, false)
	homes := map[string]string{} // of a principal, by its node
	for i := 0; len(homes) < 2 && i < 12; i++ {
		who := fmt.Sprint("person-", i)
		c.token = c.people[who]
		talker := c.talk(c.proxy, http.DefaultClient, wireKind{"http", "legacy"})
		talker.say("1", "write_file", `{"file_path":"begun.txt","content":"x\n"}`, "")
		n := c.owner(who)
		if homes[n.name] != "" {
			continue
		}
		homes[n.name] = who
		if _, err := os.Stat(filepath.Join(c.work, n.name, who, "begun.txt")); err != nil {
			t.Error(err)
		}
		for _, k := range wireKinds {
			t.Run(n.name+"/"+k.transport+"/"+k.era, func(t *testing.T) {
				d := *c.deployment
				d.t = t
				clusterWorks(t, &d, c.proxy, k, filepath.Join(c.work, n.name, who))
			})
		}
	}

	t.Run("alone", func(t *testing.T) { // a server that is no node is refused
		must(t, os.Mkdir(filepath.Join(c.work, "z"), 0o700))
		out, err := c.serving("z", filepath.Join(c.home, "z")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "as node ") || !strings.Contains(string(out), "cluster.node") {
			t.Errorf("%v\n%s", err, out)
		}
		out, err = c.serving("z", filepath.Join(c.home, "z"), "--cluster-node", "a").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "is the node a already") {
			t.Errorf("%v\n%s", err, out)
		}
	})

	t.Run("killed", func(t *testing.T) {
		n := c.owner(homes["a"])
		c.token = c.people[homes["a"]]
		other := c.nodes[1]
		calls := c.talk(other.url, http.DefaultClient, wireKind{"http", "legacy"})
		running := hold(t, c.work, "killed")
		lost := calls.start(calls.CallBody("1", "run_shell", running.command("echo done"), noted))
		lost.must() // it has begun
		must(t, n.cmd.Process.Signal(syscall.SIGKILL))
		if text, failed := lost.result(); !failed || !strings.Contains(text, "may have been carried out") {
			t.Errorf("the call that ran got %q", text)
		}
		running.release()
		if text, failed := calls.say("2", "write_file", `{"file_path":"after.txt","content":"x\n"}`, ""); !failed ||
			!strings.Contains(text, "NODE_DOWN") || !strings.Contains(text, "Nothing was done") {
			t.Errorf("the next call got %q", text)
		}
		if out := c.run("nodes"); !strings.Contains(out, "(down)") {
			replaytest.Until(t, "it is listed as down", func() bool { return strings.Contains(c.run("nodes"), "(down)") })
		}
		n.exit()
		c.start(n)
		replaytest.Until(t, "the restarted node serves its people", func() bool {
			_, failed := calls.say("3", "read_file", `{"file_path":"begun.txt"}`, "")
			return !failed
		})
		if text, failed := calls.say("4", "write_file", `{"file_path":"after.txt","content":"x\n"}`, ""); failed {
			t.Errorf("after the restart: %s", text)
		}
	})

	t.Run("drain", func(t *testing.T) {
		if out := c.run("drain", "b"); !strings.Contains(out, "stays there: "+homes["b"]) {
			t.Errorf("it says %q", out)
		}
		ready := func(n *clusterNode) int {
			r, err := http.Get(n.url + "/readyz")
			must(t, err)
			must(t, r.Body.Close())
			return r.StatusCode
		}
		replaytest.Until(t, "its /readyz is red", func() bool { return ready(c.nodes[1]) == http.StatusServiceUnavailable })
		if got := ready(c.nodes[0]); got != http.StatusOK {
			t.Errorf("the other one answers %d", got)
		}
		for i := range 8 {
			who := fmt.Sprint("late-", i)
			c.token = c.people[who]
			c.talk(c.proxy, http.DefaultClient, wireKind{"http", "legacy"})
			if n := c.owner(who); n.name != "a" {
				t.Errorf("%s is served by %s", who, n.name)
			}
		}
		c.token = c.people[homes["b"]]
		still := c.talk(c.proxy, http.DefaultClient, wireKind{"http", "legacy"})
		if text, failed := still.say("1", "read_file", `{"file_path":"begun.txt"}`, ""); failed {
			t.Errorf("who is there already: %s", text)
		}
		c.run("drain", "b", "--end")
		replaytest.Until(t, "its /readyz is green", func() bool { return ready(c.nodes[1]) == http.StatusOK })
	})

	t.Run("move", func(t *testing.T) {
		who := homes["b"]
		must(t, os.CopyFS(filepath.Join(c.work, "a", who), os.DirFS(filepath.Join(c.work, "b", who))))
		mover := c.talk(c.proxy, http.DefaultClient, wireKind{"http", "legacy"})
		mover.say("1", "read_file", `{"file_path":"begun.txt"}`, "")
		c.run("move", who, "a")
		for i := range 4 { // whichever node is asked, also those that have not heard of it
			if text, failed := mover.say(fmt.Sprint(2+i), "write_file",
				fmt.Sprintf(`{"file_path":"moved-%d.txt","content":"x\n"}`, i), ""); failed {
				t.Errorf("after the move: %s", text)
			}
			if _, err := os.Stat(filepath.Join(c.work, "a", who, fmt.Sprintf("moved-%d.txt", i))); err != nil {
				t.Error(err)
			}
		}
		c.run("forget", who)
	})
}

// clusterWorks works as one client does, in every way that needs more than one request or more than one message.
func clusterWorks(t *testing.T, d *deployment, at string, k wireKind, root string) {
	c := d.talk(at, http.DefaultClient, k)
	name := strings.ReplaceAll(k.transport+k.era, "/", "")
	session := fmt.Sprintf(`,"codehand/session":"cluster-%s"`, name)
	file := name + ".txt"
	if text, failed := c.say("1", "write_file", fmt.Sprintf(`{"file_path":%q,"content":"one\n"}`, file), session); failed {
		t.Fatal(text)
	}
	for i := range 6 { // each needs what the one before left in the session
		if text, failed := c.say(fmt.Sprint(10+i), "edit_file",
			fmt.Sprintf(`{"file_path":%q,"old_string":"one","new_string":"one %d"}`, file, i), session); failed {
			t.Fatal(text)
		}
	}
	got, err := os.ReadFile(filepath.Join(root, file))
	if want := "one 5 4 3 2 1 0\n"; err != nil || string(got) != want {
		t.Errorf("the file holds %q, %v", got, err)
	}

	large := strings.Repeat("a line of a large file\\n", 50_000)
	if text, failed := c.say("20", "write_file", fmt.Sprintf(`{"file_path":"large-%s","content":"%s"}`, file, large), session); failed {
		t.Error(text)
	}
	if info, err := os.Stat(filepath.Join(root, "large-"+file)); err != nil || info.Size() != 50_000*23 {
		t.Errorf("%v, %v", info, err)
	}

	slow := hold(t, d.work, "slow-"+name)
	letEnd(t, d.work, "slow-"+name, "cancelled-"+name)
	running := c.start(c.CallBody("30", "run_shell", slow.command("echo done"), session+noted))
	if note := running.must(); !strings.Contains(note, "notifications/progress") {
		t.Errorf("before the answer comes %s", note)
	}
	slow.release()
	if text, failed := running.result(); failed || !strings.Contains(text, "begun\ndone") {
		t.Errorf("the command says %q", text)
	}

	cancelled := hold(t, d.work, "cancelled-"+name)
	gone := c.start(c.CallBody("40", "run_shell", cancelled.command("echo done"), session+noted+`,"codehand/call":"call-40"`))
	gone.must() // it runs
	if c.kind.transport == "sse" {
		c.start(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":40}}`)
	} else if code := c.Cancel("40", `,"codehand/call":"call-40"`); code != http.StatusAccepted {
		t.Errorf("the cancel got %d", code)
	}
	replaytest.Until(t, "the cancelled command ends", func() bool { return !marked(t, cancelled.path) })

	text, failed := c.say("50", "run_shell", `{"command":"echo of a job; sleep 0.01","run_in_background":true}`, session)
	job := regexp.MustCompile(`\bjob[-_]\w+|\bj\d+`).FindString(text)
	if failed {
		t.Error(text)
	}
	replaytest.Until(t, "the job's output comes", func() bool {
		text, _ := c.say("51", "job_output", fmt.Sprintf(`{"job_id":%q}`, job), session)
		return strings.Contains(text, "of a job")
	})
}
