package blackbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestInspectorSkills shows prompts, resources and skills with the MCP Inspector, in both eras, on stdio and over HTTP. It
// compares the digests of a skill's files with what it reads by itself. Its command line has no completions.
func TestInspectorSkills(t *testing.T) {
	t.Parallel()
	node, launcher := inspector(t)
	path := replaytest.Program(t)
	work, home := leaktest.Dir(t), leaktest.Dir(t)
	replaytest.Lay(t, work, replaytest.Skills)
	d := deploy(t)
	replaytest.Lay(t, d.work, replaytest.Skills)
	targets := map[string][]string{"stdio": {path, "stdio", work}, "http": {d.serve().url + "/mcp", "--header", "Authorization: Bearer " + d.token}}
	for transport, target := range targets {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(transport+" "+era, func(t *testing.T) {
				t.Parallel()
				run := func(method string, args ...string) string {
					t.Helper()
					// What follows a list of values counts as one of them, so the method comes last.
					all := append([]string{launcher, "--cli", "-q", "--protocol-era", era}, args...)
					cmd := exec.Command(node, append(append(all, "--method", method), target...)...)
					cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + home, "XDG_STATE_HOME=" + home}
					cmd.Dir = home
					out, err := cmd.Output()
					if err != nil {
						t.Fatalf("%s %v: %v\n%s", method, args, err, out)
					}
					return string(out)
				}
				var list struct{ Prompts []struct{ Name string } }
				must(t, json.Unmarshal([]byte(run("prompts/list")), &list))
				if len(list.Prompts) != 9 || list.Prompts[1].Name != "commit" {
					t.Errorf("prompts: %+v", list)
				}
				var got struct {
					Messages []struct{ Content struct{ Text string } }
				}
				must(t, json.Unmarshal([]byte(run("prompts/get", "--prompt-name", "greet", "--prompt-args", "arguments=you and me")), &got))
				if len(got.Messages) != 1 || strings.TrimSpace(got.Messages[0].Content.Text) != "Say hello to you and me." {
					t.Errorf("%+v", got)
				}
				if out := run("resources/templates/list"); !strings.Contains(out, "skill://{name}/{+path}") {
					t.Error(out)
				}
				if out := run("resources/list"); !strings.Contains(out, "skill://look/SKILL.md") || !strings.Contains(out, "codehand://guide/tools") {
					t.Error(out)
				}
				if out := run("resources/read", "--uri", "skill://deploy/a%20b/notes%3F.txt"); !strings.Contains(out, `"text": "one\ntwo\nthree\n"`) {
					t.Error(out)
				}
				if out := run("resources/directory/read", "--uri", "skill://deploy"); strings.Count(out, "inode/directory") != 2 {
					t.Error(out)
				}
				reports := strings.Split(strings.TrimSpace(run("skills/list", "--verify", "--require-digests")), "\n")
				for _, report := range append(reports, strings.TrimSpace(run("skills/get", "--verify", "--uri", "skill://deploy/SKILL.md"))) {
					var r struct {
						URI, Outcome             string
						OK                       bool
						Conformance, FrontMatter []any
						Files                    []struct{ Status string }
					}
					if err := json.Unmarshal([]byte(report), &r); err != nil || !r.OK || r.Outcome != "verified" || len(r.Conformance)+len(r.FrontMatter) > 0 || len(r.Files) == 0 {
						t.Errorf("%v: %s", err, report)
					}
				}
				if len(reports) != 5 {
					t.Errorf("%d skills: %s", len(reports), reports)
				}
			})
		}
	}
}
