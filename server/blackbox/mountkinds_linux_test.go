package blackbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// mountConfig writes the configuration of a test, and returns the settings that name it.
func mountConfig(t *testing.T, text string, set ...string) map[string]string {
	t.Helper()
	config := filepath.Join(leaktest.Dir(t), "config.toml")
	must(t, os.WriteFile(config, []byte(text), 0o600))
	settings := map[string]string{"config": config}
	for i := 0; i < len(set); i += 2 {
		settings[set[i]] = set[i+1]
	}
	return settings
}

// A mountedUse is a tool that queries find, and what its call returns.
type mountedUse struct {
	name, input, want string
	finds             []string
	failed            bool
}

// finds says whether an answer of tool_search shows a tool.
func (p *planner) finds(query, name string) bool {
	p.T.Helper()
	return slices.Contains(replaytest.FoundTools(p.T, p.allowed("tool_search", replaytest.AsJSON(p.T, "query", query))), name)
}

// TestMountedGoSDK: a server of the official Go SDK, over stdio and over HTTP with a token that stands in a file: each of
// its tools is found by three phrases and returns what the server returned, in both eras, on stdio and in serve. With
// another token the refusal says what the operator can change.
func TestMountedGoSDK(t *testing.T) {
	t.Parallel()
	dir, err := goClients()
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("the server cannot be built here: %v", err)
		}
		t.Fatal(err)
	}
	program := filepath.Join(dir, "gosdk-mounted")
	token := filepath.Join(leaktest.Dir(t), "token")
	must(t, os.WriteFile(token, []byte("t0k-of-the-tests\n"), 0o600))
	web := exec.Command(program, "http")
	web.Env = []string{"TOKEN=t0k-of-the-tests", "PATH=" + os.Getenv("PATH")}
	d := startDaemon(t, web)
	set := mountConfig(t, fmt.Sprintf(`
[mcp.servers.sdk]
command = %q
[mcp.servers.web]
url = "%s/mcp"
headers = {Authorization = "Bearer ${file:%s}"}
[mcp.servers.wrong]
url = "%[2]s/mcp"
headers = {Authorization = "Bearer x"}
`, program, d.url, token), "permissions.allow", "mcp__sdk,mcp__web,mcp__wrong")
	uses := []mountedUse{
		{name: "say", input: `{"text":"hello"}`, want: "\nsaid hello\n", finds: []string{"SERVER say", "return a text as given", "+SERVER text"}},
		{name: "sum", input: `{"first":2,"second":40}`, want: `{"sum":42}`, finds: []string{"SERVER sum", "adds two numbers", "+SERVER add numbers"}},
		{name: "fail", input: `{}`, want: "there is no such ticket", failed: true, finds: []string{"SERVER fail", "always fails with a reason", "+fail SERVER"}},
		{name: "picture", input: `{}`, want: "Resource: demo://picture (the picture)", finds: []string{"SERVER picture", "draw an image", "+SERVER image link"}},
		{name: "slow_steps", input: `{}`, want: "three steps", finds: []string{"SERVER slow steps", "report progress in steps", "+slow progress"}},
	}
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		for _, server := range []string{"sdk", "web"} {
			for _, u := range uses {
				name := "mcp__" + server + "__" + u.name
				for _, query := range u.finds {
					if query = strings.ReplaceAll(query, "SERVER", server); !p.finds(query, name) {
						t.Errorf("%q does not find %s", query, name)
					}
				}
				if a := p.do(name, u.input); a.Failed != u.failed || !strings.Contains(a.Text, u.want) {
					t.Errorf("%s: %+v", name, a)
				}
				if a := p.do("call_tool", `{"name":"`+name+`","arguments":`+u.input+`}`); a.Failed != u.failed || !strings.Contains(a.Text, u.want) {
					t.Errorf("%s through call_tool: %+v", name, a)
				}
			}
			p.refused("INPUT_INVALID", "mcp__"+server+"__sum", `{"first":"two"}`)
			if text := p.allowed("read_mcp_resource", `{"server":"`+server+`","uri":"demo://picture"}`); !strings.Contains(text, "a picture of a hand") {
				t.Errorf("%s: the resource: %s", server, text)
			}
		}
		a := p.do("mcp__wrong__say", `{"text":"x"}`)
		if !a.Failed || !strings.HasPrefix(a.Text, "UPSTREAM_DOWN: ") || !strings.Contains(a.Text, "mcp.servers.wrong.headers") || strings.Contains(a.Text, "Bearer") {
			t.Errorf("with another token: %+v", a)
		}
		p.Mu.Lock()
		defer p.Mu.Unlock()
		if wire := strings.Join(p.Wire, "\n"); strings.Contains(wire, "t0k-of-the-tests") {
			t.Error("the token is in an answer")
		}
	})
}

