package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/replaytest"
	"codehand/tools/tool"
)

// say tells the server what the operator says about principals.
func (x *httpSite) say(t *testing.T, named map[string]auth.Values) {
	t.Helper()
	must(t, x.server.Reload(config.Principals{Default: x.server.cfg.Principals.Default, Named: named}))
}

const (
	// retryTenant is how long a workspace that could not be made is not tried again.
	retryTenant = 5 * time.Second
	unavailable = "! WORKSPACE_UNAVAILABLE"
	writeA      = `{"file_path":"a.txt","content":"a\n"}`
)

// TestTemplates: {principal} becomes the directory of the calling principal, made 0700 at the first call; all
// principals share a root without it.
func TestTemplates(t *testing.T) {
	t.Parallel()
	base := leaktest.Dir(t)
	must(t, os.Mkdir(filepath.Join(base, "shared"), 0o755))
	roots := []string{filepath.Join(base, "w", "{principal}", "own"), filepath.Join(base, "shared")}
	const odd = "Eve/../alice"
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob", odd}, values: map[string]auth.Values{"alice": {Roots: roots}, "bob": {Roots: roots}, odd: {Roots: roots}}})
	if _, err := os.Lstat(filepath.Join(base, "w")); err == nil {
		t.Error("a workspace was made before anybody called")
	}
	shared := filepath.Join(base, "shared", "from.txt")
	for _, who := range []string{"alice", "bob", odd} {
		c := x.client(who).Hello()
		if got := c.Does("write_file", writeA); strings.HasPrefix(got, "!") {
			t.Errorf("%s: %s", who, got)
		}
		own := filepath.Join(base, "w", auth.Slug(who), "own")
		if _, err := os.Stat(filepath.Join(own, "a.txt")); err != nil {
			t.Errorf("%s works elsewhere: %v", who, err)
		}
		for dir := own; dir != base; dir = filepath.Dir(dir) {
			if info, err := os.Lstat(dir); err != nil || runtime.GOOS != "windows" && info.Mode() != fs.ModeDir|0o700 {
				t.Errorf("%s: %v, %v; want 0700", dir, info.Mode(), err)
			}
		}
		if got := c.Does("read_file", `{"file_path":"`+filepath.ToSlash(shared)+`"}`); who != "alice" && strings.HasPrefix(got, "!") {
			t.Errorf("%s does not see what alice shares: %s", who, got)
		}
		if who == "alice" {
			c.Does("write_file", `{"file_path":"`+filepath.ToSlash(shared)+`","content":"x\n"}`)
		}
	}
	for _, who := range []string{"bob", odd} {
		theirs := filepath.Join(base, "w", "alice", "own", "a.txt")
		if got := x.client(who).Hello().Does("read_file", `{"file_path":"`+filepath.ToSlash(theirs)+`"}`); !strings.HasPrefix(got, "! OUTSIDE_ROOTS") {
			t.Errorf("%s reads alice's file: %s", who, got)
		}
	}
}

// TestPrincipalsDirectory: the name of a principal's directory ended in 32 bits of a hash, so that a name chosen at an
// issuer got another person's. It has 128 now, the whole name is kept and compared, and a directory is carried over, but
// to no name for which nothing speaks.
func TestPrincipalsDirectory(t *testing.T) {
	t.Parallel()
	const ann, eve = "Ann Lee", "Eve Roe"
	x := serveHTTP(t, siteSetup{principals: []string{ann, eve}})
	workspaces := filepath.Join(x.data, "workspaces")
	old := filepath.Join(workspaces, auth.OldSlug(ann))
	must(t, os.MkdirAll(old, 0o700))
	must(t, os.WriteFile(filepath.Join(old, "kept.txt"), []byte("hers\n"), 0o600))
	if got := x.client(ann).Hello().Does("read_file", `{"file_path":"kept.txt"}`); !strings.Contains(got, "hers") {
		t.Errorf("what %s had is not carried over: %s", ann, got)
	}
	if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old directory: %v", err)
	}
	names := filepath.Join(x.data, "principals")
	if name, err := os.ReadFile(filepath.Join(names, auth.Slug(ann))); err != nil || string(name) != ann {
		t.Errorf("%q, %v", name, err)
	}
	must(t, os.WriteFile(filepath.Join(names, auth.Slug(eve)), []byte("Somebody Else"), 0o600))
	if got := x.client(eve).Hello().Does("write_file", writeA); !strings.HasPrefix(got, "! WORKSPACE_UNAVAILABLE") {
		t.Errorf("%s got the directory of another one: %s", eve, got)
	}
	if _, err := os.Lstat(filepath.Join(workspaces, auth.Slug(eve))); err == nil {
		t.Error("the directory was made all the same")
	}
}

