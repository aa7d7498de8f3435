//go:build unix

package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/tools/tool"
)

// inRepository is a session in a git work tree with the files a and b.
func inRepository(t *testing.T) *rig {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed: it makes the work trees")
		}
		t.Skip("git is not installed: it makes the work trees")
	}
	r := newRig(t)
	r.write("a", "one\n")
	r.write("b", "one\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = r.dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return r
}

// while runs a command, and does something after its first half and before its second.
func (r *rig) while(first, second string, do func()) string {
	r.t.Helper()
	for _, name := range []string{"half", "goon"} { // in .git, where no command's changes are listed
		if err := syscall.Mkfifo(filepath.Join(r.dir, ".git", name), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	answer := make(chan string, 1)
	go func() {
		_, text := r.do("run_shell", `{"command":"`+first+`; echo x >.git/half; read x <.git/goon; `+second+`"}`)
		answer <- text
	}()
	if _, err := os.ReadFile(filepath.Join(r.dir, ".git", "half")); err != nil {
		r.t.Fatal(err)
	}
	do()
	if err := os.WriteFile(filepath.Join(r.dir, ".git", "goon"), []byte("x\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return <-answer
}

// undoID is the change that an answer offers to take back.
func undoID(t *testing.T, text string) string {
	t.Helper()
	id := offered.FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("no undo is offered:\n%s", text)
	}
	return id[1]
}

// What another program edited while a command ran was undone together with the command, and was lost.
func TestUndoLeavesChangesOfOthers(t *testing.T) {
	t.Parallel()
	r := inRepository(t)
	text := r.while("echo two >a", "true", func() {
		r.ok("read_file", `{"file_path":"b"}`)
		r.ok("edit_file", `{"file_path":"b","old_string":"one","new_string":"by another call"}`)
		r.ok("write_file", `{"file_path":"n","content":"by another call\n"}`)
	})
	if !strings.Contains(text, "[changed on disk: M a, M b, A n; undo_change ") || !strings.Contains(text,
		" takes back a; no undo of b (another call changed it while the command ran)]") {
		t.Errorf("the answer promises something else:\n%s", text)
	}
	r.ok("undo_change", `{"change_id":"`+undoID(t, text)+`"}`)
	r.holds("a", "one\n")
	r.holds("b", "by another call\n")
	r.holds("n", "by another call\n")
	if refused := r.ok("file_history", `{"limit":5}`); !strings.Contains(refused, "another call changed it while the command ran") {
		t.Errorf("the history has no reason:\n%s", refused)
	}
}

// A file that git ignores, and that a command moved to a name that git does not ignore, was removed by the undo.
func TestUndoKeepsWhatWasMoved(t *testing.T) {
	t.Parallel()
	r := inRepository(t)
	r.write(".git/info/exclude", "dist\n")
	r.write("dist/f", "made in an hour\n")
	r.ok("run_shell", `{"command":"echo x >c"}`)
	_, text := r.do("run_shell", `{"command":"mv dist out; echo two >a; echo new >n"}`)
	if !strings.HasSuffix(text, " takes back a]") {
		t.Errorf("the answer promises something else:\n%s", text)
	}
	r.ok("undo_change", `{"change_id":"`+undoID(t, text)+`"}`)
	r.holds("out/f", "made in an hour\n")
	r.holds("a", "one\n")
	r.holds("n", "new\n") // what was in dist is unknown, so it may be from there
	r.fails(tool.UndoUnavailable, "undo_change", `{"file_path":"out/f"}`)
}

// A command copied a file that git does not track and removed the original, or popped a stash. The undo removed the
// copy, and nothing was left.
func TestUndoKeepsTheOnlyCopy(t *testing.T) {
	t.Parallel()
	r := inRepository(t)
	r.write("notes.txt", "an hour's work\n")
	_, text := r.do("run_shell", `{"command":"cp notes.txt kept2.txt && rm notes.txt; echo two >a; echo new >n"}`)
	if !strings.HasSuffix(text, " takes back a, n, notes.txt]") {
		t.Errorf("the answer promises something else:\n%s", text)
	}
	r.ok("undo_change", `{"change_id":"`+undoID(t, text)+`"}`)
	r.holds("kept2.txt", "an hour's work\n")
	r.holds("notes.txt", "an hour's work\n")
	r.holds("a", "one\n")
	if _, err := os.Stat(filepath.Join(r.dir, "n")); err == nil {
		t.Error("the new file is still there")
	}
	why := "cannot be undone: it may be the only copy of notes.txt"
	if history := r.ok("file_history", `{"limit":5}`); !strings.Contains(history, why) {
		t.Errorf("the history has no reason:\n%s", history)
	}
	r.fails(tool.UndoUnavailable, "undo_change", `{"file_path":"kept2.txt"}`)

	r.ok("run_shell", `{"command":"echo three >a; git -c user.name=a -c user.email=a@b stash -qu"}`)
	if _, text = r.do("run_shell", `{"command":"git stash pop -q"}`); strings.Contains(text, "undo_change") {
		t.Errorf("the undo of a popped stash is offered:\n%s", text)
	}
	r.fails(tool.UndoUnavailable, "undo_change", `{"file_path":"kept2.txt"}`)
	r.holds("kept2.txt", "an hour's work\n")
}

// What another call wrote into a file that a command then moved was removed with the undo of the command.
func TestUndoKeepsTheOnlyCopyOfOthers(t *testing.T) {
	t.Parallel()
	r := inRepository(t)
	text := r.while("echo two >b", "mv a c", func() {
		r.ok("read_file", `{"file_path":"a"}`)
		r.ok("edit_file", `{"file_path":"a","old_string":"one","new_string":"by another call"}`)
	})
	r.ok("undo_change", `{"change_id":"`+undoID(t, text)+`"}`)
	r.holds("b", "one\n")
	r.holds("c", "by another call\n")
}

// A file that appeared under a protected name is renamed, and may be a person's. The undo of a command removed it.
func TestUndoKeepsRefusedFiles(t *testing.T) {
	t.Parallel()
	r := inRepository(t)
	_, text := r.do("run_shell", `{"command":"mkdir -p d/.vscode.refused-ABC234; echo x >d/.vscode.refused-ABC234/f; `+
		`echo x >.envrc.refused-ABC234; echo two >a; echo new >n.refused-not"}`)
	if !strings.HasSuffix(text, " takes back a, n.refused-not]") {
		t.Errorf("the answer promises something else:\n%s", text)
	}
	r.ok("undo_change", `{"change_id":"`+undoID(t, text)+`"}`)
	r.holds("a", "one\n")
	r.holds(".envrc.refused-ABC234", "x\n")
	r.holds("d/.vscode.refused-ABC234/f", "x\n")
	why := "cannot be undone: it appeared under a protected name and was renamed, and may not be the command's"
	if history := r.ok("file_history", `{"limit":5}`); strings.Count(history, why) != 2 {
		t.Errorf("the history has no reason:\n%s", history)
	}
}

// "takes it back" stood behind files of which undo_change takes back nothing.
func TestUndoPromises(t *testing.T) {
	t.Parallel()
	r := inRepository(t)
	for _, c := range []struct{ command, want string }{
		{"echo two >a", " takes it back]"},
		{"echo three >a; git add a", " takes the files back, but not what git recorded (index, commits, branches)]"},
		{"echo four >a; ln -sf a b; git add a", " takes the files back, but not what git recorded (index, commits, " +
			"branches), once the links in their place are removed (b)]"},
	} {
		if _, text := r.do("run_shell", `{"command":"`+c.command+`"}`); !strings.HasSuffix(text, c.want) {
			t.Errorf("%s: want %q:\n%s", c.command, c.want, text)
		}
	}
	linked := inRepository(t)
	linked.write("a", "mine\n")
	_, text := linked.do("run_shell", `{"command":"ln -sf b a"}`)
	if !strings.HasSuffix(text, " takes it back, once the links in their place are removed (a)]") {
		t.Errorf("a link is in the way:\n%s", text)
	}
	linked.remove("a")
	linked.ok("undo_change", `{"file_path":"a"}`)
	linked.holds("a", "mine\n")
	inner := newRig(t)
	inner.write("seen", "one\n")
	inner.write("sub/a", "one\n")
	inner.ok("read_file", `{"file_path":"seen"}`)
	inner.ok("run_shell", `{"command":"git init -q sub; cd sub; git add -A; git -c user.name=a -c user.email=a@b commit -qm x"}`)
	if _, text := inner.do("run_shell", `{"command":"echo two >a; echo two >../seen"}`); !strings.HasSuffix(text, " takes it back]") {
		t.Errorf("a file that is not of the work tree changed, too:\n%s", text)
	}
	text = r.while("echo five >a", "true", func() { r.engines.Trees.Close() })
	if want := "[which files of the git work tree it changed is not known, so look with git status]"; !strings.Contains(text, want) {
		t.Errorf("nothing is known, and the answer does not say so:\n%s", text)
	}
}

// Where `.git` leads to a repository that does not name this work tree, the list of changes was missing without a word.
func TestChangesOfUnusedRepository(t *testing.T) {
	t.Parallel()
	const unknown = "is not known, so look with git status]"
	for _, c := range []struct{ name, setup string }{
		{"separate directory", `mv .git "$TO/g" && echo "gitdir: $TO/g" >.git`},
		{"link", `mv .git "$TO/g" && ln -s "$TO/g" .git`},
		{"index that cannot be read", "echo x >.git/index"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := inRepository(t)
			sh := exec.Command("bash", "-c", c.setup)
			sh.Dir, sh.Env = r.dir, append(os.Environ(), "TO="+t.TempDir())
			if out, err := sh.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			r.ok("read_file", `{"file_path":"b"}`)
			text := r.ok("run_shell", `{"command":"echo two >a; echo two >b"}`)
			if !strings.Contains(text, "; what else it changed in the git work tree "+unknown) {
				t.Errorf("the list is not whole, and the answer does not say so:\n%s", text)
			}
			if text = r.ok("run_shell", `{"command":"echo three >a"}`); strings.Contains(text, unknown) {
				t.Errorf("it is said again:\n%s", text)
			}
		})
	}
	if text := newRig(t).ok("run_shell", `{"command":"echo two >a"}`); strings.Contains(text, unknown) {
		t.Errorf("there is no git at all:\n%s", text)
	}
}

// The history of changes showed what a person typed as a password.
func TestHistoryMasksSecrets(t *testing.T) {
	t.Parallel()
	r := inRepository(t)
	r.ok("run_shell", `{"command":"echo two >a; PASSWORD=hunter2 true --token=abc"}`)
	if text := r.ok("file_history", `{}`); strings.Contains(text, "hunter2") || strings.Contains(text, "abc") ||
		!strings.Contains(text, "while this ran: echo two >a; PASSWORD=[masked] true --token=[masked]") {
		t.Errorf("%s", text)
	}
}

// A command that made 1,479 files was told of by ten of them, and history and show_changes by 200.
func TestTreesAreOneLine(t *testing.T) {
	t.Parallel()
	r := inRepository(t)
	text := r.ok("run_shell", `{"command":"mkdir -p .venv/lib; touch .venv/$(seq -s ' .venv/' 1000) .venv/lib/$(seq -s ' .venv/lib/' 479); echo two >a"}`)
	if want := "[changed on disk: A .venv/ 1,479 new files, M a; undo_change"; !strings.Contains(text, want) ||
		!strings.Contains(text, " takes back a]") {
		t.Errorf("%s\nwant %s", text, want)
	}
	text = r.ok("file_history", `{}`)
	if want := ".venv/ 1,479 new files (cannot be undone: it has too many new files to note each) [while"; !strings.Contains(text, want) ||
		strings.Contains(text, ".venv/1 ") {
		t.Errorf("%s\nwant %s", text, want)
	}
	if text = r.ok("show_changes", `{}`); strings.Count(text, ".venv") != 1 || !strings.Contains(text, ".venv +0 -0 (1,479 new files") {
		t.Errorf("%s", text)
	}
	r.ok("undo_change", `{"change_id":"`+undoID(t, r.ok("run_shell", `{"command":"echo three >a"}`))+`"}`)
	text = r.ok("run_shell", `{"command":"rm -r .venv/lib"}`)
	if want := "[changed on disk: D .venv/lib/ 479 files"; !strings.Contains(text, want) {
		t.Errorf("%s\nwant %s", text, want)
	}
	r.ok("run_shell", `{"command":"rm -r .venv"}`)
	if text = r.ok("show_changes", `{}`); strings.Contains(text, "new files") {
		t.Errorf("what is gone again is shown:\n%s", text)
	}
}

// An undo of what a command removed does not show what must not be read without a question.
func TestUndoShowsNoSecret(t *testing.T) {
	t.Parallel()
	r := inRepository(t)
	r.State.Rules = r.State.Rules.At([]string{r.dir}, r.dir)
	r.write(".env", "KEY=hush\n")
	cmd := exec.Command("git", "-C", r.dir, "add", "-f", ".env")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	id := undoID(t, r.ok("run_shell", `{"command":"rm .env a"}`))
	text := r.ok("undo_change", `{"change_id":"`+id+`"}`)
	if strings.Contains(text, "hush") || !strings.Contains(text, "+one") || !strings.Contains(text, "read again before editing: .env") {
		t.Errorf("%s", text)
	}
	r.holds(".env", "KEY=hush\n")
}