// TestMountedMisbehaves: servers that crash at each third call, list without end, never answer, or answer no call. Each
// call is answered, with what happened; the others go on, and what is listed of the flood is bounded.
func TestMountedMisbehaves(t *testing.T) {
	t.Parallel()
	set := mountConfig(t, mountKind(t, "demo", "0", "")+mountKind(t, "crash", "crash", "")+mountKind(t, "flood", "flood", "")+
		mountKind(t, "mute", "mute", "start_timeout_ms = 300")+mountKind(t, "hang", "hang", "timeout_ms = 200"), "permissions.allow", "mcp__demo,mcp__crash,mcp__flood,mcp__mute,mcp__hang")
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		for _, query := range []string{"crash echo", "select:mcp__crash__echo", "+crash echo of the tests"} {
			if !p.finds(query, "mcp__crash__echo") {
				t.Errorf("%q does not find it", query)
			}
		}
		lost := 0
		for i := range 6 {
			a := p.do("mcp__crash__echo", fmt.Sprintf(`{"text":"%d"}`, i))
			switch {
			case !a.Failed && strings.Contains(a.Text, fmt.Sprintf("\necho %d\n", i)):
			case a.Failed && strings.HasPrefix(a.Text, "UPSTREAM_DOWN: Server crash was lost during this call") && strings.Contains(a.Text, "What the call did is unknown"):
				lost++
			default:
				t.Errorf("call %d: %+v", i, a)
			}
		}
		if lost != 2 {
			t.Errorf("%d of 6 calls were lost", lost)
		}
		text := p.allowed("tool_search", `{"query":"+flood thing","max_results":20}`)
		if n := len(replaytest.FoundTools(t, text)); n != 20 || len(text) > 20_000 || !strings.Contains(text, "to see them add words") {
			t.Errorf("%d tools in %d bytes: %.300s", n, len(text), text)
		}
		if !p.finds("+flood 699", "mcp__flood__flood_699") {
			t.Error("the last of 700 tools is not found")
		}
		for range 3 { // each has 300 changes of the list before its answer
			p.allowed("mcp__flood__echo", `{"text":"x"}`)
		}
		p.refused("UPSTREAM_DOWN", "mcp__mute__echo", `{}`)
		if a := p.do("mcp__hang__echo", `{}`); !strings.HasPrefix(a.Text, "TIMEOUT: ") || !strings.Contains(a.Text, "What it did is unknown") {
			t.Errorf("a call that is never answered: %+v", a)
		}
		if text := p.allowed("mcp__demo__echo", `{"text":"still here"}`); !strings.Contains(text, "echo still here") {
			t.Error(text)
		}
		p.Mu.Lock()
		defer p.Mu.Unlock()
		changed := 0
		for _, line := range p.Wire {
			changed += strings.Count(line, "notifications/tools/list_changed")
		}
		if changed > 20 {
			t.Errorf("the client was told %d times that the list changed", changed)
		}
	})
}