// seedDir makes a seed with files, modes and links.
func seedDir(t *testing.T) string {
	t.Helper()
	dir := leaktest.Dir(t)
	must(t, os.MkdirAll(filepath.Join(dir, "bin", "deep"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "README"), []byte("read me\n"), 0o640))
	must(t, os.WriteFile(filepath.Join(dir, "bin", "tool"), []byte("#!/bin/sh\n"), 0o755))
	return dir
}

// TestSeed: a new workspace begins as a copy of the seed, with modes and the links that stay inside. One that exists is
// left alone.
func TestSeed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes and links are those of Unix")
	}
	seed := seedDir(t)
	secret := filepath.Join(leaktest.Dir(t), "secret")
	must(t, os.WriteFile(secret, []byte("x"), 0o600))
	for name, target := range map[string]string{
		"bin/inside": "../README", "to-dir": "bin", "dangling": "nothing", "absolute": secret, "up": "../" + filepath.Base(filepath.Dir(secret)) + "/secret",
		"bin/deep/up": "../../../x", "itself": filepath.Join(seed, "README"),
	} {
		must(t, os.Symlink(target, filepath.Join(seed, name)))
	}
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}})
	x.say(t, map[string]auth.Values{"alice": {Seed: &seed}, "bob": {Seed: &seed}})
	theirs := filepath.Join(x.data, "workspaces", "bob")
	must(t, os.MkdirAll(theirs, 0o700))
	for _, who := range []string{"alice", "bob"} {
		if got := x.client(who).Hello().Does("write_file", writeA); strings.HasPrefix(got, "!") {
			t.Fatalf("%s: %s", who, got)
		}
	}
	root := filepath.Join(x.data, "workspaces", "alice")
	got := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if got[rel] = info.Mode().String(); info.Mode()&fs.ModeSymlink != 0 {
			got[rel], err = os.Readlink(path)
		}
		return err
	}))
	delete(got, "a.txt")
	want := map[string]string{
		"README": "-rw-r-----", "bin": "drwxr-xr-x", "bin/tool": "-rwxr-xr-x", "bin/deep": "drwxr-xr-x",
		"bin/inside": "../README", "to-dir": "bin", "dangling": "nothing",
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s is %q, want %q", name, got[name], want[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("this was copied, too: %v", got)
	}
	if entries, err := os.ReadDir(theirs); err != nil || len(entries) != 1 {
		t.Errorf("a workspace that was there has %v: %v", entries, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(root)); err != nil || len(entries) != 2 {
		t.Errorf("beside the workspaces is %v: %v", entries, err)
	}
	// The second call of a principal, and a restart, copy nothing again.
	must(t, os.Remove(filepath.Join(root, "README")))
	again := x.again(t, siteSetup{principals: []string{"alice", "bob"}})
	again.say(t, map[string]auth.Values{"alice": {Seed: &seed}})
	if got := again.client("alice").Hello().Does("read_file", `{"file_path":"README"}`); !strings.HasPrefix(got, "! FILE_NOT_FOUND") {
		t.Errorf("after a restart a file of the seed is back: %s", got)
	}
}

// TestBrokenSeed: a seed that cannot be copied whole leaves no workspace behind, and it is tried again after 5 s. Half of
// one was served then, without a word.
func TestBrokenSeed(t *testing.T) {
	t.Parallel()
	seed := seedDir(t)
	big := filepath.Join(seed, "m.bin")
	f, err := os.Create(big)
	must(t, err)
	must(t, f.Truncate(1<<30+1)) // takes no room
	must(t, f.Close())
	must(t, os.WriteFile(filepath.Join(seed, "zz.txt"), []byte("last\n"), 0o600))
	var log replaytest.LockedBuffer
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}, log: &log})
	now := time.Now()
	x.server.team.Tenants.Now = func() time.Time { return now }
	x.say(t, map[string]auth.Values{"alice": {Seed: &seed}})
	workspaces := filepath.Join(x.data, "workspaces")
	must(t, os.MkdirAll(filepath.Join(workspaces, ".alice.seed", "left"), 0o700)) // by a crash
	c := x.client("alice").Hello()
	for range 3 {
		if got := c.Does("list_files", `{"pattern":"**"}`); !strings.HasPrefix(got, unavailable) {
			t.Errorf("with a seed that is too large: %s", got)
		}
		if entries, err := os.ReadDir(workspaces); err != nil || len(entries) > 0 {
			t.Errorf("it left %v: %v", entries, err)
		}
		now = now.Add(retryTenant)
	}
	if !strings.Contains(log.String(), "seed") || !strings.Contains(log.String(), "principal=alice") {
		t.Errorf("the log does not say what is wrong: %s", log.String())
	}
	must(t, os.Remove(big))
	if got := c.Does("list_files", `{"pattern":"**"}`); !strings.Contains(got, "zz.txt") || !strings.Contains(got, "README") || strings.Contains(got, "left") {
		t.Errorf("after the seed was mended: %s", got)
	}
}

