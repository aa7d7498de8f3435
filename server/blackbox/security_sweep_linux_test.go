package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The program is killed again and again: after the next start no temporary file is there, and nothing is lost (SEC-17).
func TestSEC17Sweep(t *testing.T) {
	t.Parallel()
	kills := leaktest.Rounds(10, 600)
	x := newStorm(t)
	most := 0
	for range kills {
		x.round()
		most = max(most, len(x.temps()))
	}
	left := len(x.temps())
	x.start()
	made := x.settle(0)
	if now := x.left(); len(now) > 0 {
		t.Errorf("left are %v", now)
	}
	x.all(made)
	t.Logf("%d kills, %d edits sent, %d made, %d acknowledged: %d temporary files at most, %d before the last start, 0 after it", kills, x.next, made, len(x.acked), most, left)
}

// gonePid is the id of a process that has ended.
func gonePid(t *testing.T) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	must(t, cmd.Run())
	return cmd.Process.Pid
}

// What has the name of a temporary file and an unknown content is not removed before the journal has it; what is no file,
// a link, or another user's stays; and no tool that walks shows any of it (SEC-17).
func TestSEC17Planted(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	pid := gonePid(t)
	name := func(i int) string { return fmt.Sprintf("sub/.codehand-%d-77-00112233%08x.tmp", pid, i) }
	long := time.Now().Add(-time.Hour) // what another machine may have left is only touched when it is old
	for i := range 3 {
		p.lay(name(i), fmt.Sprintf("needle %d: the only copy\n", i))
		must(t, os.Chtimes(p.path(name(i)), long, long))
	}
	p.lay("outside.txt", "needle: linked\n")
	must(t, os.Symlink("../outside.txt", p.path(name(10))))
	must(t, syscall.Mkfifo(p.path(name(11)), 0o600))
	must(t, os.Mkdir(p.path(name(12)), 0o755))
	alone := []string{name(10), name(11), name(12)}
	if os.Geteuid() == 0 {
		p.lay(name(13), "needle: of somebody else\n")
		must(t, os.Chtimes(p.path(name(13)), long, long))
		must(t, os.Chown(p.path(name(13)), 12345, 12345))
		alone = append(alone, name(13))
	}
	living := fmt.Sprintf("sub/.codehand-%d-%s-0011223300000014.tmp", os.Getpid(), startedAt(t, os.Getpid()))
	p.lay(living, "needle: in use\n")
	must(t, os.Chtimes(p.path(living), long, long))
	alone = append(alone, living)

	s := p.start()
	walks := func() {
		t.Helper()
		for tool, args := range map[string][]any{
			"list_files":  {"path", ".", "pattern", "**/*"},
			"grep_search": {"pattern", "needle", "output_mode", "content"},
		} {
			text, err := s.Call(tool, []byte(replaytest.AsJSON(t, args...)))
			if err != nil || strings.HasPrefix(text, "!") || strings.Contains(text, ".codehand-") || !strings.Contains(text, "outside.txt") {
				t.Errorf("%s: %v, %s", tool, err, text)
			}
		}
	}
	walks()
	p.must(s, "write_file", "file_path", "sub/x.txt", "content", "the first change in this directory\n")
	walks()
	for i := range 3 {
		if _, err := os.Lstat(p.path(name(i))); err == nil {
			t.Errorf("%s is there", name(i))
		}
	}
	for _, n := range alone {
		if _, err := os.Lstat(p.path(n)); err != nil {
			t.Errorf("what is none of ours is gone: %v", err)
		}
	}
	if p.held("outside.txt") != "needle: linked\n" {
		t.Error("what a link led to changed")
	}
	history := p.must(s, "file_history")
	j := p.journal()
	defer func() { must(t, j.Close()) }()
	kept := 0
	entries, err := j.History(t.Context(), journal.Query{Kept: true})
	must(t, err)
	for _, e := range entries {
		if e.Kept != "recovered" {
			continue
		}
		before, _, err := j.Contents(t.Context(), e.ID, e.Files[0].Path)
		must(t, err)
		kept++
		if !strings.HasPrefix(string(before), "needle ") {
			t.Errorf("recovered is %q", before)
		}
		if !strings.Contains(history, e.ID) {
			t.Errorf("file_history does not show %s: %s", e.ID, history)
		}
		text := p.must(s, "file_history", "change_id", e.ID, "file_path", e.Files[0].Path)
		if !strings.Contains(text, strings.TrimSpace(string(before))) {
			t.Errorf("the content is not reachable: %s", text)
		}
	}
	t.Logf("%d planted contents are in the journal as recovered and reachable, %d things that are none of ours are left alone, no walk showed one", kept, len(alone))
	if kept != 3 {
		t.Errorf("%d are in the journal, want 3", kept)
	}
}

// startedAt is when a process started, as names of temporary files have it.
func startedAt(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	must(t, err)
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.Fields(rest)[19]
}