// TestMountedKilled: of 1,000 calls in a row, while the server is killed (SIGKILL) at five moments that it does not
// choose, each is answered once: right, or with the word that the server was lost during it. It is back within two
// seconds.
func TestMountedKilled(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "waits for restarts, and asserts how long they take")
	table := "[quota.default]\ncalls_per_minute = 0\n" + mountKind(t, "killed", "killed", "")
	set := mountConfig(t, table, "permissions.allow", "mcp__killed")
	const gone = "UPSTREAM_DOWN: Server killed was lost during this call"
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		processes, right, lost, slowest := map[string]bool{}, 0, 0, time.Duration(0)
		for i := range 1_000 {
			text := strconv.Itoa(i)
			if i%200 == 100 {
				text = "kill"
			}
			began := time.Now()
			a := p.do("mcp__killed__echo", replaytest.AsJSON(t, "text", text))
			slowest = max(slowest, time.Since(began))
			_, process, ok := strings.Cut(a.Text, "\necho "+text+"\nprocess ")
			switch {
			case !a.Failed && ok:
				right++
				process, _, _ = strings.Cut(process, "\n")
				processes[process] = true
			case a.Failed && strings.HasPrefix(a.Text, gone) && strings.Contains(a.Text, "What the call did is unknown"):
				lost++
			default:
				t.Errorf("call %d: %+v", i, a)
			}
		}
		t.Logf("%d right, %d lost, %d processes, the slowest call took %s", right, lost, len(processes), slowest)
		if right+lost != 1_000 || lost > 5 || len(processes) != 6 || slowest > 2*time.Second {
			t.Error("too many were lost, or a restart took too long")
		}
		p.Mu.Lock()
		defer p.Mu.Unlock()
		answers := map[string]int{}
		for _, line := range p.Wire {
			var m struct {
				ID     json.RawMessage
				Result json.RawMessage
			}
			must(t, json.Unmarshal([]byte(line), &m))
			if m.Result != nil {
				answers[string(m.ID)]++
			}
		}
		for id, n := range answers {
			if n != 1 {
				t.Errorf("request %s is answered %d times", id, n)
			}
		}
		if len(answers) < 1_000 {
			t.Errorf("%d requests are answered", len(answers))
		}
	})
}

