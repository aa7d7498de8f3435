package blackbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// mountTable mounts the test binary as the server demo. more are further lines of its table.
func mountTable(t *testing.T, tools int, more string) string {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	return fmt.Sprintf("[mcp.servers.demo]\ncommand = %q\nenv = {%s = %q, GOCOVERDIR = %q}\n%s\n", program, mountMark, strconv.Itoa(tools), os.TempDir(), more)
}

// TestMountedServer: the tools of a mounted server are found and called in both eras, on stdio and in serve; rules and
// plan mode hold for them; its questions reach the person with its name, and its resources are read.
func TestMountedServer(t *testing.T) {
	t.Parallel()
	config := filepath.Join(leaktest.Dir(t), "config.toml")
	must(t, os.WriteFile(config, []byte(mountTable(t, 0, "")), 0o600))
	set := map[string]string{"config": config, "permissions.deny": "mcp__demo__try", "permissions.ask": "mcp__demo__echo", "permissions.allow": "mcp__demo__ask"}
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		for _, query := range []string{"demo echo", "select:mcp__demo__echo", "+echo tests", "the tool echo of the tests"} {
			if text := p.allowed("tool_search", replaytest.AsJSON(t, "query", query)); !strings.Contains(text, `"mcp__demo__echo"`) {
				t.Errorf("%s: %s", query, text)
			}
		}
		a := p.Call("mcp__demo__echo", `{"text":"hello"}`, func(q string) string {
			if !strings.HasPrefix(q, "Allow mcp__demo__echo: ") {
				t.Errorf("asked %q", q)
			}
			return replaytest.SayOnce
		})
		if a.Failed || a.Asked != 1 || !strings.Contains(a.Text, "\necho hello\n") {
			t.Errorf("%+v", a)
		}
		a = p.Call("call_tool", `{"name":"mcp__demo__echo","arguments":{"text":"hello"}}`, replaytest.Always(replaytest.SayDecline))
		if !a.Failed || !strings.HasPrefix(a.Text, "USER_DECLINED: ") {
			t.Errorf("%+v", a)
		}
		p.refused("TOOL_DISABLED", "mcp__demo__try", `{"text":"/etc/passwd"}`)
		a = p.Call("mcp__demo__ask", `{}`, func(q string) string {
			if !strings.HasPrefix(q, "The server demo asks:\n    Which colour?\n") {
				t.Errorf("asked %q", q)
			}
			return accepts(`{"colour":"red"}`)
		})
		if a.Failed || a.Asked != 1 || !strings.Contains(a.Text, `said {"action":"accept","content":{"colour":"red"}}`) {
			t.Errorf("%+v", a)
		}
		if text := p.allowed("list_mcp_resources", `{}`); !strings.Contains(text, "\ndemo: test://one  one\n") || !strings.Contains(text, "\ncodehand: codehand://guide/tools") {
			t.Errorf("%s", text)
		}
		a = p.Call("read_mcp_resource", `{"server":"demo","uri":"test://one"}`, replaytest.Always(replaytest.SayOnce))
		if a.Failed || !strings.Contains(a.Text, "the text of one") {
			t.Errorf("%+v", a)
		}
		p.enter()
		p.refused("PLAN_MODE", "mcp__demo__echo", `{"text":"hello"}`)
	})
}

// TestMountedAskNobody: a client that takes no questions is never asked, and the server learns that.
func TestMountedAskNobody(t *testing.T) {
	t.Parallel()
	config := filepath.Join(leaktest.Dir(t), "config.toml")
	must(t, os.WriteFile(config, []byte(mountTable(t, 0, "")), 0o600))
	eachPlanner(t, replaytest.Undeclared, map[string]string{"config": config, "permissions.allow": "mcp__demo"}, func(t *testing.T, p *planner) {
		if text := p.allowed("mcp__demo__ask", `{}`); !strings.Contains(text, `said {"action":"cancel"}`) {
			t.Error(text)
		}
	})
}

