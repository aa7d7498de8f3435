package disk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/disk"
)

// fileOf opens a new file of that content for reading and writing.
func fileOf(t *testing.T, content []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	return f
}

// sizes are on each side of the ends of the blocks in which files are read.
var sizes = []int{0, 1, 2, disk.ChunkSize - 1, disk.ChunkSize, disk.ChunkSize + 1, 2*disk.ChunkSize - 1, 2 * disk.ChunkSize, 2*disk.ChunkSize + 1}

// A file of the size that it should have is read and hashed whole; one that grew or shrank meanwhile says so.
func TestReading(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		content := bytes.Repeat([]byte("0123456789\n"), size/11+1)[:size]
		f := fileOf(t, content)
		got, err := disk.ReadAll(t.Context(), f, int64(size))
		if err != nil || !bytes.Equal(got, content) || cap(got) != len(got) {
			t.Errorf("%d bytes: read %d with room for %d, %v", size, len(got), cap(got), err)
		}
		if got, err := disk.StreamDigest(t.Context(), f, int64(size)); err != nil || got != disk.DigestOf(content) {
			t.Errorf("%d bytes: digest %s, %v", size, got.Hex(), err)
		}
		for _, other := range []int64{int64(size) - 1, int64(size) + 1, int64(size) + disk.ChunkSize, 0} {
			if other < 0 || other == int64(size) {
				continue
			}
			if got, err := disk.ReadAll(t.Context(), f, other); got != nil || !errors.Is(err, disk.ErrMoved) {
				t.Errorf("%d bytes instead of %d: read %d, %v", size, other, len(got), err)
			}
			if got, err := disk.StreamDigest(t.Context(), f, other); got != (disk.Digest{}) || !errors.Is(err, disk.ErrMoved) {
				t.Errorf("%d bytes instead of %d: digest %s, %v", size, other, got.Hex(), err)
			}
		}
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		content := bytes.Repeat([]byte("0123456789\n"), size/11+1)[:size]
		f := fileOf(t, content)
		holds := func(what string, c []byte, want bool) {
			t.Helper()
			if got, err := disk.Holds(t.Context(), f, c); got != want || err != nil {
				t.Errorf("%d bytes, %s: %v, %v", size, what, got, err)
			}
		}
		holds("the same", content, true)
		holds("one more", append(bytes.Clone(content), 0), false)
		holds("a block more", append(bytes.Clone(content), make([]byte, disk.ChunkSize)...), false)
		if size == 0 {
			holds("none", nil, true)
			continue
		}
		holds("one less", content[:size-1], false)
		holds("nothing", nil, false)
		for _, at := range []int{0, size / 2, size - 1} {
			other := bytes.Clone(content)
			other[at] ^= 1
			holds(fmt.Sprintf("byte %d differs", at), other, false)
		}
	}
}

// Reading ends with its context, for the reason that this has, and says why a file cannot be read.
func TestReadingEnds(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ended, end := context.WithCancelCause(t.Context())
	end(cause)
	f := fileOf(t, []byte("x"))
	closed := fileOf(t, []byte("x"))
	_ = closed.Close()
	for name, c := range map[string]struct {
		ctx  context.Context
		f    *os.File
		want error
	}{"context": {ended, f, cause}, "closed": {t.Context(), closed, fs.ErrClosed}} {
		_, all := disk.ReadAll(c.ctx, c.f, 1)
		_, sum := disk.StreamDigest(c.ctx, c.f, 1)
		_, holds := disk.Holds(c.ctx, c.f, []byte("x"))
		for _, err := range []error{all, sum, holds} {
			if !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", name, err, c.want)
			}
		}
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-4, first example
	d := disk.DigestOf([]byte("abc"))
	other, empty := disk.DigestOf([]byte("x")), disk.DigestOf(nil)
	var none *disk.Digest
	if d.Hex() != abc || d.Text() != abc || none.Text() != "" {
		t.Errorf("got %s, %s and %q for none", d.Hex(), d.Text(), none.Text())
	}
	for name, c := range map[string]struct {
		d       *disk.Digest
		content []byte
		want    bool
	}{
		"its own": {&d, []byte("abc"), true}, "another": {&d, []byte("abd"), false}, "no file": {&d, nil, false},
		"none and none": {none, nil, true}, "none and a file": {none, []byte("abc"), false}, "none and an empty file": {none, []byte{}, false},
		"an empty file": {&empty, []byte{}, true}, "an empty file and none": {&empty, nil, false},
	} {
		if got := c.d.IsOf(c.content); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	same := d
	if !d.Equal(&same) || d.Equal(&other) || d.Equal(nil) || none.Equal(&d) || !none.Equal(nil) {
		t.Error("digests are equal to others than themselves")
	}
}

func TestDigestAsText(t *testing.T) {
	t.Parallel()
	d := disk.DigestOf([]byte("abc"))
	b, err := json.Marshal(&d)
	var back disk.Digest
	if err != nil || string(b) != `"`+d.Hex()+`"` || json.Unmarshal(b, &back) != nil || back != d {
		t.Errorf("%s became %s: %v", b, back.Hex(), err)
	}
	for _, text := range []string{"", "ab", d.Hex()[:63], d.Hex()[:62], d.Hex() + "0", d.Hex() + "00", strings.Repeat("g", 64), strings.Repeat(" ", 64)} {
		var got disk.Digest
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for a digest", text)
		}
	}
}

// Errors lose the names of what was asked of the system, layer by layer, and nothing else.
func TestCause(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	wrapped := fmt.Errorf("wrapped: %w", &fs.PathError{Op: "open", Path: "secret", Err: own})
	for name, c := range map[string]struct{ err, want error }{
		"none": {nil, nil}, "a plain one": {own, own}, "a wrapped one": {wrapped, wrapped}, "of the system": {syscall.EIO, syscall.EIO},
		"of a path": {&fs.PathError{Op: "open", Path: "secret", Err: own}, own},
		"of a link": {&os.LinkError{Op: "rename", Old: "secret", New: "secret", Err: own}, own},
		"of all":    {&os.LinkError{Err: &fs.PathError{Err: &os.SyscallError{Syscall: "rename", Err: syscall.EIO}}}, syscall.EIO},
	} {
		if got := disk.Cause(c.err); !errors.Is(got, c.want) || (got != nil && got.Error() != c.want.Error()) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestSyncDir(t *testing.T) {
	t.Parallel()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := disk.SyncDir(dir); err != nil && !disk.Unsynced(err) {
		t.Error(err)
	}
	_ = dir.Close()
	if err := disk.SyncDir(dir); !errors.Is(err, fs.ErrClosed) && runtime.GOOS != "windows" { // nothing is done there
		t.Errorf("of a closed directory: %v", err)
	}
	for err, want := range map[error]bool{nil: false, syscall.EINVAL: true, errors.ErrUnsupported: true, syscall.ENOTSUP: true, syscall.ENOSYS: true, syscall.EIO: false, syscall.ENOSPC: false, fs.ErrClosed: false} {
		if err != nil {
			err = &fs.PathError{Op: "sync", Path: "d", Err: err}
		}
		if got := disk.Unsynced(err); got != want {
			t.Errorf("%v: unsynced %v, want %v", err, got, want)
		}
	}
}