// TestRootsApart: roots of two principals are the same or have nothing in common.
func TestRootsApart(t *testing.T) {
	t.Parallel()
	base := leaktest.Dir(t)
	at := func(path string) string { return filepath.Join(base, filepath.FromSlash(path)) }
	for _, dir := range []string{"one/sub", "one-more", "two", "real/sub"} {
		must(t, os.MkdirAll(at(dir), 0o755))
	}
	links := os.Symlink(at("real/sub"), at("link")) == nil
	for name, test := range map[string]struct {
		alice, bob []string
		refused    bool
		linked     bool
	}{
		"the same":                {alice: []string{"one"}, bob: []string{"one"}},
		"apart":                   {alice: []string{"one"}, bob: []string{"two"}},
		"a longer name":           {alice: []string{"one"}, bob: []string{"one-more"}},
		"inside":                  {alice: []string{"one"}, bob: []string{"one/sub"}, refused: true},
		"around":                  {alice: []string{"one/sub"}, bob: []string{"one"}, refused: true},
		"deep inside, to be made": {alice: []string{"one"}, bob: []string{"one/new/deep"}, refused: true},
		"one of several":          {alice: []string{"two", "one"}, bob: []string{"one-more", "one/sub"}, refused: true},
		"one the same, one not":   {alice: []string{"one", "two"}, bob: []string{"one", "two/sub"}, refused: true},
		"inside by a link":        {alice: []string{"real"}, bob: []string{"link"}, refused: true, linked: true},
		"around by a link":        {alice: []string{"link"}, bob: []string{"real"}, refused: true, linked: true},
		"the same by a link":      {alice: []string{"real/sub"}, bob: []string{"link"}, linked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.linked && !links {
				t.Skip("links cannot be made here")
			}
			all := func(paths []string) (roots []string) {
				for _, p := range paths {
					roots = append(roots, at(p))
				}
				return roots
			}
			x := serveHTTP(t, siteSetup{
				principals: []string{"alice", "bob"},
				values:     map[string]auth.Values{"alice": {Roots: all(test.alice)}, "bob": {Roots: all(test.bob)}},
			})
			list := `{"pattern":"*"}`
			if got := x.client("alice").Hello().Does("list_files", list); strings.HasPrefix(got, "!") {
				t.Fatalf("alice, who comes first: %s", got)
			}
			if got := x.client("bob").Hello().Does("list_files", list); strings.HasPrefix(got, unavailable) != test.refused || strings.HasPrefix(got, "!") != test.refused {
				t.Errorf("bob: %s; want refused: %v", got, test.refused)
			}
			if got := x.client("alice").Hello().Does("list_files", list); strings.HasPrefix(got, "!") {
				t.Errorf("alice afterwards: %s", got)
			}
		})
	}
}

// TestSharedRootIsEverybodys: who shares a root with another one cannot have a part of it for himself. The last who came
// counted as its owner.
func TestSharedRootIsEverybodys(t *testing.T) {
	t.Parallel()
	base := leaktest.Dir(t)
	must(t, os.MkdirAll(filepath.Join(base, "shared", "sub"), 0o755))
	shared, sub := []string{filepath.Join(base, "shared")}, []string{filepath.Join(base, "shared", "sub")}
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}, values: map[string]auth.Values{"alice": {Roots: shared}, "bob": {Roots: shared}}})
	_, text, err := auth.OpenTokenFile(x.server.cfg.TokenFile()).New(auth.Token{Principal: "bob", Values: auth.Values{Roots: sub}})
	must(t, err)
	x.say(t, nil)
	for _, who := range []string{"alice", "bob"} {
		if got := x.client(who).Hello().Does("list_files", `{"pattern":"*"}`); strings.HasPrefix(got, "!") {
			t.Fatalf("%s: %s", who, got)
		}
	}
	other := x.client("bob")
	other.Token = text
	if got := other.Hello().Does("list_files", `{"pattern":"*"}`); !strings.HasPrefix(got, unavailable) {
		t.Errorf("bob in a part of alice's root: %s", got)
	}
}

