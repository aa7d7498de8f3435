//go:build linux

package blackbox

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// An outsider is a client of the built program that looks for a way out of its root.
type outsider struct {
	*testing.T
	top, work, state string
	other            string // a kept result of another session
	pid              int
	http             bool
	secret           string // stands in every file outside, in the names of some, and in the program's environment
	ask              func(method string, params map[string]any) replaytest.Reply
}

// fill puts places into a path or a target. $UP leads from the root of the work to that of the machine.
func (o *outsider) fill(path string) string {
	up := strings.TrimSuffix(strings.Repeat("../", strings.Count(o.work, "/")), "/")
	return strings.NewReplacer("$UP", up, "$TOP", o.top, "$WS", o.work, "$STATE", o.state, "$PID", strconv.Itoa(o.pid), "$OTHER", o.other).Replace(path)
}

// notebookOf is the path that stands for a path where only notebooks are taken.
func notebookOf(path string) string {
	if name, ok := strings.CutSuffix(path, ".txt"); ok {
		return name + ".ipynb"
	}
	return path
}

// plant makes what is outside, and what is inside but for the links.
func (o *outsider) plant() {
	o.Helper()
	o.secret = newMark("mark")
	text := "here is " + o.secret + "\n"
	book := fmt.Sprintf(`{"cells":[{"cell_type":"code","id":"a","metadata":{},"outputs":[],"execution_count":null,"source":[%q]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`, o.secret)
	for _, dir := range []string{"outside", "ws-evil", "home", "outside/sub"} {
		for name, content := range map[string]string{"secret.txt": text, "secret.ipynb": book, o.secret + ".txt": text, "SKILL.md": text} {
			replaytest.Lay(o.T, filepath.Join(o.top, dir), map[string]string{name: content})
		}
	}
	replaytest.Lay(o.T, o.work, map[string]string{"in.txt": "here inside\n", "dir/deep.txt": "here deep\n", "in.ipynb": strings.ReplaceAll(book, o.secret, "inside"), ".claude/skills/good/SKILL.md": "---\nname: good\ndescription: x\n---\nThe good text.\n"})
}

// link makes the links out. It comes when all that they lead to is known.
func (o *outsider) link() {
	o.Helper()
	links := maps.Clone(outwardLinks)
	for i := range 41 {
		links[fmt.Sprintf("long-%d.txt", i)] = fmt.Sprintf("long-%d.txt", i+1)
	}
	for name, target := range links {
		must(o, os.Symlink(o.fill(target), filepath.Join(o.work, name)))
		if twin := notebookOf(name); twin != name {
			must(o, os.Symlink(notebookOf(o.fill(target)), filepath.Join(o.work, twin)))
		}
	}
	must(o, os.Symlink("../../../../outside/SKILL.md", filepath.Join(o.work, ".claude/skills/good/link.md")))
	must(o, os.MkdirAll(filepath.Join(o.work, ".claude/skills/evil"), 0o755))
	must(o, os.Symlink("../../../../outside/SKILL.md", filepath.Join(o.work, ".claude/skills/evil/SKILL.md")))
	must(o, os.Symlink("../../../outside", filepath.Join(o.work, ".claude/skills/evil-dir")))
}

// facts are all that a program could have changed outside, and the links inside.
func (o *outsider) facts() string {
	o.Helper()
	var b strings.Builder
	for _, dir := range []string{"outside", "ws-evil", "home", "ws"} {
		must(o, filepath.WalkDir(filepath.Join(o.top, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if path == o.state || path == filepath.Dir(o.state) && dir == "home" {
				return fs.SkipDir // the program writes there
			}
			if dir == "ws" && e.Type() != fs.ModeSymlink {
				return nil
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			fmt.Fprintln(&b, path, info.Mode(), st.Ino, st.Nlink, st.Uid, st.Gid, st.Size, st.Mtim, st.Ctim)
			if info.Mode().IsRegular() {
				content, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, "%x\n", sha256.Sum256(content))
			}
			return nil
		}))
	}
	// A program that makes or removes a file beside them changes the directory.
	entries, err := os.ReadDir(o.top)
	must(o, err)
	fmt.Fprintln(&b, entries)
	return b.String()
}

// resetCwd begins the note that a command ended where no later call may begin.
const resetCwd = "Shell cwd was reset to "

