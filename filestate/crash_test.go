package filestate_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
)

// childTrial makes the change of a trial and is killed before its at-th step; word is "trial/at". It says "made" if it
// lives that long.
func childTrial(dir, locks, word string) error {
	runtime.LockOSThread() // strace counts calls by thread
	name, number, _ := strings.Cut(word, "/")
	at, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return err
	}
	g := new(gate)
	j, err := journal.Open(filepath.Join(locks, "journal"), journal.Options{Check: g.ask})
	if err != nil {
		return err
	}
	l := filestate.New(filestate.Options{Dir: filepath.Join(locks, "locks"), Journal: j})
	var n atomic.Int64
	all := trials()
	c := all[slices.IndexFunc(all, func(c trial) bool { return c.name == name })]
	g.beforeSteps(l, func(step string) error {
		if n.Add(1) == at {
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			return errors.Join(self.Kill(), context.Cause(forever()))
		}
		return c.fails(step)
	})
	err = c.run(context.Background(), l, func(name string) filestate.File {
		f, fileErr := fileAt(filepath.Join(dir, name))
		err = errors.Join(err, fileErr)
		return f
	})
	if err == nil {
		say("made")
	}
	return err
}

// forever waits until the process is gone.
func forever() context.Context {
	select {}
}

// A process that is killed before any step of a change leaves all files old or all new after the next start, no
// temporary file, and a history that says which.
func TestKilledAtEveryStep(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	for _, c := range trials() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := 1
			for killTrial(t, c, at, func(d keptDesk, locks string) (*exec.Cmd, *bufio.Scanner) {
				return startChild(t, "trial", d.dir, locks, c.name+"/"+strconv.Itoa(at))
			}) {
				at++
			}
			t.Logf("%d steps", at-1)
			if at < 8 {
				t.Errorf("only %d steps", at-1)
			}
		})
	}
}

// killTrial reports whether the process was killed; else it had made its change before.
func killTrial(t *testing.T, c trial, at int, start func(d keptDesk, locks string) (*exec.Cmd, *bufio.Scanner)) bool {
	t.Helper()
	locks := t.TempDir()
	kept := filepath.Join(locks, "journal")
	j := openJournal(t, kept)
	d := keptDesk{newDesk(t, func(o *filestate.Options) { o.Journal = j }), j, nil, kept}
	c.setUp(d)
	old, notes := tree(t, d.dir), len(d.history(journal.Query{}))
	cmd, lines := start(d, locks)
	made := lines.Scan()
	for lines.Scan() {
	}
	killed := cmd.Wait() != nil
	if killed == made && killed {
		t.Fatalf("killed before step %d, and yet acknowledged", at)
	}

	d = d.again() // the next start
	repairs, err := filestate.New(filestate.Options{Journal: d.j, Dir: filepath.Join(locks, "locks")}).Recover(t.Context())
	if err != nil {
		t.Fatalf("killed before step %d: recover: %v", at, err)
	}
	d.noTemps()
	now, entries := tree(t, d.dir), d.history(journal.Query{})
	_ = os.RemoveAll(d.path("x")) // an empty directory may be left, and is none of the files
	isOld := withoutEmpty(now) == withoutEmpty(old)
	switch {
	case made && (isOld || len(entries) != notes+1):
		t.Fatalf("an acknowledged change is gone: %d entries,\n%s", len(entries), now)
	case isOld && len(entries) != notes:
		t.Fatalf("killed before step %d: nothing happened, but the history is %+v (%+v)", at, entries, repairs)
	case !isOld && (len(entries) != notes+1 || entries[0].Open || entries[0].Unsure):
		t.Fatalf("killed before step %d: the change was made, but the history is %+v (%+v)", at, entries, repairs)
	}
	if !isOld {
		want := strings.NewReplacer("old a", "new a", "old b", "new b", "old z", "new z")
		for _, f := range entries[0].Files {
			before, after, err := d.j.Contents(t.Context(), entries[0].ID, f.Path)
			if errors.Is(err, journal.ErrNoCopy) { // of a large file
				before, after, err = nil, []byte("new a\n"), nil
			}
			if err != nil || before != nil && after != nil && want.Replace(string(before)) != string(after) {
				t.Fatalf("killed before step %d: the contents of %s are %q and %q, %v", at, f.Path, before, after, err)
			}
			if got, err := os.ReadFile(f.Path); err == nil && string(got) != string(after) {
				t.Fatalf("killed before step %d: some files are old and some new:\n%s", at, now)
			}
		}
	}
	return killed
}

// withoutEmpty drops the lines of directories, so that only files count.
func withoutEmpty(tree string) string {
	lines := strings.Split(tree, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, " d") }), "\n")
}

// Kills at random moments of many changes, each followed by a start: nothing acknowledged is lost, no file is torn, no
// temporary file is left, and the history ends with what the file holds.
func TestKilledAtRandom(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	rounds := leaktest.Rounds(8, 40)
	locks := t.TempDir()
	kept := filepath.Join(locks, "journal")
	d := keptDesk{newDesk(t), openJournal(t, kept), nil, kept}
	for round := range rounds {
		cmd, lines := startChild(t, "count", d.path("a"), locks, "kept")
		acknowledged := 0
		for range 1 + round%4 {
			if !lines.Scan() {
				t.Fatal("the child said nothing")
			}
			acknowledged++
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it still said before it died counts, too
			acknowledged++
		}
		_ = cmd.Wait() // killed, and says so
		d = d.again()
		if _, err := filestate.New(filestate.Options{Journal: d.j, Dir: locks}).Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.noTemps()
		got := d.read("a")
		n, err := strconv.Atoi(got[:8])
		if err != nil || got != string(counted(n)) || n < acknowledged {
			t.Fatalf("round %d: %d changes were acknowledged, the file begins with %q", round, acknowledged, got[:min(len(got), 20)])
		}
		newest := d.history(journal.Query{Limit: 1})
		if len(newest) != 1 || newest[0].Open || newest[0].Unsure {
			t.Fatalf("round %d: the newest change is %+v", round, newest)
		}
		if _, after, err := d.j.Contents(t.Context(), newest[0].ID, d.path("a")); err != nil || string(after) != got {
			t.Fatalf("round %d: the newest change does not end with what the file holds: %v", round, err)
		}
	}
}
