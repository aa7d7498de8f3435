package blackbox

import (
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A forge is a real git behind https with a password, as a person has it at a host of code.
type forge struct {
	url string // of its repository
	ca  string // file
	got *replaytest.LockedBuffer
}

// startForge serves the repository at repo, into which ann may push.
func startForge(t *testing.T, repo string) forge {
	t.Helper()
	f := forge{got: &replaytest.LockedBuffer{}}
	git, err := exec.LookPath("git")
	must(t, err)
	backend := &cgi.Handler{Path: git, Args: []string{"http-backend"}, InheritEnv: []string{"PATH"},
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(repo), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann"}}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "ann" || password != "s3cret" {
			_, _ = io.WriteString(f.got, "refused "+user+"\n")
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(f.got, "passed\n")
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	f.ca = filepath.Join(leaktest.Dir(t), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	must(t, os.WriteFile(f.ca, cert, 0o644))
	f.url = s.URL + "/" + filepath.Base(repo)
	return f
}

// A pusher is a session at level 3 in a repository whose remote is a forge, of a person whose own git knows the password.
type pusher struct {
	*replaytest.ElicitClient
	t          *testing.T
	base, root string
	forges     [2]forge // the remote, and another host
}

// lay makes what a pusher works in, below base.
func (p *pusher) lay(roots ...string) {
	p.t.Helper()
	needs(p.t, "git")
	for _, dir := range append([]string{"home", "tmp"}, roots...) {
		must(p.t, os.MkdirAll(filepath.Join(p.base, dir), 0o755))
	}
	helper := filepath.Join(p.base, "helper")
	must(p.t, os.WriteFile(helper, []byte("#!/bin/sh\n{ echo op=$1; cat; } >>'"+p.base+"/asked'\n"+
		"[ $1 = get ] && echo username=ann && echo password=s3cret\n"), 0o755))
	must(p.t, os.WriteFile(filepath.Join(p.base, "home", ".gitconfig"), []byte("[user]\n\tname = Ann\n\temail = a@example.com\n"+
		"[init]\n\tdefaultBranch = main\n[credential]\n\thelper = "+helper+"\n"), 0o600))
	p.git("init", "-q", "--bare", "srv/r.git")
	p.git("-C", "srv/r.git", "config", "http.receivepack", "true")
	for i := range p.forges {
		p.forges[i] = startForge(p.t, filepath.Join(p.base, "srv", "r.git"))
	}
	p.git("init", "-q", p.root)
	p.git("-C", p.root, "remote", "add", "origin", p.forges[0].url)
	p.git("-C", p.root, "commit", "-q", "--allow-empty", "-m", "first")
}

// git is the person's own, outside.
func (p *pusher) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = p.base, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(p.base, "home"), "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// start starts a session.
func (p *pusher) start(modern bool, caps string, args ...string) *replaytest.ElicitClient {
	p.t.Helper()
	h := settle(p.t)
	if confinedLevel(p.t, h) < 3 {
		p.t.Skip("needs a machine that proves sandbox level 3")
	}
	cmd := exec.Command(replaytest.Program(p.t), append(append([]string{"stdio", "--permissions-mode=bypassPermissions"}, args...), p.root)...)
	cmd.Dir = p.root
	cmd.Env = []string{"HOME=" + filepath.Join(p.base, "home"), "XDG_STATE_HOME=" + filepath.Join(p.base, "state"),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_SSL_CAINFO=" + filepath.Join(p.root, "ca.pem"), "PATH=" + os.Getenv("PATH")}
	var both []byte
	for _, f := range p.forges {
		ca, err := os.ReadFile(f.ca)
		must(p.t, err)
		both = append(both, ca...)
	}
	must(p.t, os.WriteFile(filepath.Join(p.root, "ca.pem"), both, 0o644))
	in, err := cmd.StdinPipe()
	must(p.t, err)
	out, err := cmd.StdoutPipe()
	must(p.t, err)
	must(p.t, leaktest.Start(cmd))
	w := replaytest.NewWire(in, out, "credentials-test", modern)
	p.t.Cleanup(func() {
		_ = in.Close()
		for range w.Lines { // to the end of its output, as Wait demands
		}
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("the program ended with %v", err)
		}
	})
	return replaytest.OnPipeAs(p.t, w, &replaytest.ElicitClient{T: p.t, Modern: modern, Caps: caps})
}

func newPusher(t *testing.T) *pusher {
	t.Helper()
	base, err := filepath.EvalSymlinks(leaktest.Dir(t))
	must(t, err)
	p := &pusher{t: t, base: base, root: filepath.Join(base, "ws")}
	p.lay("ws")
	return p
}

// asked is what the person's own helper was asked.
func (p *pusher) asked() string {
	text, err := os.ReadFile(filepath.Join(p.base, "asked"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return string(text)
}

// shell is the answer about a command.
func shell(t *testing.T, c *replaytest.ElicitClient, command string, say func(string) string) replaytest.ElicitAnswer {
	t.Helper()
	return c.Call("run_shell", replaytest.AsJSON(t, "command", command), say)
}

// A push over https failed for want of the password that the person's git has. After one question a session it works,
// for the hosts of the remotes alone, and neither variables nor files show the password.
func TestGitPasswords(t *testing.T) {
	t.Parallel()
	const push = "git commit -q --allow-empty -m next && git push -q origin main"
	for _, era := range []string{"legacy", "modern"} {
		t.Run("asked/"+era, func(t *testing.T) {
			t.Parallel()
			p := newPusher(t)
			c := p.start(era == "modern", replaytest.Declared)
			a := shell(t, c, push, func(q string) string {
				if !strings.Contains(q, strings.TrimSuffix(p.forges[0].url, "/r.git")+" in the commands of this session?") {
					t.Errorf("it asked %s", q)
				}
				return `{"action":"accept","content":{}}`
			})
			if a.Failed || a.Asked != 1 {
				t.Fatalf("%+v\n%s", a, p.forges[0].got)
			}
			a = shell(t, c, push+" && bash -c 'git ls-remote origin'; env; grep -rs s3cr[e]t . $TMPDIR ~ | head", replaytest.Never(t))
			if head := p.git("-C", p.root, "rev-parse", "HEAD"); a.Failed || !strings.Contains(a.Text, strings.TrimSpace(head)) || strings.Contains(a.Text, "s3cret") {
				t.Errorf("%+v", a)
			}
			other := strings.TrimSuffix(p.forges[1].url, "/r.git")
			a = shell(t, c, "git remote add other "+p.forges[1].url+"; git ls-remote other", func(q string) string {
				if !strings.Contains(q, other+" in the commands") || !strings.Contains(q, "No repository here had that host when the session began") {
					t.Errorf("it asked %s", q)
				}
				return replaytest.SayDecline
			})
			if !a.Failed || a.Asked != 1 || !strings.Contains(a.Text, "sandbox.git_hosts") {
				t.Errorf("%+v", a)
			}
			if strings.Contains(p.forges[1].got.String(), "passed") || strings.Contains(p.asked(), strings.TrimPrefix(other, "https://")) {
				t.Errorf("the other host got %s; the helper was asked %s", p.forges[1].got, p.asked())
			}
			a = shell(t, c, "git clone -q "+p.forges[0].url+" cloned && cd cloned && git commit -q --allow-empty -m more && git push -q", replaytest.Never(t))
			if a.Failed {
				t.Errorf("%+v", a)
			}
		})
	}
	for _, c := range []struct {
		name, caps string
		args       []string
		say        string
		want       string // part of the answer; "": it works
	}{
		{"nobody", replaytest.Undeclared, nil, "", `nobody can be asked here; the user can set sandbox.git_credentials = "on", or use an ssh remote]`},
		{"nobody, but dontAsk", replaytest.Declared, []string{"--permissions-mode=dontAsk", "--permissions-allow=Bash(git *)"}, "", "nobody can be asked here"},
		{"declined", replaytest.Declared, nil, replaytest.SayDecline, "the user declined, and is asked again after a minute"},
		{"on", replaytest.Undeclared, []string{"--sandbox-git-credentials=on"}, "", ""},
		{"off", replaytest.Declared, []string{"--sandbox-git-credentials=off"}, "", `sandbox.git_credentials is "off"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPusher(t)
			client := p.start(false, c.caps, c.args...)
			say := replaytest.Never(t)
			if c.say != "" {
				say = replaytest.Always(c.say)
			}
			a := shell(t, client, push, say)
			if a.Failed != (c.want != "") || !strings.Contains(a.Text, c.want) {
				t.Errorf("%+v", a)
			}
			if passed := strings.Contains(p.forges[0].got.String(), "passed"); passed != (c.want == "") || strings.Contains(p.asked(), "op=get") != passed {
				t.Errorf("the host: %s; the helper: %s", p.forges[0].got, p.asked())
			}
		})
	}
}

// From clone to pushed branch in one session, which began where no repository was: in a client that asks with one
// question, in one that cannot with the setting that its failure names.
func TestGitPasswordsCloned(t *testing.T) {
	t.Parallel()
	push := func(p *pusher) string {
		return "git clone -q " + p.forges[0].url + " ours && cd ours && git switch -q -c next && " +
			"git commit -q --allow-empty -m next && git push -q -u origin next"
	}
	begin := func(t *testing.T) *pusher {
		p := newPusher(t)
		p.git("-C", p.root, "push", "-q", filepath.Join(p.base, "srv", "r.git"), "main")
		p.root = filepath.Join(p.base, "empty")
		must(t, os.Mkdir(p.root, 0o755))
		return p
	}
	t.Run("asked", func(t *testing.T) {
		t.Parallel()
		p := begin(t)
		if a := shell(t, p.start(false, replaytest.Declared), push(p), replaytest.Always(`{"action":"accept","content":{}}`)); a.Failed || a.Asked != 1 {
			t.Errorf("%+v", a)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		t.Parallel()
		p := begin(t)
		host := strings.TrimPrefix(strings.TrimSuffix(p.forges[0].url, "/r.git"), "https://")
		want := fmt.Sprintf(`sandbox.git_credentials = "on" and sandbox.git_hosts = [%q]`, host)
		if a := shell(t, p.start(false, replaytest.Undeclared), push(p), replaytest.Never(t)); !a.Failed || !strings.Contains(a.Text, want) {
			t.Errorf("%+v", a)
		}
	})
	t.Run("set", func(t *testing.T) {
		t.Parallel()
		p := begin(t)
		c := p.start(false, replaytest.Undeclared, "--sandbox-git-credentials=on", "--sandbox-git-hosts="+strings.TrimPrefix(strings.TrimSuffix(p.forges[0].url, "/r.git"), "https://"))
		if a := shell(t, c, push(p), replaytest.Never(t)); a.Failed {
			t.Errorf("%+v", a)
		}
	})
}

// With a password in reach of git, a command gets none for another host, makes the server start nothing, and erases or
// stores nothing; the commands of another session find no socket.
func TestGitPasswordsKept(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	p := newPusher(t)
	never := filepath.Join(p.base, "never")
	plant := "[credential]\n\thelper = \"!touch '" + never + "'\"\n[core]\n\taskPass = touch '" + never + "'\n\tfsmonitor = touch '" + never + "'\n"
	f, err := os.OpenFile(filepath.Join(p.root, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(plant)
	must(t, errors.Join(err, f.Close()))
	c := p.start(false, replaytest.Undeclared, "--sandbox-git-credentials=on")
	script := `
import os, re, socket, json
path = re.findall(r"'([^']+)'", os.environ["GIT_CONFIG_VALUE_1"])[1]
os.chdir(os.path.dirname(path))
def ask(text):
    s = socket.socket(socket.AF_UNIX); s.connect(os.path.basename(path))
    s.sendall(text.encode()); s.shutdown(socket.SHUT_WR)
    return json.loads(s.makefile().read())["Lines"]
for text in ("protocol=https\nhost=github.com\n\n", "protocol=https\nhost=OTHER\n\n", "protocol=https\nhost=OTHER\nurl=URL\n\n",
        "url=URL\n\n", "protocol=https\nhost=HOST\rhost=OTHER\n\n", "protocol=http\nhost=HOST\n\n",
        "protocol=https\nhost=HOST@OTHER\n\n", "protocol=https\nhost=HOST\nusername=a\x00b\n\n", "x" * 100000):
    try:
        got = ask(text)
    except (OSError, ValueError):
        got = ""
    if got:
        print("LEAKED", repr(text), got)
print("mine", ask("protocol=https\nhost=HOST\n\n").split())
for name in (".", ".."):
    print(sorted(os.listdir(name)))
for trick in (lambda: os.rename(os.path.basename(path), "moved"), lambda: os.unlink(os.path.basename(path))):
    try:
        trick(); print("CHANGED")
    except OSError:
        pass
try:
    open("made", "w") # in a view of the command's own
except OSError:
    pass
`
	host := func(i int) string {
		return strings.TrimPrefix(strings.TrimSuffix(p.forges[i].url, "/r.git"), "https://")
	}
	script = strings.NewReplacer("HOST", host(0), "OTHER", host(1), "URL", p.forges[0].url).Replace(script)
	must(t, os.WriteFile(filepath.Join(p.root, "s.py"), []byte(script), 0o600))
	a := shell(t, c, "python3 s.py; git push -q origin main; printf 'protocol=https\\nhost="+host(0)+"\\nusername=ann\\npassword=s3cret\\n' | git credential reject", replaytest.Never(t))
	if a.Failed || strings.Contains(a.Text, "LEAKED") || strings.Contains(a.Text, "CHANGED") || !strings.Contains(a.Text, "mine ['username=ann', 'password=s3cret']") {
		t.Errorf("%+v", a)
	}
	if asked := p.asked(); strings.Contains(asked, "github.com") || strings.Contains(asked, host(1)) || strings.Contains(asked, "op=erase") || strings.Contains(asked, "op=store") {
		t.Errorf("the helper was asked\n%s", asked)
	}
	if _, err := os.Lstat(never); err == nil {
		t.Error("what the repository names was started outside")
	}
	if found, _ := filepath.Glob(filepath.Join(p.base, "state", "codehand", "sessions", "*", "*", "credentials", "*")); len(found) > 0 {
		t.Errorf("beside the sockets there are %q", found)
	}
	// another session, while a job of the first one has its socket
	must(t, replaytest.Mkfifo(filepath.Join(p.root, "go")))
	a = c.Call("run_shell", replaytest.AsJSON(t, "command", `echo "$GIT_CONFIG_VALUE_1" >where; cat go`, "run_in_background", true), replaytest.Never(t))
	job := replaytest.JobID.FindString(a.Text)
	var socket string
	replaytest.Until(t, "the job to say where its socket is", func() bool {
		text, _ := os.ReadFile(filepath.Join(p.root, "where"))
		if parts := strings.Split(string(text), "'"); len(parts) > 3 {
			socket = parts[3]
		}
		return socket != ""
	})
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("the job has no socket: %v", err)
	}
	other := p.start(false, replaytest.Undeclared, "--sandbox-git-credentials=off")
	a = shell(t, other, "ls -la '"+filepath.Dir(socket)+"' '"+socket+"'; "+strconv.Quote(replaytest.Program(t))+" git-helper '"+socket+"' get <<<$'protocol=https\\nhost="+host(0)+"\\n'; true", replaytest.Never(t))
	if strings.Contains(a.Text, "s3cret") || !strings.Contains(a.Text, "No such file or directory") {
		t.Errorf("another session: %+v", a)
	}
	c.Call("job_stop", replaytest.AsJSON(t, "job_id", job), replaytest.Never(t))
}

// A home in a root has a configuration that commands write: nothing of it is obeyed outside.
func TestGitPasswordsHomeInRoot(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(leaktest.Dir(t))
	must(t, err)
	p := &pusher{t: t, base: base, root: filepath.Join(base, "home")}
	p.lay()
	c := p.start(false, replaytest.Undeclared, "--sandbox-git-credentials=on")
	a := shell(t, c, "git push -q origin main", replaytest.Never(t))
	if !a.Failed || !strings.Contains(a.Text, ".gitconfig lies where commands write, so it is not obeyed") || p.asked() != "" {
		t.Errorf("%+v; asked %s", a, p.asked())
	}
}

// Commits are signed with the person's gpg and with a key in their ssh-agent, and a push over ssh works with the agent;
// neither secret key can be read.
func TestGitSigns(t *testing.T) {
	t.Parallel()
	needs(t, "git", "gpg", "ssh-agent", "ssh-add", "ssh-keygen", "ssh")
	base, err := filepath.EvalSymlinks(leaktest.Dir(t))
	must(t, err)
	home := filepath.Join(base, "h") // the address of a socket has at most 107 bytes
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "SSH_AUTH_SOCK=" + home + "/agent", "GPG_TTY=/dev/null"}
	own := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = base, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	for _, dir := range []string{".gnupg", ".ssh"} {
		must(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
	}
	agent := exec.Command("ssh-agent", "-D", "-a", filepath.Join(home, "agent"))
	agent.Env = env
	must(t, leaktest.Start(agent))
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		own("gpgconf", "--kill", "all")
	})
	key := filepath.Join(home, ".ssh", "id_ed25519")
	own("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	replaytest.Until(t, "ssh-agent to listen", func() bool { _, err := os.Stat(filepath.Join(home, "agent")); return err == nil })
	own("ssh-add", "-q", key)
	own("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "Ann <a@example.com>", "ed25519", "sign", "never")
	own("git", "init", "-q", "--bare", "r.git")
	address, hostKey := startSSH(t, env)
	must(t, os.WriteFile(filepath.Join(home, ".ssh", "known_hosts"), []byte("["+strings.Replace(address, ":", "]:", 1)+" "+hostKey), 0o600))
	must(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Ann\n\temail = a@example.com\n[init]\n\tdefaultBranch = main\n"+
		"[core]\n\tsshCommand = ssh -F none -o UserKnownHostsFile="+home+"/.ssh/known_hosts -o IdentitiesOnly=yes -i ~/.ssh/id_ed25519.pub\n"), 0o600))
	root := filepath.Join(base, "ws")
	own("git", "init", "-q", root)
	own("git", "-C", root, "remote", "add", "origin", "ssh://ann@"+address+base+"/r.git")

	h := settle(t)
	if confinedLevel(t, h) < 3 {
		t.Skip("needs a machine that proves sandbox level 3")
	}
	cmd := exec.Command(replaytest.Program(t), "stdio", "--permissions-mode=bypassPermissions", root)
	cmd.Dir, cmd.Env = root, append(slices.Clone(env), "XDG_STATE_HOME="+filepath.Join(base, "state"))
	p := replaytest.Speak(t, cmd, "signs-test", false)
	runs(t, p, "git commit -q -S --allow-empty -m gpg")
	runs(t, p, "git config gpg.format ssh; git config user.signingkey ~/.ssh/id_ed25519.pub; git commit -q -S --allow-empty -m ssh")
	runs(t, p, "git push -q origin main")
	if sent := own("git", "-C", "r.git", "cat-file", "-p", "main"); !strings.Contains(sent, "BEGIN SSH SIGNATURE") {
		t.Errorf("the last commit is\n%s", sent)
	}
	if sent := own("git", "-C", "r.git", "cat-file", "-p", "main~1"); !strings.Contains(sent, "BEGIN PGP SIGNATURE") {
		t.Errorf("the first commit is\n%s", sent)
	}
	fingerprint := regexp.MustCompile(`(?m)^fpr:+([0-9A-F]+):`).FindStringSubmatch(own("gpg", "--batch", "--with-colons", "-K"))[1]
	for _, command := range []string{
		"gpg --batch --pinentry-mode loopback --passphrase '' --export-secret-keys --armor",
		"gpg --batch --yes --delete-secret-keys " + fingerprint,
		"gpg-connect-agent 'delete_key --force '$(gpg --batch --with-colons --with-keygrip -K | sed -n 's/^grp:*\\([0-9A-F]*\\):/\\1/p') /bye",
		"gpg-connect-agent 'killagent' /bye",
	} {
		a := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command+" 2>&1"))
		if !strings.Contains(a, "Forbidden") || strings.Contains(a, "PRIVATE KEY BLOCK") {
			t.Errorf("%s:\n%s", command, a)
		}
	}
	if list := own("gpg", "--batch", "-K"); !strings.Contains(list, fingerprint) {
		t.Errorf("the keys are\n%s", list)
	}
	must(t, os.WriteFile(filepath.Join(root, "s.sh"), []byte("ls ~/.ssh ~/.gnupg; cat ~/.ssh/id_ed25519 ~/.gnupg/private-keys-v1.d/*"), 0o600))
	text := p.Must(t, "run_shell", `{"command":"bash s.sh; true"}`)
	if strings.Contains(text, "PRIVATE") || !strings.Contains(text, "id_ed25519.pub") || strings.Contains(text, "id_ed25519\n") || strings.Contains(text, "private-keys-v1.d\n") {
		t.Errorf("a command sees\n%s", text)
	}
	var gaps struct {
		Meta struct {
			Sandbox struct{ Gaps []string } `json:"codehand/sandbox"`
		} `json:"_meta"`
	}
	r, err := p.Request("tools/call", map[string]any{"name": "run_shell", "arguments": map[string]string{"command": "touch made"}})
	must(t, err)
	must(t, json.Unmarshal(r.Result, &gaps))
	if got := gaps.Meta.Sandbox.Gaps; !slices.Contains(got, "ssh-agent") || !slices.Contains(got, "gpg-agent") {
		t.Errorf("the gaps are %q", got)
	}
}

// startSSH is a server of ssh on loopback that takes every key and starts git's programs; it returns its address and
// its key as known_hosts has it.
func startSSH(t *testing.T, env []string) (address, key string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(signer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				_, channels, requests, err := ssh.NewServerConn(c, config)
				if err != nil {
					return
				}
				go ssh.DiscardRequests(requests)
				for next := range channels {
					serveSSH(next, env)
				}
			})
		}
	})
	return l.Addr().String(), string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// serveSSH runs the one program that a channel asks for.
func serveSSH(next ssh.NewChannel, env []string) {
	channel, requests, err := next.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for r := range requests {
		var wanted struct{ Command string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &wanted) != nil || !strings.HasPrefix(wanted.Command, "git-") {
			_ = r.Reply(r.Type == "env", nil)
			continue
		}
		_ = r.Reply(true, nil)
		cmd := exec.Command("sh", "-c", wanted.Command)
		cmd.Env, cmd.Stdout, cmd.Stderr = env, channel, channel.Stderr()
		in, err := cmd.StdinPipe()
		if err != nil || cmd.Start() != nil {
			return
		}
		go func() {
			_, _ = io.Copy(in, channel)
			_ = in.Close()
		}()
		code := uint32(0)
		if cmd.Wait() != nil {
			code = 1
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		return
	}
}
