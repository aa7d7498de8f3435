package blackbox

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"codehand/server/replaytest"
)

// What a command names behind its first 200 files is not looked for on the disk, so no person was asked about it, and a
// link there opened the protected name to which it leads.
func TestUnaskedBehindManyFiles(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	must(t, os.Symlink(".git/hooks", filepath.Join(p.root, "link")))
	command := ""
	for i := range 200 {
		command += ">f" + strconv.Itoa(i) + " "
	}
	p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command+"; echo evil >link/post-commit"))
	if _, err := os.Lstat(filepath.Join(p.root, ".git/hooks/post-commit")); err == nil {
		t.Error("a hook was made without a question")
	}
	if _, err := os.Lstat(filepath.Join(p.root, "f199")); err != nil {
		t.Errorf("the command did not run: %v", err)
	}
}
