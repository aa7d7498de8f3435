//go:build unix

package filestate_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
)

func TestSpecial(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if err := syscall.Mkfifo(d.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	leaktest.Socket(t, d.path("s"))
	cases := map[string]string{d.path("fifo"): "FIFO", d.path("s"): "socket", "/dev/null": "device"}
	for path, kind := range cases {
		f := openFile(t, path)
		_, err := d.l.Open(t.Context(), f)
		e, ok := errors.AsType[*disk.NotRegularError](err)
		if !ok || e.Kind != kind || e.Path != path {
			t.Errorf("open %s: got %v, want a %s", path, err, kind)
		}
		wantError(t, err, disk.ErrNotRegular)
		_, err = d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: f, Unseen: true, Change: never(t)})
		wantError(t, err, disk.ErrNotRegular)
		_ = f.Close()
	}
}

func never(t *testing.T) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) {
		t.Error("Change was called")
		return nil, nil
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything; run the tests as an ordinary user to have this case")
	}
	d := newDesk(t)
	d.write("a", "x")
	if err := os.Chmod(d.path("a"), 0); err != nil {
		t.Fatal(err)
	}
	_, err := d.l.Open(t.Context(), d.file("a"))
	wantError(t, err, os.ErrPermission)
	_, err = d.edit("a", "x", "y")
	if e, ok := errors.AsType[*filestate.WriteError](err); !ok || e.Step != "open" {
		t.Errorf("got %v, want a WriteError of the step open", err)
	}
}
