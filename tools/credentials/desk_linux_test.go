package credentials

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// person is a home with a helper that notes what it is asked, and answers for two hosts.
type person struct {
	home, work string
	asked      string // the helper's notes
}

func newPerson(t *testing.T) person {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("it needs git: install it")
		}
		t.Skip("it needs git: install it")
	}
	base := leaktest.Dir(t)
	p := person{home: filepath.Join(base, "home"), work: filepath.Join(base, "work"), asked: filepath.Join(base, "asked")}
	for _, dir := range []string{p.home, p.work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.lay(t, "home/helper", "#!/bin/sh\n{ echo op=$1; cat; } >>'"+p.asked+"'\n[ $1 = get ] && echo username=ann && "+
		"echo password=s3cret && echo oauth_refresh_token=r3fresh\n")
	p.lay(t, "home/.gitconfig", "[credential]\n\thelper = "+filepath.Join(p.home, "helper")+"\n")
	t.Setenv("HOME", p.home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(p.home, ".config"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(p.home, ".gitconfig"))
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "credential.helper")
	t.Setenv("GIT_CONFIG_VALUE_0", "!touch '"+filepath.Join(base, "never")+"'")
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(base, "never")); err == nil {
			t.Error("a variable of git's was obeyed")
		}
	})
	return p
}

