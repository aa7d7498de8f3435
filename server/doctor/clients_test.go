package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/server/clients/install"
)

var clientRemedies = []remedy{
	{"clients", "command gone", func(r *rig) { r.entry("gemini", r.at("gone/codehand"), []string{"stdio"}, nil) }, Fail,
		"which is not there or cannot be run", "run: codehand install gemini", reinstall},
	{"clients", "command not on PATH", func(r *rig) {
		r.entry("gemini", "codehand", []string{"stdio"}, map[string]string{"PATH": "/usr/bin:/bin"})
	}, Fail, "which is not on PATH", "run: codehand install gemini", reinstall},
	{"clients", "broken file", func(r *rig) { r.write("home/.gemini/settings.json", `{"mcpServers": {"codehand": `) },
		Warn, "cannot be read", "fix the file", reinstall},
	{"clients", "a root is gone", func(r *rig) {
		r.entry("gemini", r.machine.Program, []string{"stdio", "--log-file", "/x/y", r.at("src")}, nil)
	}, Fail, "its root", "create the directory", func(r *rig) { r.mkdir("src") }},
	{"clients", "stale PATH", func(r *rig) {
		r.entry("gemini", r.machine.Program, []string{"stdio"}, map[string]string{"PATH": "/usr/bin:/gone/bin"})
	}, Warn, "its PATH is not yours any more", "run: codehand install gemini", reinstall},
	{"clients", "starts another program", func(r *rig) { r.entry("gemini", r.at("sys/git"), []string{"stdio"}, nil) },
		Warn, "the entry codehand starts", "remove it", reinstall},
	{"clients", "two entries", func(r *rig) {
		r.entry("cursor", r.machine.Program, []string{"stdio"}, nil)
		r.entry("project", r.machine.Program, []string{"stdio"}, nil)
	}, Warn, "two entries of codehand", "run: codehand uninstall --project cursor",
		func(r *rig) { r.remove("ws/.cursor") }},
	{"clients", "not configured", func(r *rig) { r.mkdir("home/.gemini") }, Note, "not configured: gemini",
		"codehand install gemini", reinstall},
	{"clients", "not configured, and needs a directory", func(r *rig) { r.mkdir("home/.config/goose") }, Note,
		"not configured: goose", "codehand install goose DIRECTORY", func(r *rig) { r.remove("home/.config/goose") }},
	{"clients", "switched off", func(r *rig) {
		r.write("home/.cline/data/settings/cline_mcp_settings.json", `{"mcpServers": {"codehand": {"command": "`+
			r.machine.Program+`", "args": ["stdio"], "disabled": true}}}`)
	}, Note, "switched off", "switch the server on", func(r *rig) {
		r.write("home/.cline/data/settings/cline_mcp_settings.json", `{"mcpServers": {"codehand": {"command": "`+
			r.machine.Program+`", "args": ["stdio"]}}}`)
	}},
}

// reinstall does what codehand install gemini does.
func reinstall(r *rig) {
	r.Helper()
	if _, err := os.Stat(r.at("home/.gemini/settings.json")); err == nil {
		text, err := os.ReadFile(r.at("home/.gemini/settings.json"))
		r.must(err)
		if strings.HasSuffix(string(text), ": ") { // a person fixed it
			r.remove("home/.gemini/settings.json")
		}
	}
	change, err := install.Plan(install.Places{GOOS: "linux", Home: r.at("home"), Env: r.machine.getenv,
		State: r.at("state")}, "gemini", install.Want{Command: r.machine.Program, Foreign: true,
		Path: r.machine.getenv("PATH")})
	r.must(err)
	r.must(change.Apply(r.Context()))
}

