package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// The log learns why one of several files could not be written.
func TestWriteRefusalHasItsCause(t *testing.T) {
	t.Parallel()
	cause := &filestate.WriteError{Path: "/w/a", Step: "sync", Err: syscall.EIO}
	refusal, ok := errors.AsType[*tool.Refusal](writeRefusal(cause, 2, fmt.Errorf("update: %w", cause)))
	if !ok || refusal.Code != tool.WriteFailed || !errors.Is(refusal.Cause, syscall.EIO) {
		t.Errorf("got %#v", refusal)
	}
	same(t, refusal.Text, "Writing /w/a failed: input/output error. All 2 files are as before. Try again, and if that does not help, ask the user.")
	cause.Step = "open"
	if refusal, ok = errors.AsType[*tool.Refusal](writeRefusal(cause, 2, cause)); !ok || refusal.Code != tool.ReadFailed {
		t.Errorf("got %#v", refusal)
	}
	same(t, refusal.Text, "Reading /w/a failed: input/output error. All 2 files are as before. Ask the user to check the disk or file system that it is on.")
	cause.Err = syscall.EACCES
	if refusal, ok = errors.AsType[*tool.Refusal](writeRefusal(cause, 2, cause)); !ok || refusal.Code != tool.PermissionDenied {
		t.Errorf("got %#v", refusal)
	}
	same(t, refusal.Text, "Permission denied: the permissions of the file system, not a rule, keep the server from /w/a. All 2 files are as before. Ask the user.")
}

// What the system says when a file is read is told with the path that was asked for, and nothing of another one. What comes of
// reading for a change is told in the same words.
func TestReadRefusal(t *testing.T) {
	t.Parallel()
	const again, check = " Try again, and if that does not help, ask the user.", " Ask the user to check the disk or file system that it is on."
	hidden := func(e error) error {
		return fmt.Errorf("open /w/real: %w", &fs.PathError{Op: "openat", Path: "/state/secret", Err: e})
	}
	for cause, now := range map[syscall.Errno]string{
		syscall.EIO: check, syscall.EINVAL: check, syscall.EMFILE: again, syscall.ENFILE: again, syscall.ENOMEM: again, syscall.ESTALE: again, syscall.ETIMEDOUT: again,
	} {
		for step, want := range map[string]string{"": now, "open": " The file is unchanged." + now, "read": " The file is unchanged." + now} {
			err := hidden(cause)
			if step != "" {
				err = &filestate.WriteError{Path: "/w/real", Step: step, Err: cause}
			}
			for name, got := range map[string]error{"read": pathRefusal(tool.Env{}, "a.txt", err), "edit": guard{name: "edit_file"}.refusal(t.Context(), tool.Env{}, "a.txt", err)} {
				refusal, ok := errors.AsType[*tool.Refusal](got)
				if !ok || refusal.Code != tool.ReadFailed || !errors.Is(refusal.Cause, cause) {
					t.Fatalf("%s %v at %q: got %#v", name, cause, step, got)
				}
				same(t, refusal.Text, "Reading a.txt failed: "+cause.Error()+"."+want)
			}
		}
	}
	for kept, err := range map[string]error{"": hidden(syscall.EACCES), " The file is unchanged.": &filestate.WriteError{Path: "/w/real", Step: "open", Err: syscall.EACCES}} {
		refusal, ok := errors.AsType[*tool.Refusal](guard{name: "edit_file"}.refusal(t.Context(), tool.Env{}, "a.txt", err))
		if !ok || refusal.Code != tool.PermissionDenied {
			t.Fatalf("%v: got %#v", err, refusal)
		}
		same(t, refusal.Text, "Permission denied: the permissions of the file system, not a rule, keep the server from a.txt."+kept+" Ask the user.")
	}
	if err := errors.Join(context.Canceled, syscall.EINTR); pathRefusal(tool.Env{}, "a.txt", err) != err {
		t.Error("the end of a call is told as a file that cannot be read")
	}
}

// A file that cannot be written was told without what to do now, and one that never was as unchanged.
func TestChangeRefusal(t *testing.T) {
	t.Parallel()
	const space, ask, again = " Free space there, or ask the user to.", " Ask the user.", " Try again, and if that does not help, ask the user."
	for cause, now := range map[syscall.Errno]string{
		syscall.ENOSPC: space, syscall.EDQUOT: space, syscall.EROFS: ask, syscall.EACCES: ask, syscall.EPERM: ask, syscall.EIO: again, syscall.EMFILE: again,
	} {
		for absent, kept := range map[bool]string{false: " The file is unchanged.", true: " Nothing was changed."} {
			err := &filestate.WriteError{Path: "/w/real", Step: "create", Err: cause, Absent: absent}
			refusal, ok := errors.AsType[*tool.Refusal](guard{name: "write_file"}.refusal(t.Context(), tool.Env{}, "a.txt", err))
			if want := "Writing a.txt failed: " + cause.Error() + "." + kept + now; !ok || refusal.Code != tool.WriteFailed || refusal.Text != want {
				t.Errorf("got %v\nwant %s", refusal, want)
			}
		}
	}
	missing := &filestate.WriteError{Path: "/w/new", Step: "open", Err: syscall.EMFILE, Absent: true}
	refusal, _ := errors.AsType[*tool.Refusal](guard{name: "write_file"}.refusal(t.Context(), tool.Env{}, "new", missing))
	if want := "Writing new failed: too many open files. Nothing was changed." + again; refusal == nil || refusal.Code != tool.WriteFailed || refusal.Text != want {
		t.Errorf("got %v", refusal)
	}
}

