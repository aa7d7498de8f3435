package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/sandbox"
)

// A model looked for a mistake of its own where the sandbox had refused something.
func TestExplain(t *testing.T) {
	t.Parallel()
	explains(t, tree(t, "f", "secret/x", ".git/config", "outside", "in/.git/config", "in/.vscode/y"))
}

// It blamed the wrong directory where a name of the path had a blank in it.
func TestExplainBlanks(t *testing.T) {
	t.Parallel()
	root := tree(t, "my own code/f", "my own code/secret/x", "my own code/outside", "my own code/in/.git/config",
		"my own code/in/.vscode/y")
	explains(t, root+"/my own code")
}

func explains(t *testing.T, root string) {
	t.Helper()
	c := Command{Level: sandbox.LevelFull, Profile: &sandbox.Profile{
		Sockets:  true,
		Writable: []string{root + "/in"}, Hidden: []string{root + "/secret"}, Protected: []string{root + "/in/.git/config", root + "/in/.vscode"},
	}, reasons: reasons{by: map[string]string{root + "/secret": "Read(secret/**), test"}}}
	for printed, want := range map[string]string{
		"bash: line 1: /etc/motd: Read-only file system":                                                         "/etc/motd is outside of what commands may change",
		"touch: cannot touch '/etc/motd': Permission denied":                                                     "/etc/motd is outside of what commands may change",
		"Error: ENOENT: no such file or directory, mkdir '" + root + "/in/.vscode/x'":                            root + "/in/.vscode/x is protected",
		"Error: ENOENT: no such file or directory, mkdir '" + root + "/in/none/x'":                               "",
		"touch: cannot touch '/srv/x': Permission denied":                                                        "sandbox.writable",
		"E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)":                 "/var/lib/dpkg/lock-frontend is no command's to change",
		"cat: " + root + "/secret/x: Permission denied":                                                          "is hidden from commands by the rule Read(secret/**), test",
		"cat: " + root + "/outside: No such file or directory":                                                   "sandbox.readable",
		"cat: " + root + "/nothing: No such file or directory":                                                   "",
		"pyenv: cannot rehash: /etc/shims isn't writable":                                                        "/etc/shims is outside of what commands may change",
		"fatal: '../outside' does not appear to be a git repository":                                             "sandbox.readable",
		"fatal: repository '../nothing' does not exist":                                                          "",
		"ls: command not found":                                                                                  "",
		"error: could not lock config file .git/config: File exists":                                             "",
		"error: could not write config file " + root + "/in/.git/config: Device or resource busy":                "is protected",
		"error: could not write config file .git/config: Device or resource busy":                                "is protected",
		"cat: '" + root + "/secret/x': Permission denied":                                                        "is hidden from commands by the rule Read(secret/**), test",
		"mv: cannot move '/etc/a' to '/etc/b': Read-only file system":                                            "/etc/a is outside of what commands may change",
		"mv: cannot move '.git' to 'x': Device or resource busy":                                                 "is protected",
		"open /var/x.txt: permission denied":                                                                     "/var/x.txt",
		"npm error Error: EACCES: permission denied, mkdir '/usr/lib/x'":                                         "/usr/lib/x",
		"curl: (6) Could not resolve host: example.com":                                                          "sandbox.network",
		"curl: (7) Failed to connect to 127.0.0.1 port 8080 after 0 ms: Couldn't connect to server":              "do not reach what other commands and jobs serve",
		"ERROR: Could not find a version that satisfies the requirement six (from versions: none)":               "no network here",
		"Caused by:\n  [6] Couldn't resolve host name":                                                           "no network here",
		"error: could not download file\n    2: client error (Connect)\n    3: dns error":                        "no network here",
		"Internal Error: Error when performing the request to https://registry.npmjs.org/pnpm; for":              "no network here",
		"Error: connect ECONNREFUSED 127.0.0.1:8080":                                                             "sandbox.network",
		"chmod: changing permissions of 'f': Operation not permitted":                                            "",
		"strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted":                                           "traces a process",
		"warning: ptrace: Operation not permitted\nDuring startup program exited with code 127.":                 "traces a process",
		"could not launch process: fork/exec ./a.test: operation not permitted":                                  "sandbox.policy",
		"unshare: unshare failed: Operation not permitted":                                                       "makes namespaces",
		"Failed to move to new namespace: PID namespaces supported, but failed: errno = Operation not permitted": "--no-sandbox",
		"strace: exec: Operation not permitted":                                                                  "",
		"ls: cannot open directory '/': Permission denied":                                                       "/ cannot be listed, since commands see only part of what is in it: name a file or directory there]",
		"PermissionError: [Errno 13] Permission denied: '" + root + "'":                                          root + " cannot be listed",
		"mkdir: cannot create directory '" + root + "': Read-only file system":                                   "sandbox.writable",
		"FAIL: TestPermissionDenied":                                                                             "",
	} {
		got := c.Explain(printed, root+"/in")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q explains %q, want %q", printed, got, want)
		}
	}
	if got := (Command{}).Explain("x: Permission denied", "/"); got != "" {
		t.Errorf("an unconfined command explains %q", got)
	}
}

