package blackbox

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The calls at which a program is killed: those that change something, and for the long run those that only look, too.
const (
	changingCalls = "openat,write,pwrite64,ftruncate,fsync,fchmod,fchown,fsetxattr,mkdirat,renameat,renameat2,unlinkat,linkat,close,flock"
	lookingCalls  = changingCalls + ",newfstatat,fstat,read,pread64,readlinkat,getdents64,fgetxattr,flistxattr"
)

// A change is one call of a tool that SEC-11 and SEC-12 stop in the middle.
type changeCase struct {
	name string
	old  map[string]string // before; "": no file
	new  map[string]string // after
	tool string
	args []any
	undo bool // the change is the undo of the one from new to old
}

func changeCases() []changeCase {
	body := strings.Repeat("A line that no edit changes.\n", 100)
	edit := func(name string) map[string]any {
		return map[string]any{"file_path": name, "old_string": "old", "new_string": "new"}
	}
	return []changeCase{
		{name: "edit_file", old: map[string]string{"a.txt": "old\n" + body}, new: map[string]string{"a.txt": "new\n" + body},
			tool: "edit_file", args: []any{"file_path", "a.txt", "old_string", "old", "new_string", "new"}},
		{name: "write_file", old: map[string]string{"x/y/b.txt": ""}, new: map[string]string{"x/y/b.txt": "new\n" + body},
			tool: "write_file", args: []any{"file_path", "x/y/b.txt", "content", "new\n" + body}},
		{name: "multi_edit", old: map[string]string{"a.txt": "old\n" + body, "s/c.txt": body + "old\n"}, new: map[string]string{"a.txt": "new\n" + body, "s/c.txt": body + "new\n"},
			tool: "multi_edit", args: []any{"edits", []any{edit("a.txt"), edit("s/c.txt")}}},
		{name: "undo_change", undo: true, old: map[string]string{"a.txt": "old\n" + body}, new: map[string]string{"a.txt": "new\n" + body},
			tool: "undo_change", args: []any{"file_path", "a.txt"}},
	}
}

// prepare lays the files of a case, and lets the session know them.
func (p *plot) prepare(s *replaytest.Spawned, c changeCase) {
	p.Helper()
	for name, content := range c.old {
		must(p, os.RemoveAll(p.path(strings.Split(name, "/")[0])))
		if c.undo {
			p.lay(name, c.new[name])
			p.must(s, "read_file", "file_path", name, "limit", 1)
			p.must(s, "edit_file", "file_path", name, "old_string", "new", "new_string", "old")
		} else if content != "" {
			p.lay(name, content)
			p.must(s, "read_file", "file_path", name, "limit", 1)
		}
	}
}

// outcome says whether the files of a case are all old or all new, and fails if they are neither.
func (p *plot) outcome(c changeCase) (made bool) {
	p.Helper()
	is := func(want map[string]string) bool {
		for name, content := range want {
			if p.held(name) != content {
				return false
			}
		}
		return true
	}
	if made = is(c.new); !made && !is(c.old) {
		for name := range c.old {
			p.Errorf("%s holds %.80q (%d bytes)", name, p.held(name), len(p.held(name)))
		}
		p.Fatal("the files are neither old nor new")
	}
	return made
}

// The program is killed at every system call of one change (by default at every sixth), and started again: the files are old or new, all of them,
// what was acknowledged is there, the journal agrees, and no temporary file is left (SEC-11).
func TestSEC11WritePath(t *testing.T) {
	t.Parallel()
	calls := changingCalls
	if leaktest.Long() {
		calls = lookingCalls
	}
	step := leaktest.Rounds(6, 1)
	for i, c := range leaktest.Some(2, changeCases()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlot(t)
			s := p.start()
			if !p.offers(s, c.tool) {
				t.Fatalf("there is no %s", c.tool)
			}
			killed, made, acknowledged := 0, 0, 0
			at := 1 + i%step // the cases do much alike, and each is killed at other calls
			for alive := false; !alive; at += step {
				p.prepare(s, c)
				was := len(p.entries())
				acked := false
				if acked, alive = p.killedAt(s, c, calls, at); !alive {
					killed++
				}
				p.kill(s)
				s = p.start()
				now := p.outcome(c)
				if acked && !now {
					t.Fatalf("call %d: an acknowledged change is gone", at)
				}
				if left := p.left(); len(left) > 0 {
					t.Fatalf("call %d: left are %v", at, left)
				}
				want := was
				if now {
					made++
					want++
					for name := range c.new {
						p.agrees(name)
					}
				}
				if n := len(p.entries()); n != want {
					t.Fatalf("call %d: %d changes in the journal, want %d (made: %v)", at, n, want, now)
				}
				if acked {
					acknowledged++
				}
			}
			t.Logf("%s: killed at %d system calls; %d times the change was made, %d times acknowledged; 0 torn, 0 missing, 0 temporary files",
				c.name, killed, made-1, acknowledged-1)
			if killed < 30/step || made < 3 || killed-made < 15/step {
				t.Errorf("killed %d times, made %d times: the kills did not hit the change", killed, made)
			}
		})
	}
}

// killedAt makes the change of a case, in which the program is killed at its n-th call. alive: it makes fewer calls.
func (p *plot) killedAt(s *replaytest.Spawned, c changeCase, calls string, n int) (acked, alive bool) {
	p.Helper()
	p.trace(s).watch(calls, func(i int, _ traced) syscall.Errno {
		if i == n {
			_ = syscall.Kill(s.Cmd.Process.Pid, syscall.SIGKILL) // the call is not made: the thread is dead before
		}
		return 0
	})
	text, err := s.Call(c.tool, []byte(replaytest.AsJSON(p.T, c.args...)))
	if err == nil && strings.HasPrefix(text, "!") {
		p.Fatalf("call %d: %s", n, text)
	}
	if acked = err == nil; acked {
		_, err = s.Request("ping", nil) // a call just after the answer may be the one
	}
	return acked, err == nil
}

// offers says whether the program has a tool.
func (p *plot) offers(s *replaytest.Spawned, tool string) bool {
	p.Helper()
	text, err := s.Call(tool, []byte(`{"file_path":"none"}`))
	must(p, err)
	return !strings.Contains(text, "not found") && !strings.HasPrefix(text, "!! ")
}
