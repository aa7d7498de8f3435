package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestRepeats: a client repeats a call whose answer did not come, because the server was killed when the work was done.
// A file was changed once, and the answer says so. Nobody can say what became of a command, so it does not run again. Two
// at once run once, and both get the answer.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, k := range wireKinds {
		t.Run(k.transport+"/"+k.era, func(t *testing.T) {
			t.Parallel()
			d, out := deploy(t), leaktest.Dir(t)
			letEnd(t, out, "hook", "command", "together")
			answering, running, together := hold(t, out, "hook"), hold(t, out, "command"), hold(t, out, "together")
			replaytest.Lay(t, d.home, map[string]string{".config/codehand/config.toml": fmt.Sprintf(
				"[[hooks.PostToolUse]]\nmatcher = \"Edit\"\ntimeout_ms = 300000\n"+
					"command = [\"/bin/sh\", \"-c\", \"while [ -e '%s' ]; do sleep 0.02; done\"]\n", answering.path)})
			s := d.serve()
			via := over(t, d.address, nil)
			c := d.talk(s.url, via, k)
			const handle = `,"codehand/session":"the-same-one"`
			again := func() {
				t.Helper()
				s.kill()
				s = d.serve()
				via.CloseIdleConnections()
				if k.transport == "sse" { // its stream ended
					c = d.talk(s.url, via, k)
				}
			}
			file, ran := filepath.Join(d.work, "f.txt"), filepath.Join(d.work, "ran.txt")
			replaytest.WriteFile(t, file, []byte("one\n"))
			if text, failed := c.say("1", "read_file", fmt.Sprintf(`{"file_path":%q}`, file), handle); failed {
				t.Fatal(text)
			}

			edit := c.CallBody("2", "edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"one","new_string":"one more"}`, file),
				handle+`,"claudecode/toolUseId":"toolu_01KilledBeforeTheAnswer"`)
			first := c.begin(edit)
			replaytest.Until(t, "the file is changed", func() bool {
				text, err := os.ReadFile(file)
				return err == nil && string(text) == "one more\n"
			})
			again()
			answering.release()
			if first.ended.Wait(); first.err == nil {
				t.Errorf("the killed server answered %q", first.text)
			}
			for range 2 {
				text, failed := c.start(edit).result()
				if failed || !strings.Contains(text, "Already carried out by an earlier attempt") || !strings.Contains(text, "change "+file+" +1 -1") {
					t.Errorf("the edit again: %t, %s", failed, text)
				}
			}
			d.holds(file, "one more\n")

			command := func(h held) string {
				return fmt.Sprintf(`{"command":"echo ran >> ran.txt; while [ -e '%s' ]; do sleep 0.02; done; echo $RANDOM-end"}`, h.path)
			}
			lines := func(n int) {
				t.Helper()
				d.holds(ran, strings.Repeat("ran\n", n))
			}
			begun := func(n int) func() bool {
				return func() bool {
					text, err := os.ReadFile(ran)
					return err == nil && string(text) == strings.Repeat("ran\n", n)
				}
			}
			run := c.CallBody("3", "run_shell", command(running), handle+`,"callId":"call_KilledInTheMiddle"`)
			first = c.begin(run)
			replaytest.Until(t, "the command runs", begun(1))
			again()
			running.release()
			first.ended.Wait()
			if text, failed := c.start(run).result(); !failed || !strings.HasPrefix(text, "OUTCOME_UNKNOWN: ") {
				t.Errorf("the command again: %t, %s", failed, text)
			}
			lines(1)

			if k.transport == "sse" { // all answers come on one stream
				together.release()
				return
			}
			const id = handle + `,"codehand/call":"two-at-once"`
			twice := c.CallBody("4", "run_shell", command(together), id) // also its number, as a proxy sends it again
			first = c.begin(twice)
			replaytest.Until(t, "the command runs", begun(2))
			if text, failed := c.say("5", "run_shell", `{"command":"true"}`, id); !failed || !strings.HasPrefix(text, "INPUT_INVALID: Nothing was done") {
				t.Errorf("another command under the same id: %t, %s", failed, text)
			}
			second := c.begin(twice)
			together.release()
			first.ended.Wait()
			second.ended.Wait()
			if first.err != nil || second.err != nil || first.failed || first.text != second.text {
				t.Errorf("two at once: %q, %v and %q, %v", first.text, first.err, second.text, second.err)
			}
			lines(2)
			d.auditHolds()
			d.clean(s)
		})
	}
}