// A command that only reads has no network whatever the setting is, and what it shows may be about networks.
func TestExplainWithoutCause(t *testing.T) {
	t.Parallel()
	reads := Command{Level: sandbox.LevelFull, Profile: &sandbox.Profile{}}
	writes := Command{Level: sandbox.LevelFull, Profile: &sandbox.Profile{Sockets: true}}
	for printed, c := range map[string]Command{
		"srv.log:dial tcp: connection refused\ngrep: missing: No such file or directory": reads,
		"srv.log:curl: (6) Could not resolve host: example.com":                          reads,
		"npm ERR! ERESOLVE unable to resolve dependency tree":                            writes,
		`Could not resolve "./x"`:                                                        writes,
	} {
		if got := c.Explain(printed, "/"); got != "" {
			t.Errorf("%q explains %q", printed, got)
		}
	}
}

// The program that stands before the path was taken for it.
func TestExplainReadOnly(t *testing.T) {
	t.Setenv("TMPDIR", leaktest.Dir(t)) // without a blank, which would end what is said without quotes
	inTemp := filepath.Join(os.TempDir(), "root")
	c := Command{
		Level: sandbox.LevelFull, reasons: reasons{readOnly: true}, Profile: &sandbox.Profile{Readable: []string{"/w", inTemp}},
	}
	for printed, want := range map[string]string{
		"copying " + os.TempDir() + "/x/a.out: open demo: read-only file system": "/w/demo",
		"touch: cannot touch '" + inTemp + "/z': Read-only file system":          inTemp + "/z",
		"error: could not lock config file .git/config: Read-only file system":   "/w/.git/config",
		"bash: line 1: .git/hooks/pre-commit: Read-only file system":             "/w/.git/hooks/pre-commit",
		"bash: line 1: y: Read-only file system":                                 "/w/y",
		"mv: cannot move 'a' to 'b': Read-only file system":                      "/w/a",
		"rm: cannot remove 'x': Read-only file system":                           "/w/x",
		"sed: couldn't open temporary file ./sedAbCdEf: Read-only file system":   "/w/sedAbCdEf",
		"touch: cannot touch '/w/y': Read-only file system":                      "/w/y",
		"OSError: [Errno 30] Read-only file system: 'made.txt'":                  "/w/made.txt",
		"Error: EROFS: read-only file system, open 'package-lock.json'":          "/w/package-lock.json",
		"error: cannot open '.git/FETCH_HEAD': Read-only file system":            "/w/.git/FETCH_HEAD",
		"open out.txt: read-only file system":                                    "/w/out.txt",
		"fatal: Unable to create '/w/.git/index.lock': Read-only file system":    "/w/.git/index.lock",
	} {
		want = "[read-only here: " + want + " cannot be changed; outside plan mode run_shell can change files]"
		if got := c.Explain(printed, "/w"); got != want {
			t.Errorf("%q explains %q, want %q", printed, got, want)
		}
	}
}

