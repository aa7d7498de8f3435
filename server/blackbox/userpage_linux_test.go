package blackbox

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// A pageOf is a browser on codehand page.
type pageOf struct {
	t    *testing.T
	url  string
	csrf string
	http.Client
}

// openPage starts codehand page and opens it by its key.
func (h *household) openPage() (*pageOf, *daemon) {
	h.t.Helper()
	d := startDaemon(h.t, h.command("page"))
	key := d.said(h.t, `key=(\w+)`)
	jar, err := cookiejar.New(nil)
	must(h.t, err)
	b := &pageOf{t: h.t, url: strings.TrimSuffix(strings.Split(d.url, "?")[0], "/"), Client: http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
	b.get("/?" + key)
	return b, d
}

func (b *pageOf) get(path string) string {
	b.t.Helper()
	r, err := b.Get(b.url + path)
	must(b.t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(b.t, err)
	if m := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindSubmatch(text); m != nil {
		b.csrf = string(m[1])
	}
	return string(text)
}

// finds loads a page until it matches, and returns the first group.
func (b *pageOf) finds(path, pattern string) string {
	b.t.Helper()
	var m []string
	replaytest.Until(b.t, path+" has "+pattern, func() bool {
		m = regexp.MustCompile(pattern).FindStringSubmatch(b.get(path))
		return m != nil
	})
	return m[len(m)-1]
}

func (b *pageOf) post(path string, form map[string]string) string {
	b.t.Helper()
	values := url.Values{"csrf": {b.csrf}}
	for k, v := range form {
		values.Set(k, v)
	}
	r, err := http.NewRequest(http.MethodPost, b.url+path, strings.NewReader(values.Encode()))
	must(b.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	a, err := b.Do(r)
	must(b.t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	must(b.t, err)
	return string(text)
}

// TestUserPage: people whose client cannot ask, as Claude Desktop, had no way to approve a command of a session on stdio,
// and saw neither what runs nor what was changed. The page of codehand page shows all sessions of its user, lets them
// approve, stop and take back, spares what they wrote themselves, and knows no command of a sandbox.
func TestUserPage(t *testing.T) {
	t.Parallel()
	h := settle(t)
	if confinedLevel(t, h) < 3 {
		unavailable(t, "commands are not confined at level 3 here")
	}
	p := replaytest.Speak(t, h.command("stdio", h.work), "claude-ai", false)
	if got := p.Must(t, "run_shell", `{"command":"git push --force"}`); !strings.HasPrefix(got, "! ") || strings.Contains(got, "http://") {
		t.Errorf("without a page: %s", got)
	}
	unasked := p.Must(t, "save_file", `{"file_path":".envrc","uri":"data:,x"}`)
	if !strings.Contains(unasked, "While `codehand page` runs, the user is asked on its page") {
		t.Errorf("what only a person decides: %s", unasked)
	}
	b, d := h.openPage()
	b.get("/")
	command := fmt.Sprintf("rm -rf %s", filepath.Join(h.home, "elsewhere"))
	answered := make(chan string, 1)
	go func() { // the only call meanwhile
		text, err := p.Call("run_shell", []byte(replaytest.AsJSON(t, "command", "git push --force; "+command)))
		if err != nil {
			text = err.Error()
		}
		answered <- text
	}()
	id := b.finds("/", `data-id="(\w+)"[\s\S]*git push --force`)
	if !strings.Contains(b.get("/"), "claude-ai") {
		t.Error("the page does not say which client asks")
	}
	denied := map[string]string{"id": id, "f-decision": "deny", "f-reason": "not <b>today</b>"}
	if got := b.post("/console/answer", denied); !strings.Contains(got, "You denied it") {
		t.Error(got)
	}
	if got := <-answered; !strings.Contains(got, "USER_DECLINED") || !strings.Contains(got, "not <b>today</b>") {
		t.Errorf("the call ended with %s", got)
	}
	if got := b.post("/console/answer", map[string]string{"id": id, "f-decision": "allow once"}); !strings.Contains(got, "Nothing was done") {
		t.Errorf("a second answer: %s", got)
	}

	p.Must(t, "run_shell", `{"command":"sleep 600","run_in_background":true}`)
	job := b.finds("/activity", `name="job" value="(job_\w+)"`)
	text := b.get("/activity")
	form := map[string]string{"job": job}
	for _, name := range []string{"process", "session"} {
		form[name] = regexp.MustCompile(`name="` + name + `" value="(\w+)"`).FindStringSubmatch(text)[1]
	}
	if got := b.post("/console/stop", form); !strings.Contains(got, "The command was stopped.") || !strings.Contains(got, "No command runs.") {
		t.Error(got)
	}

	p.Must(t, "write_file", replaytest.AsJSON(t, "file_path", filepath.Join(h.work, "b.txt"), "content", "<script>\n"))
	p.Must(t, "write_file", replaytest.AsJSON(t, "file_path", filepath.Join(h.work, "c.txt"), "content", "mine\n"))
	must(t, os.WriteFile(filepath.Join(h.work, "c.txt"), []byte("the person's\n"), 0o600))
	for name, want := range map[string]string{"b.txt": "Taken back.", "c.txt": "UNDO_CONFLICT"} {
		one := changeOf(t, b.get("/changes"), name)
		if got := b.get("/changes/" + one); strings.Contains(got, "<script>\n") || !strings.Contains(got, name) {
			t.Error(got)
		}
		if got := b.post("/console/undo", map[string]string{"change": one}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if exists(filepath.Join(h.work, "b.txt")) {
		t.Error("b.txt is still there")
	}
	if got, err := os.ReadFile(filepath.Join(h.work, "c.txt")); string(got) != "the person's\n" {
		t.Errorf("c.txt has %q, %v", got, err)
	}

	b.finds("/activity", `USER_DECLINED`)
	if got := b.get("/activity"); !strings.Contains(got, "claude-ai") || !strings.Contains(got, "git push --force") || !strings.Contains(got, "1 file changed") {
		t.Errorf("what ran is not listed: %s", got)
	}
	if got := b.get("/activity?failed=1"); !strings.Contains(got, "USER_DECLINED") || strings.Contains(got, "write_file") {
		t.Errorf("what failed is not listed: %s", got)
	}

	session := regexp.MustCompile(`activity\?session=([0-9a-f]{8})`).FindStringSubmatch(b.get("/activity"))[1]
	set := func(want string, form map[string]string) {
		t.Helper()
		b.get("/activity?session=" + session)
		form["of"], form["session"] = "local", session
		if got := b.post("/console/rights", form); !strings.Contains(got, want) {
			t.Errorf("%v: %s", form, got)
		}
	}
	wrote := func(want string) {
		t.Helper()
		if got := p.Must(t, "write_file", replaytest.AsJSON(t, "file_path", filepath.Join(h.work, "d.txt"), "content", want)); !strings.Contains(got, want) {
			t.Errorf("%s: want %s", got, want)
		}
	}
	set("The rule holds from the next call on.", map[string]string{"list": "deny", "rule": "Edit(d.txt)"})
	wrote("rule Edit(d.txt), set for this session on the page")
	set("The rule does not hold any more", map[string]string{"list": "deny", "rule": "Edit(d.txt)", "do": "take"})
	set("The mode holds from the next call on.", map[string]string{"mode": "plan"})
	wrote("PLAN_MODE")
	set("Choose one of what is offered.", map[string]string{"mode": "auto"})
	set("The mode holds from the next call on.", map[string]string{"mode": ""})
	wrote("Created ")

	address := strings.TrimPrefix(b.url, "http://")
	host, port, _ := strings.Cut(address, ":")
	must(t, os.WriteFile(filepath.Join(h.work, "look"), []byte(getPage), 0o600))
	got := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "bash look "+host+" "+port+"; ls "+filepath.Join(h.home, "state/codehand/live")))
	if !strings.Contains(got, "403 Forbidden") || strings.Contains(got, ".sock") {
		t.Errorf("a command in the sandbox: %s", got)
	}
	must(t, d.cmd.Process.Signal(os.Interrupt))
	d.read.Wait()
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("Ctrl-C ends the page with %d", code)
	}
}

// changeOf is the id of the newest change of a file.
func changeOf(t *testing.T, text, name string) string {
	t.Helper()
	for _, row := range strings.Split(text, "<tr>") {
		if m := regexp.MustCompile(`changes/([a-z0-9]{16})`).FindStringSubmatch(row); m != nil && strings.Contains(row, "/"+name+`"`) {
			return m[1]
		}
	}
	t.Fatalf("%s is not listed: %s", name, text)
	return ""
}
