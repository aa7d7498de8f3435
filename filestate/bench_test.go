package filestate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"codehand/filestate"
)

// BenchmarkEdit changes 4 KiB durably, as edit_file does, beside the least that a durable change costs:
// write, fsync, rename, fsync of the directory.
func BenchmarkEdit(b *testing.B) {
	b.Run("ledger", func(b *testing.B) { benchEdit(b, filestate.Options{Dir: b.TempDir()}) })
	b.Run("ledger with a journal", func(b *testing.B) {
		benchEdit(b, filestate.Options{Dir: b.TempDir(), Journal: openJournal(b, filepath.Join(b.TempDir(), "journal"))})
	})
	b.Run("ledger without lock files", func(b *testing.B) { benchEdit(b, filestate.Options{}) })
	b.Run("ledger, fast", func(b *testing.B) { benchEdit(b, filestate.Options{Dir: b.TempDir(), Fast: true}) })
	b.Run("write, fsync, rename", benchPlain)
}

func benchContent() []byte { return bytes.Repeat([]byte("0123456789abcde\n"), 256) }

func benchEdit(b *testing.B, o filestate.Options) {
	path := filepath.Join(b.TempDir(), "a")
	if err := os.WriteFile(path, benchContent(), 0o644); err != nil {
		b.Fatal(err)
	}
	l := filestate.New(o)
	b.ReportAllocs()
	unseen := true // the first edit; all others go by what was seen
	for b.Loop() {
		f := openFile(b, path)
		_, err := l.Update(b.Context(), filestate.By{}, filestate.Edit{File: f, Unseen: unseen, Change: func(old []byte) ([]byte, error) {
			next := bytes.Clone(old)
			next[len(next)/2]++
			return next, nil
		}})
		if err != nil {
			b.Fatal(err)
		}
		unseen = false
		_ = f.Close()
	}
}

func benchPlain(b *testing.B) {
	dir := b.TempDir()
	path, temp, content := filepath.Join(dir, "a"), filepath.Join(dir, "temp"), benchContent()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		f, err := os.Create(temp)
		must(err)
		_, err = f.Write(content)
		must(err)
		must(f.Sync())
		must(f.Close())
		must(os.Rename(temp, path))
		d, err := os.Open(dir)
		must(err)
		must(d.Sync())
		must(d.Close())
	}
}

func BenchmarkLock(b *testing.B) {
	l := filestate.NewLocker(b.TempDir())
	for b.Loop() {
		unlock, err := l.Lock(b.Context(), "/some/path")
		if err != nil {
			b.Fatal(err)
		}
		unlock()
	}
}