// A program that misses a socket or a password of the person gives a reason that is not true here.
func TestExplainUnseen(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	socket, link := filepath.Join(dir, "run", "docker.sock"), filepath.Join(dir, "var")
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(socket, nil, 0o600), os.Symlink("run", link)); err != nil {
		t.Fatal(err)
	}
	daemon := "Cannot connect to the Docker daemon at unix://" + link + "/docker.sock. Is the docker daemon running?"
	for _, s := range []struct {
		errors string
		open   []string
		want   string
	}{
		{daemon, nil, fmt.Sprintf("[sandbox level 3: %s/docker.sock is not visible to commands; sandbox.readable = [%q] "+
			"gives commands the rights of what listens there]", link, socket)},
		{daemon, []string{socket}, ""},
		{"Cannot connect to the Docker daemon at unix:///nowhere/docker.sock. Is the docker daemon running?", nil, ""},
		{"error: gpg failed to sign the data\nfatal: failed to write commit object", nil, "[sandbox level 3: gpg does not " +
			"reach its keys here; commit with -c commit.gpgsign=false, or let the user sign]"},
		{"fatal: could not read Username for 'https://x': terminal prompts disabled", nil, "[sandbox level 3: none " +
			"is stored]"},
		{"/home/a/helper: not found\nfatal: could not read Password for 'https://x': terminal prompts disabled", nil,
			"[sandbox level 3: none is stored]"},
	} {
		c := Command{Level: sandbox.LevelFull, Profile: &sandbox.Profile{Readable: s.open}, pass: passwords{none: "none is stored"}}
		if got := c.Explain(s.errors, dir); got != s.want {
			t.Errorf("%q: %q, want %q", s.errors, got, s.want)
		}
	}
}

// A set-user-ID bit is refused where the command may write, which nothing else that programs print tells. What belongs
// to another user is refused to anyone.
func TestExplainSetUserID(t *testing.T) {
	t.Parallel()
	root := tree(t, "f")
	c := Command{Level: sandbox.LevelFull, Profile: &sandbox.Profile{Writable: []string{root}}}
	for printed, told := range map[string]bool{
		"chmod: changing permissions of 'f': Operation not permitted":           true,
		"install: cannot change permissions of 'f': Operation not permitted":    true,
		"cp: preserving permissions for 'f': Operation not permitted":           true,
		"tar: f: Cannot change mode to rwsr-xr-x: Operation not permitted":      true,
		"chmod " + root + "/f: operation not permitted":                         true,
		"Error: EPERM: operation not permitted, chmod '" + root + "/f'":         true,
		"chmod: changing permissions of 'none': Operation not permitted":        false,
		"chown: changing ownership of 'f': Operation not permitted":             false,
		"chmod: changing permissions of '/etc/passwd': Operation not permitted": false,
	} {
		got := c.Explain(printed, root)
		if told = told && runtime.GOOS == "linux"; strings.Contains(got, "set-user-ID") != told {
			t.Errorf("%q: %q", printed, got)
		}
	}
}

// A commit that was not signed names what brings the agent into reach, and does not blame the sandbox where it is.
func TestExplainUnsigned(t *testing.T) {
	t.Parallel()
	open, shut := &sandbox.Profile{Network: sandbox.NetworkOn}, &sandbox.Profile{Network: sandbox.NetworkOff}
	for want, c := range map[string]Command{
		"the user's gpg-agent did not sign":                 {Profile: open, reasons: reasons{personal: true}, Gaps: []string{"gpg-agent"}},
		"sign only through S.gpg-agent.extra":               {Profile: open, reasons: reasons{personal: true, unshared: true}},
		"is started with GPG_TTY or XDG_RUNTIME_DIR in its": {Profile: open, reasons: reasons{personal: true}},
		`only with sandbox.network = "on"; commit with`:     {Profile: shut, reasons: reasons{personal: true}},
		"gpg does not reach its keys here; commit with":     {Profile: open},
	} {
		c.Level = sandbox.LevelFull
		if got := c.Explain("error: gpg failed to sign the data", "/"); !strings.Contains(got, want) {
			t.Errorf("%q: want %q", got, want)
		}
	}
}

// What a script of the system says that it does not find is not the script, which every command sees; and on stdio the
// person who reads an answer is the one who can change settings.
func TestExplainScript(t *testing.T) {
	t.Parallel()
	script := "/usr/bin/env" // it is there on every Unix
	said := script + ": 882: www-browser: not found"
	c := Command{Level: sandbox.LevelFull, Profile: &sandbox.Profile{}, reasons: reasons{personal: true}}
	if got := c.Explain(said, t.TempDir()); got != "" {
		t.Errorf("%q is explained by %q", said, got)
	}
	dir := t.TempDir()
	said = "cat: " + dir + ": No such file or directory"
	if got := c.Explain(said, "/"); !strings.Contains(got, "; the user can add it to sandbox.readable") {
		t.Errorf("%q", got)
	}
	c.personal = false
	if got := c.Explain(said, "/"); !strings.Contains(got, "; the operator can add it to sandbox.readable") {
		t.Errorf("%q", got)
	}
}
