package config

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/tools/permission"
)

// managed writes the administrator's file, which belongs to the user who runs the test.
func (w *world) managed(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the administrator's file is refused on Windows")
	}
	w.ManagedFile, w.managedBy = w.write(t, "etc/managed.toml", text), os.Geteuid()
	return w.ManagedFile
}

// What the administrator fixed holds, and who says something different reads where both stand.
func TestManagedIsFixed(t *testing.T) {
	for name, c := range map[string]struct {
		managed, user, flag, value, env, want string
	}{
		"flag":      {"permissions.mode = 'default'", "", "permissions-mode", "acceptEdits", "", "flag --permissions-mode: permissions.mode: acceptEdits is not allowed: MANAGED:1:1 fixes it at default"},
		"stricter":  {"permissions.mode = 'acceptEdits'", "", "permissions-mode", "plan", "", "MANAGED:1:1 fixes it at acceptEdits"},
		"same":      {"permissions.mode = 'plan'", "permissions.mode = 'plan'", "permissions-mode", "plan", "", ""},
		"env":       {"shell.enabled = false", "", "", "", "CODEHAND_SHELL_ENABLED=true", "CODEHAND_SHELL_ENABLED: shell.enabled: true is not allowed"},
		"user file": {"log.level = 'debug'", "\nlog.level = 'error'", "", "", "", "USER:2:1: log.level: error is not allowed: MANAGED:1:1 fixes it at debug"},
		"list":      {"shell.env_allow = ['A']", "shell.env_allow = ['A', 'B']", "", "", "", "shell.env_allow: A,B is not allowed"},
		"emptied":   {"permissions.unprotect = []", "permissions.unprotect = ['.npmrc']", "", "", "", "fixes it at nothing"},
		"profile":   {"tools.profile = 'readonly'", "tools.profile = 'simple'", "", "", "", "USER:1:1: tools.profile: simple is not allowed: MANAGED:1:1 fixes it at readonly"},
		"skills":    {"skills.allow_shell = false", "", "skills-allow-shell", "true", "", "flag --skills-allow-shell: skills.allow_shell: true is not allowed"},
		"author":    {"git.co_author = 'Jo <jo@x>'", "", "", "", "CODEHAND_GIT_CO_AUTHOR=Bo <bo@x>", "git.co_author: Bo <bo@x> is not allowed: MANAGED:1:1 fixes it at Jo <jo@x>"},
		"bad text":  {"git.co_author = 'Jo'", "", "", "", "", "MANAGED:1:1: git.co_author: must be one line"},
		"dirs":      {"permissions.additional_dirs = []", "", "permissions-additional-dirs", "/", "", "flag --permissions-additional-dirs: "},
		"alone":     {"edit.guard = 'relaxed'", "read.dedup = 'off'", "", "", "", ""},
		"unknown":   {"permissions.mod = 'x'", "", "", "", "", `MANAGED:1:1: unknown key "permissions.mod"`},
		"bad value": {"permissions.mode = 'x'", "", "", "", "", "MANAGED:1:1: permissions.mode: unknown mode"},
		"bad rule":  {"permissions.deny = ['Read(']", "", "", "", "", "MANAGED:1:21: permissions.deny: "},
		"principal": {"principals.default.mode = 'plan'", "", "", "", "", "principals cannot be set in this file"},
		"syntax":    {"= 1", "", "", "", "", "MANAGED:1:1: "},
		"only":      {"permissions.managed_rules_only = 'yes'", "", "", "", "", "permissions.managed_rules_only: must be true or false"},
		"only, by the user": {"", "permissions.managed_rules_only = true", "", "", "",
			"USER:1:1: permissions.managed_rules_only: counts only in the administrator's file"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			managed := w.managed(t, c.managed+"\n")
			user := w.user(t, c.user+"\n")
			if c.flag != "" {
				w.Flags[c.flag] = c.value
			}
			w.Env = append(w.Env, c.env)
			if c.want == "" {
				w.load(t)
				return
			}
			want := strings.NewReplacer("MANAGED", managed, "USER", user).Replace(c.want)
			if got := w.refused(t).Error(); !strings.Contains(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// Its lists are added to those of everybody else, and a project can still narrow.
func TestManagedAdds(t *testing.T) {
	w := newWorld(t)
	managed := w.managed(t, `
[permissions]
deny = ["Read(a)"]
ask = ["Edit(b)"]
allow = ["Read(c)"]
protect = ["Makefile"]
mode = "acceptEdits"
[read]
dedup = "once"
[[hooks.PreToolUse]]
command = ["/bin/true"]
`)
	w.user(t, "[permissions]\ndeny = ['Read(d)']\nask = ['Edit(e)']\nallow = ['Read(f)']\nprotect = ['ci/**']\n[[hooks.PreToolUse]]\ncommand = ['/bin/false']\n")
	w.Flags["permissions-allow"] = "Read(g)"
	w.project(t, "permissions.mode = 'plan'\nread.dedup = 'off'\n")
	c, warnings := w.load(t)
	p := c.Permissions
	for _, list := range []struct {
		got  []permission.Rule
		want string
	}{{p.Deny, "Read(d) Read(a)"}, {p.Ask, "Edit(e) Edit(b)"}, {p.Allow, "Read(f) Read(g) Read(c)"}} {
		if got := strings.ReplaceAll((rules{&list.got, 0}).text(), ",", " "); got != list.want {
			t.Errorf("got %s, want %s", got, list.want)
		}
	}
	if at := p.Deny[1].Origin; at != managed+":3:9" {
		t.Errorf("the rule stands at %s", at)
	}
	if !slices.Equal(p.Protect, []string{"ci/**", "Makefile"}) || len(c.Hooks.Entries) != 2 || len(warnings) != 0 {
		t.Errorf("protect %q, %d hooks, warnings %v", p.Protect, len(c.Hooks.Entries), warnings)
	}
	if p.Mode != permission.Plan || p.Highest != permission.AcceptEdits || c.Read.Dedup != "once" {
		t.Errorf("mode %v, at most %v, dedup %s", p.Mode, p.Highest, c.Read.Dedup)
	}
	if c.Files[0] != managed {
		t.Errorf("files: %v", c.Files)
	}
}

// Where the administrator alone makes rules that allow, those of others are left out, and that is said once.
func TestManagedRulesOnly(t *testing.T) {
	w := newServe(t)
	managed := w.managed(t, "permissions.managed_rules_only = true\npermissions.allow = ['Read(c)']\n")
	user := w.user(t, "permissions.allow = ['Read(f)', 'Read(g)']\npermissions.deny = ['Read(x)']\nprincipals.default.allow = ['Edit(y)']\nprincipals.bo.deny = ['Edit(z)']\n")
	w.Env = append(w.Env, "CODEHAND_PERMISSIONS_ALLOW=Read(h)")
	c, warnings := w.load(t)
	p := c.Permissions
	if len(p.Allow) != 1 || p.Allow[0].Text != "Read(c)" || len(p.Deny) != 1 || !p.ManagedRulesOnly ||
		c.Principals.Default.Allow != nil || len(c.Principals.Named["bo"].Deny) != 1 {
		t.Errorf("%+v %+v", p, c.Principals)
	}
	want := "rules that allow are ignored: " + user + ":1:22, " + user + ":1:33, CODEHAND_PERMISSIONS_ALLOW, " + user + ":3:1"
	if len(warnings) != 1 || warnings[0].Origin != managed || !strings.Contains(warnings[0].Text, want) {
		t.Errorf("warnings %v, want one with %s", warnings, want)
	}
}

// A fixed mode holds for every principal, and for one that a token names.
func TestManagedModeHoldsForPrincipals(t *testing.T) {
	w := newServe(t)
	w.managed(t, "permissions.mode = 'default'\n")
	w.user(t, "principals.bo.mode = 'acceptEdits'\nprincipals.bo.max_mode = 'acceptEdits'\nprincipals.di.mode = 'plan'\n")
	c, _ := w.load(t)
	bo, di := c.Principals.Named["bo"], c.Principals.Named["di"]
	if *bo.Mode != "default" || *bo.MaxMode != "default" || *di.Mode != "plan" || *c.Principals.Default.MaxMode != "default" {
		t.Errorf("bo %s at most %s, di %s, others at most %s", *bo.Mode, *bo.MaxMode, *di.Mode, *c.Principals.Default.MaxMode)
	}
	for m, want := range map[permission.Mode]permission.Mode{
		permission.AcceptEdits: permission.Default, permission.Bypass: permission.Default, permission.Auto: permission.Default,
		permission.Plan: permission.Plan, permission.DontAsk: permission.DontAsk,
	} {
		if got := c.Permissions.Start(m); got != want {
			t.Errorf("%v starts as %v, want %v", m, got, want)
		}
	}
}

func TestManagedRootsAreThoseOfArguments(t *testing.T) {
	w := newWorld(t)
	w.managed(t, "roots = ['"+w.path("project")+"']\n")
	w.Roots = []string{"../home"}
	if got := w.refused(t).Error(); !strings.Contains(got, "argument ROOT: roots: "+w.path("home")+" is not allowed") {
		t.Error(got)
	}
	w.Roots = []string{"."}
	if c, _ := w.load(t); !slices.Equal(c.Roots, []string{w.path("project")}) {
		t.Errorf("roots %v", c.Roots)
	}
}

// A file that another user could have written is not used, and not ignored either: it is an error.
func TestManagedFileIsTrusted(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(w *world, path string) error
		want    string // "": accepted
	}{
		"as it should be": {func(*world, string) error { return nil }, ""},
		"missing":         {func(_ *world, path string) error { return os.Remove(path) }, ""},
		"no directory":    {func(_ *world, path string) error { return os.RemoveAll(filepath.Dir(path)) }, ""},
		"group":           {func(_ *world, path string) error { return os.Chmod(path, 0o664) }, "can be written by others"},
		"others":          {func(_ *world, path string) error { return os.Chmod(path, 0o646) }, "can be written by others"},
		"directory":       {func(_ *world, path string) error { return os.Chmod(filepath.Dir(path), 0o777) }, "its directory can be written by others"},
		"owner":           {func(w *world, _ string) error { w.managedBy = os.Geteuid() + 1; return nil }, "its directory must belong to root"},
		"link to a good one": {func(_ *world, path string) error {
			if err := os.Rename(path, path+"2"); err != nil {
				return err
			}
			return os.Symlink(path+"2", path)
		}, "is not a regular file"},
		"something else": {func(_ *world, path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o755)
		}, "is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := w.managed(t, "permissions.mode = 'plan'\n")
			if err := c.arrange(w, path); err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				w.load(t)
				return
			}
			if got := w.refused(t).Error(); !strings.Contains(got, path+": "+c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestProcessKnowsManagedFile(t *testing.T) {
	src, err := Process()
	if err != nil || !filepath.IsAbs(src.ManagedFile) || filepath.Base(src.ManagedFile) != "managed.toml" || src.managedBy != 0 {
		t.Errorf("%s, %v", src.ManagedFile, err)
	}
}