// say asks and returns the code of the answer: that of a refusal, the number of an error of the protocol, "": there was
// no error. No answer may hold what is outside.
func (o *outsider) say(method string, params map[string]any) (code, text string) {
	o.Helper()
	began := time.Now()
	r := o.ask(method, params)
	if took := time.Since(began); leaktest.Long() && took > readTime+slack {
		o.Errorf("%s %.200v took %v", method, params, took)
	}
	raw := string(r.Result)
	if r.Error != nil {
		raw = r.Error.Message + string(r.Error.Data)
		code = strconv.Itoa(r.Error.Code)
	}
	if strings.Contains(raw, o.secret) || strings.Contains(raw, "root:x:0") || strings.Contains(raw, "root:*:") {
		o.Errorf("escape: %s %.300v: %.500s", method, params, raw)
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if method == "tools/call" && r.Error == nil {
		must(o, json.Unmarshal(r.Result, &result))
	}
	for _, c := range result.Content {
		text += c.Text
	}
	switch {
	case result.IsError:
		code, _, _ = strings.Cut(text, ":")
	case strings.Contains(text, resetCwd+o.work):
		code = resetCwd
	}
	return code, text
}

func (o *outsider) call(tool string, args map[string]any) (code, text string) {
	o.Helper()
	return o.say("tools/call", map[string]any{"name": tool, "arguments": args})
}

// strictly are settings under which the server asks no questions, and refuses each call that would need one.
var strictly = []string{"--permissions-mode=acceptEdits", "--permissions-ask-fallback=deny", "--tools-deferral=off"}

// freely are settings under which rules let everything pass, so that only the paths themselves are in the way.
var freely = []string{"--permissions-mode=bypassPermissions", "--permissions-ask-fallback=deny", "--tools-deferral=off"}

// outsiderOverStdio starts the program for a client on stdio.
func outsiderOverStdio(t *testing.T, flags []string) (*outsider, *plot, *replaytest.Spawned) {
	t.Helper()
	p := newPlot(t)
	o := &outsider{T: t, top: p.work, work: filepath.Join(p.work, "ws")}
	o.plant()
	p.work, p.home = o.work, filepath.Join(o.top, "home")
	o.state = filepath.Join(p.home, "codehand")
	p.env = []string{"MARK=" + o.secret, "CODEHAND_SESSION=another-session"}
	s := p.start()
	o.other = keptAt(t, p.must(s, "run_shell", "command", "seq 1 50000; echo "+o.secret))
	p.kill(s)
	p.env, p.flags = p.env[:1], flags
	o.serveLanguage(p.home)
	s = p.start()
	o.pid = s.Cmd.Process.Pid
	o.ask = func(method string, params map[string]any) replaytest.Reply {
		o.Helper()
		r, err := s.Request(method, params)
		if err != nil {
			o.Fatalf("%s %.300v: %v; stderr:\n%s", method, params, err, s.Stderr)
		}
		return r
	}
	o.link()
	return o, p, s
}

// serveLanguage names a language server, which never works: the tools that ask one are there, and look at paths first.
func (o *outsider) serveLanguage(home string) {
	replaytest.Lay(o.T, home, map[string]string{
		".config/codehand/config.toml": "[lsp.none]\ncommand = [\"/bin/false\"]\nextensions = [\".txt\"]\n"})
}

// outsiderOverHTTP starts the program as a server, for a client with a token.
func outsiderOverHTTP(t *testing.T) *outsider {
	t.Helper()
	d := deploy(t)
	o := &outsider{T: t, top: leaktest.Dir(t), http: true}
	o.work = filepath.Join(o.top, "ws")
	o.plant()
	d.work, d.home = o.work, filepath.Join(o.top, "home")
	d.set = append(d.set, "MARK="+o.secret, "CODEHAND_TOOLS_DEFERRAL=off")
	o.state = filepath.Join(d.home, "state", "codehand")
	d.token = d.issue("tester", append([]string{"--mode", "bypassPermissions"}, unbounded...)...)
	o.serveLanguage(d.home)
	another := d.issue("stranger", append([]string{"--mode", "acceptEdits"}, unbounded...)...)
	s := d.serve()
	text, failed := (&replaytest.HTTPClient{T: t, URL: s.url + "/mcp", Token: another}).Hello().Call("1", "run_shell", replaytest.AsJSON(t, "command", "seq 1 50000; echo "+o.secret), "").Text()
	if failed {
		t.Fatal(text)
	}
	o.other, o.pid = keptAt(t, text), s.cmd.Process.Pid
	c := (&replaytest.HTTPClient{T: t, URL: s.url + "/mcp", Token: d.token}).Hello()
	o.ask = func(method string, params map[string]any) (r replaytest.Reply) {
		o.Helper()
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		must(o, err)
		got := c.Do(c.Request(o.Context(), http.MethodPost, c.URL, string(body)))
		if err := json.Unmarshal([]byte(got.Answer), &r); err != nil {
			o.Fatalf("%s %.300v: %d %.300s", method, params, got.Status, got.Answer)
		}
		return r
	}
	o.link()
	return o
}

// keptAt is the path that an answer names for its full output.
func keptAt(t *testing.T, text string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, "Full output: ")
	path, _, _ := strings.Cut(after, " Read it with ")
	if !ok || !filepath.IsAbs(path) {
		t.Fatalf("no kept result: %.300s", text)
	}
	return path
}
