package tenants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/tools/session"
	"codehand/tools/skills"
)

// TestSkillsOfTenants: the skills of the home directory are of the person who started the process. Who signs in has those
// of the operator and of his own workspace.
func TestSkillsOfTenants(t *testing.T) {
	t.Parallel()
	work, team := leaktest.Dir(t), leaktest.Dir(t)
	m := maker(t, work, map[string]string{"skills.dirs": team})
	cfg := &m.Config
	cfg.Home, cfg.ConfigHome = leaktest.Dir(t), leaktest.Dir(t)
	lay := func(dir, file string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte("Do it."), 0o600))
	}
	lay(team, "a/SKILL.md")
	lay(cfg.ConfigHome, "codehand/skills/b/SKILL.md")
	lay(cfg.Home, ".claude/skills/c/SKILL.md")
	lay(cfg.Home, ".claude/commands/d.md")
	lay(work, ".claude/skills/e/SKILL.md")
	local := localOf(t, m)
	who := auth.Principal{ID: "bo", Slug: "bo", Roots: []string{work}, Mode: "auto", MaxMode: "auto", Via: "token:1"}
	bo, err := NewRegistry(m).make(who)
	must(t, err)
	t.Cleanup(func() { _ = bo.Space.Close() })
	for _, c := range []struct {
		at   *Tenant
		want string
	}{{local, "a2 b1 c1 d1 e0"}, {bo, "a2 e0"}} {
		set, err := c.at.Bare.FindSkills(t.Context())
		must(t, err)
		var got []string
		for _, k := range set.Skills {
			got = append(got, k.Name+map[skills.Trust]string{skills.Project: "0", skills.User: "1", skills.Operator: "2"}[k.Trust])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s has %q, want %s", c.at.Who.ID, got, c.want)
		}
		for path, want := range map[string]bool{
			filepath.Join(team, "a/SKILL.md"): true, filepath.Join(cfg.Home, ".claude/skills/c/SKILL.md"): c.at == local,
			filepath.Join(cfg.Home, ".claude/settings.json"): false,
		} {
			f, err := (&session.State{Space: c.at.Space, Rules: c.at.Rules}).Visible().Open(path)
			if err == nil {
				_ = f.Close()
			}
			if (err == nil) != want {
				t.Errorf("%s opens %s: %v", c.at.Who.ID, path, err)
			}
		}
	}
}
