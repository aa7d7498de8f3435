package session

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/workspace"
)

func TestOpen(t *testing.T) {
	dir := leaktest.Dir(t)
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	space, err := workspace.Open([]string{dir}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	s := &State{Space: space}

	f, err := s.Open("a", workspace.Read)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Dir.Close()
	if f.Path != filepath.Join(dir, "a") || f.Name != "a" {
		t.Errorf("got %s below its directory, %s", f.Name, f.Path)
	}
	_, err = s.Open("/", workspace.Read)
	if _, ok := errors.AsType[*workspace.OutsideError](err); !ok {
		t.Errorf("got %v, want workspace's own error", err)
	}
}
