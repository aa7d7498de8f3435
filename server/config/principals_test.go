package config

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// All keys of a principal, for all and for some, in every way that TOML writes tables.
func TestPrincipals(t *testing.T) {
	w := newServe(t)
	for _, dir := range []string{"ws", "seed"} {
		if err := os.Mkdir(w.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := w.user(t, strings.ReplaceAll(`
[principals.default]
enabled = true
roots = ["$TOP/ws/{principal}", "~"]
seed = "$TOP/seed"
mode = "manual"
max_mode = "acceptEdits"
profile = "readonly"
allow = []
deny = ["Read(secret/**)", "run_shell"]
scopes = ["mcp:read", "mcp:web"]
admin = false
[principals."corp/1.2"]
enabled = false
seed = ""
scopes = []
[principals]
bo = {admin = true, mode = "plan"}
cy.profile = "default"
[quota.default]
calls_per_minute = 300
job_life = "1h"
[quota."corp/1.2"]
bytes_in_per_minute = "1MiB"
[quota]
dan.burst = 0
`, "$TOP", w.top))
	c, warnings := w.load(t)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "home directory") {
		t.Errorf("warnings: %v", warnings)
	}
	p := c.Principals.Default
	switch {
	case !*p.Enabled, *p.Admin, *p.Seed != w.path("seed"), *p.Mode != "default", *p.MaxMode != "acceptEdits", *p.Profile != "readonly":
		t.Errorf("default: %+v", p)
	case !slices.Equal(p.Roots, []string{w.path("ws/{principal}"), w.Home}):
		t.Errorf("roots: %v", p.Roots)
	case p.Allow == nil || len(p.Allow) != 0:
		t.Errorf("allow: %#v, want the empty list that says none", p.Allow)
	case !slices.Equal(p.Deny, []string{"Read(secret/**)", "run_shell"}) || !slices.Equal(p.Scopes, []string{"mcp:read", "mcp:web"}):
		t.Errorf("deny %v, scopes %v", p.Deny, p.Scopes)
	case !maps.Equal(p.Quota, map[string]string{"calls_per_minute": "300", "job_life": "1h"}):
		t.Errorf("quota: %v", p.Quota)
	}
	corp, bo, cy, dan := c.Principals.Named["corp/1.2"], c.Principals.Named["bo"], c.Principals.Named["cy"], c.Principals.Named["dan"]
	if *corp.Enabled || *corp.Seed != "" || corp.Scopes == nil || len(corp.Scopes) != 0 || corp.Quota["bytes_in_per_minute"] != "1MiB" {
		t.Errorf("corp/1.2: %+v", corp)
	}
	if corp.Mode != nil || corp.Roots != nil || corp.Deny != nil || corp.Admin != nil {
		t.Errorf("corp/1.2 says what nobody said: %+v", corp)
	}
	if !*bo.Admin || *bo.Mode != "plan" || *cy.Profile != "default" || dan.Quota["burst"] != "0" || len(c.Principals.Named) != 4 {
		t.Errorf("named: %+v", c.Principals.Named)
	}
	for key, want := range map[string]string{
		"principals.default.roots": file + ":4:1", `principals."corp/1.2".enabled`: file + ":14:1", "principals.bo.mode": file + ":18:21",
		"quota.dan.burst": file + ":26:1", "principals.cy.mode": "",
	} {
		if got := c.Origin(key); got != want {
			t.Errorf("%s from %q, want %q", key, got, want)
		}
	}
}

// The tables count in serve; on stdio they are read as strictly, but nothing of them has to exist.
func TestPrincipalsOnStdio(t *testing.T) {
	w := newWorld(t)
	w.user(t, "[principals.default]\nroots = ['/no/such/{principal}']\nseed = '/no/such'\n")
	if c, _ := w.load(t); !slices.Equal(c.Roots, []string{w.WorkDir}) || c.Principals.Default.Mode != nil {
		t.Errorf("%v %+v", c.Roots, c.Principals)
	}
	w.user(t, "[principals.default]\nroots = ['relative']\n")
	w.refused(t)
}

func TestPrincipalsRefuse(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":      {"[principals.default]\nrot = []\n", `:2:1: unknown key "principals.default.rot"`},
		"too deep":         {"[principals.x.roots]\na = 1\n", `:1:2: principals.x.roots: must be a list of texts`},
		"no table":         {"principals.x = 3\n", `:1:1: unknown key "principals.x"`},
		"list of tables":   {"[[principals.x]]\nadmin = true\n", `:1:3: unknown key "principals.x"`},
		"key of groups":    {"[principals.groups]\nadmin = true\n", ":2:1: unknown key \"principals.groups.admin\""},
		"key of a group":   {"principals.groups.devs.admim = true\n", ":1:1: unknown key \"principals.groups.devs.admim\""},
		"value of a group": {"[principals.groups.devs]\nmode = 'yolo'\n", ":2:1: principals.groups.devs.mode: unknown mode"},
		"root of a group":  {"principals.groups.devs.roots = ['/no/such']\n", ":1:1: principals.groups.devs.roots: /no/such does not exist"},
		"seed of a group":  {"principals.groups.devs.seed = '/no/such'\n", ":1:1: principals.groups.devs.seed: /no/such does not exist"},
		"quota of a group": {"[quota.groups.\"x\"]\nburst = 'x'\n", ":2:1: quota.groups.x.burst: "},
		"init of a group":  {"principals.groups.x.init = ['make']\n", ":1:1: principals.groups.x.init: not in this version"},
		"init":             {"principals.default.init = ['make']\n", ":1:1: principals.default.init: not in this version"},
		"ID":               {"[principals.\"\"]\nadmin = true\n", `:2:1: principals."".admin: the principal`},
		"ID with newline":  {"[principals.\"a\\nb\"]\nadmin = true\n", `:2:1: principals."a\nb".admin: `},
		"long ID":          {"[quota." + strings.Repeat("x", 201) + "]\nburst = 1\n", ": the principal"},
		"enabled":          {"principals.default.enabled = 'no'\n", "principals.default.enabled: must be true or false"},
		"relative root":    {"principals.default.roots = [\n'/srv',\n'ws/{principal}']\n", ":3:1: principals.default.roots: ws/{principal}: must be an absolute path"},
		"other braces":     {"principals.default.roots = ['/srv/{user}']\n", "braces"},
		"broken braces":    {"principals.default.roots = ['/srv/{principal']\n", "braces"},
		"dots":             {"principals.default.roots = ['/srv/{principal}/../x']\n", ".. must not follow {principal}"},
		"roots as text":    {"principals.default.roots = '/srv'\n", "must be a list of texts"},
		"missing root":     {"principals.default.roots = ['/no/such']\n", ":1:1: principals.default.roots: /no/such does not exist"},
		"missing parent":   {"principals.bo.roots = ['/no/such/{principal}/x']\n", ":1:1: principals.bo.roots: /no/such/{principal}/x: /no/such does not exist"},
		"relative seed":    {"principals.default.seed = 'seed'\n", "principals.default.seed: seed: must be an absolute path"},
		"missing seed":     {"principals.default.seed = '/no/such'\n", ":1:1: principals.default.seed: /no/such does not exist"},
		"mode":             {"principals.default.mode = 'yolo'\n", `principals.default.mode: unknown mode "yolo"`},
		"bypass":           {"principals.default.mode = 'bypassPermissions'\n", "principals.default.mode: " + noBypass},
		"bypass at most":   {"principals.bo.max_mode = 'bypassPermissions'\n", "principals.bo.max_mode: " + noBypass},
		"profile":          {"principals.default.profile = 'codex'\n", "principals.default.profile: must be one of readonly, default"},
		"rule":             {"principals.default.deny = [\n'run_shell',\n'Read(']\n", `:3:1: principals.default.deny: rule "Read(": `},
		"allow rule":       {"principals.default.allow = ['Write(x)']\n", `principals.default.allow: rule "Write(x)": `},
		"scope":            {"principals.default.scopes = ['mcp:read', 'mcp:writ']\n", "mcp:writ"},
		"admin":            {"principals.default.admin = 1\n", "must be true or false"},
		"unknown quota":    {"quota.default.calls = 1\n", `quota.default.calls: `},
		"quota's value":    {"[quota.bo]\nburst = 'many'\n", ":2:1: quota.bo.burst: "},
		"quota's type":     {"quota.default.burst = true\n", "quota.default.burst: must be a whole number, a duration"},
		"everybody's root": {"principals.default.roots = ['$TOP/ws', '$TOP/ws/{principal}']\n", "so everyone could reach everyone's files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newServe(t)
			w.write(t, "ws/x", "")
			file := w.user(t, strings.ReplaceAll(c.text, "$TOP", w.top))
			if got := w.refused(t).Error(); !strings.Contains(got, c.want) || !strings.Contains(got, file) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// ROOT arguments of serve are templates, and an error about them names no key that the person did not write.
func TestRootArgumentsOfServe(t *testing.T) {
	for arg, want := range map[string]string{
		"missing":             "argument ROOT: $TOP/project/missing does not exist; make it, or write {principal} into it",
		"missing/{principal}": "argument ROOT: $TOP/project/missing/{principal}: $TOP/project/missing does not exist", "file": "file is not a directory",
		"file/{principal}": "is not a directory", "{name}": "braces", "": "argument ROOT: must be a path",
	} {
		w := newServe(t)
		w.write(t, "project/file", "")
		w.Roots = []string{arg}
		if got := w.refused(t).Error(); !strings.Contains(got, strings.ReplaceAll(want, "$TOP", w.top)) || strings.Contains(got, "principals.default") || strings.Count(got, "\n") > 0 {
			t.Errorf("%q: %s", arg, got)
		}
	}
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return // root may write everywhere
	}
	w := newServe(t)
	if err := os.Mkdir(w.path("closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	w.Roots = []string{w.path("closed/{principal}")}
	if got := w.refused(t).Error(); !strings.Contains(got, "cannot create directories in "+w.path("closed")) {
		t.Error(got)
	}
}

// The model can never change what serve remembers, no matter for which principal it works (SEC-45, SEC-46).
func TestServeKeptApart(t *testing.T) {
	for name, c := range map[string]struct {
		root, data, want string // want "": accepted
	}{
		"beside":                      {"ws/{principal}", "data", ""},
		"shared, beside":              {"ws", "data", ""},
		"root around it":              {"ws", "ws/data", "contains the data directory"},
		"the same":                    {"ws", "ws", "lies in the data directory"},
		"root in it":                  {"data/inner", "data", "lies in the data directory"},
		"a workspace":                 {"data/workspaces/{principal}", "data", ""},
		"part of a workspace":         {"data/workspaces/a-{principal}/src", "data", ""},
		"a shared workspace":          {"data/workspaces/all", "data", ""},
		"all workspaces":              {"data/workspaces", "data", "lies in the data directory"},
		"beside the workspaces":       {"data/work{principal}", "data", "lies in the data directory"},
		"in place of a part":          {"data/{principal}", "data", "lies in the data directory"},
		"workspaces of later letters": {"data/workspaces2/{principal}", "data", "lies in the data directory"},
		"principal called data":       {"{principal}", "data", "could, for some principal, be, contain or lie in the data directory"},
		"principal called dat":        {"{principal}a", "data", "could, for some principal"},
		"principal above it":          {"ws/{principal}", "ws/x/data", "could, for some principal"},
		"principal inside it":         {"{principal}/journal/x", "data", "could, for some principal"},
		"no principal is called so":   {"ws/{principal}", "ws/.data", ""},
		"nor so":                      {"ws/x-{principal}", "ws/data", ""},
		"upper case is the same":      {"ws/{principal}", "ws/Data", "could, for some principal"},
		"too short":                   {"ws/data{principal}", "ws/data", ""},
		"twice":                       {"ws/{principal}.{principal}", "ws/a.a", "could, for some principal"},
		"through a link":              {"link/{principal}", "ws/data", "could, for some principal"},
		"data behind a link":          {"ws", "link/data", "contains the data directory"},
		"home":                        {"home", "home/data", "contains the data directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newServe(t)
			for _, dir := range []string{"ws", "data/inner", "data/workspaces/all", "data/workspaces2"} {
				if err := os.MkdirAll(w.path(dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(w.path("ws"), w.path("link")); err != nil {
				t.Fatal(err)
			}
			w.Flags["http-data-dir"], w.Flags["state-dir"] = w.path(c.data), w.path(".state") // no principal is called .state
			for _, how := range []string{"argument", "all", "one"} {
				w.Roots = nil
				switch how {
				case "argument":
					w.Roots = []string{w.path(c.root)}
				case "all":
					w.user(t, "principals.default.roots = ['"+w.path(c.root)+"']\n")
				case "one":
					w.user(t, "principals.'corp/1'.roots = ['"+w.path(c.root)+"']\n")
				}
				_, _, err := Load(w.Sources)
				if c.want == "" && err != nil {
					t.Errorf("by %s: %v", how, err)
				}
				if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0) {
					t.Errorf("by %s: %v, want once %s", how, err, c.want)
				}
			}
			// The same holds for the roots that a token names.
			bare := Config{StateDir: w.path(".state"), HTTP: HTTP{DataDir: w.path(c.data)}}
			if err := bare.CheckRoot(w.path(c.root)); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("CheckRoot: %v, want %s", err, c.want)
			}
		})
	}
	if err := (Config{}).CheckRoot("relative"); err == nil {
		t.Error("CheckRoot took a relative root")
	}
}

// The state directory stays apart, too, where the data is elsewhere.
func TestServeKeepsStateApart(t *testing.T) {
	w := newServe(t)
	w.Flags["http-data-dir"] = w.path("data")
	for root, want := range map[string]string{
		"state": "contains the state directory", "state/{principal}": "could, for some principal", "data/workspaces/{principal}": "",
	} {
		w.write(t, "state/codehand/x", "")
		w.Roots = []string{w.path(root)}
		_, _, err := Load(w.Sources)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", root, err, want)
		}
	}
}

// Files that say who may call, or what was done, are out of reach of those who call.
func TestServeKeepsItsFilesApart(t *testing.T) {
	w := newServe(t)
	w.write(t, "ws/x", "")
	w.Flags["http-tls-cert"], w.Flags["http-tls-key"] = w.path("cert.pem"), w.path("key.pem")
	w.load(t)
	for flag, key := range map[string]string{
		"auth-token-file": "auth.token_file", "audit-dir": "audit.dir", "metrics-token-file": "metrics.token_file",
		"http-tls-cert": "http.tls_cert", "http-tls-key": "http.tls_key", "http-client-ca": "http.client_ca",
	} {
		for root, at := range map[string]string{"ws": "ws/a/b", "ws/{principal}": "ws/bo/x"} {
			v := *w
			v.Flags = maps.Clone(w.Flags)
			v.Flags[flag] = w.path(at)
			v.Roots = []string{w.path(root)}
			want := "flag --" + flag + ": " + key + ": " + w.path(at) + " lies in the root " + w.path(root)
			if got := v.refused(t).Error(); !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
			v.Serve, v.Roots = false, nil // stdio has none of these files
			v.load(t)
		}
	}
	w.Flags["audit-dir"], w.Flags["auth-token-file"] = "-", w.path("ws.jsonl")
	w.Roots = []string{w.path("ws")}
	w.load(t)
}

// A project file in a root that is everybody's narrows; the ones in workspaces of principals are not known at the start.
func TestProjectFilesOfServe(t *testing.T) {
	w := newServe(t)
	w.write(t, "one/.codehand/config.toml", "permissions.deny = ['Read(a)']\n")
	w.Roots = []string{w.path("one")}
	if c, _ := w.load(t); len(c.Permissions.Deny) != 1 {
		t.Errorf("rules: %v", c.Permissions.Deny)
	}
	w.Roots = []string{w.path("one/{principal}")}
	if c, _ := w.load(t); len(c.Permissions.Deny) != 0 {
		t.Errorf("rules: %v", c.Permissions.Deny)
	}
}

// The list of what may be said about principals names keys that files take, and what holds without them.
func TestPersonalSettings(t *testing.T) {
	w := newServe(t)
	for _, s := range PersonalSettings() {
		value := strconv.Quote(s.Default)
		switch {
		case s.Default == "true" || s.Default == "false":
			value = s.Default
		case strings.HasSuffix(s.Key, ".scopes"):
			value = `["` + s.Default + `"]`
		case strings.HasSuffix(s.Key, ".roots"), strings.HasSuffix(s.Key, ".allow"), strings.HasSuffix(s.Key, ".deny"):
			value = "[]"
		case strings.HasSuffix(s.Key, ".mode"):
			value = `"plan"`
		}
		w.user(t, s.Key+" = "+value+"\n")
		if _, _, err := Load(w.Sources); err != nil || s.Doc == "" {
			t.Errorf("%s = %s: %v; %q", s.Key, value, err, s.Doc)
		}
	}
}
