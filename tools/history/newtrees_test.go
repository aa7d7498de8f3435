package history

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"codehand/filestate/journal"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// A command that installs a hundred files filled the list with their names.
func TestLineFolds(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	space, err := workspace.Open([]string{root}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	env := tool.Env{State: &session.State{Space: space}}
	file := func(op, name string) journal.EntryFile {
		return journal.EntryFile{Op: op, Path: filepath.Join(root, filepath.FromSlash(name)), Added: 1}
	}
	files := []journal.EntryFile{file("create", "a.txt")}
	for i := range 100 {
		files = append(files, file("create", fmt.Sprintf("pkg/%d/x.js", i)))
	}
	files = append(files, file("edit", "pkg/old.js"), file("create", "few/one"), file("create", "few/two"))
	at := time.Date(2026, 11, 28, 10, 0, 0, 0, time.Local)
	want := "id 10:00:00 run_shell pkg/ 100 new files, a.txt +1 -0 (new file), pkg/old.js +1 -0, few/one +1 -0 (new file), few/two +1 -0 (new file)"
	e := journal.Entry{ID: "id", Time: at, By: journal.By{Tool: "run_shell"}}
	if got := Line(env, e, files, at); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e.Kept = "held" // each is written back by its name
	if got := Line(env, e, files, at); len(got) < 10*len("pkg/00/x.js") {
		t.Errorf("got %s", got)
	}
}
