package engines

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/server/config"
)

// Tokens go with the requests of the principal whose they are, and of nobody else.
func TestTokensOfPrincipals(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	e := &Set{Dir: t.TempDir()}
	m := config.Mount{Name: "web", At: config.MountAddress{URL: server.URL, OAuth: "login"}}
	keep := func(principal, token string) {
		g, err := Grant(m, e.Dir, principal)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(g.Store), 0o700)
		}
		if err == nil {
			err = os.WriteFile(g.Store, fmt.Appendf(nil, `{"url":%q,"client_id":"x","token":{"access_token":%q}}`, m.At.URL, token), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	keep("", "of-local")
	keep("alice", "of-alice")
	for principal, want := range map[string]string{"": "Bearer of-local", "local": "Bearer of-local", "alice": "Bearer of-alice", "bob": "none", "../alice": "none"} {
		through, err := signed(e, m, principal)
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if through != nil {
			resp, err := (&http.Client{Transport: through}).Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			got = string(raw)
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", principal, got, want)
		}
	}
}

// A server that runs with all rights started in the workspace. There `npx` runs the program of node_modules, and python
// imports what it finds: a command had only to leave it there.
func TestServersStartElsewhere(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"home/ws", "tools/bin", "own"} {
		if err := os.MkdirAll(in(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	top := filepath.VolumeName(dir) + string(filepath.Separator)
	for name, c := range map[string]struct {
		cwd       string
		confined  bool
		root      string
		want, why string
	}{
		"usual":             {root: "home/ws", want: in("home")},
		"confined":          {confined: true, root: "home/ws", want: in("home/ws")},
		"named":             {cwd: in("own"), root: "home/ws", want: in("own")},
		"the home is open":  {root: "home", want: top},
		"and what holds it": {root: "", want: top},
		"named, and gone":   {cwd: in("gone"), root: "home/ws", why: "its working directory " + in("gone") + " is no directory"},
	} {
		o := Options{Config: config.Config{Home: in("home")}}
		m := config.Mount{Name: "x", Program: config.MountProgram{Argv: []string{"x"}, Cwd: c.cwd}, Sandbox: c.confined}
		got, err := o.reach(m, []string{in(c.root)})
		if why := fmt.Sprint(err); got.Command.Dir != c.want || c.why != "" && why != c.why || c.why == "" && err != nil {
			t.Errorf("%s: starts in %q, want %q: %v", name, got.Command.Dir, c.want, err)
		}
	}
}

// Programs that run with all rights are looked for where no command writes, also outside of the roots.
func TestNoProgramsOfCommands(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"ws", "tools/bin", "own/bin"} {
		if err := os.MkdirAll(in(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", in("tools/bin")+string(filepath.ListSeparator)+in("own/bin"))
	o := Options{Config: config.Config{Home: dir, Sandbox: config.Sandbox{Writable: []string{in("tools")}}}}
	to, err := o.reach(config.Mount{Name: "x", Program: config.MountProgram{Argv: []string{"x"}}}, []string{in("ws")})
	if err != nil {
		t.Fatal(err)
	}
	agents := agentCommand(handed{roots: func() []string { return []string{in("ws")} }}, o)
	for what, env := range map[string][]string{"servers": to.Command.Env, "agents": agents.Env()} {
		if i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }); env[i] != "PATH="+in("own/bin") {
			t.Errorf("%s have %s", what, env[i])
		}
	}
}
