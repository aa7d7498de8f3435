package probe

import (
	"fmt"
	"os"
	"path/filepath"
)

// canaries are files in Root and Seen. Each attempt has its own, since one that succeeds uses it up.
var canaries = []string{"overwrite", "truncate", "rename", "link", "unlink", "mode", "times", "attribute"}

// SocketName is a socket with a listener in Seen and Unlisted, unless its path is longer than SocketMost: an address
// has no room for more.
const (
	SocketName = "/socket"
	SocketMost = 107
)

// New returns a Scene whose files are below dir.
func New(dir string, write bool) *Scene {
	seen := filepath.Join(dir, "seen")
	return &Scene{
		Root: filepath.Join(dir, "root"), Seen: seen, Unlisted: filepath.Join(dir, "unlisted"),
		Hidden: filepath.Join(seen, "hidden"), Write: write,
	}
}

// Prepare makes the directories and files that Probes want.
func (s *Scene) Prepare() error {
	for _, dir := range []string{s.Root + "/.git/hooks", s.Root + "/below/.git", s.Hidden, s.Unlisted} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	files := []string{
		s.Root + "/.git/config", s.Root + "/below/.git/config", s.Hidden + "/secret", s.Unlisted + "/secret",
	}
	for _, name := range canaries {
		files = append(files, filepath.Join(s.Root, name), filepath.Join(s.Seen, name))
	}
	for _, path := range files {
		if err := os.WriteFile(path, []byte(s.Token), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Protected are the paths in Root that a profile with a writable root must keep as they are.
func (s *Scene) Protected() []string {
	var list []string
	for _, name := range []string{".git/config", ".git/hooks", "below/.git/config"} {
		list = append(list, s.Root+"/"+name)
	}
	return list
}

// wrong is an attempt that could not be tried as it was meant; it counts as refused, and says why.
func wrong(format string, args ...any) error { return fmt.Errorf(format, args...) }