// TestMovedRoots: after the operator has moved a principal, what was its root may be another's. It was its for ever.
func TestMovedRoots(t *testing.T) {
	t.Parallel()
	base := leaktest.Dir(t)
	for _, dir := range []string{"a/sub", "b"} {
		must(t, os.MkdirAll(filepath.Join(base, filepath.FromSlash(dir)), 0o755))
	}
	in := func(dir string) auth.Values {
		return auth.Values{Roots: []string{filepath.Join(base, filepath.FromSlash(dir))}}
	}
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}})
	now := time.Now()
	x.server.team.Tenants.Now = func() time.Time { return now }
	list := `{"pattern":"*"}`
	x.say(t, map[string]auth.Values{"alice": in("a"), "bob": in("a/sub")})
	alice, bob := x.client("alice").Hello(), x.client("bob").Hello()
	if got := alice.Does("list_files", list); strings.HasPrefix(got, "!") {
		t.Fatalf("alice: %s", got)
	}
	if got := bob.Does("list_files", list); !strings.HasPrefix(got, unavailable) {
		t.Fatalf("bob in a part of alice's root: %s", got)
	}
	x.say(t, map[string]auth.Values{"alice": in("b"), "bob": in("a/sub")})
	now = now.Add(retryTenant)
	for name, c := range map[string]*replaytest.HTTPClient{"alice": alice, "bob": bob} { // in the sessions that they have
		if got := c.Does("list_files", list); strings.HasPrefix(got, "!") {
			t.Errorf("%s, after alice was moved: %s", name, got)
		}
	}
}

// TestBrokenWorkspace: a client whose workspace cannot be served gets on with it as far as that goes, each of its calls is
// refused with a code, and 5 s after the operator has mended it all is well.
func TestBrokenWorkspace(t *testing.T) {
	t.Parallel()
	var log replaytest.LockedBuffer
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}, log: &log})
	now := time.Now()
	x.server.team.Tenants.Now = func() time.Time { return now }
	root := filepath.Join(x.data, "workspaces", "alice")
	must(t, os.MkdirAll(filepath.Dir(root), 0o700))
	must(t, os.WriteFile(root, []byte("in the way"), 0o600))
	c := x.client("alice").Hello()
	broken := c.Listed()
	if healthy := x.client("bob").Hello().Listed(); len(broken) == 0 || !slices.Equal(broken, healthy) {
		t.Errorf("tools/list shows %v, where bob gets %v", broken, healthy)
	}
	for name, args := range map[string]string{
		"list_files": `{"pattern":"*"}`, "read_file": `{"file_path":"a.txt"}`, "write_file": writeA, "grep_search": `{"pattern":"x"}`,
	} {
		got := c.Call("1", name, args, "")
		if text, failed := got.Text(); !failed || !strings.HasPrefix("! "+text, unavailable) || !strings.Contains(got.Answer, `"code":"WORKSPACE_UNAVAILABLE"`) {
			t.Errorf("%s: %s", name, got.Answer)
		}
		if strings.Contains(got.Answer, x.data) {
			t.Errorf("%s tells a path of the server: %s", name, got.Answer)
		}
	}
	modern := x.client("alice").Of2026()
	if text, failed := modern.Call("1", "list_files", `{"pattern":"*"}`, "").Text(); !failed || !strings.HasPrefix("! "+text, unavailable) {
		t.Errorf("modern: %s", text)
	}
	if n := strings.Count(log.String(), "a workspace cannot be served"); n != 1 || !strings.Contains(log.String(), "is not a directory") {
		t.Errorf("the log says so %d times in 5 s: %s", n, log.String())
	}
	if got := x.client("bob").Hello().Does("write_file", writeA); strings.HasPrefix(got, "!") {
		t.Errorf("bob: %s", got)
	}

	must(t, os.Remove(root))
	now = now.Add(retryTenant - 1)
	if got := c.Does("write_file", writeA); !strings.HasPrefix(got, unavailable) {
		t.Errorf("tried again before 5 s are over: %s", got)
	}
	now = now.Add(1)
	if got := c.Does("write_file", writeA); strings.HasPrefix(got, "!") {
		t.Errorf("after it was mended: %s", got)
	}
}

