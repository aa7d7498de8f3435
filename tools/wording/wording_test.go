package wording

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
	"codehand/tools/workspace"
)

// The log learns why one of several files could not be written.
func TestWriteRefusalHasItsCause(t *testing.T) {
	t.Parallel()
	cause := &filestate.WriteError{Path: "/w/a", Step: "sync", Err: syscall.EIO}
	refusal, ok := errors.AsType[*tool.Refusal](WriteRefusal(cause, 2, fmt.Errorf("update: %w", cause)))
	if !ok || refusal.Code != tool.WriteFailed || !errors.Is(refusal.Cause, syscall.EIO) {
		t.Errorf("got %#v", refusal)
	}
	tooltest.Same(t, refusal.Text, "Writing /w/a failed: input/output error. All 2 files are as before. Try again, and if that does not help, ask the user.")
	cause.Step = "open"
	if refusal, ok = errors.AsType[*tool.Refusal](WriteRefusal(cause, 2, cause)); !ok || refusal.Code != tool.ReadFailed {
		t.Errorf("got %#v", refusal)
	}
	tooltest.Same(t, refusal.Text, "Reading /w/a failed: input/output error. All 2 files are as before. Ask the user to check its disk or file system.")
	cause.Err = syscall.EACCES
	if refusal, ok = errors.AsType[*tool.Refusal](WriteRefusal(cause, 2, cause)); !ok || refusal.Code != tool.PermissionDenied {
		t.Errorf("got %#v", refusal)
	}
	tooltest.Same(t, refusal.Text, "Permission denied: the permissions of the file system, not a rule, keep the server from /w/a. All 2 files are as before. Ask the user.")
}

// That the system has no free handle for a command, or no place for its files, was told as an error of ours.
func TestStartRefusal(t *testing.T) {
	t.Parallel()
	for _, cause := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN} {
		err := fmt.Errorf("shell: %w", &fs.PathError{Op: "open", Path: "/state/job.err", Err: cause})
		refusal, ok := errors.AsType[*tool.Refusal](StartRefusal(err))
		if !ok || refusal.Code != tool.Busy || !errors.Is(refusal, cause) {
			t.Fatalf("%v: got %#v", cause, refusal)
		}
		tooltest.Same(t, refusal.Text, "The command was not started: "+cause.Error()+". Try again, and if that does not help, ask the user.")
	}
	for cause, remedy := range map[syscall.Errno]string{syscall.ENOSPC: "Free space there, or ask the user to do so.", syscall.EROFS: "Ask the user.", syscall.EIO: "Try again, and if that does not help, ask the user."} {
		err := fmt.Errorf("%w: %w", shell.ErrState, &fs.PathError{Op: "open", Path: "/state/job.err", Err: cause})
		refusal, ok := errors.AsType[*tool.Refusal](StartRefusal(err))
		if !ok || refusal.Code != tool.WriteFailed || !errors.Is(refusal, cause) {
			t.Fatalf("%v: got %#v", cause, refusal)
		}
		tooltest.Same(t, refusal.Text, "The command was not started: its output files cannot be created in the state directory: "+cause.Error()+". "+remedy)
	}
	for _, err := range []error{context.Canceled, &fs.PathError{Op: "fork/exec", Path: "/bin/bash", Err: syscall.EACCES}} {
		if StartRefusal(err) != err {
			t.Errorf("%v is refused", err)
		}
	}
}

// A file in the temporary directory that a command made was refused like any other, and the model asked for a root.
func TestOutsideRefusalOfTemporaryFiles(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"/tmp/x": true, "/var/tmp/a/b": true, "/tmpx": false, "/etc/x": false} {
		err := outsideRefusal(path, &workspace.OutsideError{Roots: []string{"/w"}, Whole: []string{"/w"}})
		if got := strings.Contains(err.Error(), "If a command made it, use run_shell"); got != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A client whose roots have nothing in common with ours learns of both, however many and long they are.
func TestOutsideRefusalOfClientRoots(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("n", 4000)
	for _, c := range []struct {
		e    workspace.OutsideError
		want string
	}{
		{workspace.OutsideError{Wanted: []string{"/home/b"}, Whole: []string{"/home/a"}}, "/home/a/x cannot be used: the roots of this client (/home/b) and the allowed directories (/home/a) do not overlap. " +
			"Ask the user to open an allowed directory in the client, or to add the client's directory to the server's roots."},
		{workspace.OutsideError{Roots: []string{"/home/a/in"}, Whole: []string{"/srv", "/home/a"}}, "/home/a/x is outside the allowed directories: /home/a/in. The client did not name it as a root. Ask the user to open its directory in the client."},
		{workspace.OutsideError{Roots: []string{"/home/a/in"}, Whole: []string{"/srv", "/home/a"}, Link: "/home/a/x", Target: "/srv/y"}, "/home/a/x is outside the allowed directories: /home/a/in. " +
			"The link /home/a/x -> /srv/y leads out. The client did not name it as a root. Ask the user to open its directory in the client."},
		{workspace.OutsideError{Roots: []string{"/home/a"}, Whole: []string{"/home/a"}, Link: "/home/a/x", Target: "/home/ab"}, "/home/a/x is outside the allowed directories: /home/a. The link /home/a/x -> /home/ab leads out. Ask the user to add the directory to the server's roots (for stdio: after \"stdio\" in the client's configuration)."},
		{workspace.OutsideError{Wanted: []string{long, "/b", "/c"}, Whole: []string{long, long}}, ""},
	} {
		refusal, ok := errors.AsType[*tool.Refusal](outsideRefusal("/home/a/x", &c.e))
		if !ok || refusal.Code != tool.OutsideRoots || len([]rune(refusal.Text)) > 500 {
			t.Fatalf("got %#v", refusal)
		}
		if c.want != "" {
			tooltest.Same(t, refusal.Text, c.want)
		}
	}
}

// What a search tells of itself is words and whole numbers.
func TestCounting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		env := tool.Env{Progress: func(done, total float64, note string) {
			told = append(told, fmt.Sprint(done, " ", total, " ", note))
		}}
		count := Counting(env, "file", "files", "x\n\x1b[31m"+strings.Repeat("y", 100))
		time.Sleep(time.Second + 3*time.Millisecond)
		count(1, 10)
		time.Sleep(41 * time.Second)
		count(3977, 0)
		pattern := `, pattern "x\x0a\x1b[31m` + strings.Repeat("y", 67) + `…"`
		if want := []string{"1 0 1 s, 1 file" + pattern, "3977 0 42 s, 3,977 files" + pattern}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// A client hears of a stage that takes long, and of no other.
func TestTellIfSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		env := tool.Env{Progress: func(_, _ float64, note string) { told = append(told, note) }}
		done := TellIfSlow(env, "Reading a")
		time.Sleep(slowAfter - time.Millisecond)
		done()
		if len(told) != 0 {
			t.Errorf("told %q after %v", told, slowAfter-time.Millisecond)
		}
		done = TellIfSlow(env, "Reading b")
		time.Sleep(slowAfter + time.Millisecond)
		done()
		if len(told) != 1 || told[0] != "Reading b" {
			t.Errorf("told %q, want Reading b", told)
		}
	})
}