var handshakeRemedies = []remedy{
	{"handshake", "silent", func(r *rig) {
		r.child("silent")
		r.system.patience.answer = time.Millisecond
	}, Fail, "tried twice: no answer", "if the machine is busy, run doctor again", func(r *rig) {
		r.child("good")
		r.system.patience.answer = time.Minute
	}},
	{"handshake", "does not end", func(r *rig) {
		r.child("stays")
		r.system.patience.exit = time.Millisecond
	}, Fail, "did not end", "run: codehand install gemini", func(r *rig) {
		r.child("good")
		r.system.patience.exit = time.Minute
	}},
	{"handshake", "slow", func(r *rig) {
		r.child("good")
		r.system.patience.slow = 0
	}, Warn, "which is slow", "scanner of viruses", func(r *rig) { r.system.patience.slow = time.Hour }},
	{"handshake", "another version", func(r *rig) { r.child("old") }, Warn, "version v1.0.0, this is " + testVersion,
		"run: codehand install gemini", func(r *rig) { r.child("good") }},
	{"handshake", "another server", func(r *rig) { r.child("other") }, Warn, "calls itself elsewhere",
		"run: codehand install gemini", func(r *rig) { r.child("good") }},
	{"handshake", "fails", func(r *rig) { r.child("fails") }, Fail,
		"exit code 3 before it listed its tools; its standard error: codehand: no such root", "by hand",
		func(r *rig) { r.child("good") }},
	{"handshake", "crashes", func(r *rig) { r.child("crashes") }, Fail, "ended with exit code 7", "by hand",
		func(r *rig) { r.child("good") }},
	{"handshake", "prints more", func(r *rig) { r.child("noisy") }, Fail, "not JSON-RPC", "by hand",
		func(r *rig) { r.child("good") }},
	{"handshake", "no tools", func(r *rig) { r.child("toolless") }, Fail, "it has no tools", "by hand",
		func(r *rig) { r.child("good") }},
	{"handshake", "one era only", func(r *rig) { r.child("legacy") }, Fail, "modern: it answered with error -32601",
		"run: codehand install gemini", func(r *rig) { r.child("good") }},
	{"handshake", "own settings", func(r *rig) { r.env(childMode, "fails") }, Fail, "legacy: it ended with exit code 3",
		"run codehand stdio by hand", func(r *rig) { r.env(childMode, "good") }},
	{"handshake", "an entry with no URL", func(r *rig) {
		r.write("home/.cursor/mcp.json", `{"mcpServers": {"codehand": {"url": "tools.example.com"}}}`)
	}, Fail, "not the URL of an endpoint", "correct the URL", func(r *rig) {
		r.entry("cursor", r.machine.Program, []string{"stdio"}, nil)
	}},
	{"handshake", "a project's entry with settings", func(r *rig) {
		r.entry("project", r.machine.Program, []string{"stdio"}, map[string]string{childMode: "crashes"})
	}, Note, "not started", "if you trust the project", func(r *rig) {
		r.entry("project", r.machine.Program, []string{"stdio"}, nil)
	}},
	{"handshake", "a program of the project in an entry of the user", func(r *rig) {
		r.trap("ws/node_modules/.bin/codehand")
		r.entry("cursor", "node_modules/.bin/codehand", []string{"stdio"}, nil)
	}, Note, "not started", "if you trust the project", func(r *rig) {
		if _, err := os.Stat(r.at("started")); err == nil {
			r.Error("it was started")
		}
		r.entry("cursor", r.machine.Program, []string{"stdio"}, nil)
	}},
	{"handshake", "a project's entry of another program", func(r *rig) {
		r.entry("project", r.trap("ws/evil"), []string{"stdio"}, nil)
	}, Note, "not started", "if you trust the project", func(r *rig) {
		if _, err := os.Stat(r.at("started")); err == nil {
			r.Error("it was started")
		}
		r.remove("ws/.cursor")
	}},
}

// TestTriedAgain: on a busy machine a good server answered too late, and was a FAIL.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	late := fmt.Errorf("%w within 5s", errNoAnswer)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		errs  []error // of each try
		tries int
		says  string // "": there is no error
	}{
		{"good", t.Context(), []error{nil}, 1, ""},
		{"late once", t.Context(), []error{late, nil}, 2, ""},
		{"late twice", t.Context(), []error{late, late}, 2, "tried twice: no answer within 5s"},
		{"late, then another fault", t.Context(), []error{late, errNoExit}, 2, "it did not end"},
		{"another fault", t.Context(), []error{errNoExit}, 1, "it did not end"},
		{"no time left", ended, []error{late}, 1, "no answer within 5s"},
	} {
		tries := 0
		_, err := again(c.ctx, func() (listing, error) {
			tries++
			return listing{}, c.errs[tries-1]
		})
		says := ""
		if err != nil {
			says = err.Error()
		}
		if says != c.says || tries != c.tries {
			t.Errorf("%s: %q after %d tries, want %q after %d", c.name, says, tries, c.says, c.tries)
		}
	}
}

