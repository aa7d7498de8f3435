package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planted are variables that must never reach a command. Each value holds the same word.
var planted = map[string]string{
	"AWS_SECRET_ACCESS_KEY": "planted", "AWS_ACCESS_KEY_ID": "planted", "GITHUB_TOKEN": "planted",
	"ANTHROPIC_API_KEY": "planted", "OPENAI_API_KEY": "planted", "NPM_TOKEN": "planted", "DATABASE_URL": "planted",
	"LD_PRELOAD": "/planted.so", "LD_LIBRARY_PATH": "/planted", "DYLD_INSERT_LIBRARIES": "/planted", "BASH_ENV": "/planted",
	"ENV": "/planted", "BASH_FUNC_ls%%": "() { echo planted; }", "IFS": "planted", "PS4": "planted",
	"PROMPT_COMMAND": "echo planted", "SHELLOPTS": "planted", "BASHOPTS": "planted", "CDPATH": "/planted",
	"GLOBIGNORE": "planted", "GIT_DIR": "/planted", "GIT_SSH_COMMAND": "planted", "GIT_ASKPASS": "planted",
	"GIT_EDITOR": "planted", "SSH_AUTH_SOCK": "/planted", "GPG_AGENT_INFO": "planted", "DOCKER_HOST": "planted",
	"CODEHAND_SERVE_TOKEN": "planted", "CODEHAND_TREE": "planted", "PAGER": "planted", "TERM": "planted",
	"LC_SECRET": "planted", "PLAIN": "planted", "TMPDIR": "/planted", "SHELL": "/planted", "CODEHAND": "planted",
	"http_proxy": "http://user:planted@proxy:3128", "HTTPS_PROXY": "user:planted@proxy:3128",
	"GOPROXY": "https://a.example,https://planted@b.example", "LC_ALL": "x user:planted@host",
	"HTTP_PROXY": "http://user:plan/planted@proxy", "JAVA_HOME": "user:planted@host",
}

func plant(t *testing.T) {
	t.Helper()
	for name, value := range planted {
		t.Setenv(name, value)
	}
}

func TestEnvironOfPlantedVariables(t *testing.T) {
	dir := t.TempDir() // before TMPDIR is another
	output, err := os.Create(filepath.Join(dir, "output"))
	must(t, err)
	defer output.Close()
	plant(t)
	env := Environ(EnvOptions{Allow: []string{"*", "LD_*", "GIT_*", "GITHUB_*", "AWS_*", "BASH_FUNC_ls%%", "CODEHAND_*"}})
	for _, entry := range env {
		if strings.Contains(entry, "planted") {
			t.Errorf("planted variable came through: %s", entry)
		}
	}
	p, err := Start(t.Context(), Cmd{Path: bashPath(t), Args: []string{"-c", "env; alias; declare -f"}, Env: env, Stdout: output})
	must(t, err)
	<-p.Done()
	p.End(0)
	text, err := os.ReadFile(output.Name())
	must(t, err)
	if strings.Contains(string(text), "planted") || !strings.Contains(string(text), "CODEHAND=1") {
		t.Errorf("a command sees a planted value:\n%s", text)
	}
}

func TestEnvironPasses(t *testing.T) {
	want := map[string]string{
		"HOME": "/home/a", "LANG": "de_DE.UTF-8@euro", "LC_TIME": "C", "TZ": ":Europe/Berlin", "GOPATH": "/a:/b",
		"GOPROXY": "https://proxy.golang.org,direct", "https_proxy": "http://proxy:3128", "no_proxy": "a.b,10.0.0.0/8",
		"MY_ONE": "1", "MY_TWO": "2", "ALONE": "3", "DEPLOY_TOKEN": "4", "XDG_DATA_HOME": "/home/a@b/data",
		"GOOS": "linux", "DJANGO_SETTINGS_MODULE": "a.settings", "RUST_BACKTRACE": "1", "PIP_FIND_LINKS": "https://h/links",
	}
	for name, value := range want {
		t.Setenv(name, value)
	}
	t.Setenv("MY_KEY", "no")
	t.Setenv("OTHER_TOKEN", "no")
	env := Environ(EnvOptions{
		Temp: "/tmp/x", Allow: []string{"MY_*", "ALONE", "OTHER_TOKEN"}, AllowSecret: []string{"DEPLOY_TOKEN"},
	})
	want["TMPDIR"], want["TERM"], want["CODEHAND"], want["GIT_EDITOR"] = "/tmp/x", "dumb", "1", "true"
	for name, value := range want {
		if !slices.Contains(env, name+"="+value) {
			t.Errorf("%s=%s is missing", name, value)
		}
	}
	for _, entry := range env {
		if strings.HasSuffix(entry, "=no") {
			t.Errorf("%s needs AllowSecret", entry)
		}
	}
	if !slices.IsSorted(env) {
		t.Error("not sorted")
	}
}

