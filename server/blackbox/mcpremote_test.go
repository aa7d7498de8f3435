package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A desk is the home directory of a client's user. Whatever opens a browser there hands the URL to the test.
type desk struct {
	t    *testing.T
	home string
	env  []string
}

// furnish makes a desk.
func furnish(t *testing.T) *desk {
	t.Helper()
	k := &desk{t: t, home: leaktest.Dir(t)}
	bin := filepath.Join(k.home, "stub")
	must(t, os.Mkdir(bin, 0o700))
	stub := "#!/bin/sh\nfor u; do :; done\nprintf '%s\\n' \"$u\" >>'" + k.opened() + "'\n"
	for _, name := range []string{"xdg-open", "www-browser", "x-www-browser", "sensible-browser", "gio", "open", "firefox", "google-chrome", "chromium"} {
		must(t, os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o700))
	}
	k.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "BROWSER=" + filepath.Join(bin, "xdg-open"), "HOME=" + k.home, "TMPDIR=" + k.home, "DISPLAY=:0",
		"XDG_DATA_DIRS=" + filepath.Join(k.home, "none")} // no desktop says which browser is usual
	return k
}

func (k *desk) opened() string { return filepath.Join(k.home, "opened-by-a-client") }

// urls are what was opened so far.
func (k *desk) urls() []string {
	text, _ := os.ReadFile(k.opened()) // not there before the first
	return strings.Fields(string(text))
}

// browse waits until the n-th browser opens, does there what the owner does, and brings the client its answer.
func (k *desk) browse(d *door, n int) {
	k.t.Helper()
	replaytest.Until(k.t, "the client opens a browser", func() bool { return len(k.urls()) >= n })
	p := d.person()
	back := p.walk(k.urls()[n-1])
	p.origin = "none"
	if got := p.send("GET", back, "", nil); got.status >= 400 {
		k.t.Fatalf("the client answers %s with %d %s", back, got.status, got.body)
	}
}

// accessToken finds the access tokens that a client keeps.
var accessToken = regexp.MustCompile(`cha_[0-9A-Za-z_-]{43,}`)

// age makes the access tokens that the client keeps in files as bad as expired ones. It fails if there is none.
func (k *desk) age() {
	k.t.Helper()
	if !k.tokens(func(path string, text []byte) error {
		return os.WriteFile(path, accessToken.ReplaceAllFunc(text, func(t []byte) []byte {
			return []byte("cha_" + strings.Repeat("A", len(t)-4))
		}), 0o600)
	}) {
		k.t.Fatal("the client keeps no access token in a file")
	}
}

// late makes the access tokens that the client keeps in files look expired by their dates. It fails if there is no date.
func (k *desk) late() {
	k.t.Helper()
	dated := false
	k.tokens(func(path string, text []byte) error {
		dated = dated || expiryDate.Match(text)
		return os.WriteFile(path, expiryDate.ReplaceAll(text, []byte("${1}1")), 0o600)
	})
	if !dated {
		k.t.Fatal("the client keeps no date with its access token")
	}
}

// expiryDate finds until when the client means its access token to be good.
var expiryDate = regexp.MustCompile(`("expiresAt":\s*)\d+`)

// tokens calls f for each file with an access token in it.
func (k *desk) tokens(f func(path string, text []byte) error) (found bool) {
	k.t.Helper()
	must(k.t, filepath.WalkDir(k.home, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // it went meanwhile
		}
		text, err := os.ReadFile(path)
		if err != nil || !accessToken.Match(text) {
			return nil // likewise
		}
		found = true
		return f(path, text)
	}))
	return found
}

// TestMcpRemote: mcp-remote opens a browser and signs in, refreshes, goes on after a kill of the server without another
// sign-in, and asks again once the grant is revoked.
func TestMcpRemote(t *testing.T) {
	t.Parallel()
	long(t)
	node, _ := inspector(t)
	program, err := filepath.Abs("../../.ci/conformance/node_modules/mcp-remote/dist/proxy.js")
	must(t, err)
	if _, err := os.Stat(program); err != nil {
		unavailable(t, "mcp-remote is not installed: (cd .ci/conformance && npm ci)")
	}
	d, k := opened(t, nil), furnish(t)
	// session starts it and reads a file through it. browsers is how many it has opened then.
	session := func(browsers int) {
		t.Helper()
		cmd := exec.Command(node, program, d.s.url+"/mcp", "--transport", "http-only", "--auth-timeout", "60")
		cmd.Env, cmd.Dir = k.env, k.home
		var stderr replaytest.LockedBuffer
		cmd.Stderr = &stderr
		p := replaytest.Speak(t, cmd, "mcp-remote", false)
		if len(k.urls()) != browsers {
			t.Errorf("%d browsers were opened, want %d:\n%s", len(k.urls()), browsers, stderr.String())
		}
		if got := p.Must(t, "list_files", `{"pattern":"*"}`); strings.HasPrefix(got, "! ") {
			t.Errorf("list_files: %s", got)
		}
		_ = p.In.Close()
		_ = cmd.Wait()
	}
	signIn := make(chan struct{})
	go func() { defer close(signIn); k.browse(d, 1) }()
	session(1)
	<-signIn
	session(1)
	k.age()
	session(1) // it has refreshed
	d.again()
	session(1)
	d.revokeAll()
	again := make(chan struct{})
	go func() { defer close(again); k.browse(d, 2) }()
	session(2)
	<-again
}
