package leaktest

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A process is one line of the system's table.
type process struct {
	pid, parent, group, session int
	state                       byte
	began                       uint64 // clock ticks since boot
}

// lookup reads one process (proc(5), stat).
func lookup(pid int) (p process, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	// The second field is the program's name in parentheses, which may hold spaces and parentheses itself.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 {
		return p, false
	}
	p.pid, p.state = pid, f[0][0]
	for i, to := range map[int]*int{1: &p.parent, 2: &p.group, 3: &p.session} {
		*to, _ = strconv.Atoi(string(f[i]))
	}
	p.began, err = strconv.ParseUint(string(f[19]), 10, 64)
	return p, err == nil
}

// startOf is when a process started, in clock ticks since boot.
func startOf(pid int) (uint64, bool) {
	p, ok := lookup(pid)
	return p.began, ok
}

// alive says whether the process that started at began still runs.
func alive(pid int, began uint64) bool {
	p, ok := lookup(pid)
	return ok && p.state != 'Z' && (began == 0 || p.began == began)
}

// commandOf is the command line of a process.
func commandOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if len(text) == 0 {
		return "it has ended, and nobody waited for it"
	}
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}

// ofRun returns the processes of a run, tests and but apart: those that were announced, the descendants of tests, what
// began in the run and works in its directory or has it in its environment or command line, and all descendants of
// these and members of their groups and sessions. What has ended counts only if tests has not waited for it.
func ofRun(tests int, dir string, began uint64, announced []child, but int) []process {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	self := os.Getpid()
	var all []process
	for _, n := range names {
		if pid, err := strconv.Atoi(n.Name()); err == nil && pid != tests && pid != but && pid != self {
			if p, ok := lookup(pid); ok && p.began >= began {
				all = append(all, p)
			}
		}
	}
	heads := map[int]bool{} // leaders of groups and sessions that are wholly of this run, perhaps dead
	found := map[int]bool{tests: true}
	for _, c := range announced {
		// An id that another process has now is no head: the kernel gives no id away that a group still has.
		if p, ok := lookup(c.pid); !ok || p.began == c.began {
			heads[c.pid] = true
		}
	}
	for _, p := range all {
		if heads[p.pid] || belongs(p, dir) {
			found[p.pid] = true
		}
	}
	for again := true; again; {
		again = false
		for _, p := range all {
			in := found[p.parent] || heads[p.group] || heads[p.session]
			if found[p.pid] && p.group == p.pid && !heads[p.pid] {
				heads[p.pid], again = true, true
			}
			if in && !found[p.pid] {
				found[p.pid], again = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(p process) bool {
		return !found[p.pid] || p.state == 'Z' && p.parent != tests
	})
}

// belongs says whether a process shows by itself that it is of the run of dir.
func belongs(p process, dir string) bool {
	if p.state == 'Z' {
		return false
	}
	at := fmt.Sprintf("/proc/%d/", p.pid)
	for _, link := range []string{"cwd", "exe"} {
		if to, err := os.Readlink(at + link); err == nil && mentions([]byte(to), dir) {
			return true
		}
	}
	for _, name := range []string{"environ", "cmdline"} {
		if text, err := os.ReadFile(at + name); err == nil && mentions(text, dir) {
			return true
		}
	}
	return false
}

// mentions says whether a text holds the path dir or one below it.
func mentions(text []byte, dir string) bool {
	for {
		_, rest, ok := bytes.Cut(text, []byte(dir))
		if !ok {
			return false
		}
		if len(rest) == 0 || strings.IndexByte("/\x00\n :;\"'", rest[0]) >= 0 {
			return true
		}
		text = rest
	}
}
