package blackbox

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// finished finds the lines by which a result tells of the end of a job.
var finished = regexp.MustCompile(`\[job (job_[a-z2-7]{12}) finished: ([a-z0-9 ]+), [0-9,]+ s, ([0-9,]+) lines?\]`)

// A jobSession is a session whose jobs end, and what its results have told of that.
type jobSession struct {
	*talker
	t      *testing.T
	meta   string
	begun  []string
	told   map[string][]string // how the job ended, by its id, once for each line
	latest []string            // ids that the last result told of
}

func (x *jobSession) does(tool, args string) string {
	x.T.Helper()
	text, failed := x.say("1", tool, args, x.meta)
	if failed {
		x.T.Fatalf("%s %s: %s", tool, args, text)
	}
	x.latest = nil
	for _, m := range finished.FindAllStringSubmatch(text, -1) {
		x.told[m[1]] = append(x.told[m[1]], m[2])
		x.latest = append(x.latest, m[1])
	}
	return text
}

func (x *jobSession) starts(command string) {
	x.T.Helper()
	text := x.does("run_shell", fmt.Sprintf(`{"command":%q,"run_in_background":true}`, command))
	id := replaytest.JobID.FindString(text)
	if id == "" || !strings.HasPrefix(text, "Started job ") {
		x.T.Fatalf("no job: %s", text)
	}
	x.begun = append(x.begun, id)
}

// ends waits until no job of the session runs.
func (x *jobSession) ends() {
	x.T.Helper()
	replaytest.Until(x.t, "the jobs end", func() bool { return !strings.Contains(x.does("job_list", `{}`), " running, ") })
}

// TestJobsTold: of many jobs of three sessions the end of each is told once, in a result of its own session: also of those
// that end with the server, whether it is told to end or killed, with the first result after that.
func TestJobsTold(t *testing.T) {
	t.Parallel()
	for _, killed := range leaktest.Some(2, []bool{true, false}) {
		t.Run(fmt.Sprint("killed=", killed), func(t *testing.T) {
			t.Parallel()
			d := crowded(t)
			s := d.serve()
			via := over(t, d.address, nil)
			var all []*jobSession
			for i, k := range []wireKind{{"http", "legacy"}, {"http", "legacy"}, {"http", "modern"}} {
				x := &jobSession{t: t, talker: d.talk(s.url, via, k), told: map[string][]string{}}
				if k.era == "modern" {
					x.meta = fmt.Sprintf(`,"codehand/session":"jobs-session-%d"`, i)
				}
				all = append(all, x)
			}
			letEnd(t, d.work, "held")
			hold(t, d.work, "held")
			short := leaktest.Rounds(3, 28)
			long := leaktest.Rounds(2, 5) // and one more
			for i := range short {
				for _, x := range all {
					x.starts("seq 1 3")
					if i%10 == 9 { // no more than 16 may run
						x.ends()
					}
				}
			}
			all[0].starts("printf 'no end'; exit 7")
			for _, x := range all {
				x.ends()
				for range long {
					x.starts("echo begun; while [ -e " + d.work + "/held ]; do sleep 0.1; done")
				}
				if n := len(x.told); n != len(x.begun)-long {
					t.Fatalf("told of %d jobs of %d that have ended", n, len(x.begun)-long)
				}
			}
			if killed {
				s.kill()
			} else {
				s.told(t, syscall.SIGTERM)
				s.exit()
			}
			d.serve()
			via.CloseIdleConnections()
			jobs := 0
			for i, x := range all {
				jobs += len(x.begun)
				x.does("list_files", `{"pattern":"*"}`)
				ended := slices.Clone(x.begun[len(x.begun)-long:])
				slices.Sort(ended)
				if slices.Sort(x.latest); !slices.Equal(x.latest, ended) {
					t.Errorf("session %d: the first result after the restart tells of %q, want %q", i, x.latest, ended)
				}
				list := x.does("job_list", `{}`)
				x.does("list_files", `{"pattern":"*"}`)
				for n, id := range x.begun {
					want := "exit 0"
					switch {
					case n >= len(x.begun)-long:
						want = "ended with its server"
					case i == 0 && n == short:
						want = "exit 7"
					}
					if !slices.Equal(x.told[id], []string{want}) {
						t.Errorf("session %d: of %s is told %q, want %q once", i, id, x.told[id], want)
					}
					if !strings.Contains(list, id+" finished: "+want+", ") {
						t.Errorf("session %d: %s is not in the list:\n%s", i, id, list)
					}
				}
				if len(x.told) != len(x.begun) {
					t.Errorf("session %d is told of %d jobs, has %d", i, len(x.told), len(x.begun))
				}
			}
			if want := len(all)*(short+long) + 1; jobs != want {
				t.Errorf("%d jobs, want %d", jobs, want)
			}
			d.auditHolds()
		})
	}
}
