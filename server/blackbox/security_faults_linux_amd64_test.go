package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// stranger owns the files of SEC-12, which a change must not give to another user.
const stranger = 12345

// failingCalls are the calls of a change that get an error instead of being made.
const failingCalls = "openat,write,pwrite64,ftruncate,fsync,fchmod,fchown,fsetxattr,mkdirat,renameat,renameat2,unlinkat,linkat"

// Every system call of a change that is about the file, its directory or the journal fails, with each of the errors that a
// disk or a limit makes: the files are as they were, the refusal names the cause and the file, no temporary file and no
// directory is left, and the journal knows no change that did not happen. Where a failure comes too late to matter the
// change is made, and the directory that could not be synced is told (SEC-12).
func TestSEC12FailedSteps(t *testing.T) {
	t.Parallel()
	for i, c := range leaktest.Some(3, changeCases()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlot(t, "--edit-guard=relaxed") // so that nothing has to be read, of which one turn takes only so much
			s := p.start()
			if !p.offers(s, c.tool) {
				t.Fatalf("there is no %s", c.tool)
			}
			tr := p.trace(s)
			faults := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EMFILE}
			if !leaktest.Long() {
				faults = faults[i%2 : i%2+1]
			}
			var calls, refused, made, noted int
			for _, fault := range faults {
				n := 0
				for {
					n++
					r := p.failedAt(s, tr, c, fault, n)
					if r.call.name == "" {
						break // there are fewer calls
					}
					calls++
					switch {
					case !r.made:
						refused++
					case strings.Contains(r.text, "[written, but it may not survive a power loss: "):
						noted++
						made++
					default:
						made++
					}
				}
				if n < 15 {
					t.Errorf("%v: only %d calls", fault, n-1)
				}
			}
			t.Logf("%s: %d failed calls: %d refused with everything as it was, %d too late to matter, of them %d told that durability is unknown", c.name, calls, refused, made, noted)
			if refused < 15*len(faults) || noted < len(faults) {
				t.Errorf("%d refusals, %d notes: the failures did not hit the change", refused, noted)
			}
			p.kill(s)
			p.lay("last/x.txt", "x\n")
			s = p.start()
			for name := range c.new { // the first change in a directory removes what is left there
				p.must(s, "write_file", "file_path", filepath.Join(filepath.Dir(name), "last.txt"), "content", "x\n")
			}
			left := p.left(func(path string) bool {
				info, err := os.Lstat(path)
				if err != nil {
					return true // it is gone by now
				}
				st, ok := info.Sys().(*syscall.Stat_t)
				return ok && st.Uid == stranger // whose files a sweep leaves alone
			})
			if len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// A failure is what came of a change of which one call failed.
type failure struct {
	call traced // zero: none failed
	text string
	made bool
}

// failedAt makes the change of a case, in which the n-th call that is about a file of ours gets an error.
func (p *plot) failedAt(s *replaytest.Spawned, tr *tracer, c changeCase, fault syscall.Errno, n int) (r failure) {
	p.Helper()
	p.prepare(s, c)
	p.adorn(c)
	was, err := p.count()
	must(p, err)
	before := tree(p.T, p.work)
	count := 0
	tr.watch(failingCalls, func(_ int, x traced) syscall.Errno {
		if !strings.HasPrefix(x.path, p.work) && !strings.Contains(x.path, "/codehand/journal/") && !strings.Contains(x.path, "/codehand/locks") {
			return 0
		}
		if count++; count != n {
			return 0
		}
		r.call = x
		return fault
	})
	text, err := s.Call(c.tool, []byte(replaytest.AsJSON(p.T, c.args...)))
	tr.watch("", nil)
	must(p, err)
	r.text, r.made = text, p.outcome(c)
	about := fmt.Sprintf("%s: %v at %s: %s", c.tool, fault, r.call, text)
	if refused := strings.HasPrefix(text, "!"); refused == r.made {
		p.Fatalf("%s: the change is made: %v", about, r.made)
	}
	want := was
	if r.made {
		want++
	}
	late := r.call.name == "renameat" || r.call.name == "unlinkat" || r.call.name == "openat" && r.made // of tidying up
	if got, err := p.count(); err != nil || got != want && !late {
		p.Fatalf("%s: %d changes are in the journal, want %d (%v)", about, got, want, err)
	}
	if r.made {
		return r
	}
	if r.call.name != "unlinkat" && tree(p.T, p.work) != before {
		p.Fatalf("%s: the tree was\n%s\nand is\n%s", about, before, tree(p.T, p.work))
	}
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case fault == syscall.EACCES && r.call.name == "openat" && strings.HasPrefix(text, "! PERMISSION_DENIED: "):
		return r // which says who refuses it
	case c.undo && strings.Contains(r.call.path, "/journal/") && strings.HasPrefix(text, "! STATE_UNAVAILABLE: "):
		if !strings.Contains(first, fault.Error()) || !strings.Contains(first, p.path("a.txt")) && !strings.Contains(first, "Change ") {
			p.Errorf("%s: want the cause, and the file or the change", about)
		}
		return r // before anything of it was begun
	}
	code := "WRITE_FAILED"
	if r.call.name == "openat" && strings.HasPrefix(text, "! READ_FAILED: ") {
		code = "READ_FAILED" // of the old file
	}
	if !strings.HasPrefix(text, "! "+code+": ") || !strings.Contains(first, fault.Error()) || !slices.ContainsFunc(p.names(c), func(name string) bool { return strings.Contains(first, name) }) {
		p.Errorf("%s: want %s with the cause and the file", about, code)
	}
	return r
}

// count is how many changes the journal has, settled or not.
func (p *plot) count() (int, error) {
	j := p.journal()
	defer func() { must(p, j.Close()) }()
	all, err := j.History(p.Context(), journal.Query{})
	return len(all), err
}

// names are the paths of the files of a case.
func (p *plot) names(c changeCase) (all []string) {
	for name := range c.new {
		all = append(all, p.path(name))
	}
	return all
}

// adorn gives the files of a case what a change has to keep: an attribute, and for root another owner.
func (p *plot) adorn(c changeCase) {
	p.Helper()
	for _, name := range p.names(c) {
		if _, err := os.Lstat(name); err != nil {
			continue
		}
		if err := syscall.Setxattr(name, "user.note", []byte("kept"), 0); err != nil && err != syscall.ENOTSUP {
			p.Fatal(err)
		}
		if os.Geteuid() == 0 {
			must(p, os.Chown(name, stranger, stranger))
		}
	}
}