// TestMountedHostile: names, descriptions, schemas, answers, errors and questions of a server that mean harm. Each tool
// has a name that clients take, is found and called; nothing of the server acts on a terminal, imitates this server or
// ends what frames it; and what it says of itself widens nothing: rules and plan mode hold.
func TestMountedHostile(t *testing.T) {
	t.Parallel()
	set := mountConfig(t, mountKind(t, "bad", "hostile", ""), "permissions.deny", "mcp__bad__evil1", "permissions.ask", "mcp__bad__evil2", "permissions.allow", "mcp__bad")
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		text := p.allowed("tool_search", `{"query":"+bad evil","max_results":20}`)
		clean(t, "tool_search", strings.NewReplacer("<function>", "", "</function>", "", "<functions>", "", "</functions>", "").Replace(text))
		found := replaytest.FoundTools(t, text)
		if len(found) != 15 { // evil1 is denied
			t.Errorf("%d tools: %v", len(found), found)
		}
		for _, name := range found {
			if len(name) > 64 || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || !strings.HasPrefix(name, "mcp__bad__") {
				t.Errorf("the name %q", name)
			}
			for _, query := range []string{"select:" + name, name, "+bad " + strings.TrimPrefix(name, "mcp__bad__")} {
				if !p.finds(query, name) {
					t.Errorf("%q does not find it", query)
				}
			}
			if name == "mcp__bad__ask" || name == "mcp__bad__evil2" || name == "mcp__bad__fail" {
				continue
			}
			a := p.do(name, `{"a":"b"}`)
			if a.Failed && strings.HasPrefix(a.Text, "INPUT_INVALID: ") { // its own schema takes no input at all
				continue
			}
			if a.Failed || !strings.HasPrefix(a.Text, "--- untrusted content ") {
				t.Errorf("%s: %+v", name, a)
			}
			clean(t, name, inMarks(t, a.Text))
		}
		a := p.Call("mcp__bad__ask", `{}`, func(q string) string {
			if !strings.HasPrefix(q, "The server bad asks:\n    evil") {
				t.Errorf("asked %q", q)
			}
			_, words, _ := strings.Cut(q, "\n")
			clean(t, "a question", words)
			return accepts(`{"colour":"red"}`)
		})
		if a.Failed || a.Asked != 1 || !strings.Contains(a.Text, "red") {
			t.Errorf("%+v", a)
		}
		a = p.do("mcp__bad__fail", `{}`)
		if !a.Failed || !strings.HasPrefix(a.Text, "UPSTREAM_ERROR: Server bad answered with an error (-32000).\n--- untrusted content ") {
			t.Errorf("%+v", a)
		}
		clean(t, "an error", inMarks(t, a.Text))
		// What it says of itself counts for nothing.
		p.refused("TOOL_DISABLED", "mcp__bad__evil1", `{}`)
		a = p.Call("mcp__bad__evil2", `{}`, func(q string) string {
			if !strings.HasPrefix(q, "Allow mcp__bad__evil2: ") {
				t.Errorf("asked %q", q)
			}
			clean(t, "the question of a rule", q)
			return replaytest.SayDecline
		})
		if !a.Failed || a.Asked != 1 || !strings.HasPrefix(a.Text, "USER_DECLINED: ") {
			t.Errorf("%+v", a)
		}
		p.enter()
		p.refused("PLAN_MODE", "mcp__bad__evil5", `{}`)
		// Nothing of it acts on a terminal, wherever it was sent, also in what is no text of a result.
		p.Mu.Lock()
		defer p.Mu.Unlock()
		for _, line := range p.Wire {
			var v any
			must(t, json.Unmarshal([]byte(line), &v))
			if at := acts(v); at != "" {
				t.Errorf("%q in %.300s", at, line)
			}
		}
	})
}

// clean fails if a text of a server could pass for ours.
func clean(t *testing.T, where, text string) {
	t.Helper()
	if at := acts(text); at != "" {
		t.Errorf("%s: %q acts on a terminal: %.300q", where, at, text)
	}
	for line := range strings.Lines(text) {
		for _, ours := range []string{"PERMISSION_DENIED:", "</function", "<system-reminder", "</system-reminder", "--- untrusted", "[image 1]", "[sandbox level", "Allow mcp__demo", "The server demo asks"} {
			asks := strings.HasPrefix(ours, "Allow") || strings.HasPrefix(ours, "The server") // only a person reads that
			if strings.HasPrefix(line, ours) && (where == "a question" || !asks) {
				t.Errorf("%s: a line begins with %q: %.300q", where, ours, text)
			}
		}
	}
}

// acts is what of a text, or of the texts of a value, a terminal would obey or a person could not see; "": nothing.
func acts(v any) string {
	switch v := v.(type) {
	case string:
		for _, r := range v {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0xe0000 && r < 0xe0080 {
				return string(r)
			}
		}
	case []any:
		for _, x := range v {
			if at := acts(x); at != "" {
				return at
			}
		}
	case map[string]any:
		for k, x := range v {
			if at := acts(k) + acts(x); at != "" {
				return at
			}
		}
	}
	return ""
}

// inMarks is what stands between the marks of a result.
func inMarks(t *testing.T, text string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "--- untrusted content ")
	mark, rest, _ := strings.Cut(rest, "\n")
	body, after, closed := strings.Cut(rest, "\n--- untrusted content "+mark)
	if !ok || !closed || after != "" {
		t.Fatalf("no marks, or something after them: %q", text)
	}
	return body
}