// TestLinksOnTheWay: what is missing on the way to a root is made without following a link, so a user who may write
// above it cannot choose where it lies.
func TestLinksOnTheWay(t *testing.T) {
	t.Parallel()
	base, elsewhere := leaktest.Dir(t), leaktest.Dir(t)
	if err := os.Symlink(filepath.Join(elsewhere, "new"), filepath.Join(base, "out")); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	must(t, os.Symlink("nothing", filepath.Join(base, "dangling")))
	must(t, os.Symlink("loop", filepath.Join(base, "loop")))
	must(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	for _, root := range []string{"out", "out/deep", "out/deep/er", "dangling", "dangling/deep", "loop", "loop/deep", "file", "file/deep"} {
		for _, seeded := range []bool{false, true} {
			name := root
			if seeded {
				name += ", with a seed"
			}
			t.Run(name, func(t *testing.T) {
				x := serveHTTP(t, siteSetup{principals: []string{"alice"}, values: map[string]auth.Values{"alice": {Roots: []string{filepath.Join(base, filepath.FromSlash(root))}}}})
				if seeded {
					seed := seedDir(t)
					x.say(t, map[string]auth.Values{"alice": {Seed: &seed}})
				}
				if got := x.client("alice").Hello().Does("write_file", writeA); !strings.HasPrefix(got, unavailable) {
					t.Errorf("got %s", got)
				}
				if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
					t.Errorf("behind the link there is %v: %v", entries, err)
				}
				if _, err := os.Stat(filepath.Join(base, "nothing")); err == nil {
					t.Error("the target of a link to nothing was made")
				}
			})
		}
	}
}

// TestScopes: a tool that needs a scope which the token lacks is not listed, and refused with SCOPE_MISSING.
func TestScopes(t *testing.T) {
	t.Parallel()
	readers := auth.Values{Scopes: []string{"mcp:read"}}
	x := serveHTTP(t, siteSetup{
		principals: []string{"reader", "writer", "nobody", "everything"}, settings: map[string]string{"sandbox.policy": "off", "permissions.ask_fallback": "client"},
		values: map[string]auth.Values{"reader": readers, "writer": {Scopes: []string{"mcp:read", "mcp:write"}}, "nobody": {Scopes: []string{}}},
	})
	calls := map[tool.Scope][2]string{
		tool.ScopeRead:  {"list_files", `{"pattern":"*"}`},
		tool.ScopeWrite: {"write_file", writeA},
		tool.ScopeShell: {"run_shell", `{"command":"echo x > shell.txt"}`},
	}
	for who, may := range map[string][]tool.Scope{
		"reader": {tool.ScopeRead}, "writer": {tool.ScopeRead, tool.ScopeWrite}, "nobody": nil, "everything": {tool.ScopeRead, tool.ScopeWrite, tool.ScopeShell},
	} {
		c := x.client(who).Hello()
		listed := c.Listed()
		for _, s := range x.server.engines.Tools.All() {
			if scope := s.Spec.Scope; !slices.Contains(may, scope) && slices.Contains(listed, s.Spec.Name) {
				t.Errorf("%s is shown %s", who, s.Spec.Name)
			}
		}
		for scope, call := range calls {
			if slices.Contains(listed, call[0]) != slices.Contains(may, scope) {
				t.Errorf("%s is listed for %s: %v", call[0], who, slices.Contains(listed, call[0]))
			}
			if runtime.GOOS == "windows" && scope == tool.ScopeShell && slices.Contains(may, scope) {
				continue
			}
			if got := c.Does(call[0], call[1]); strings.HasPrefix(got, "! SCOPE_MISSING") == slices.Contains(may, scope) || strings.HasPrefix(got, "!") == slices.Contains(may, scope) {
				t.Errorf("%s calls %s: %s", who, call[0], got)
			}
		}
		if len(listed) == 0 != (may == nil) {
			t.Errorf("%s is shown %v", who, listed)
		}
	}
	for who, want := range map[string]bool{"reader": false, "nobody": false, "writer": true} {
		if _, err := os.Stat(filepath.Join(x.data, "workspaces", who, "a.txt")); (err == nil) != want {
			t.Errorf("%s's file: %v", who, err)
		}
	}
}

// TestReadonlyProfile: with the profile readonly nothing that changes something is listed or runs, by its name, an alias
// or a dispatcher, which only leads to the rest.
func TestReadonlyProfile(t *testing.T) {
	t.Parallel()
	readonly := "readonly"
	x := serveHTTP(t, siteSetup{
		principals: []string{"alice"}, values: map[string]auth.Values{"alice": {Profile: &readonly}},
		settings: map[string]string{"sandbox.policy": "off", "permissions.ask_fallback": "client"},
	})
	c := x.client("alice").Hello()
	listed := c.Listed()
	for _, s := range x.server.engines.Tools.All() {
		if s.Dispatches() {
			continue
		}
		if !s.Spec.Traits.ReadOnly && slices.Contains(listed, s.Spec.Name) {
			t.Errorf("%s is listed", s.Spec.Name)
		}
		for _, name := range append([]string{s.Spec.Name}, s.Spec.Aliases...) {
			for _, got := range []string{c.Does(name, "{}"), c.Does("call_tool", `{"name":"`+name+`"}`)} {
				if !s.Spec.Traits.ReadOnly && !strings.HasPrefix(got, "! TOOL_DISABLED: "+s.Spec.Name+" ") {
					t.Errorf("%s: %s", name, got)
				}
			}
		}
	}
	if got := c.Does("call_tool", `{"name":"list_files","arguments":{"pattern":"*"}}`); strings.HasPrefix(got, "!") || !slices.Contains(listed, "call_tool") {
		t.Errorf("list_files through call_tool: %s", got)
	}
	if got := c.Does("list_files", `{"pattern":"*"}`); strings.HasPrefix(got, "!") || !slices.Contains(listed, "list_files") {
		t.Errorf("list_files: %s", got)
	}
}