func (p person) lay(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(filepath.Dir(p.home), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// options are those of a session in work, with a long path for its sockets.
func (p person) options(mode string, remotes ...string) Options {
	return Options{Mode: mode, Remotes: remotes, Written: []string{p.work}, Home: p.home,
		Dir: filepath.Join(filepath.Dir(p.home), strings.Repeat("long/", 30), "sockets")}
}

// open opens a door, and returns what a helper there gets for a request.
func open(t *testing.T, d *Desk, ask Asking) (*Door, func(text string) string) {
	t.Helper()
	door, err := d.Open(ask)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(door.Close)
	return door, func(text string) string {
		t.Helper()
		var out strings.Builder
		if err := Help(door.socket, "get", strings.NewReader(text), &out); err != nil {
			t.Error(err)
		}
		return out.String()
	}
}

const wanted = "username=ann\npassword=s3cret\n"

// Where nobody can be asked, a password goes to the host of a remote only, without what git does not need, and the
// person's git is asked for no other.
func TestDeskHosts(t *testing.T) {
	p := newPerson(t)
	door, get := open(t, New(p.options(On, "https://example.com/a.git")), nil)
	if got := get("protocol=https\nhost=example.com\n\n"); got != wanted {
		t.Errorf("got %q, %q", got, door.Why())
	}
	for _, text := range []string{
		"protocol=https\nhost=example.com.evil.example\n\n", "protocol=http\nhost=example.com\n\n", "protocol=https\nhost=example.com:444\n\n",
		"protocol=https\nhost=evil.example\nhost=evil.example\n\n", "protocol=https\nhost=example.com\nusername=a\rb\n\n", "nonsense",
	} {
		if got := get(text); got != "" {
			t.Errorf("%q got %q", text, got)
		}
	}
	if why := strings.Join(door.Why(), "\n"); !strings.Contains(why, `https://example.com.evil.example: nobody can be asked here; the user can set sandbox.git_credentials = "on" and sandbox.git_hosts = ["example.com.evil.example"]`) {
		t.Errorf("it says %q", why)
	}
	asked, err := os.ReadFile(p.asked)
	if err != nil || strings.Count(string(asked), "op=") != 1 || strings.Contains(string(asked), "evil") {
		t.Errorf("the helper was asked %q, %v", asked, err)
	}
	if New(p.options("", "https://example.com/a.git")) != nil || New(p.options("yes", "https://a/b")) != nil {
		t.Error("a desk without a mode is open")
	}
}

// A session may begin before there is a repository: then the person is asked about the host that a clone names, about no
// other with it, and those that the operator named go with the remotes.
func TestDeskStrangers(t *testing.T) {
	p := newPerson(t)
	const request = "protocol=https\nhost=example.com\n\n"
	for _, mode := range []string{Ask, On} {
		d := New(p.options(mode))
		var questions []string
		answer := error(nil)
		ask := func(_ context.Context, question string) error {
			questions = append(questions, question)
			return answer
		}
		door, get := open(t, d, ask)
		for range 2 {
			if got := get(request); got != wanted {
				t.Errorf("%s: got %q, %q", mode, got, door.Why())
			}
		}
		answer = ErrDeclined
		for _, host := range []string{"evil.example", "evil2.example"} { // no stream of questions about ever new hosts
			if got := get("protocol=https\nhost=" + host + "\n\n"); got != "" {
				t.Errorf("%s: %s got %q", mode, host, got)
			}
		}
		if len(questions) != 2 || !strings.Contains(questions[0], "your stored password for https://example.com in the") ||
			!strings.Contains(questions[0], "a command named it") || !strings.Contains(questions[1], "https://evil.example in") {
			t.Errorf("%s: the questions were %q", mode, questions)
		}
	}
	for mode, want := range map[string]int{Ask: 1, On: 0} {
		o := p.options(mode, "https://b.example/c")
		o.Sites = []string{"https://example.com"}
		asked := 0
		_, get := open(t, New(o), func(_ context.Context, question string) error {
			asked++
			if !strings.Contains(question, "https://b.example, https://example.com in") {
				t.Errorf("it asked %s", question)
			}
			return nil
		})
		if got := get(request); got != wanted || asked != want {
			t.Errorf("%s: got %q with %d questions", mode, got, asked)
		}
	}
}

// One question holds for the session; one that was declined is put again after a minute; without a person there is none.
func TestDeskAsks(t *testing.T) {
	p := newPerson(t)
	d := New(p.options(Ask, "https://example.com/a.git", "https://b.example/c"))
	now := time.Now()
	d.now = func() time.Time { return now }
	var questions []string
	answer := ErrDeclined
	ask := func(_ context.Context, question string) error {
		questions = append(questions, question)
		if d.Allowed() { // other commands of the session look at it while the person thinks
			t.Error("it is allowed before the answer")
		}
		return answer
	}
	door, get := open(t, d, nil)
	const request = "protocol=https\nhost=example.com\n\n"
	if got := get(request); got != "" || !strings.Contains(strings.Join(door.Why(), ""), `nobody can be asked here; the user can set sandbox.git_credentials = "on"`) {
		t.Errorf("got %q, %q", got, door.Why())
	}
	door, get = open(t, d, ask)
	for range 2 {
		if got := get(request); got != "" || !strings.Contains(strings.Join(door.Why(), ""), "the user declined") {
			t.Errorf("got %q, %q", got, door.Why())
		}
	}
	now = now.Add(again)
	answer = errors.New("the client went away")
	if got := get(request); got != "" || d.Allowed() {
		t.Errorf("got %q", got)
	}
	answer = nil
	for range 2 {
		if got := get(request); got != wanted {
			t.Errorf("got %q, %q", got, door.Why())
		}
	}
	_, get = open(t, d, nil)
	if got := get(request); got != wanted || !d.Allowed() {
		t.Errorf("the next command got %q", got)
	}
	if len(questions) != 3 || !strings.Contains(questions[0], "https://example.com, https://b.example") {
		t.Errorf("the questions were %q", questions)
	}
}

// Nothing is obeyed that a command could have written: a configuration, what it includes, a helper, a program of PATH.
func TestDeskWritten(t *testing.T) {
	p := newPerson(t)
	base := filepath.Dir(p.home)
	evil := "#!/bin/sh\ntouch '" + base + "/never'\necho username=e\necho password=e\n"
	p.lay(t, "work/evil", evil)
	p.lay(t, "work/bin/git", evil)
	p.lay(t, "work/bin/git-credential-own", evil)
	p.lay(t, "work/more", "[credential]\n\thelper = "+p.work+"/evil\n")
	p.lay(t, "work/.git/config", "[credential]\n\thelper = "+p.work+"/evil\n[core]\n\tbare = false\n")
	t.Setenv("PATH", filepath.Join(p.work, "bin")+":"+os.Getenv("PATH"))
	if err := os.Symlink(filepath.Join(p.work, "evil"), filepath.Join(p.home, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.work, filepath.Join(p.home, "dir")); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"[credential]\n\thelper = " + p.work + "/evil\n":                                "/evil lies where commands write",
		"[credential]\n\thelper = " + p.home + "/link\n":                                "/link lies where commands write",
		"[credential]\n\thelper = \"!f() { ~/../work/evil get; }; f\"\n":                "work/evil lies where commands write",
		"[credential \"https://example.com\"]\n\thelper = \"!'" + p.work + "/evil'\"\n": "/evil lies where commands write",
		"[include]\n\tpath = " + p.work + "/more\n":                                     "/more lies where commands write",
		"[include]\n\tpath = " + p.work + "/none\n":                                     "/none lies where commands write",
		"[include]\n\tpath = ../work/none\n":                                            "/work/none lies where commands write",
		"[credential]\n\thelper = " + p.home + "/dir/none\n":                            "/dir/none lies where commands write",
		"[credential]\n\thelper = own\n":                                                "the user's git has none",
		"":                                                                              "the user's git has none",
	} {
		p.lay(t, "home/.gitconfig", text)
		door, get := open(t, New(p.options(On, "https://example.com/a.git")), nil)
		if got, why := get("protocol=https\nhost=example.com\n\n"), strings.Join(door.Why(), ""); got != "" || !strings.Contains(why, want) {
			t.Errorf("%s: got %q, %q", text, got, why)
		}
	}
}

// What is no helper of ours at the socket holds nobody up, and the end of a command ends its question.
func TestDoorEnds(t *testing.T) {
	p := newPerson(t)
	asked := make(chan struct{})
	door, err := New(p.options(Ask, "https://example.com/a.git")).Open(func(ctx context.Context, _ string) error {
		close(asked)
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(door.socket))
	for _, text := range []string{"", "protocol=https\nhost=example.com\n\n"} {
		c, err := net.Dial("unix", filepath.Base(door.socket))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := c.(*net.UnixConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
	}
	<-asked
	door.Close()
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(door.socket), "*")); err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
	if why := door.Why(); len(why) > 0 {
		t.Errorf("it says %q", why)
	}
}

// A command that asks too often is refused, and does not wait until it ends.
func TestDoorIsBounded(t *testing.T) {
	p := newPerson(t)
	door, get := open(t, New(p.options(On, "https://example.com/a.git")), nil)
	for range maxServed {
		if got := get("nonsense"); got != "" {
			t.Fatalf("got %q", got)
		}
	}
	if err := Help(door.socket, "get", strings.NewReader("nonsense"), io.Discard); err == nil {
		t.Error("one request more was answered")
	}
}
