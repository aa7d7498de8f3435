package blackbox

import (
	"bytes"
	"crypto/rand"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// A neighbour is one of two principals of a server, with all that the other must not get at.
type neighbour struct {
	*replaytest.HTTPClient
	name  string
	work  string
	mark  string // what only this principal's files, processes, sockets and records hold
	job   string // id of a job that holds it
	pid   string // of that job's program, outside of every namespace
	port  string // on the loopback of the job
	token string
}

// neighbours starts a server with two tokens, and for each principal a job that holds its mark in every way there is.
func neighbours(t *testing.T, h *household) (two [2]*neighbour, state string) {
	t.Helper()
	state = filepath.Join(h.home, "state", "codehand")
	for i, name := range []string{"alice", "bob"} {
		token, _ := h.run(0, "token", "new", name, "--mode", "bypassPermissions", "--max-mode", "bypassPermissions",
			"--quota", "calls_per_minute=0", "--quota", "requests_per_minute=0")
		two[i] = &neighbour{name: name, work: filepath.Join(state, "workspaces", name), mark: "mark-" + name + "-" + rand.Text(), token: strings.TrimSpace(token)}
	}
	s := h.serve()
	s.said(t, `^codehand: sandbox level 3: `)
	for _, n := range two {
		n.HTTPClient = (&replaytest.HTTPClient{T: t, URL: s.url + "/mcp", Token: n.token}).Hello()
		n.does("write_file", "file_path", "secret.txt", "content", n.mark+"\n")
		n.does("write_file", "file_path", "hold.py", "content", holder)
		n.does("run_shell", "command", "mkdir -p $XDG_CACHE_HOME && cp secret.txt $XDG_CACHE_HOME/ && cp secret.txt /tmp/in-temp-"+n.mark+
			" && cp secret.txt /var/tmp/ && ln -s "+n.work+" link && seq 100000 && cat secret.txt") // the result is kept
		started := n.does("run_shell", "command", "MARK="+n.mark+" python3 -u hold.py "+n.name+" "+n.mark, "run_in_background", true)
		n.job = replaytest.JobID.FindString(started)
		port := regexp.MustCompile(`port (\d+)`)
		said := ""
		replaytest.Until(t, "the job of "+n.name+" listens", func() bool {
			said += n.does("job_output", "job_id", n.job)
			return port.MatchString(said)
		})
		n.port = port.FindStringSubmatch(said)[1]
		n.pid = processOf(t, "hold.py\x00"+n.name+"\x00"+n.mark)
	}
	return two, state
}

// holder holds a mark in its arguments, its environment, its memory, files, shared memory and what it listens on.
const holder = `import os, socket, sys, threading
name, mark = sys.argv[1:]
kept = mark.encode()
tcp = socket.socket()
tcp.bind(("127.0.0.1", 0))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\0held-by-" + name)
path = socket.socket(socket.AF_UNIX)
path.bind("held.sock")
open("/dev/shm/held-by-" + name, "w").write(mark)
held = open("secret.txt")
os.symlink("x", "/tmp/" + mark)
def answer(s):
    while True:
        c, _ = s.accept()
        c.sendall(kept)
        c.close()
for s in (tcp, abstract, path):
    s.listen()
    threading.Thread(target=answer, args=(s,)).start()
print(f"port {tcp.getsockname()[1]}") # in one piece: job_output may come between two
`

// processOf returns the id of the one process whose command line has these arguments.
func processOf(t *testing.T, args string) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), args) {
			return filepath.Base(filepath.Dir(f))
		}
	}
	t.Fatalf("no process has the arguments %q", args)
	return ""
}

// does makes a call that must not fail.
func (n *neighbour) does(tool string, pairs ...any) string {
	n.T.Helper()
	text := n.Does(tool, replaytest.AsJSON(n.T.(*testing.T), pairs...))
	if strings.HasPrefix(text, "! ") {
		n.T.Fatalf("%s: %s: %s", n.name, tool, text)
	}
	return text
}

