package disk_test

import (
	"os"
	"testing"

	"codehand/filestate/disk"
)

// A file counts as being written as long as any program has it open for writing. The look leaves no lease behind that
// such a program would wait for.
func TestBeingWritten(t *testing.T) {
	t.Parallel()
	writer := fileOf(t, []byte("x"))
	reader, err := os.Open(writer.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for range 2 {
		if !disk.BeingWritten(reader) {
			t.Error("a file that is open for writing is said to be left alone")
		}
	}
	_ = writer.Close()
	for range 2 {
		if disk.BeingWritten(reader) {
			t.Error("a file that nobody writes is said to be written")
		}
		again, err := os.OpenFile(reader.Name(), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = again.Close()
	}
	_ = reader.Close()
	if disk.BeingWritten(reader) {
		t.Error("a closed file is said to be written")
	}
}

func TestOwnedByUs(t *testing.T) {
	t.Parallel()
	f := fileOf(t, nil)
	info, err := f.Stat()
	if err != nil || !disk.OwnedByUs(info) {
		t.Errorf("a file of this process is another's: %v", err)
	}
	foreign := "/"
	if os.Geteuid() == 0 {
		foreign = f.Name()
		if err := os.Chown(foreign, 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(foreign); err != nil || disk.OwnedByUs(info) {
		t.Errorf("%s is this user's: %v", foreign, err)
	}
}
