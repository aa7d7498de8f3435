package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestSkillReach: a link in a skill's directory published what it led to as a part of the skill, from anywhere in the
// workspace; a file whose name no URI can have was published under one that could not be read; a file was also read under
// its name with a slash behind it; and a LICENSE was sent as text of a type that clients take for bytes.
func TestSkillReach(t *testing.T) {
	t.Parallel()
	for name, a := range skilledGuests(t, nil, replaytest.Skills) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			replaytest.Lay(t, a.work, map[string]string{
				"private/notes.txt": "not of the skill", "docs/main.md": "---\nname: led\ndescription: Its file is elsewhere.\n---\nLed.\n",
				".claude/skills/deploy/LICENSE": "Free.\n", ".claude/skills/led/more.txt": "more",
			})
			at := func(name string) string { return filepath.Join(a.work, ".claude", "skills", filepath.FromSlash(name)) }
			must(t, os.Symlink(filepath.Join(a.work, "private", "notes.txt"), at("deploy/notes.txt")))
			must(t, os.Symlink(filepath.Join(a.work, "private"), at("deploy/private")))
			must(t, os.Symlink("../greet", at("deploy/greet")))
			must(t, os.Symlink("scripts/go.sh", at("deploy/go.sh")))
			must(t, os.Symlink(filepath.Join(a.work, "docs", "main.md"), at("led/SKILL.md")))
			must(t, os.Symlink("deploy", at("linked")))
			if runtime.GOOS == "linux" {
				must(t, os.WriteFile(at("deploy/a\\b.txt"), []byte("x"), 0o600))
				must(t, os.WriteFile(at("deploy/a\xff.txt"), []byte("x"), 0o600))
			}
			for _, uri := range []string{"skill://deploy/notes.txt", "skill://deploy/private/notes.txt", "skill://deploy/greet/SKILL.md", "skill://deploy/LICENSE/", "skill://linked/notes.txt"} {
				a.gone(uri)
			}
			for uri, want := range map[string]string{
				"skill://deploy/go.sh": "text/x-shellscript echo deployed\n", "skill://deploy/LICENSE": "text/plain Free.\n",
				"skill://led/SKILL.md": "text/markdown ---\nname: led\ndescription: Its file is elsewhere.\n---\nLed.\n", "skill://led/more.txt": "text/plain more",
				"skill://linked/scripts/go.sh": "text/x-shellscript echo deployed\n",
			} {
				if text, kind := a.read(uri); kind+" "+text != want {
					t.Errorf("%s: %s %q", uri, kind, text)
				}
			}
			a.refused("resources/directory/read", map[string]any{"uri": "skill://deploy/private"}, "no directory")
			const files = "LICENSE SKILL.md a%20b/notes%3F.txt go.sh logo.png scripts/go.sh"
			var dir struct{ Resources []struct{ URI string } }
			must(t, json.Unmarshal(a.ask("resources/directory/read", map[string]any{"uri": "skill://deploy"}).Result, &dir))
			var got struct {
				Skill struct{ Resources []struct{ URI string } }
			}
			must(t, json.Unmarshal(a.ask("skills/get", map[string]any{"uri": "skill://deploy/SKILL.md"}).Result, &got))
			var values struct{ Completion struct{ Values []string } }
			must(t, json.Unmarshal(a.ask("completion/complete", map[string]any{
				"ref": map[string]any{"type": "ref/resource", "uri": "skill://{name}/{+path}"}, "argument": map[string]any{"name": "path", "value": ""},
				"context": map[string]any{"arguments": map[string]any{"name": "deploy"}},
			}).Result, &values))
			short := func(list []struct{ URI string }) string {
				var all []string
				for _, e := range list {
					all = append(all, strings.TrimPrefix(e.URI, "skill://deploy/"))
				}
				return strings.Join(all, " ")
			}
			if got := short(dir.Resources); got != "LICENSE SKILL.md a%20b go.sh logo.png scripts" {
				t.Errorf("directory: %s", got)
			}
			if got := short(got.Skill.Resources); got != files {
				t.Errorf("manifest: %s", got)
			}
			if got := strings.Join(values.Completion.Values, " "); got != files {
				t.Errorf("completions: %s", got)
			}
		})
	}
}

// TestSkillTextIsBounded: a file with some text and then nothing for a terabyte was read to its end to count its lines, for
// one answer, and nothing could end that.
func TestSkillTextIsBounded(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	replaytest.Lay(t, x.work, replaytest.Skills)
	path := filepath.Join(x.work, ".claude", "skills", "deploy", "long.txt")
	must(t, os.WriteFile(path, []byte(strings.Repeat("text\n", 64<<10)), 0o600))
	must(t, os.Truncate(path, 256<<20+1))
	x.guest(t, "", true, nil).refused("resources/read", map[string]any{"uri": "skill://deploy/long.txt?limit=1"}, "larger than can be shown")
}

// TestBrokenTasksAreListed: where tasks.directory could not be read, resources/list failed, and jobs, results, skills and
// the guide were gone with the tasks.
func TestBrokenTasksAreListed(t *testing.T) {
	t.Parallel()
	for name, modern := range map[string]bool{"legacy": false, "modern": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(leaktest.Dir(t), "tasks")
			must(t, os.WriteFile(file, []byte("no directory"), 0o600))
			x := serveHTTP(t, siteSetup{settings: map[string]string{"tasks.directory": file}})
			r := x.guest(t, "", modern, nil).ask("resources/list", nil)
			if got := string(r.Result); !strings.Contains(got, `"codehand://tasks"`) || !strings.Contains(got, `"codehand://guide/tools"`) {
				t.Errorf("%s %+v", got, r.Error)
			}
		})
	}
}