// TestLaunch: an entry is started as its client starts it.
func TestLaunch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env("MY_API_KEY", "secret")
	r.env("LANG", "C")
	r.env("WHERE", "here")
	exe := r.machine.Program
	for _, c := range []struct {
		client    string
		entry     install.Entry
		dir       string
		args      []string
		has, lack []string // variables
		command   string
	}{
		{"claude-code", install.Entry{Command: "codehand", Args: []string{"stdio"}}, r.at("ws"), []string{"stdio"},
			[]string{"MY_API_KEY=secret", "LANG=C"}, nil, exe},
		{"claude-desktop", install.Entry{Command: exe, Args: []string{"stdio", r.at("ws")}}, "/",
			[]string{"stdio", r.at("ws")}, []string{"HOME=" + r.at("home")}, []string{"MY_API_KEY", "LANG"}, exe},
		{"gemini", install.Entry{Command: exe, Env: map[string]string{"A": "${WHERE}"}}, r.at("ws"), nil,
			[]string{"A=here", "LANG=C"}, []string{"MY_API_KEY"}, exe},
		{"codex", install.Entry{Command: exe}, r.at("ws"), nil, []string{"LANG=C"}, []string{"MY_API_KEY", "WHERE"}, exe},
		{"vscode", install.Entry{Command: exe, Args: []string{"stdio", "${workspaceFolder}", "${env:WHERE}", "${userHome}"}},
			r.at("ws"), []string{"stdio", r.at("ws"), "here", r.at("home")}, nil, nil, exe},
		{"zed", install.Entry{Command: "../bin/codehand", Dir: r.at("home")}, r.at("home"), nil, nil, nil,
			r.at("bin/codehand")},
		{"zed", install.Entry{Command: "nothing-of-this-name"}, r.at("home"), nil, nil, nil, ""},
	} {
		l := clientChecks{r.machine}.launch(install.Found{Client: c.client, Entry: &c.entry})
		if l.dir != c.dir || !slices.Equal(l.args, c.args) || l.command != c.command {
			t.Errorf("%s: %+v", c.client, l)
		}
		for _, v := range c.has {
			if !slices.Contains(l.env, v) {
				t.Errorf("%s has not %s: %q", c.client, v, l.env)
			}
		}
		for _, name := range c.lack {
			if value := valueOf(l.env, name); value != "" {
				t.Errorf("%s has %s=%s", c.client, name, value)
			}
		}
	}
}

// TestOneStart: clients that start the same are started once, and named together.
func TestOneStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.entry("gemini", r.machine.Program, []string{"stdio"}, nil)
	r.entry("cursor", r.machine.Program, []string{"stdio"}, nil)
	var texts []string
	for _, f := range r.find("handshake") {
		texts = append(texts, f.Text)
	}
	all := strings.Join(texts, "\n")
	if len(texts) != 4 || !strings.Contains(all, "cursor, gemini: legacy: 2 tools") {
		t.Errorf("%s", all)
	}
}

// TestOneClient: with a client named, only it is looked at, and that it is not there is a failure.
func TestOneClient(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.machine.Client = "gemini"
	r.write("home/.cursor/mcp.json", "broken")
	found := Run(t.Context(), r.machine.Checks())
	if !slices.ContainsFunc(found, func(f Finding) bool {
		return f.Level == Fail && strings.Contains(f.Text, "gemini is not installed") && strings.Contains(f.Fix, "codehand install gemini")
	}) {
		t.Errorf("%+v", found)
	}
	reinstall(r)
	found = Run(t.Context(), r.machine.Checks())
	if !green(found) || len(found) != 4 {
		t.Errorf("%+v", found)
	}
}
