package blackbox

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestTurns: what a model reads in a row is whole and can be edited, also beside a command that does not end, and neither
// the clients of one principal nor a running command of another session delay the others.
func TestTurns(t *testing.T) {
	t.Parallel()
	for _, modern := range leaktest.Some(2, []bool{true, false}) {
		t.Run(fmt.Sprint("modern=", modern), func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			d.token = d.mint("--quota", "calls_per_minute=0", "--quota", "requests_per_minute=0", "--quota", "burst=0")
			for i := range 40 {
				text := fmt.Sprintf("first %d\n", i) + strings.Repeat(strings.Repeat("x", 99)+"\n", 130) + "last\n"
				must(t, os.WriteFile(filepath.Join(d.work, fmt.Sprintf("f%d.txt", i)), []byte(text), 0o600))
			}
			url := d.serve().url + "/mcp"
			join := func(at string) *replaytest.HTTPClient {
				c := &replaytest.HTTPClient{T: t, URL: url + at, Token: d.token}
				if modern {
					return c.Of2026()
				}
				return c.Hello()
			}
			reads := func(c *replaytest.HTTPClient, first int) {
				t.Helper()
				for i := first; i < first+20; i++ {
					text := c.Does("read_file", fmt.Sprintf(`{"file_path":"f%d.txt"}`, i))
					if !strings.Contains(text, "\nlast") {
						t.Fatalf("file %d: %.200q", i, text)
					}
				}
			}
			one := join("/s/one-conversation")
			reads(one, 0)

			// A command that does not end, in the same session, and one that ends when the test says so, in another.
			ctx, stop := context.WithCancel(t.Context())
			launch := func(ctx context.Context, c *replaytest.HTTPClient, tool, command string) <-chan replaytest.HTTPReply {
				body := c.CallBody("90", tool, replaytest.AsJSON(t, "command", command), "")
				return replaytest.Async(c.Request(ctx, http.MethodPost, c.URL, body))
			}
			endless := launch(ctx, one, "run_readonly", "sleep 300")
			foreign := launch(t.Context(), join("/s/another-conversation"), "run_shell",
				"touch begun; until test -e 'go on'; do sleep 0.1; done; echo gone on")
			replaytest.Until(t, "the command begins", func() bool {
				_, err := os.Stat(filepath.Join(d.work, "begun"))
				return err == nil
			})
			reads(one, 20)
			reads(join("/s/a-third-conversation"), 0)
			stop()
			<-endless
			must(t, os.WriteFile(filepath.Join(d.work, "go on"), nil, 0o600))
			if text, failed := (<-foreign).Text(); failed || !strings.Contains(text, "gone on") {
				t.Errorf("the command: %s", text)
			}

			// Two clients without a handle, as most are.
			edits := leaktest.Rounds(50, 400)
			var both sync.WaitGroup
			for client := range 2 {
				both.Go(func() {
					c, name := join(""), fmt.Sprintf("edited%d.txt", client)
					c.Does("write_file", fmt.Sprintf(`{"file_path":%q,"content":"0\n"}`, name))
					for i := range edits {
						text := c.Does("edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"%d\n","new_string":"%d\n"}`, name, i, i+1))
						if strings.HasPrefix(text, "! ") {
							t.Errorf("client %d, edit %d: %s", client, i, text)
							return
						}
					}
				})
			}
			both.Wait()
			for client := range 2 {
				text, err := os.ReadFile(filepath.Join(d.work, fmt.Sprintf("edited%d.txt", client)))
				if err != nil || string(text) != fmt.Sprintln(edits) {
					t.Errorf("client %d: %q, %v", client, text, err)
				}
			}
		})
	}
}