// TestTokenRights: two tokens of one principal have their own rules and modes over the same workspace.
func TestTokenRights(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	file := auth.OpenTokenFile(x.server.cfg.TokenFile())
	mint := func(v auth.Values) *replaytest.HTTPClient {
		t.Helper()
		_, text, err := file.New(auth.Token{Principal: "alice", Values: v})
		must(t, err)
		must(t, x.server.Reload(x.server.cfg.Principals))
		c := x.client("alice")
		c.Token = text
		return c.Hello()
	}
	full := x.client("alice").Hello()
	for _, path := range []string{"open.txt", "secret/key.txt", "sub/secret/key.txt"} {
		if got := full.Does("write_file", `{"file_path":"`+path+`","content":"words\n"}`); strings.HasPrefix(got, "!") {
			t.Fatal(got)
		}
	}
	read := func(path string) string { return `{"file_path":"` + path + `"}` }
	plan := "plan"

	denied := mint(auth.Values{Deny: []string{"Read(/secret/**)", "grep_search"}})
	if got := denied.Does("read_file", read("secret/key.txt")); !strings.HasPrefix(got, "! PERMISSION_DENIED") {
		t.Errorf("a denied path: %s", got)
	}
	if got := denied.Does("write_file", `{"file_path":"secret/new.txt","content":"x\n"}`); !strings.HasPrefix(got, "! PERMISSION_DENIED") {
		t.Errorf("a new file at a denied path: %s", got)
	}
	for _, path := range []string{"open.txt", "sub/secret/key.txt"} {
		if got := denied.Does("read_file", read(path)); strings.HasPrefix(got, "!") {
			t.Errorf("%s, which the rule does not name: %s", path, got)
		}
	}
	if got := denied.Does("grep_search", `{"pattern":"words"}`); !strings.HasPrefix(got, "!") || slices.Contains(denied.Listed(), "grep_search") {
		t.Errorf("a tool that is denied: %s", got)
	}

	planned := mint(auth.Values{Mode: &plan, MaxMode: &plan})
	if got := planned.Does("write_file", writeA); !strings.HasPrefix(got, "! PLAN_MODE") {
		t.Errorf("a change in plan mode: %s", got)
	}
	if got := planned.Does("read_file", read("secret/key.txt")); strings.HasPrefix(got, "!") {
		t.Errorf("reading in plan mode: %s", got)
	}

	for name, args := range map[string]string{"read_file": read("secret/key.txt"), "write_file": writeA, "grep_search": `{"pattern":"words"}`} {
		if got := full.Does(name, args); strings.HasPrefix(got, "!") {
			t.Errorf("the token without rules, %s: %s", name, got)
		}
	}
	// The session of one token, used with another, has the rights of that other.
	borrowed := *full
	borrowed.Token = planned.Token
	if got := borrowed.Does("write_file", writeA); !strings.HasPrefix(got, "! PLAN_MODE") {
		t.Errorf("with the session of the stronger token: %s", got)
	}
	borrowed.Token = denied.Token
	if got := borrowed.Does("read_file", read("secret/key.txt")); !strings.HasPrefix(got, "! PERMISSION_DENIED") {
		t.Errorf("with the session of the stronger token: %s", got)
	}
}

