package blackbox

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// operator is a command of who runs a node, on its machine: with a configuration that says what serve is started with.
func (c *cluster) operator(n *clusterNode, args ...string) (text string, ok bool) {
	c.t.Helper()
	roots, shared := filepath.Join(c.work, n.name, "{principal}"), ""
	if c.shared != "" {
		roots = filepath.Join(c.work, "{principal}")
		shared = fmt.Sprintf("workspaces = \"shared\"\nshared_dir = %q\n", c.shared)
	}
	file := filepath.Join(c.home, "operator-"+n.name+".toml")
	must(c.t, os.WriteFile(file, fmt.Appendf(nil, "[store]\nurl = %q\n[cluster]\nnode = %q\n%s[http]\ndata_dir = %q\n"+
		"[auth]\nmode = \"token\"\ntoken_file = %q\n[principals.default]\nroots = [%q]\n", c.store, n.name, shared,
		n.data, filepath.Join(c.home, "state", "codehand", "tokens.jsonl"), roots), 0o600))
	out, err := c.codehand(append(args, "--config", file)...).CombinedOutput()
	return string(out), err == nil
}

// undoes looks what who runs the nodes sees of a principal's changes, and takes back, on each machine. An undo on a
// machine that does not serve the principal said that there is no change, or changed files beside their one writer.
func (c *cluster) undoes(who string) {
	c.t.Helper()
	c.token = c.people[who]
	talker := c.talk(c.proxy, http.DefaultClient, wireKind{"http", "legacy"})
	if text, failed := talker.say("1", "write_file", `{"file_path":"undone.txt","content":"x\n"}`, ""); failed {
		c.t.Fatal(text)
	}
	n := c.owner(who)
	other := c.others(n)[0]
	root := filepath.Join(c.work, n.name, who)
	if c.shared != "" {
		root = filepath.Join(c.work, who)
	}
	there := func() bool {
		_, err := os.Stat(filepath.Join(root, "undone.txt"))
		return err == nil
	}

	text, ok := c.operator(other, "undo", "--principal", who, "undone.txt")
	if want := fmt.Sprintf("%s is served by %s", who, n.name); ok || !there() || !strings.Contains(text, want) {
		c.t.Errorf("undo on another machine: %v, %s", ok, text)
	}
	for _, args := range [][]string{{"history", "--principal", who}, {"undo", "--dry-run", "--principal", who, "undone.txt"}} {
		text, ok = c.operator(other, args...)
		if ok != (c.shared != "") || !strings.Contains(text, "undone.txt") && ok {
			c.t.Errorf("%q on another machine: %v, %s", args, ok, text)
		}
		if text, ok = c.operator(n, args...); !ok || !strings.Contains(text, "undone.txt") {
			c.t.Errorf("%q on its machine: %v, %s", args, ok, text)
		}
	}
	if text, ok = c.operator(n, "undo", "--principal", who, "undone.txt"); !ok || there() {
		c.t.Errorf("undo on its machine: %v, %s", ok, text)
	}
	text, ok = c.operator(other, "doctor", "--cluster")
	if !ok || strings.Count(text, "answers in ") != 2 || strings.Contains(text, "warn ") {
		c.t.Errorf("doctor --cluster: %v, %s", ok, text)
	}
	audits := filepath.Join(n.data, "audit")
	if text, ok = c.operator(n, "doctor", "--audit", audits); !ok {
		c.t.Errorf("the audit: %s", text)
	}
	files, err := filepath.Glob(filepath.Join(audits, "*.jsonl"))
	if err != nil || len(files) < 2 {
		c.t.Errorf("the audit is %q, %v", files, err)
	}
	for _, file := range files { // of the server, and of who took it back
		b, err := os.ReadFile(file)
		must(c.t, err)
		for line := range strings.Lines(string(b)) {
			if !strings.Contains(line, fmt.Sprintf(`"node":%q`, n.name)) {
				c.t.Errorf("a line of the audit does not name its machine: %s", line)
			}
		}
	}
}

// TestClusterUndo: who runs the nodes sees what people changed, and takes it back, on the machine that serves them; any
// other one says which that is.
func TestClusterUndo(t *testing.T) {
	leaktest.OutsideGate(t, "starts a server of NATS and several of codehand")
	for name, shared := range map[string]bool{"local": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, 2, shared)
			c.undoes("person-0")
			if !shared {
				return
			}
			empty := *c
			empty.shared = filepath.Join(c.home, "not-mounted")
			if text, ok := empty.operator(c.nodes[0], "history", "--principal", "person-0"); ok || !strings.Contains(text, "mounted") {
				t.Errorf("without its volume: %v, %s", ok, text)
			}
			if _, err := os.Stat(empty.shared); err == nil {
				t.Error("it made a directory where the volume should be")
			}
		})
	}
}
