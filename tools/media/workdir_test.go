package media

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// workdirIn names a directory for TestWorkdirChild.
const workdirIn = "CODEHAND_TEST_WORKDIR_IN"

// TestWorkdirChild is a process of its own, killed while it works on a PDF and while another is copied.
func TestWorkdirChild(t *testing.T) {
	temp := os.Getenv(workdirIn)
	if temp == "" {
		return // it is only run by TestSweepOfKilled
	}
	r := New(Options{Temp: temp})
	held, err := r.newWorkdir(strings.NewReader(pdf), int64(len(pdf)))
	if err != nil {
		t.Fatal(err)
	}
	defer held.close() // keeps the file reachable: its finalizer would close it and drop the lock
	_, err = r.newWorkdir(killedHere{}, 100<<20)
	t.Fatal("it was not killed: ", err)
}

// killedHere is a PDF of which some can be read, and then the process is killed by who reads what it prints. It waits
// for input: where nothing else goes on, as in a program without cgo, Go ends a process that waits for nothing.
type killedHere struct{}

func (killedHere) ReadAt(p []byte, off int64) (int, error) {
	if off > 1<<20 {
		_, _ = os.Stdout.WriteString("half of it is there\n")
		_, err := os.Stdin.Read(p)
		return 0, err
	}
	return len(p), nil
}

// A killed process left its directories for ever, one of them with a half-written copy of a PDF. The next process
// removes them, and nothing else: directories in use stay.
func TestSweepOfKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no lock of a directory, and no program for PDF files")
	}
	temp := filepath.Join(t.TempDir(), "pdf")
	alive, err := New(Options{Temp: temp}).newWorkdir(strings.NewReader(pdf), int64(len(pdf)))
	if err != nil {
		t.Fatal(err)
	}
	defer alive.close()
	other := filepath.Join(temp, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}

	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWorkdirChild$")
	child.Env = append(os.Environ(), workdirIn+"="+temp)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.StdinPipe(); err != nil { // it never reads anything
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	New(Options{Temp: temp}) // it lives, so nothing of it is removed
	left, size := workdirs(t, temp)
	if len(left) != 3 || size < 1<<20 {
		t.Errorf("before the kill (%q, %v): %d directories with %d bytes, want 3 with the half of a PDF", line, err, len(left), size)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed

	if left, _ = workdirs(t, temp); len(left) != 3 {
		t.Errorf("after the kill: %q, want 3", left)
	}
	New(Options{Temp: temp})
	if left, size = workdirs(t, temp); len(left) != 1 || left[0] != alive.path || size != 0 {
		t.Errorf("left are %q with %d bytes, want %s", left, size, alive.path)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// workdirs are the directories of PDF files in temp, and how many bytes there are in them.
func workdirs(t *testing.T, temp string) (paths []string, size int64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(temp, workdirPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(temp, workdirPrefix+"*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			size += info.Size()
		}
	}
	return paths, size
}

// Processes that begin while others work take nothing away from them.
func TestSweepWhileOthersWork(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	const workers, times = 4, 200
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			r := New(Options{Temp: temp})
			for range times {
				d, err := r.newWorkdir(strings.NewReader(pdf), int64(len(pdf)))
				if err != nil {
					t.Error(err)
					return
				}
				held := make([]byte, len(pdf))
				if _, err := d.file.ReadAt(held, 0); err != nil || !bytes.Equal(held, []byte(pdf)) {
					t.Errorf("%q, %v", held, err)
				}
				if entries, err := os.ReadDir(d.path); err != nil || len(entries) > 0 {
					t.Errorf("%v, %v", entries, err)
				}
				d.close()
			}
		})
		group.Go(func() {
			for range times {
				sweepWorkdirs(temp)
			}
		})
	}
	group.Wait()
	empty(t, temp)
}