// TestRulesBehindLinks: a rule that begins at the root holds there also if the root is named by a link.
func TestRulesBehindLinks(t *testing.T) {
	t.Parallel()
	base := leaktest.Dir(t)
	must(t, os.MkdirAll(filepath.Join(base, "real", "secret"), 0o755))
	must(t, os.WriteFile(filepath.Join(base, "real", "secret", "key.txt"), []byte("words\n"), 0o600))
	link := filepath.Join(base, "link")
	if err := os.Symlink(filepath.Join(base, "real"), link); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}, values: map[string]auth.Values{"alice": {Roots: []string{link}, Deny: []string{"Read(/secret/**)"}}}})
	c := x.client("alice").Hello()
	for _, path := range []string{"secret/key.txt", filepath.Join(link, "secret", "key.txt"), filepath.Join(base, "real", "secret", "key.txt")} {
		if got := c.Does("read_file", `{"file_path":"`+filepath.ToSlash(path)+`"}`); !strings.HasPrefix(got, "! PERMISSION_DENIED") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestRulesOfSeveralRoots: what the operator says about a principal, or about all, with a `/` in front holds in each root
// that the principal has, and not only in the first; a bare name, too.
func TestRulesOfSeveralRoots(t *testing.T) {
	t.Parallel()
	own, shared := leaktest.Dir(t), leaktest.Dir(t)
	x := serveHTTP(t, siteSetup{
		principals: []string{"alice", "bob"},
		settings:   map[string]string{"permissions.deny": "Edit(/closed/**)"},
		values:     map[string]auth.Values{"alice": {Roots: []string{own, shared}, Deny: []string{"Edit(/migrations/**)"}}},
	})
	alice, bob := x.client("alice").Hello(), x.client("bob").Hello()
	write := func(c *replaytest.HTTPClient, path string) string {
		return c.Does("write_file", `{"file_path":"`+filepath.ToSlash(path)+`","content":"x"}`)
	}
	for _, root := range []string{own, shared} {
		for path, rule := range map[string]string{"migrations/a.sql": "Edit(/migrations/**)", "closed/a": "Edit(/closed/**)", "deep/migrations/a.sql": ""} {
			got := write(alice, filepath.Join(root, path))
			if strings.HasPrefix(got, "!") != (rule != "") || !strings.Contains(got, rule) {
				t.Errorf("alice writes %s in %s: %s, want %q", path, root, got, rule)
			}
		}
	}
	for path, denied := range map[string]bool{"migrations/a.sql": false, "closed/a": true} {
		if got := write(bob, path); strings.HasPrefix(got, "!") != denied {
			t.Errorf("bob writes %s: %s", path, got)
		}
	}
}

// TestRulesOfNarrowTokens: a token that has a part of its principal's roots lifts no rule about what is in that part.
func TestRulesOfNarrowTokens(t *testing.T) {
	t.Parallel()
	own := leaktest.Dir(t)
	part := filepath.Join(own, "part")
	must(t, os.MkdirAll(filepath.Join(part, "secret"), 0o700))
	must(t, os.WriteFile(filepath.Join(part, "secret", "a"), []byte("words\n"), 0o600))
	x := serveHTTP(t, siteSetup{
		principals: []string{"alice"},
		settings:   map[string]string{"permissions.deny": "Edit(/part/closed/**)"},
		values:     map[string]auth.Values{"alice": {Roots: []string{part}}},
	})
	said := x.server.cfg.Principals
	said.Named = map[string]auth.Values{"alice": {Roots: []string{own}, Deny: []string{"Read(/part/secret/**)", "Edit(/kept/**)"}}}
	must(t, x.server.Reload(said))
	alice := x.client("alice").Hello()
	for path, denied := range map[string]bool{"closed/a": true, "kept/a": true, "secret/b": true, "part/secret/b": true, "deep/kept/a": false} {
		if got := alice.Does("write_file", `{"file_path":"`+path+`","content":"x"}`); strings.HasPrefix(got, "! PERMISSION_DENIED") != denied {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := alice.Does("read_file", `{"file_path":"secret/a"}`); !strings.HasPrefix(got, "! PERMISSION_DENIED") {
		t.Error(got)
	}
}

// TestIdleRulesAreTold: a rule of a principal that can match nothing is in the log, once for its tenant. One for all
// principals may be about the files of another one.
func TestIdleRulesAreTold(t *testing.T) {
	t.Parallel()
	var log replaytest.LockedBuffer
	own := leaktest.Dir(t)
	x := serveHTTP(t, siteSetup{
		principals: []string{"alice", "bob"}, log: &log,
		settings: map[string]string{"permissions.deny": "Edit(//" + strings.TrimPrefix(filepath.ToSlash(own), "/") + "/kept/**)"},
		values:   map[string]auth.Values{"alice": {Roots: []string{own}, Deny: []string{"Edit(//nowhere/**)", "Edit(/fine/**)", "Read(~/x)"}}},
	})
	for _, name := range []string{"alice", "bob", "alice"} {
		x.client(name).Hello().Does("read_file", `{"file_path":"a"}`)
	}
	var got []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "check a rule: ") {
			got = append(got, line)
		}
	}
	want := []string{"/nowhere lies outside the roots, and no commands run here", "lies outside the roots, and no commands run here"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i, line := range got {
		if !strings.Contains(line, want[i]) {
			t.Errorf("got %q, want %q", line, want[i])
		}
	}
}

// TestReloadKeepsTenants: a principal with unchanged rights goes on where it was, with its running jobs.
func TestReloadKeepsTenants(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}, settings: map[string]string{"sandbox.policy": "off", "permissions.ask_fallback": "client"}})
	alice := x.client("alice").Hello()
	said := alice.Does("run_shell", `{"command":"sleep 600","run_in_background":true}`)
	at := strings.Index(said, "job_")
	if at < 0 {
		t.Fatal(said)
	}
	job := said[at : at+len("job_aaaaaaaaaaaa")]
	must(t, x.server.Reload(x.server.cfg.Principals))
	if got := alice.Does("job_stop", `{"job_id":"`+job+`"}`); strings.HasPrefix(got, "!") || !strings.Contains(got, "Stopped job") {
		t.Errorf("job_stop after a reload: %s", got)
	}
}

