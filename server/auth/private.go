package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// A PrivateFile is a small file of the data directory that only its owner may read, as the tokens file. Its writers are
// processes of codehand; they take turns. It is safe for concurrent use.
type PrivateFile struct {
	path string
	now  func() time.Time

	mu   sync.Mutex // covers what follows
	seen sight
	text []byte
}

// OpenPrivate names the file, by an absolute path; it need not exist.
func OpenPrivate(path string) *PrivateFile { return &PrivateFile{path: path, now: time.Now} }

// Path returns the file's path.
func (f *PrivateFile) Path() string { return f.path }

// Read returns what the file holds now, following links; nil: there is no file. The caller must not change it. An error
// names the file: others may read it, it belongs to another user, or it cannot be read. A file that looks as it did is
// not read again, so Read may be called for each request.
func (f *PrivateFile) Read() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen.settled {
		if info, err := os.Stat(f.path); err == nil && f.seen.same(info) {
			return f.text, nil
		}
	}
	f.seen = sight{}
	start := f.now()
	text, err := readPrivate(f.path, ownerOrRoot, &f.seen.info)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.text = nil
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	f.text = text
	f.seen.settled = start.Sub(f.seen.info.ModTime()) > young
	return text, nil
}

// Change takes the lock that all writers share, and replaces what the file holds by what edit returns: a reader sees
// the old or the new one, whole. nil: the file stays as it is. An error of edit comes back as it is.
func (f *PrivateFile) Change(edit func(old []byte) ([]byte, error)) error {
	unlock, err := lockBeside(f.path, lockPatience)
	if err != nil {
		return err
	}
	defer unlock()
	var info fs.FileInfo
	old, err := readPrivate(f.path, ownerOrRoot, &info)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	text, err := edit(old)
	if err != nil || text == nil {
		return err
	}
	if err := replaceFile(f.path, text, true); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = sight{} // its times are too young to prove anything
	return nil
}
