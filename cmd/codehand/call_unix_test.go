//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A call that reads a FIFO without a writer ends by itself.
func TestCallOfFIFO(t *testing.T) {
	t.Parallel()
	s := &served{t: t, cmd: program(t, environment(t), "call", "read_file", "file_path=fifo")}
	mkfifos(t, s.cmd.Dir, "fifo")
	s.run()
	s.line("^NOT_REGULAR: ")
	s.ended(exitFailed)
}

// A command that waits ends at the first SIGTERM or SIGINT, with all that it started. While standard input was read, only
// a second signal was noticed: a script that ended its calls waited for ever.
func TestCallEnds(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(fmt.Sprint("running a command, ", sig), func(t *testing.T) {
			t.Parallel()
			s := &served{t: t, cmd: program(t, environment(t), "call", "run_shell", "command=cat begun; cat never")}
			mkfifos(t, s.cmd.Dir, "begun", "never")
			s.run()
			begun, err := os.OpenFile(filepath.Join(s.cmd.Dir, "begun"), os.O_WRONLY, 0) // waits for the command
			if err != nil {
				t.Fatal(err)
			}
			_ = begun.Close() // nothing was written
			s.signal(sig)
			s.ended(exitFailed)
			if _, err := os.OpenFile(filepath.Join(s.cmd.Dir, "never"), os.O_WRONLY|syscall.O_NONBLOCK, 0); !errors.Is(err, syscall.ENXIO) {
				t.Errorf("the command reads on: %v", err)
			}
		})
		for _, args := range []string{"call read_file -", "permissions check read_file -", "classify"} {
			t.Run(fmt.Sprint(args, ", ", sig), func(t *testing.T) {
				t.Parallel()
				s := &served{t: t, cmd: program(t, environment(t), strings.Fields(args)...)}
				in, err := s.cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				s.run()
				if _, err := in.Write(bytes.Repeat([]byte("\n"), 256<<10)); err != nil { // more than a pipe holds, so it reads
					t.Fatal(err)
				}
				s.signal(sig)
				s.ended(exitFailed)
			})
		}
	}
}

// ended waits for the end, which must have a code.
func (s *served) ended(want int) {
	s.t.Helper()
	if code := s.exit(); code != want {
		s.t.Errorf("exit code %d, want %d:\n%s", code, want, strings.Join(s.seen, "\n"))
	}
}

func mkfifos(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