// TestRulesOfPrincipals: what the rules of a principal ask and allow holds for him, beside those of the operator, and a rule
// that allows never lifts one that denies, a protected name or what is ours.
func TestRulesOfPrincipals(t *testing.T) {
	t.Parallel()
	mode := "default"
	x := serveHTTP(t, siteSetup{
		principals: []string{"alice", "bob"},
		values: map[string]auth.Values{
			"alice": {Mode: &mode, Allow: []string{"Edit(/src/**)", "Edit(*.txt)"}, Deny: []string{"Edit(/src/closed/**)"}},
			"bob":   {Mode: &mode},
		},
	})
	alice, bob := x.client("alice").Hello(), x.client("bob").Hello()
	write := func(c *replaytest.HTTPClient, path string) string {
		return c.Does("write_file", `{"file_path":"`+filepath.ToSlash(path)+`","content":"x"}`)
	}
	for path, want := range map[string]string{
		"src/a.go": "", "deep/b.txt": "", "src/closed/a.go": "! PERMISSION_DENIED", "src/.git/config": "! ASK_UNAVAILABLE", "other.go": "! ASK_UNAVAILABLE",
	} {
		if got := write(alice, path); want == "" && strings.HasPrefix(got, "!") || !strings.HasPrefix(got, want) {
			t.Errorf("alice writes %s: %s, want %q", path, got, want)
		}
		if got := write(bob, path); !strings.HasPrefix(got, "! ASK_UNAVAILABLE") {
			t.Errorf("bob writes %s: %s", path, got)
		}
	}
}

// TestSessionsOfGrants: two clients of one person shared a session where they named none or the same one, so that what
// was allowed to one read what the other one kept and overwrote its tasks.
func TestSessionsOfGrants(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	_, narrow, err := auth.OpenTokenFile(filepath.Join(x.data, "tokens.jsonl")).New(auth.Token{Principal: "alice"})
	must(t, err)
	must(t, x.server.Reload(x.server.cfg.Principals))
	const todos = `{"todos":[{"content":"secret plan","status":"pending","activeForm":"Planning"}]}`
	kept := func(c *replaytest.HTTPClient) string {
		if c.Modern {
			c.Extra = map[string]string{"Mcp-Name": "codehand://todos"}
			defer func() { c.Extra = nil }()
		}
		_, result := c.Ask(t, "resources/read", map[string]any{"uri": "codehand://todos"})
		return string(result)
	}
	for name, set := range map[string]func(c *replaytest.HTTPClient){
		"no session": func(c *replaytest.HTTPClient) { c.Modern = true },
		"transport":  func(c *replaytest.HTTPClient) { c.Hello() },
		"handle":     func(c *replaytest.HTTPClient) { c.Modern, c.URL = true, x.url+"/mcp/s/handle-one" },
	} {
		wide := x.client("alice")
		set(wide)
		if got := wide.Does("todo_write", todos); strings.HasPrefix(got, "!") {
			t.Fatalf("%s: %s", name, got)
		}
		other := *wide
		other.Token = narrow
		if got := kept(&other); strings.Contains(got, "secret plan") {
			t.Errorf("%s: another token reads %s", name, got)
		}
		if got := other.Does("todo_write", `{"todos":[]}`); strings.HasPrefix(got, "!") {
			t.Errorf("%s: the other token works no more: %s", name, got)
		}
		if got := kept(wide); !strings.Contains(got, "secret plan") {
			t.Errorf("%s: another token changed it to %s", name, got)
		}
	}
}
