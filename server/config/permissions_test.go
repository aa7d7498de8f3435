package config

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/tools/permission"
)

// Every source adds its rules, and each knows where it stands.
func TestRulesOfAllSources(t *testing.T) {
	w := newWorld(t)
	user := w.user(t, "[permissions]\nask = [\n'Bash(git push *)',\n'Edit(x)']\nallow = ['Read(src/**)']\nask_timeout_ms = 60000\n")
	project := w.project(t, "permissions.ask = ['mcp__*']\npermissions.protect = ['Makefile', '/abs', 'ci/**']\npermissions.ask_timeout_ms = 5000\n")
	w.Env = append(w.Env, "CODEHAND_PERMISSIONS_ALLOW=Bash(go test *),Bash(a,b)")
	w.Flags["permissions-allow"] = "Edit(docs/**)"
	w.Flags["permissions-protect"] = "Makefile"
	c, warnings := w.load(t)
	var got []string
	for _, r := range slices.Concat(c.Permissions.Ask, c.Permissions.Allow) {
		got = append(got, r.Text+" "+strings.NewReplacer(user, "user", project, "project").Replace(r.Origin))
	}
	want := []string{
		"Bash(git push *) user:3:1", "Edit(x) user:4:1", "mcp__* project:1:20",
		"Read(src/**) user:5:10", "Bash(go test *) CODEHAND_PERMISSIONS_ALLOW", "Bash(a,b) CODEHAND_PERMISSIONS_ALLOW", "Edit(docs/**) flag --permissions-allow",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if p := c.Permissions; !slices.Equal(p.Protect, []string{"Makefile", "ci/**"}) || p.AskTimeout != 5*time.Second {
		t.Errorf("%+v", p)
	}
	if len(warnings) != 1 || warnings[0].Origin != project+":2:36" {
		t.Errorf("warnings: %v, want one about /abs", warnings)
	}
	if _, err := permission.New(permission.Options{Ask: c.Permissions.Ask, Allow: c.Permissions.Allow, Protect: c.Permissions.Protect}); err != nil {
		t.Error(err)
	}
}

// Mode auto needs a classifier.
func TestAutoWithoutClassifier(t *testing.T) {
	for _, c := range []struct {
		user, project string
		want          permission.Mode
		warnings      int
	}{
		{"permissions.mode = 'auto'", "", permission.Default, 1},
		{"permissions.mode = 'auto'\npermissions.classifier = ['/bin/judge']", "", permission.Auto, 0},
		{"permissions.mode = 'auto'", "permissions.mode = 'acceptEdits'", permission.Default, 2}, // not looser than default
		{"permissions.mode = 'auto'\npermissions.classifier = ['/bin/judge']", "permissions.mode = 'acceptEdits'", permission.AcceptEdits, 0},
		{"permissions.mode = 'acceptEdits'", "permissions.mode = 'auto'", permission.AcceptEdits, 1},
	} {
		w := newWorld(t)
		user := w.user(t, c.user+"\n")
		w.project(t, c.project+"\n")
		got, warnings := w.load(t)
		if got.Permissions.Mode != c.want || len(warnings) != c.warnings {
			t.Errorf("%s | %s: mode %v, warnings %v; want %v, %d", c.user, c.project, got.Permissions.Mode, warnings, c.want, c.warnings)
		}
		if c.want == permission.Default && warnings[0].String() != user+":1:1: permissions.mode: auto acts like default, because there is no permissions.classifier" {
			t.Errorf("warning: %v", warnings[0])
		}
	}
	w := newServe(t)
	user := w.user(t, "principals.bo.mode = 'auto'\n")
	c, warnings := w.load(t)
	if *c.Principals.Named["bo"].Mode != "default" || len(warnings) != 1 || warnings[0].Origin != user+":1:1" {
		t.Errorf("bo: %s, warnings %v", *c.Principals.Named["bo"].Mode, warnings)
	}
}

// Further directories are held to what roots are held to.
func TestAdditionalDirs(t *testing.T) {
	w := newWorld(t)
	w.write(t, "more/x", "")
	w.user(t, "permissions.additional_dirs = ['"+w.path("more")+"', '~']\n")
	c, warnings := w.load(t)
	if !slices.Equal(c.Permissions.AdditionalDirs, []string{w.path("more"), w.path("home")}) {
		t.Errorf("%v", c.Permissions.AdditionalDirs)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "is the home directory") {
		t.Errorf("warnings: %v", warnings)
	}
	w.write(t, "state/codehand/x", "")
	for _, dir := range []string{"state", "state/codehand", "more/x", "nowhere"} {
		user := w.user(t, "permissions.additional_dirs = ['"+w.path(dir)+"']\n")
		if got := w.refused(t).Error(); !strings.Contains(got, user+":1:1: permissions.additional_dirs: ") {
			t.Errorf("%s: %s", dir, got)
		}
	}
	s := newServe(t)
	s.write(t, "ws/bo/x", "")
	for dir, bad := range map[string]bool{"ws": true, "ws/bo": true, "ws/bo/x": true, "home": false} {
		s.user(t, "principals.default.roots = ['"+s.path("ws")+"/{principal}']\npermissions.additional_dirs = ['"+s.path(dir)+"']\n")
		if _, _, err := Load(s.Sources); (err != nil) != bad {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// A plan must be where a session can write it.
func TestPlanDirectory(t *testing.T) {
	w := newWorld(t)
	w.write(t, "more/x", "")
	w.write(t, "project/deep/x", "")
	if err := os.Symlink(w.path("more"), w.path("project/out")); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ user, project, want, warning string }{
		{"", "", "", ""},
		{w.path("project/plans"), "", w.path("project/plans"), ""},
		{w.path("project"), "", w.path("project"), ""},
		{w.path("more/plans"), "", "", "must lie inside a root"},
		{w.path("project/out/plans"), "", "", "must lie inside a root"},
		{"", "docs/plans", w.path("project/docs/plans"), ""},
		{"", "../more", "", "ignored: " + w.path("more") + " is not inside a root"},
		{w.path("project/plans"), "../more", w.path("project/plans"), "ignored: "},
		{w.path("project/plans"), "docs", w.path("project/docs"), ""},
	} {
		w.user(t, "plan.directory = '"+c.user+"'\n")
		if c.user == "" {
			w.user(t, "")
		}
		w.project(t, "plan.directory = '"+c.project+"'\n")
		if c.project == "" {
			w.project(t, "")
		}
		got, warnings, err := Load(w.Sources)
		text := ""
		if err != nil {
			text = err.Error()
		} else if len(warnings) > 0 {
			text = warnings[0].Text
		}
		if got.Plan.Directory != c.want || !strings.Contains(text, c.warning) || (text == "") != (c.warning == "") {
			t.Errorf("user %q, project %q: got %q and %q; want %q and %q", c.user, c.project, got.Plan.Directory, text, c.want, c.warning)
		}
	}
	w.user(t, "plan.directory = '"+w.path("more/plans")+"'\npermissions.additional_dirs = ['"+w.path("more")+"']\n")
	w.project(t, "")
	w.load(t)
}

func TestServeSaysWhoApproves(t *testing.T) {
	w := newServe(t)
	if c, _ := w.load(t); c.Plan.ApprovalFallback != "client" {
		t.Errorf("%+v from %s", c.Plan, c.Origin("plan.approval_fallback"))
	}
}

// The audit names the line of a rule, also of one that holds for a single principal.
func TestRuleOrigins(t *testing.T) {
	w := newServe(t)
	user := w.user(t, "[principals.default]\ndeny = ['Read(a)']\n[principals.bo]\ndeny = [\n'Read(b)']\nallow = ['Edit(c)']\n")
	c, _ := w.load(t)
	for _, x := range []struct{ id, list, text, want string }{
		{"bo", "deny", "Read(b)", user + ":5:1"}, {"bo", "allow", "Edit(c)", user + ":6:10"}, {"bo", "deny", "Read(a)", user + ":2:9"},
		{"di", "deny", "Read(a)", user + ":2:9"}, {"di", "deny", "Read(b)", ""}, {"bo", "allow", "Read(b)", ""},
	} {
		if got := c.Principals.RuleOrigin(x.id, x.list, x.text); got != x.want {
			t.Errorf("%+v: got %s", x, got)
		}
	}
}