// That the system has no free handle for a command, or no place for its files, was told as an error of ours.
func TestStartRefusal(t *testing.T) {
	t.Parallel()
	for _, cause := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN} {
		err := fmt.Errorf("shell: %w", &fs.PathError{Op: "open", Path: "/state/job.err", Err: cause})
		refusal, ok := errors.AsType[*tool.Refusal](startRefusal(err))
		if !ok || refusal.Code != tool.Busy || !errors.Is(refusal, cause) {
			t.Fatalf("%v: got %#v", cause, refusal)
		}
		same(t, refusal.Text, "The command was not started: "+cause.Error()+". Try again, and if that does not help, ask the user.")
	}
	for cause, remedy := range map[syscall.Errno]string{syscall.ENOSPC: "Free space there, or ask the user to.", syscall.EROFS: "Ask the user.", syscall.EIO: "Try again, and if that does not help, ask the user."} {
		err := fmt.Errorf("%w: %w", shell.ErrState, &fs.PathError{Op: "open", Path: "/state/job.err", Err: cause})
		refusal, ok := errors.AsType[*tool.Refusal](startRefusal(err))
		if !ok || refusal.Code != tool.WriteFailed || !errors.Is(refusal, cause) {
			t.Fatalf("%v: got %#v", cause, refusal)
		}
		same(t, refusal.Text, "The command was not started: its files cannot be made in the state directory: "+cause.Error()+". "+remedy)
	}
	for _, err := range []error{context.Canceled, &fs.PathError{Op: "fork/exec", Path: "/bin/bash", Err: syscall.EACCES}} {
		if startRefusal(err) != err {
			t.Errorf("%v is refused", err)
		}
	}
}

// A file in a directory that may be entered but not listed can be read by other programs: a refusal that names only the file seems untrue.
func TestUnlistedRefusal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("d/f", "x\n")
	dir := filepath.Join(r.dir, "d")
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		got := rightsRefusal("d/f", "", fmt.Errorf("open: %w", &workspace.UnlistedError{Dir: "/w/d", Err: syscall.EACCES}))
		same(t, got.Error(), "PERMISSION_DENIED: Permission denied: the permissions of the file system, not a rule, keep the server from d/f. The directory /w/d must be readable for that, not only to be entered. Ask the user.")
		return // such a directory keeps nobody out here
	}
	if err := os.Chmod(dir, 0o111); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	for name, args := range map[string]string{"read_file": `{"file_path":"d/f"}`, "write_file": `{"file_path":"d/f","content":"y"}`} {
		same(t, r.fails(tool.PermissionDenied, name, args), "PERMISSION_DENIED: Permission denied: the permissions of the file system, not a rule, keep the server from $WORK/d/f. The directory $WORK/d must be readable for that, not only to be entered. Ask the user.")
	}
}

// That the directory of everything is gone was told as one file that does not exist.
func TestRootGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.Rename(r.dir, r.dir+".away"); err != nil {
		t.Skipf("a directory that is open cannot be moved here: %v", err)
	}
	for name, args := range map[string]string{
		"read_file": `{"file_path":"f"}`, "write_file": `{"file_path":"f","content":"x"}`, "edit_file": `{"file_path":"f","old_string":"x","new_string":"y"}`,
	} {
		same(t, r.fails(tool.FileNotFound, name, args), "FILE_NOT_FOUND: File does not exist: $WORK/f. The allowed directory $WORK itself is gone. Ask the user.")
	}
	same(t, r.fails(tool.FileNotFound, "list_files", `{"pattern":"*"}`), "FILE_NOT_FOUND: Directory does not exist: $WORK. The allowed directory $WORK itself is gone. Ask the user.")
}

// A client whose roots have nothing in common with ours learns of both, however many and long they are.
func TestOutsideRefusalOfClientRoots(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("n", 4000)
	for _, c := range []struct {
		e    workspace.OutsideError
		want string
	}{
		{workspace.OutsideError{Wanted: []string{"/home/b"}, Whole: []string{"/home/a"}}, "/home/a/x cannot be used: the roots of this client (/home/b) and the allowed directories (/home/a) have nothing in common. " +
			"Ask the user to open one of those in the client, or to start the server with a ROOT argument for the client's."},
		{workspace.OutsideError{Roots: []string{"/home/a/in"}, Whole: []string{"/srv", "/home/a"}}, "/home/a/x is outside the allowed directories: /home/a/in. The client left it out of its roots. Ask the user to open its directory in the client."},
		{workspace.OutsideError{Roots: []string{"/home/a/in"}, Whole: []string{"/srv", "/home/a"}, Link: "/home/a/x", Target: "/srv/y"}, "/home/a/x is outside the allowed directories: /home/a/in. " +
			"The link /home/a/x -> /srv/y leads out. The client left it out of its roots. Ask the user to open its directory in the client."},
		{workspace.OutsideError{Roots: []string{"/home/a"}, Whole: []string{"/home/a"}, Link: "/home/a/x", Target: "/home/ab"}, "/home/a/x is outside the allowed directories: /home/a. The link /home/a/x -> /home/ab leads out. The operator can add a ROOT argument."},
		{workspace.OutsideError{Wanted: []string{long, "/b", "/c"}, Whole: []string{long, long}}, ""},
	} {
		refusal, ok := errors.AsType[*tool.Refusal](outsideRefusal("/home/a/x", &c.e))
		if !ok || refusal.Code != tool.OutsideRoots || len([]rune(refusal.Text)) > 500 {
			t.Fatalf("got %#v", refusal)
		}
		if c.want != "" {
			same(t, refusal.Text, c.want)
		}
	}
}
