package editing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
	"codehand/tools/wording"
)

// What the system says when a file is read is told with the path that was asked for, and nothing of another one. What comes of
// reading for a change is told in the same words.
func TestReadRefusal(t *testing.T) {
	t.Parallel()
	const again, check = " Try again, and if that does not help, ask the user.", " Ask the user to check its disk or file system."
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
			for name, got := range map[string]error{"read": wording.PathRefusal(tool.Env{}, "a.txt", err), "edit": Guard{Name: "edit_file"}.Refusal(t.Context(), tool.Env{}, "a.txt", err)} {
				refusal, ok := errors.AsType[*tool.Refusal](got)
				if !ok || refusal.Code != tool.ReadFailed || !errors.Is(refusal.Cause, cause) {
					t.Fatalf("%s %v at %q: got %#v", name, cause, step, got)
				}
				tooltest.Same(t, refusal.Text, "Reading a.txt failed: "+cause.Error()+"."+want)
			}
		}
	}
	for kept, err := range map[string]error{"": hidden(syscall.EACCES), " The file is unchanged.": &filestate.WriteError{Path: "/w/real", Step: "open", Err: syscall.EACCES}} {
		refusal, ok := errors.AsType[*tool.Refusal](Guard{Name: "edit_file"}.Refusal(t.Context(), tool.Env{}, "a.txt", err))
		if !ok || refusal.Code != tool.PermissionDenied {
			t.Fatalf("%v: got %#v", err, refusal)
		}
		tooltest.Same(t, refusal.Text, "Permission denied: the permissions of the file system, not a rule, keep the server from a.txt."+kept+" Ask the user.")
	}
	if err := errors.Join(context.Canceled, syscall.EINTR); wording.PathRefusal(tool.Env{}, "a.txt", err) != err {
		t.Error("the end of a call is told as a file that cannot be read")
	}
}

// A file that cannot be written was told without what to do now, and one that never was as unchanged.
func TestChangeRefusal(t *testing.T) {
	t.Parallel()
	const space, ask, again = " Free space there, or ask the user to do so.", " Ask the user.", " Try again, and if that does not help, ask the user."
	for cause, now := range map[syscall.Errno]string{
		syscall.ENOSPC: space, syscall.EDQUOT: space, syscall.EROFS: ask, syscall.EACCES: ask, syscall.EPERM: ask, syscall.EIO: again, syscall.EMFILE: again,
	} {
		for absent, kept := range map[bool]string{false: " The file is unchanged.", true: " Nothing was changed."} {
			err := &filestate.WriteError{Path: "/w/real", Step: "create", Err: cause, Absent: absent}
			refusal, ok := errors.AsType[*tool.Refusal](Guard{Name: "write_file"}.Refusal(t.Context(), tool.Env{}, "a.txt", err))
			if want := "Writing a.txt failed: " + cause.Error() + "." + kept + now; !ok || refusal.Code != tool.WriteFailed || refusal.Text != want {
				t.Errorf("got %v\nwant %s", refusal, want)
			}
		}
	}
	missing := &filestate.WriteError{Path: "/w/new", Step: "open", Err: syscall.EMFILE, Absent: true}
	refusal, _ := errors.AsType[*tool.Refusal](Guard{Name: "write_file"}.Refusal(t.Context(), tool.Env{}, "new", missing))
	if want := "Writing new failed: too many open files. Nothing was changed." + again; refusal == nil || refusal.Code != tool.WriteFailed || refusal.Text != want {
		t.Errorf("got %v", refusal)
	}
}

func TestTornRefusal(t *testing.T) {
	t.Parallel()
	err := tornRefusal(&filestate.RollbackError{Err: errors.New("disk full"), Files: []filestate.Left{
		{Path: "/w/a", Changed: true, Err: errors.New("read-only file system")}, {Path: "/w/b"},
	}})
	r, ok := errors.AsType[*tool.Refusal](err)
	if !ok || r.Code != tool.RollbackFailed || r.Number != 15 {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"\n/w/a: has the new content, or another program changed it since (read-only file system)", "\n/w/b: as before"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("no %q in %s", want, r.Text)
		}
	}
}

func TestSeenLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seen []filestate.Lines
		text string
		next int
	}{
		{nil, "parts of lines", 1},
		{[]filestate.Lines{{From: 1, To: 200}}, "lines 1-200 of 5,204", 201},
		{[]filestate.Lines{{From: 5, To: 9}, {From: 20, To: 30}}, "lines 5-9, 20-30 of 5,204", 1},
	} {
		if got := seenLines(&filestate.PartReadError{Seen: c.seen, Total: 5204}); got != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
		if got := nextUnseen(c.seen); got != c.next {
			t.Errorf("the next line to read is %d, want %d", got, c.next)
		}
	}
}
