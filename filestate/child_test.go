package filestate_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/filestate/lock"
)

// childMark is the first argument of a test binary that is to be a child process.
const childMark = "be-a-child"

// child runs in the child process: what, path of the file, directory of the locks, and a word more.
func child(args []string) int {
	what, path, locks, word := args[0], args[1], args[2], args[3]
	l := filestate.New(filestate.Options{Dir: locks})
	var err error
	if word == "kept" {
		j, openErr := journal.Open(filepath.Join(locks, "journal"), journal.Options{})
		l, err = filestate.New(filestate.Options{Dir: locks, Journal: j}), openErr
	}
	switch {
	case err != nil:
	case what == "trial":
		err = childTrial(path, locks, word)
	case what == "edit outside":
		err = childEditOutside(path)
	case what == "append":
		err = childAppend(l, path, word)
	case what == "count":
		err = childCount(l, path)
	case what == "disk":
		err = childDisk(path, word)
	case what == "limited":
		err = childLimited(l, path)
	default:
		err = fmt.Errorf("what is %q", what)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// childAppend adds lines to a file that others add to as well.
func childAppend(l *filestate.Ledger, path, word string) error {
	for i := range appends {
		add := func(old []byte) ([]byte, error) { return append(old, word+strconv.Itoa(i)+"\n"...), nil }
		err := childUpdate(l, path, add)
		// the kernel's lock keeps no order, so another process may have had the file for 10 s
		for errors.Is(err, lock.ErrLocked) {
			err = childUpdate(l, path, add)
		}
		if err != nil {
			return err
		}
		say(word + strconv.Itoa(i))
	}
	return nil
}

const appends = 100

// childCount replaces a file by ever larger numbers, each written many times, and says each number
// that was acknowledged. It ends when it is killed.
func childCount(l *filestate.Ledger, path string) error {
	for n := 1; ; n++ {
		if err := childUpdate(l, path, func([]byte) ([]byte, error) { return counted(n), nil }); err != nil {
			return err
		}
		say(strconv.Itoa(n))
	}
}

// counted is a content that is torn unless every line is the same and there are countLines.
func counted(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%08d\n", n), countLines) }

const countLines = 2048

func childUpdate(l *filestate.Ledger, path string, change func([]byte) ([]byte, error)) error {
	f, err := fileAt(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = l.Update(context.Background(), journal.By{}, filestate.Edit{File: f, Unseen: true, Change: change})
	return err
}

// say writes a line at once.
func say(line string) { _, _ = io.WriteString(os.Stdout, line+"\n") }

// startChild starts a child process and returns its output by lines. It is killed at the end of the
// test if it still runs.
func startChild(t *testing.T, what, path, locks, word string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, childMark, what, path, locks, word)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// Two processes that add to one file lose nothing and do nothing twice.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	locks := t.TempDir()
	var lines []*bufio.Scanner
	var cmds []*exec.Cmd
	words := []string{"left", "right"}
	for _, word := range words {
		cmd, out := startChild(t, "append", d.path("a"), locks, word)
		cmds, lines = append(cmds, cmd), append(lines, out)
	}
	for i, cmd := range cmds {
		for lines[i].Scan() {
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("child %d: %v", i, err)
		}
	}
	got := d.read("a")
	for _, word := range words {
		for i := range appends {
			if n := strings.Count("\n"+got, "\n"+word+strconv.Itoa(i)+"\n"); n != 1 {
				t.Errorf("%s%d is there %d times", word, i, n)
			}
		}
	}
	d.noTemps()
}

// A process that is killed at any moment leaves the old content or the new one, never less than it
// acknowledged, and what it leaves beside it is removed by the next one.
func TestKilled(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	rounds := leaktest.Rounds(10, 50)
	d := newDesk(t)
	for round := range rounds {
		cmd, lines := startChild(t, "count", d.path("a"), t.TempDir(), "")
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
		got := d.read("a")
		n, err := strconv.Atoi(got[:8])
		if err != nil || got != string(counted(n)) {
			t.Fatalf("round %d: the file is torn: %d bytes, begins with %q", round, len(got), got[:min(len(got), 20)])
		}
		if n < acknowledged {
			t.Fatalf("round %d: change %d was acknowledged, the file holds %d", round, acknowledged, n)
		}
	}
	for _, left := range temps(t, d.dir) {
		d.age(left[len(d.dir)+1:], staleAge)
	}
	d.must(d.put("b", "the first change of a new process in this directory"))
	d.noTemps()
}