// dial is a program that prints what a socket says. It follows the words that make the address.
const dial = `python3 -c 'import socket, sys; s = socket.socket(getattr(socket, sys.argv[1])); ` +
	`s.connect((sys.argv[2], int(sys.argv[3])) if sys.argv[1] == "AF_INET" else sys.argv[2].replace("@", "\0")); print(s.recv(99))' `

// A look is one thing that a principal tries in order to get at another's. In command and args are placeholders: WORK,
// NAME, JOB, PID and PORT are the other's, STATE is the server's directory, HOME its user's, URL its address.
type look struct {
	name    string
	command string // for run_shell; "": tool is called with args
	tool    string
	args    string
	never   string // a regular expression of what the answer must not have besides the other's mark; "": nothing else
	own     bool   // who tries it on what is theirs gets their mark: so the attempt would succeed if nothing stood in its way
}

var looks = []look{
	// files
	{name: "read a file", command: "cat WORK/secret.txt", own: true},
	{name: "list the workspace", command: "ls -la WORK", never: `hold\.py`},
	{name: "list all workspaces", command: "ls -la WORK/.. STATE/workspaces", never: "(?m)^d.* NAME$"},
	{name: "a relative path", command: "cat ../NAME/secret.txt", own: true},
	{name: "a symbolic link", command: "ln -sfn WORK over && cat over/secret.txt; rm -f over", own: true},
	{name: "a hard link", command: "ln WORK/secret.txt hard && cat hard; rm -f hard", own: true},
	{name: "a copy of the directory", command: "cp -r WORK /tmp/copied; cat /tmp/copied/secret.txt; rm -rf /tmp/copied", own: true},
	{name: "an archive", command: "tar cf - -C WORK . | grep -a mark-", own: true},
	{name: "a search of the disk", command: "grep -rsh mark- STATE HOME /tmp /var/tmp /dev/shm /run --include=secret.txt", own: true},
	{name: "names on the disk", command: "find STATE HOME /tmp /var/tmp /dev/shm", never: `workspaces/NAME\b|held-by-NAME`},
	{name: "write a file", command: "echo x > WORK/planted && echo done-it", never: "done-it"},
	{name: "remove a file", command: "rm WORK/hold.py && echo done-it", never: "done-it"},
	{name: "rename the workspace", command: "mv WORK WORK-2 && echo done-it", never: "done-it"},
	{name: "its caches", command: "cat STATE/cache/*/commands/xdg/secret.txt", own: true},
	{name: "its temporary files", command: "ls -laR /tmp /var/tmp; cat /tmp/in-temp* /var/tmp/secret.txt", own: true},
	{name: "its shared memory", command: "ls /dev/shm; cat /dev/shm/*", never: "held-by"},
	{name: "its mounts", command: "cat /proc/self/mountinfo /proc/1/mountinfo", never: "workspaces/NAME"},
	// processes
	{name: "the list of processes", command: "ps axwwe; cat /proc/[0-9]*/cmdline | tr '\\0' ' '", never: `hold\.py NAME`},
	{name: "environments", command: "cat /proc/[0-9]*/environ | tr '\\0' '\\n'"},
	{name: "working directories", command: "ls -l /proc/[0-9]*/cwd /proc/[0-9]*/exe", never: "workspaces/NAME"},
	{name: "open files", command: "cat /proc/[0-9]*/fd/3; ls -l /proc/[0-9]*/fd", never: "workspaces/NAME"},
	{name: "a process by its id", command: "tr '\\0' ' ' < /proc/PID/cmdline; cat /proc/PID/environ; ls /proc/PID/root/", never: `hold\.py NAME`},
	{name: "memory", command: "grep -a mark- /proc/PID/mem; dd if=/proc/PID/mem bs=1M count=1 | grep -a mark-"},
	{name: "a signal", command: "kill -9 PID && echo done-it; kill -9 -1"},
	// environment
	{name: "variables", command: "env; export -p", never: "CODEHAND_TOKEN|chd_"},
	// state and record
	{name: "the audit log", command: "cat STATE/audit/* STATE/audit/*/*", never: `hold\.py NAME`},
	{name: "tokens", command: "cat STATE/tokens.jsonl", never: "NAME"},
	{name: "sessions and kept results", command: "cat STATE/sessions/*/*/* STATE/sessions/*/*/*/*; ls -R STATE/sessions"},
	{name: "the journal", command: "cat STATE/journal/*/*; ls -laR STATE/journal"},
	{name: "the store", command: "grep -rsa mark-NAME STATE --exclude-dir=cache --exclude-dir=workspaces"},
	// sockets
	{name: "a Unix socket", command: dial + "AF_UNIX WORK/held.sock", own: true},
	{name: "an abstract socket", command: dial + "AF_UNIX @held-by-NAME"},
	{name: "a port of loopback", command: dial + "AF_INET 127.0.0.1 PORT"},
	{name: "the list of sockets", command: "cat /proc/net/unix /proc/net/tcp", never: "held-by-NAME"},
	{name: "the server itself", command: "curl -sS URL/mcp; curl -sS URL/healthz; echo", never: "ok|jsonrpc"},
	// the tools beside the shell
	{name: "read_file", tool: "read_file", args: `{"file_path":"WORK/secret.txt"}`, own: true},
	{name: "grep_search", tool: "grep_search", args: `{"pattern":"mark-","path":"WORK","output_mode":"content"}`, own: true},
	{name: "list_files", tool: "list_files", args: `{"pattern":"*","path":"WORK"}`, never: `hold\.py`},
	{name: "run_readonly", tool: "run_readonly", args: `{"command":"cat WORK/secret.txt"}`, own: true},
	{name: "job_output", tool: "job_output", args: `{"job_id":"JOB"}`, never: "running for"},
	{name: "job_stop", tool: "job_stop", args: `{"job_id":"JOB"}`, never: "topped"},
	{name: "job_list", tool: "job_list", args: `{}`, never: "JOB"},
}