// TestEnvironOfAPerson: agents and display pass only where commands are the person's own, and never to a command that was
// proved to change nothing.
func TestEnvironOfAPerson(t *testing.T) {
	accounts := []string{"DOCKER_HOST=tcp://h", "AWS_PROFILE=p", "KUBECONFIG=/k"}
	own := []string{"SSH_AUTH_SOCK=/agent", "GPG_TTY=/dev/pts/1", "XDG_RUNTIME_DIR=/run/user/1"}
	shown := []string{"DISPLAY=:1", "WAYLAND_DISPLAY=w", "XAUTHORITY=/x"}
	for _, entry := range slices.Concat(shown, []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/bus",
		"XDG_CONFIG_HOME=/config", "XDG_TOKEN=no", "GH_TOKEN=no", "DATABASE_URL=postgres://u:p@h/d"}, accounts, own) {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	env := Environ(EnvOptions{Personal: true, AllowSecret: []string{"DATABASE_URL"}})
	with, alone := Environ(EnvOptions{Personal: true, Display: true}), Environ(EnvOptions{Display: true})
	for _, entry := range append(shown, "DBUS_SESSION_BUS_ADDRESS=unix:path=/bus") {
		if slices.Contains(env, entry) || slices.Contains(alone, entry) {
			t.Errorf("%s came through", entry)
		}
		if slices.Contains(with, entry) != slices.Contains(shown, entry) {
			t.Errorf("with the display open, %s is wrong", entry)
		}
	}
	others := Environ(EnvOptions{Allow: []string{"SSH_AUTH_SOCK"}})
	neutral := Neutral(env)
	for _, entry := range accounts {
		if !slices.Contains(env, entry) || slices.Contains(others, entry) {
			t.Errorf("%s is missing, or came through to others", entry)
		}
	}
	for _, entry := range own {
		if !slices.Contains(env, entry) {
			t.Errorf("%s is missing", entry)
		}
		if slices.Contains(others, entry) || slices.Contains(neutral, entry) {
			t.Errorf("%s came through", entry)
		}
	}
	if !slices.Contains(env, "DATABASE_URL=postgres://u:p@h/d") || !slices.Contains(neutral, "XDG_CONFIG_HOME=/config") {
		t.Error("a variable that passes is missing")
	}
	withheld, passed := Withheld(env), Passed(env)
	for name, want := range map[string]bool{"GH_TOKEN": true, "DOCKER_HOST": false, "XDG_TOKEN": true, "DISPLAY": true, "DBUS_SESSION_BUS_ADDRESS": true, "HOME": false, "PATH": false, "TERM": false, "PWD": false} {
		if slices.Contains(withheld, name) != want {
			t.Errorf("%s is listed as withheld: %v", name, !want)
		}
		if slices.Contains(passed, name) != (!want && name != "PWD" && os.Getenv(name) != "") {
			t.Errorf("%s is listed as passed: %v", name, want)
		}
	}
	if !Never("DOCKER_HOST") || Never("GH_TOKEN") {
		t.Error("which variables never pass is wrong")
	}
}

// TestNeutralTables: every setting has a reason and stands once, what an operator passes does not win over it, and what
// programs of the closed list must not obey is gone.
func TestNeutralTables(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range slices.Concat(neutralVariables, neutralGit, unneutral) {
		if name := strings.ToLower(s.name); s.why == "" || seen[name] {
			t.Errorf("%s: no reason, or it stands there twice", s.name)
		} else {
			seen[name] = true
		}
	}
	env := []string{"HOME=/h", "GOFLAGS=-toolexec=x", "PERL5OPT=-Mx", "RIPGREP_CONFIG_PATH=x", "npm_config_x=y", "LANG=C"}
	got := Neutral(env)
	last := map[string]string{}
	for _, entry := range got {
		name, value, _ := strings.Cut(entry, "=")
		last[name] = value
	}
	for name, want := range map[string]string{"HOME": "/h", "LANG": "C", "GOFLAGS": "-buildvcs=false", "PERL5OPT": "", "RIPGREP_CONFIG_PATH": "", "npm_config_x": ""} {
		if last[name] != want {
			t.Errorf("%s is %q, want %q", name, last[name], want)
		}
	}
}

func TestCleanPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	for _, name := range []string{"good", "root/bin", "open", "rootlike"} {
		must(t, os.MkdirAll(at(name), 0o755))
	}
	must(t, os.Chmod(at("open"), 0o777))
	must(t, os.WriteFile(at("file"), nil, 0o755))
	must(t, os.Symlink(at("root", "bin"), at("into")))
	must(t, os.Symlink(at("good"), at("link")))
	must(t, os.Symlink(at("root"), at("alias")))
	for name, c := range map[string]struct{ path, want string }{
		"good ones":       {at("good") + ":" + at("link"), at("good") + ":" + at("link")},
		"empty entries":   {":" + at("good") + "::", at("good")},
		"relative":        {".:bin:./x:" + at("good"), at("good")},
		"writable":        {at("open") + ":" + at("good"), at("good")},
		"in a root":       {at("root", "bin") + ":" + at("root") + ":" + at("good"), at("good")},
		"link into root":  {at("into") + ":" + at("good"), at("good")},
		"dots into root":  {at("good", "..", "root", "bin") + ":" + at("good"), at("good")},
		"only like root":  {at("rootlike"), at("rootlike")},
		"missing":         {at("none") + ":" + at("good"), at("good")},
		"a file":          {at("file") + ":" + at("good"), at("good")},
		"twice":           {at("good") + ":" + at("good"), at("good")},
		"nothing is left": {at("open"), defaultPath},
		"unset":           {"", defaultPath},
	} {
		if got := cleanPath(c.path, []string{at("alias")}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// `python --version` was read-only, and a version manager started what .python-version of the workspace names.
func TestNeutralHasNoShims(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/home/a/.pyenv/shims:/usr/bin":                    "/usr/bin",
		"/home/a/.asdf/shims/:/home/a/.volta/bin:/usr/bin": "/usr/bin",
		"/home/a/.local/share/mise/shims":                  defaultPath,
		"/home/a/.cargo/bin:/home/a/shimsy:/usr/bin":       "/home/a/.cargo/bin:/home/a/shimsy:/usr/bin",
	} {
		if got := Neutral([]string{"PATH=" + path}); !slices.Contains(got, "PATH="+want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
