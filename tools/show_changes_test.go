package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/journal"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

// Whatever was changed fits into one answer: each file gets its part of the room, the rest is named with counts, and how
// many could not even be named is said.
func TestShowChangesFits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text := strings.Repeat("a long line of a file\n", 100)
	for i := range 120 {
		r.ok("write_file", fmt.Sprintf(`{"file_path":"d/%03d-%s","content":%q}`, i, strings.Repeat("n", 100), text))
	}
	for i := range 3 {
		r.ok("write_file", fmt.Sprintf(`{"file_path":"%d","content":%q}`, i, strings.Repeat(text, 30)))
	}
	all := r.ok("show_changes", `{}`)
	if len(all) > 50_000 || !strings.HasPrefix(all, "123 files changed in this session: +21000 -0\n") || strings.Count(all, "@@ ") < 10 {
		t.Errorf("%d bytes: %.300s", len(all), all)
	}
	if named := strings.Count(all, " (new file)"); named != 123 && !strings.Contains(all, fmt.Sprintf("(And %d more files; give path as a directory to see them.)", 123-named)) {
		t.Errorf("%d of 123 files are named:\n%s", named, all[len(all)-300:])
	}
	if one := r.ok("show_changes", `{"path":"2"}`); !strings.HasPrefix(one, "1 file changed in this session: +3000 -0\n2 +3000 -0 (new file)") || len(one) < 30_000 || len(one) > 50_000 {
		t.Errorf("%d bytes: %.200s", len(one), one)
	}
	short := r.ok("show_changes", `{"summary":true}`)
	if strings.Contains(short, "@@") || strings.Count(short, " (new file)") != 123 {
		t.Errorf("%.300s", short)
	}
}

// Changes of another session are not this one's: they are told apart even where both changed one file, and an undo by
// the other one takes the change out.
func TestShowChangesOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("edit_file", `{"file_path":"a","old_string":"2","new_string":"two"}`)
	mine := r.lastChange("a")
	r.Key.Session = "other"
	r.ok("edit_file", `{"file_path":"a","old_string":"5","new_string":"five\nfive and a half"}`)
	r.ok("write_file", `{"file_path":"b","content":"theirs\n"}`)
	r.Key.Session = "test"
	r.ok("edit_file", `{"file_path":"a","old_string":"8","new_string":"eight"}`)
	last := r.lastChange("a")
	want := "1 file changed in this session: +2 -2\na +2 -2 [also changed by the user, another program or a job: +2 -1 of these lines are not of this session (lines 5-6)] (undo_change " + last + ", then " + mine + ")\n@@ "
	if text := r.ok("show_changes", `{}`); !strings.HasPrefix(text, want) || !strings.Contains(text, "+five\n") {
		t.Errorf("got %s", text)
	}
	r.Key.Session = "other"
	if text := r.ok("show_changes", `{}`); !strings.Contains(text, "b +1 -0 (new file)") || !strings.Contains(text, "a +2 -1 [also changed") {
		t.Errorf("the other's: %s", text)
	}
	r.ok("undo_change", `{"file_path":"b"}`)
	r.Key.Session = "third"
	same(t, r.ok("show_changes", `{}`), "No changes in this session.")
	r.ok("undo_change", `{"change_id":"`+last+`"}`)
	r.Key.Session = "test"
	if text := r.ok("show_changes", `{}`); strings.Contains(text, last) || strings.Contains(text, "eight") || !strings.Contains(text, mine) {
		t.Errorf("after an undo by a third: %s", text)
	}
	r.Restart()
	if text := r.ok("show_changes", `{}`); !strings.Contains(text, mine) {
		t.Errorf("after a restart: %s", text)
	}
	r.Shared = true
	if text := r.ok("show_changes", `{}`); !strings.HasPrefix(text, "Several conversations share this session; these are the changes of all of them.\n") {
		t.Error(text)
	}
}