// TestApart: two principals of a server run commands at once, and neither gets at what is the other's: files, processes,
// environment, state, records and sockets.
func TestApart(t *testing.T) {
	t.Parallel()
	h := inFull(t)
	needs(t, "python3", "curl")
	two, state := neighbours(t, h)
	for i, n := range two {
		other := two[1-i]
		for _, l := range looks {
			if text := n.tries(t, l, other, state, h.home); strings.Contains(text, other.mark) || l.never != "" && regexp.MustCompile(other.fill(l.never, state, h.home)).MatchString(text) {
				t.Errorf("%s gets at what is %s's: %s:\n%s", n.name, other.name, l.name, text)
			}
			if !l.own {
				continue
			}
			if text := n.tries(t, l, n, state, h.home); !strings.Contains(text, n.mark) {
				t.Errorf("the attempt proves nothing, since %s does not get at their own: %s:\n%s", n.name, l.name, text)
			}
		}
	}
	for _, n := range two {
		if got, err := os.ReadFile(filepath.Join(n.work, "secret.txt")); err != nil || string(got) != n.mark+"\n" {
			t.Errorf("%s's file is %q, %v", n.name, got, err)
		}
		if _, err := os.Stat(filepath.Join(n.work, "hold.py")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(n.work, "planted")); err == nil {
			t.Errorf("a file was planted in the workspace of %s", n.name)
		}
		if got := n.does("job_output", "job_id", n.job); !strings.Contains(got, "running for") {
			t.Errorf("the job of %s ended: %s", n.name, got)
		}
	}
	for _, n := range two { // or the attempts on the record and the state would prove nothing
		if held := holding(t, state, n.mark); !held["cache"] || !held["journal"] || !held["sessions"] || !held["store"] {
			t.Errorf("the mark of %s is only in these parts of the state: %v", n.name, held)
		}
		if held := holding(t, state, "hold.py "+n.name); !held["audit"] {
			t.Errorf("the record does not have the job of %s; these parts of the state do: %v", n.name, held)
		}
	}
	t.Logf("%d attempts by each of two principals", len(looks))
}

// holding returns the entries of dir below which a file contains text.
func holding(t *testing.T, dir, text string) map[string]bool {
	t.Helper()
	held := map[string]bool{}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if rel, _ := filepath.Rel(dir, path); bytes.Contains(b, []byte(text)) {
			first, _, _ := strings.Cut(rel, string(filepath.Separator))
			held[first] = true
		}
		return err
	}))
	return held
}

