package config

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/tools/permission"
	"codehand/tools/web/guard"
)

var seed = flag.Uint64("seed", 0, "seed of random project files; 0: another one each time")

// sayings are lines that files may have, good and bad ones.
var sayings = []string{
	`permissions.mode = "default"`, `permissions.mode = "acceptEdits"`, `permissions.mode = "plan"`, `permissions.mode = "dontAsk"`,
	`permissions.mode = "auto"`, `permissions.deny = ["Read(a)"]`, `permissions.deny = ["Read("]`, `permissions.ask = ["Edit(b)", "mcp__*"]`,
	`permissions.allow = ["Bash(*)"]`, `permissions.protect = ["Makefile"]`, `permissions.protect = ["/x"]`, `permissions.unprotect = [".npmrc"]`,
	`permissions.additional_dirs = ["HOME"]`, `permissions.classifier = ["/bin/true"]`, `permissions.ask_fallback = "client"`,
	`permissions.ask_fallback = "deny"`, `permissions.ask_timeout_ms = 5000`, `permissions.ask_timeout_ms = 600000`,
	`hooks.trust_project = true`, `hooks.fail_closed = true`, `hooks.tool_names = "codehand"`, `hooks.PreToolUse = [{command = ["/bin/true"]}]`,
	`plan.approval_fallback = "auto"`, `plan.approval_fallback = "console"`, `plan.directory = "HOME/project/plans"`,
	`results.keep_days = 1`, `results.keep_days = 3000`,
	`sandbox.network = "on"`, `sandbox.network = "off"`, `sandbox.network = "list"`, `sandbox.domains = ["example.com", "*.npmjs.org"]`,
	`sandbox.domains = ["*.example.com", "registry.npmjs.org:443"]`, `sandbox.domains = ["evil.net"]`, `web.allow_private = ["10.0.0.0/8"]`, `web.nat64 = true`,
	`web.search.kind = "searxng"`, `web.search.url = "https://evil.example"`, `web.search.key_env = "HOME"`,
	`sandbox.policy = "off"`, `sandbox.policy = "required"`, `shell.enabled = true`, `shell.enabled = false`, `read.pdf = true`, `read.pdf = false`,
	`shell.max_timeout_ms = 700000`, `shell.env_allow = ["FOO"]`, `edit.guard = "relaxed"`, `tools.max_parallel = 10`, `tools.max_parallel = 1`,
	`tools.profile = "default"`, `tools.profile = "simple"`, `tools.profile = "readonly"`, `tools.deferral = "off"`, `tools.always = ["web_fetch"]`,
	`skills.dirs = ["HOME"]`, `skills.allow_shell = true`, `tasks.directory = "HOME/project/tasks"`, `git.co_author = "Jo <jo@example.com>"`,
	`agent.sampling = true`, `agent.max_depth = 3`, `agent.max_depth = 0`, `agent.backend = "auto"`, `agent.command.argv = ["/bin/true"]`, `agent.api.base_url = "https://evil.net"`,
	`agent.max_tokens = 100000000`, `agent.max_tokens = 1000`, `roots = ["HOME"]`, `principals.default.mode = "acceptEdits"`, `principals.bo.allow = ["Bash(*)"]`,
}

// someOf returns a file of some of the sayings, each key once.
func someOf(r *rand.Rand, top string) string {
	var text strings.Builder
	said := map[string]bool{}
	for range r.IntN(12) {
		line := sayings[r.IntN(len(sayings))]
		key, _, _ := strings.Cut(line, " =")
		if said[key] {
			continue
		}
		said[key] = true
		text.WriteString(strings.ReplaceAll(line, "HOME", top) + "\n")
	}
	return text.String()
}

// looser says what c lets pass that held does not; "": nothing.
func looser(c, held Config) string {
	var wrong []string
	for i, s := range table(&c) {
		was := table(&held)[i]
		switch v := s.at.(type) {
		case ranked:
			if s.project != guidance && v.rank() > was.at.(ranked).rank() { // a rank is comparable with that of the same row
				wrong = append(wrong, s.key)
			}
		case growing:
			if s.project == added && !strings.HasPrefix(v.text(), was.at.text()) || s.project != added && v.text() != was.at.text() {
				wrong = append(wrong, s.key)
			}
		case domains:
			for _, d := range *v.p {
				held := *was.at.(domains).p
				if held != nil && !slices.ContainsFunc(held, func(o guard.Domain) bool { m, ok := o.Meet(d); return ok && m == d }) {
					wrong = append(wrong, s.key)
				}
			}
		default:
			if s.project == operatorOnly && v.text() != was.at.text() {
				wrong = append(wrong, s.key)
			}
		}
	}
	if len(c.Hooks.Entries) > len(held.Hooks.Entries) && !held.Hooks.TrustProject {
		wrong = append(wrong, "hooks")
	}
	if c.Permissions.Highest != held.Permissions.Highest || c.Permissions.ManagedRulesOnly != held.Permissions.ManagedRulesOnly {
		wrong = append(wrong, "what is managed")
	}
	for _, mode := range []permission.Mode{permission.Plan, permission.Default, permission.AcceptEdits, permission.Auto, permission.Bypass} {
		if modeRank(c.Permissions.Start(mode).String()) > modeRank(held.Permissions.Start(mode).String()) {
			wrong = append(wrong, mode.String())
		}
	}
	if len(c.Principals.Named) != len(held.Principals.Named) || !slices.Equal(c.Principals.Default.Allow, held.Principals.Default.Allow) {
		wrong = append(wrong, "principals")
	}
	for id, v := range held.Principals.Named {
		now := c.Principals.Named[id]
		if !slices.Equal(now.Allow, v.Allow) || v.Mode != nil && (now.Mode == nil || modeRank(*now.Mode) > modeRank(*v.Mode)) {
			wrong = append(wrong, "principal "+id)
		}
	}
	return strings.Join(wrong, ", ")
}

// SEC-45: whatever a project file says, nothing is looser than without it, and it keeps no server from starting.
func TestProjectNeverWidens(t *testing.T) {
	start := *seed
	if start == 0 {
		start = uint64(time.Now().UnixNano())
	}
	t.Logf("go test -run TestProjectNeverWidens -seed %d", start)
	r := rand.New(rand.NewPCG(start, 0))
	worlds := []*world{newWorld(t), newServe(t)}
	done := 0
	for i := range 400 {
		w := worlds[i%2]
		user := someOf(r, w.top)
		w.user(t, user)
		w.project(t, "")
		held, _, err := Load(w.Sources)
		if err != nil {
			continue // the user's file is wrong
		}
		done++
		project := someOf(r, w.top)
		w.project(t, project)
		c, warnings, err := Load(w.Sources)
		if err != nil {
			t.Fatalf("user file\n%s\nproject file\n%s\n%v", user, project, err)
		}
		if wrong := looser(c, held); wrong != "" {
			t.Fatalf("looser: %s\nuser file\n%s\nproject file\n%s\nwarnings %v", wrong, user, project, warnings)
		}
		about := 0
		for _, warning := range warnings {
			if strings.Contains(warning.Text, "a project file only narrows") {
				about++
			}
		}
		if about > 1 {
			t.Errorf("%d warnings about one file: %v", about, warnings)
		}
	}
	if done < 50 {
		t.Errorf("only %d of the user's files could be used", done)
	}
	t.Log(fmt.Sprint(done, " pairs of files"))
}
