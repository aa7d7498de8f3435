package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/replaytest"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/skills"
)

// TestSkillsOfPlaces: the skills of the home directory are of the person who started the process. Who signs in has those
// of the operator and of his own workspace.
func TestSkillsOfPlaces(t *testing.T) {
	t.Parallel()
	work, team := replaytest.RealDir(t), replaytest.RealDir(t)
	cfg := testSettings(t, work, filepath.Join(replaytest.RealDir(t), "state"), map[string]string{"skills.dirs": team})
	cfg.Home, cfg.ConfigHome = replaytest.RealDir(t), replaytest.RealDir(t)
	lay := func(dir, file string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte("Do it."), 0o600))
	}
	lay(team, "a/SKILL.md")
	lay(cfg.ConfigHome, "codehand/skills/b/SKILL.md")
	lay(cfg.Home, ".claude/skills/c/SKILL.md")
	lay(cfg.Home, ".claude/commands/d.md")
	lay(work, ".claude/skills/e/SKILL.md")
	s, err := New(Options{Config: cfg})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	who := auth.Principal{ID: "bo", Slug: "bo", Roots: []string{work}, Mode: "auto", MaxMode: "auto", Via: "token:1"}
	bo, err := newPlaces(s).make(who)
	must(t, err)
	t.Cleanup(func() { _ = bo.space.Close() })
	for _, c := range []struct {
		at   *tenants.Tenant
		want string
	}{{s.local, "a2 b1 c1 d1 e0"}, {bo, "a2 e0"}} {
		set, err := c.at.bare.FindSkills(t.Context())
		must(t, err)
		var got []string
		for _, k := range set.Skills {
			got = append(got, k.Name+map[skills.Trust]string{skills.Project: "0", skills.User: "1", skills.Operator: "2"}[k.Trust])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s has %q, want %s", c.at.who.ID, got, c.want)
		}
		for path, want := range map[string]bool{
			filepath.Join(team, "a/SKILL.md"): true, filepath.Join(cfg.Home, ".claude/skills/c/SKILL.md"): c.at == s.local,
			filepath.Join(cfg.Home, ".claude/settings.json"): false,
		} {
			f, err := (&session.State{Space: c.at.space, Rules: c.at.rules}).Visible().Open(path)
			if err == nil {
				_ = f.Close()
			}
			if (err == nil) != want {
				t.Errorf("%s opens %s: %v", c.at.who.ID, path, err)
			}
		}
	}
}

// TestSkillsDirInRoot: no tool changes a directory of skills that the operator names, wherever it lies.
func TestSkillsDirInRoot(t *testing.T) {
	t.Parallel()
	f := start(t, setup{settings: map[string]string{"skills.dirs": "team", "permissions.mode": "bypassPermissions"}, change: func(c *config.Config) {
		must(t, os.MkdirAll(filepath.Join(c.WorkDir, "team", "a"), 0o700))
		must(t, os.WriteFile(filepath.Join(c.WorkDir, "team", "a", "SKILL.md"), []byte("Do it."), 0o600))
	}})
	for tool, args := range map[string]string{
		"write_file": `{"file_path":"team/b/SKILL.md","content":"x"}`, "run_shell": `{"command":"rm -r team/a"}`,
	} {
		text, err := f.Call(tool, json.RawMessage(args))
		if err != nil || !strings.HasPrefix(text, "! PERMISSION_DENIED: ") {
			t.Errorf("%s: %s, %v", tool, text, err)
		}
	}
	if text, err := f.Call("skill", json.RawMessage(`{"skill":"a"}`)); err != nil || !strings.Contains(text, "Do it.") {
		t.Errorf("skill: %s, %v", text, err)
	}
}