// TestMountedCostsNothing: 200 tools of a mounted server add no byte to what a client lists that searches for tools.
func TestMountedCostsNothing(t *testing.T) {
	t.Parallel()
	lists := map[int]string{}
	for _, n := range []int{-1, 200} {
		h := settle(t)
		table := ""
		if n >= 0 {
			table = mountTable(t, n, "eager = true")
		}
		config := filepath.Join(h.home, ".config", "codehand", "config.toml")
		must(t, os.MkdirAll(filepath.Dir(config), 0o700))
		must(t, os.WriteFile(config, []byte(table), 0o600))
		p := replaytest.Speak(t, h.command("stdio", h.work), "gemini-cli-mcp-client", false)
		if n >= 0 { // its tools are known
			if text := p.Must(t, "tool_search", `{"query":"select:mcp__demo__extra_199"}`); !strings.Contains(text, "extra_199") {
				t.Fatal(text)
			}
		}
		fresh := replaytest.Speak(t, h.command("stdio", h.work), "gemini-cli-mcp-client", false)
		if n >= 0 {
			fresh.Must(t, "tool_search", `{"query":"select:mcp__demo__none"}`)
		}
		list, _, _ := replaytest.ToldTools(t, fresh)
		lists[n] = string(list)
	}
	// Both descriptions of resources name the servers.
	if got := strings.ReplaceAll(lists[200], " Mounted: demo.", ""); got != lists[-1] {
		t.Errorf("the list has %d bytes, and %d without a mounted server", len(got), len(lists[-1]))
	}
}

// TestMountedSandbox: with sandbox = true a server sees what a command sees that may write, and nothing else.
func TestMountedSandbox(t *testing.T) {
	t.Parallel()
	h := settle(t)
	if confinedLevel(t, h) < 3 {
		t.Skip("needs a machine that proves sandbox level 3")
	}
	private := filepath.Join(h.home, "private.txt")
	must(t, os.WriteFile(private, []byte("private\n"), 0o600))
	inside, beside := filepath.Join(h.work, "a.out"), filepath.Join(h.home, "b.out")
	program, err := os.Executable() // in a directory that commands do not see
	must(t, err)
	copied := filepath.Join(h.work, "server")
	must(t, exec.Command("cp", program, copied).Run())
	for _, sandboxed := range []bool{false, true} {
		table := strings.Replace(mountTable(t, 0, fmt.Sprintf("sandbox = %t", sandboxed)), program, copied, 1)
		replaytest.Lay(t, h.home, map[string]string{".config/codehand/config.toml": table})
		input, err := json.Marshal(strings.Join([]string{private, filepath.Join(h.work, "a.txt"), inside, beside}, " "))
		must(t, err)
		out, errs := h.run(0, "call", "mcp__demo__try", "text="+strings.Trim(string(input), `"`), "--permissions-allow", "mcp__demo")
		want := "tried\nread " + private + "\nread " + h.work + "/a.txt\nwrote " + inside + "\nwrote " + beside + "\n"
		if sandboxed {
			want = "tried\nread " + h.work + "/a.txt\nwrote " + inside + "\n"
		}
		if !strings.Contains(out, want) {
			t.Errorf("sandbox %t: %s%s", sandboxed, out, errs)
		}
		must(t, os.RemoveAll(inside))
		_ = os.Remove(beside) // it may not be there
	}
	// Where it cannot be confined it is not started.
	_, errs := h.run(1, "call", "mcp__demo__try", "text=x", "--permissions-allow", "mcp__demo", "--sandbox-policy", "off")
	if !strings.Contains(errs, "UPSTREAM_DOWN") || !strings.Contains(errs, `sandbox.policy is "off"`) {
		t.Error(errs)
	}
	if left, _ := filepath.Glob(filepath.Join(h.home, "state", "codehand", "mounts", "tmp-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