// What the session may not read is named without a line of it, also where the file was moved, or a link put in its place.
func TestShowChangesLeavesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("write_file", `{"file_path":"a","content":"visible\n"}`)
	r.ok("write_file", `{"file_path":"secret/b","content":"hidden\n"}`)
	r.ok("write_file", `{"file_path":"c","content":"c\n"}`)
	r.write("secret/d", "hidden, too\n")
	r.remove("c")
	r.link("c", "secret/d")
	policy, err := permission.New(permission.Options{Deny: []permission.Rule{{Text: "Read(secret/**)", Origin: "test", Dir: r.dir}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Rules = policy.At([]string{r.dir}, r.dir)
	for _, input := range []string{`{}`, `{"path":"."}`, `{"path":"$WORK"}`} {
		text := r.ok("show_changes", input)
		if strings.Contains(text, "hidden") || !strings.Contains(text, "secret/b +1 -0 (not shown: ") || !strings.Contains(text, "+visible") {
			t.Errorf("%s: %s", input, text)
		}
		if !strings.Contains(text, "\nc +1 -0 ") {
			t.Errorf("%s: %s", input, text)
		}
	}
	r.fails(tool.OutsideRoots, "show_changes", `{"path":"/etc"}`)
}

// A journal that cannot be read says nothing of what is in it, and one that can be read in part says so.
func TestShowChangesUnreadable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("write_file", `{"file_path":"a","content":"one\n"}`)
	stray := filepath.Join(r.Journal, "20990101")
	if err := os.Symlink("20990101", stray); err != nil {
		t.Fatal(err)
	}
	if text := r.ok("show_changes", `{}`); !strings.Contains(text, "+one\n(There may be other changes: a part of the journal cannot be read: ") {
		t.Error(text)
	}
	days, err := filepath.Glob(filepath.Join(r.Journal, "????????"))
	if err != nil || len(days) != 2 {
		t.Fatalf("days %q, %v", days, err)
	}
	r.Restart() // which forgets what it has read
	for _, day := range days {
		if err := os.RemoveAll(day); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Base(day), day); err != nil {
			t.Fatal(err)
		}
	}
	r.fails(tool.StateUnavailable, "show_changes", `{}`)
}

// A copy that is gone costs the diff of its file and nothing else.
func TestShowChangesWithoutCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "one\n")
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("edit_file", `{"file_path":"a","old_string":"one","new_string":"two"}`)
	r.ok("write_file", `{"file_path":"bin","content":"x"}`)
	r.write("bin", "\x00\x01")
	r.ok("write_file", `{"file_path":"esc","content":"\u001b[31mred\u202e\n"}`)
	text := r.ok("show_changes", `{}`)
	if strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, `+\x1b[31mred`) || !strings.Contains(text, "bin +0 -0 (new file) [also changed by the user, another program or a job]") || !strings.Contains(text, "not text") {
		t.Errorf("%q", text)
	}
	found, err := r.Files.History(t.Context(), journal.Query{Path: filepath.Join(r.dir, "a")})
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	notes, err := filepath.Glob(filepath.Join(r.Journal, "*", "*"+found[0].ID+"*"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("%q, %v", notes, err)
	}
	whole, err := os.ReadFile(notes[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(notes[0], append(whole[:len(whole)-1], whole[len(whole)-1]^1), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := r.ok("show_changes", `{"path":"a"}`); !strings.Contains(text, "a +1 -1 (not shown: ") {
		t.Error(text)
	}
}

// Calls that look while others write see each file before or after a change, and never an error.
func TestShowChangesTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("write_file", `{"file_path":"a","content":"0\n"}`)
	call, err := showChanges.Bind(r.State, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	env := r.Env(call)
	var group sync.WaitGroup
	group.Go(func() {
		for i := range 20 {
			r.ok("write_file", fmt.Sprintf(`{"file_path":"a","content":"%d\n"}`, i+1))
		}
	})
	for range 3 {
		group.Go(func() {
			for range 20 {
				res, err := call.Run(t.Context(), env)
				if err != nil || !strings.HasPrefix(res.Text, "1 file changed in this session: +") {
					t.Errorf("%v: %s", err, res.Text)
				}
			}
		})
	}
	group.Wait()
}