// fill puts what is n's into a text.
func (n *neighbour) fill(text, state, home string) string {
	return strings.NewReplacer("WORK", n.work, "NAME", n.name, "JOB", n.job, "PID", n.pid, "PORT", n.port, "STATE", state,
		"HOME", home, "URL", strings.TrimSuffix(n.URL, "/mcp")).Replace(text)
}

// tries does what l says against other, and returns the answer.
func (n *neighbour) tries(t *testing.T, l look, other *neighbour, state, home string) string {
	t.Helper()
	tool, args := l.tool, other.fill(l.args, state, home)
	if tool == "" {
		// In a script, where no rule about the text of commands sees it: what holds is the kernel.
		tool, args = "run_shell", `{"command":"bash try.sh"}`
		must(t, os.WriteFile(filepath.Join(n.work, "try.sh"), []byte(other.fill(l.command, state, home)+"\n"), 0o600))
	}
	got := n.Call("1", tool, args, "")
	if got.Status != http.StatusOK {
		t.Fatalf("%s: %d %s", l.name, got.Status, got.Answer)
	}
	text, failed := got.Text()
	if failed && l.tool == "" && !strings.HasPrefix(text, "COMMAND_FAILED: ") {
		t.Errorf("%s was not tried: %s", l.name, text)
	}
	return text
}

// TestApartTests: two principals run go test at once, each in their own workspace, and both pass.
func TestApartTests(t *testing.T) {
	t.Parallel()
	h := inFull(t)
	needs(t, "go")
	var tokens [2]string
	for i, name := range []string{"alice", "bob"} {
		out, _ := h.run(0, "token", "new", name)
		tokens[i] = strings.TrimSpace(out)
	}
	s := h.serve()
	// Each test says that it runs, and ends when it is told to, which is when both have said so.
	const test = `package m

import (
	"os"
	"testing"
	"time"
)

func TestM(t *testing.T) {
	if err := os.WriteFile("runs", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat("go-on"); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
`
	var works, jobs [2]string
	var clients [2]*replaytest.HTTPClient
	for i, name := range []string{"alice", "bob"} {
		c := (&replaytest.HTTPClient{T: t, URL: s.url + "/mcp", Token: tokens[i]}).Hello()
		clients[i], works[i] = c, filepath.Join(h.home, "state/codehand/workspaces", name)
		warmGo(t, strings.TrimSpace(c.Does("run_shell", `{"command":"touch x; echo $GOCACHE"}`)))
		replaytest.Lay(t, works[i], map[string]string{"go.mod": "module example.com/" + name + "\n\ngo 1.21\n", "m_test.go": test})
		got := c.Call("1", "run_shell", `{"command":"go test ./...; touch ended","run_in_background":true}`, "")
		text, _ := got.Text()
		jobs[i] = replaytest.JobID.FindString(text)
		if meta := sandboxMeta(t, got); meta.Level != 3 || jobs[i] == "" {
			t.Fatalf("%s: %s, %+v", name, text, meta)
		}
	}
	for i, work := range works {
		replaytest.Until(t, "the test of "+filepath.Base(work)+" runs", func() bool {
			if _, err := os.Stat(filepath.Join(work, "ended")); err == nil {
				t.Fatal(clients[i].Does("job_output", replaytest.AsJSON(t, "job_id", jobs[i])))
			}
			_, err := os.Stat(filepath.Join(work, "runs"))
			return err == nil
		})
	}
	for i, c := range clients {
		must(t, os.WriteFile(filepath.Join(works[i], "go-on"), nil, 0o600))
		text := ""
		for now := "running for "; strings.HasPrefix(now, "running for "); text += now {
			now = c.Does("job_output", replaytest.AsJSON(t, "job_id", jobs[i], "block", true))
		}
		if want := []string{"ok  \texample.com/alice\t", "ok  \texample.com/bob\t"}; !strings.Contains(text, want[i]) || strings.Contains(text, want[1-i]) {
			t.Errorf("it printed, not %q: %s", want[i], text)
		}
	}
}
