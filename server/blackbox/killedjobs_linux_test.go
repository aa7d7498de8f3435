package blackbox

import (
	"fmt"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// TestKilledLeavesNoJob: after kill -9 of the server nothing runs any more of a monitor, of a job with a terminal, of an
// ordinary job, nor of what they started and put aside; after its restart each is lost, and new ones start.
func TestKilledLeavesNoJob(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"off", "best-effort"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			d := crowded(t, "CODEHAND_SANDBOX_POLICY="+policy)
			s := d.serve()
			via := over(t, d.address, nil)
			c := d.talk(s.url, via, wireKind{"http", "modern"})
			const handle = `,"codehand/session":"killed-jobs"`
			must := func(tool, args string) string {
				t.Helper()
				text, failed := c.say("1", tool, args, handle)
				if failed {
					t.Fatalf("%s %s: %s", tool, args, text)
				}
				return text
			}
			var marks []string
			mark := func() string {
				marks = append(marks, newMark("86"))
				return marks[len(marks)-1]
			}
			command := func() string {
				return fmt.Sprintf("echo begun; setsid sleep %s & sleep %s & while :; do echo tick; sleep %s; done", mark(), mark(), mark())
			}
			var jobs []string
			for _, call := range []struct{ tool, args string }{
				{"monitor", `{"description":"watches","command":%q}`},
				{"run_shell", `{"command":%q,"pty":true}`},
				{"run_shell", `{"command":%q,"run_in_background":true}`},
			} {
				text := must(call.tool, fmt.Sprintf(call.args, command()))
				jobs = append(jobs, replaytest.JobID.FindString(text))
			}
			left := func() (all []string) {
				for _, m := range marks {
					if marked(t, "sleep\x00"+m+"\x00") {
						all = append(all, m)
					}
				}
				return all
			}
			replaytest.Until(t, "all of the jobs run", func() bool { return len(left()) == 9 })
			s.kill()
			replaytest.Until(t, "nothing of the jobs is left", func() bool { return len(left()) == 0 })
			d.serve()
			via.CloseIdleConnections()
			for n, id := range jobs {
				if got := must("job_output", fmt.Sprintf(`{"job_id":%q}`, id)); !strings.Contains(got, "lost") {
					t.Errorf("job %d: %q", n, got)
				}
			}
			again := must("monitor", `{"description":"watches","command":"echo one; echo two","filter":"two"}`)
			replaytest.Until(t, "a new monitor ends", func() bool {
				got := must("job_output", fmt.Sprintf(`{"job_id":%q}`, replaytest.JobID.FindString(again)))
				return strings.Contains(got, "completed")
			})
		})
	}
}
