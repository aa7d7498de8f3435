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

// TestInspectorResources lists and reads resources with the MCP Inspector, in both eras. Each of its commands is a process
// of its own, so the conversation is named in the environment, of which it passes on what it is told to.
func TestInspectorResources(t *testing.T) {
	t.Parallel()
	node, launcher := inspector(t)
	path := replaytest.Program(t)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			home, work := leaktest.Dir(t), leaktest.Dir(t)
			replaytest.LayBig(t, work)
			run := func(args ...string) []byte {
				t.Helper()
				cmd := exec.Command(node, append(append([]string{launcher, "--cli", "-q", "--protocol-era", era, "-e", "CODEHAND_SESSION=inspector-one"}, args...), path, "stdio", work)...)
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + home, "XDG_STATE_HOME=" + home}
				cmd.Dir = home
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
				return out
			}
			var called struct {
				Meta struct {
					Result struct{ URI string } `json:"codehand/result"`
				} `json:"_meta"`
			}
			must(t, json.Unmarshal(run("--tool-name", "grep_search", "--tool-arg", "pattern=line", "--tool-arg", "output_mode=content", "--tool-arg", "head_limit=0", "--method", "tools/call"), &called))
			uri := called.Meta.Result.URI
			if uri == "" {
				t.Fatal("nothing was kept")
			}
			var list struct{ Resources []struct{ URI string } }
			must(t, json.Unmarshal(run("--method", "resources/list"), &list))
			if len(list.Resources) != 3 || list.Resources[1].URI != uri {
				t.Errorf("listed are %+v, not %s", list, uri)
			}
			var read struct{ Contents []struct{ URI, Text string } }
			must(t, json.Unmarshal(run("--method", "resources/read", "--uri", uri), &read))
			if len(read.Contents) != 1 || !strings.HasPrefix(read.Contents[0].Text, "big.txt:1:line 0 of a long file\n") || !strings.HasSuffix(read.Contents[0].Text, "the next ones: "+uri+"?offset=2001]\n") {
				t.Errorf("%.300v", read)
			}
			if out := run("--method", "resources/templates/list"); !strings.Contains(string(out), "codehand://results/{id}{?offset,limit}") {
				t.Errorf("templates: %s", out)
			}
		})
	}
}
