package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

// lastChange is the id of the newest change of a file.
func (r *rig) lastChange(name string) string {
	r.t.Helper()
	found, err := r.Files.History(r.t.Context(), journal.Query{Path: filepath.Join(r.dir, name), Limit: 1})
	if err != nil || len(found) == 0 {
		r.t.Fatalf("no change of %s: %v", name, err)
	}
	return found[0].ID
}

func (r *rig) gone(name string) {
	r.t.Helper()
	if _, err := os.Lstat(filepath.Join(r.dir, name)); err == nil {
		r.t.Errorf("%s is there", name)
	}
}

func TestUndoChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "one\n")
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("multi_edit", `{"edits":[{"file_path":"a","old_string":"one","new_string":"two"},{"file_path":"d/b","old_string":"","new_string":"new\n"}]}`)
	id := r.lastChange("a")
	same(t, r.ok("undo_change", `{"change_id":"`+id+`","dry_run":true}`),
		"Dry run: nothing was written. This change can be taken back:\n"+id+" "+r.clock(id)+" multi_edit a +1 -1, d/b +1 -0 (new file)\n"+
			"$WORK/a: would be restored\n@@ -1 +1 @@\n-two\n+one\n$WORK/d/b: would be removed\n@@ -1 +0,0 @@\n-new")
	r.holds("a", "two\n")
	same(t, r.ok("undo_change", `{"change_id":"`+id+`"}`), "Took back multi_edit a +1 -1, d/b +1 -0 (removed); redo: undo_change "+r.lastChange("a"))
	r.holds("a", "one\n")
	r.gone("d/b")
	if _, err := os.Stat(filepath.Join(r.dir, "d")); err != nil {
		t.Error("the directory of a file that was removed is gone, too")
	}
	r.fails(tool.ChangeUnknown, "undo_change", `{"file_path":"a"}`) // nothing is left, and an undo is undone by its id
	redo := r.lastChange("a")
	r.ok("undo_change", `{"change_id":"`+redo+`"}`)
	r.holds("a", "two\n")
	r.holds("d/b", "new\n")
	r.ok("undo_change", `{"file_path":"d/b"}`) // the edit itself is not undone any more
	r.holds("a", "two\n")
	r.gone("d/b")
}

// clock is the time of a change as an answer has it.
func (r *rig) clock(id string) string {
	r.t.Helper()
	said := r.ok("file_history", `{"change_id":"`+id+`"}`)
	clock := regexp.MustCompile(`^[a-z0-9]+ ((?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d) `).FindStringSubmatch(said)
	if clock == nil {
		r.t.Fatalf("no time in %s", said)
	}
	return clock[1]
}

// What an undo wrote may be edited without another reading of it: the session made it.
func TestUndoChangeReadState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "one\ntwo\n")
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("edit_file", `{"file_path":"a","old_string":"one","new_string":"1"}`)
	r.ok("undo_change", `{"file_path":"a"}`)
	r.ok("edit_file", `{"file_path":"a","old_string":"two","new_string":"2"}`)
	r.holds("a", "one\n2\n")
}

// A session that had not read the file was told that only parts of lines were read, though the undo showed whole ones.
func TestUndoChangeUnread(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "zero\none line\ntwo\n")
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("edit_file", `{"file_path":"a","old_string":"one","new_string":"1"}`)
	r.ok("session_config", `{"key":"read_state","value":"reset"}`)
	r.ok("undo_change", `{"file_path":"a"}`)
	text := r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"a","content":"x\n"}`)
	if !strings.Contains(text, "Only parts of some lines of $WORK/a count as read (after a change: the text that it wrote). Read the rest (next: offset=1;") {
		t.Error(text)
	}
	r.ok("edit_file", `{"file_path":"a","old_string":"one","new_string":"1"}`)
}

// Of two calls that take back the last change at the same time, the later one was told to take back later changes first.
func TestUndoChangeTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("write_file", `{"file_path":"a","content":"1\n"}`)
	r.ok("edit_file", `{"file_path":"a","old_string":"1","new_string":"2"}`)
	var calls []tool.Call
	for range 2 {
		args, _ := json.Marshal(map[string]string{"file_path": filepath.Join(r.dir, "a")})
		call, err := undoChange.Bind(r.State, args)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, call)
	}
	if _, err := calls[0].Run(t.Context(), r.Env(calls[0])); err != nil {
		t.Fatal(err)
	}
	res, text := r.refused(calls[1].Run(t.Context(), r.Env(calls[1])))
	if res.Failed != tool.UndoConflict || !strings.HasSuffix(text, " was just taken back by another call. Nothing was written. To take back the change before it, call again.") {
		t.Errorf("%s: %s", res.Failed, text)
	}
	r.holds("a", "1\n")
}

// Lines that an undo put back and its diff does not show counted as read.
func TestUndoChangeNotShownWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Prefs.ReadVersion = true
	r.ok("write_file", `{"file_path":"a","content":"`+strings.Repeat(`a line\n`, 3000)+`"}`)
	r.ok("write_file", `{"file_path":"a","content":""}`)
	r.Key.Session = "another" // which knows neither side
	text := r.ok("undo_change", `{"file_path":"a"}`)
	if !strings.Contains(text, " more lines)\n") || !strings.Contains(text, "\n[not all that changed is shown; read again before editing: a]") {
		t.Fatalf("got:\n%s", text[max(0, len(text)-400):])
	}
	version := regexp.MustCompile(`\[version ([0-9a-f]{12}p)\]`).FindStringSubmatch(text)
	if version == nil {
		t.Fatalf("no version of a part in:\n%s", text[max(0, len(text)-400):])
	}
	r.fails(tool.FileNotRead, "write_file", `{"file_path":"a","content":"x\n"}`)
	r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"a","content":"x\n","version":"`+version[1]+`"}`)
	r.ok("edit_file", `{"file_path":"a","old_string":"a line","new_string":"x","replace_all":true,"version":"`+version[1]+`"}`)
}

func TestUndoChangeRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input  string
		before func(r *rig)
		code   tool.Code
		text   string
	}{
		"neither": {input: `{}`, code: tool.InputInvalid, text: `"change_id" or "file_path" is required`},
		"other":   {input: `{"change_id":"$ID","file_path":"d/e"}`, code: tool.ChangeUnknown, text: "Change $ID did not change $WORK/d/e."},
		"unknown": {input: `{"change_id":"zzzzzzzzzzzzzzzz"}`, code: tool.ChangeUnknown, text: "There is no change zzzzzzzzzzzzzzzz in this workspace."},
		"no file": {input: `{"file_path":"none"}`, code: tool.ChangeUnknown, text: "There is no change of $WORK/none by these tools to take back."},
		"changed": {
			input: `{"change_id":"$ID"}`, before: func(r *rig) { r.write("a", "two\nmore\n") }, code: tool.UndoConflict,
			text: "$WORK/a changed after that change. Nothing was written. Look at file_history, take back later changes first, or edit the file. Since then:\n@@ -1 +1,2 @@\n two\n+more",
		},
		"removed": {
			input: `{"change_id":"$ID"}`, before: func(r *rig) { r.remove("a") }, code: tool.UndoConflict, text: "$WORK/a changed after that change: it was removed. Nothing was written. If file_history shows a later change that removed it, take that back first. Otherwise write the file with write_file.",
		},
		"link": {input: `{"change_id":"$ID"}`, before: func(r *rig) {
			r.remove("a")
			r.write("b", "two\n")
			r.link("a", "b")
		}, code: tool.UndoConflict, text: "$WORK/a leads to another place now"},
		"link by path": {input: `{"file_path":"a"}`, before: func(r *rig) {
			r.remove("a")
			r.write("b", "two\n")
			r.link("a", "b")
		}, code: tool.UndoConflict, text: "$WORK/a leads to another place now"},
		"link that leads out": {input: `{"file_path":"a"}`, before: func(r *rig) {
			r.remove("a")
			r.link("a", "/etc/hostname")
		}, code: tool.UndoConflict, text: "$WORK/a leads to another place now"},
		// There was said to be no change of it, though the journal has one under this very name.
		"linked directory": {input: `{"file_path":"d/e"}`, before: func(r *rig) {
			r.remove("d")
			r.write("other/e", "e\n")
			r.link("d", "other")
		}, code: tool.UndoConflict, text: "$WORK/d/e leads to another place now"},
		"hard link": {input: `{"file_path":"a"}`, before: func(r *rig) {
			if err := os.Link(filepath.Join(r.dir, "a"), filepath.Join(r.dir, "b")); err != nil {
				r.t.Fatal(err)
			}
		}, code: tool.UndoConflict, text: "$WORK/a has more hard links now"},
		"directory": {input: `{"file_path":"a"}`, before: func(r *rig) {
			r.remove("a")
			r.write("a/b", "two\n")
		}, code: tool.UndoConflict, text: "$WORK/a is a directory now. Nothing was written. A command or another " +
			"program did that. Ask the user, or write the file with write_file once its name is free."},
		"file in the way": {input: `{"file_path":"d/e"}`, before: func(r *rig) {
			r.remove("d")
			r.write("d", "a file\n")
		}, code: tool.UndoConflict, text: "A part of $WORK/d/e was a directory and is a file now."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("a", "one\n")
			r.ok("read_file", `{"file_path":"a"}`)
			r.ok("edit_file", `{"file_path":"a","old_string":"one","new_string":"two"}`)
			r.ok("write_file", `{"file_path":"d/e","content":"e\n"}`)
			id := r.lastChange("a")
			if c.before != nil {
				c.before(r)
			}
			was := r.tree()
			text := r.fails(c.code, "undo_change", strings.ReplaceAll(c.input, "$ID", id))
			if !strings.Contains(text, strings.ReplaceAll(c.text, "$ID", id)) {
				t.Errorf("got:\n%s\nwant:\n%s", text, c.text)
			}
			if now := r.tree(); !slices.Equal(was, now) {
				t.Errorf("the files were %q, are %q", was, now)
			}
		})
	}
}

// What a killed process noted and never made was said to be taken back, each time anew.
func TestUndoChangeNeverMade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("write_file", `{"file_path":"a","content":"one\n"}`)
	r.ok("edit_file", `{"file_path":"a","old_string":"one","new_string":"two"}`)
	id := r.lastChange("a")
	r.write("a", "one\n")
	notes, err := filepath.Glob(filepath.Join(r.Journal, "*", "*-"+id+".done"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("the notes are %v, %v", notes, err)
	}
	if err := os.Rename(notes[0], strings.TrimSuffix(notes[0], "done")+"open"); err != nil {
		t.Fatal(err)
	}
	if text := r.ok("undo_change", `{"change_id":"`+id+`"}`); !strings.HasPrefix(text, "There is nothing to take back: the files already are as they were before this change:\n"+id+" ") {
		t.Errorf("the answer is:\n%s", text)
	}
	if text := r.ok("undo_change", `{"file_path":"a"}`); text != "Took back write_file a +1 -0 (removed); redo: undo_change "+r.lastChange("a") {
		t.Errorf("the answer is:\n%s", text)
	}
	r.fails(tool.ChangeUnknown, "undo_change", `{"file_path":"a"}`)
}

// TestUndoOfAnother: what another session changed is shown when it is taken back, since this one may know neither side;
// so is what this one takes back of that. What the session changed itself is not repeated.
func TestUndoOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "one\ntwo\n")
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("edit_file", `{"file_path":"a","old_string":"one","new_string":"1"}`)
	mine := r.Key
	r.Key.Session = "another"
	text := r.ok("undo_change", `{"file_path":"a"}`)
	same(t, text, "Took back edit_file a +1 -1; redo: undo_change "+r.lastChange("a")+"\n$WORK/a: restored\n@@ -1,2 +1,2 @@\n-1\n+one\n two")
	redo := r.lastChange("a")
	r.Key = mine
	text = r.ok("undo_change", `{"change_id":"`+redo+`"}`)
	same(t, text, "Took back undo_change a +1 -1; redo: undo_change "+r.lastChange("a")+"\n$WORK/a: restored\n@@ -1,2 +1,2 @@\n-one\n+1\n two")
	same(t, r.ok("undo_change", `{"file_path":"a"}`), "Took back edit_file a +1 -1; redo: undo_change "+r.lastChange("a"))
	same(t, r.ok("undo_change", `{"change_id":"`+r.lastChange("a")+`"}`), "Took back undo_change a +1 -1; redo: undo_change "+r.lastChange("a"))
}

func (r *rig) remove(name string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) link(name, target string) {
	r.t.Helper()
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

// tree is every name below the root with what it holds.
func (r *rig) tree() []string {
	r.t.Helper()
	var all []string
	if err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(path, r.dir) + " " + d.Type().String()
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + string(content)
		}
		all = append(all, line)
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return all
}

// The person who decides sees every file that goes back, and how many of the change do not; and a change that came
// meanwhile is not undone in place of the one that was shown.
func TestUndoChangeTargets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("multi_edit", `{"edits":[{"file_path":"a","old_string":"","new_string":"a\n"},{"file_path":"b","old_string":"","new_string":"b\n"}]}`)
	call, err := undoChange.Bind(r.State, json.RawMessage(`{"file_path":"`+filepath.Join(r.dir, "a")+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, at := range call.Targets {
		if at.Kind != permission.Path {
			t.Errorf("the target %v is no path", at)
		}
		targets = append(targets, filepath.Base(at.Value))
	}
	if got, want := call.Details(t.Context(), r.State, 4_000), filepath.Join(r.dir, "a")+": would be removed (+0 -1)\n@@ -1 +0,0 @@\n-a\n"+
		"[1 other file of this change: not taken back; to take back the rest: undo_change "+r.lastChange("a")+"]"; got != want {
		t.Errorf("a person would see %q, want %q", got, want)
	}
	if slices.Sort(targets); !slices.Equal(slices.Compact(targets), []string{"a"}) {
		t.Errorf("the targets are %v", targets)
	}
	r.ok("edit_file", `{"file_path":"a","old_string":"a","new_string":"later"}`)
	_, err = call.Run(t.Context(), r.Env(call))
	if code(err) != tool.UndoConflict {
		t.Errorf("an undo of an earlier change gives %v", err)
	}
	r.holds("a", "later\n")
}

// A change whose files are not all in the roots is of another workspace, and not even named.
func TestUndoChangeElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	outside := filepath.Join(t.TempDir(), "f")
	dir, err := os.OpenRoot(filepath.Dir(outside))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	changes, err := r.Files.Update(t.Context(), journal.By{}, filestate.Edit{
		File: filestate.File{Dir: dir, Name: "f", Path: outside}, Change: func([]byte) ([]byte, error) { return []byte("x"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	text := r.fails(tool.ChangeUnknown, "undo_change", `{"change_id":"`+changes[0].ID+`"}`)
	if strings.Contains(text, outside) {
		t.Errorf("the refusal names it: %s", text)
	}
	r.fails(tool.ChangeUnknown, "file_history", `{"change_id":"`+changes[0].ID+`"}`)
	same(t, r.ok("file_history", `{}`), "No changes by these tools are recorded for $WORK.")
}

// A change of a large file that leaves little of it as it was cannot be taken back; and what says so is true.
func TestUndoChangeWithoutCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("larger", strings.Repeat("x", 32<<20)+"y")
	r.ok("read_file", `{"file_path":"larger","limit":1}`)
	if text := r.ok("edit_file", `{"file_path":"larger","old_string":"xx","new_string":"z","replace_all":true}`); !strings.Contains(text, "[no undo copy: over 32 MiB]") {
		t.Error(text)
	}
	text := r.fails(tool.UndoUnavailable, "undo_change", `{"file_path":"larger"}`)
	if !strings.Contains(text, "over 32 MiB") {
		t.Error(text)
	}
	if text := r.ok("file_history", `{"file_path":"larger"}`); !strings.Contains(text, "(no copy: over 32 MiB)") {
		t.Error(text)
	}
}

// TestUndoHunk: a person had to take a change back whole, or not at all. One hunk of it goes back, what the person wrote
// elsewhere stays, and where they wrote into it nothing is written.
func TestUndoHunk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var text strings.Builder
	for i := range 40 {
		text.WriteString("line " + strconv.Itoa(i) + "\n")
	}
	r.write("a", text.String())
	r.write("b", text.String())
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("read_file", `{"file_path":"b"}`)
	r.ok("multi_edit", `{"edits":[{"file_path":"a","old_string":"line 5\n","new_string":"five\n"},{"file_path":"a","old_string":"line 30\n","new_string":"thirty\n"},`+
		`{"file_path":"b","old_string":"line 5\n","new_string":"five\n"}]}`)
	id, other := r.lastChange("a"), r.lastChange("b")
	if id != other {
		t.Fatal("two changes")
	}
	const head = "@@ -28,7 +28,7 @@"
	if shown := r.ok("file_history", `{"change_id":"`+id+`"}`); strings.Count(shown, "\n@@ ") != 3 || !strings.Contains(shown, head) {
		t.Fatal(shown)
	}
	hunk := func(name string) string {
		return `{"change_id":"` + id + `","hunk":"` + name + `"}`
	}
	changed := strings.NewReplacer("line 5\n", "five\n", "line 30\n", "thirty\n").Replace(text.String())
	mine := "mine\n" + strings.Replace(changed, "line 20\n", "", 1)
	r.write("a", mine)
	r.fails(tool.UndoUnavailable, "undo_change", hunk("1 "+head)) // that is the second one
	r.fails(tool.UndoUnavailable, "undo_change", hunk("4 "+head))
	r.fails(tool.InputInvalid, "undo_change", hunk("2"))
	r.fails(tool.InputInvalid, "undo_change", `{"file_path":"a","hunk":"2 `+head+`"}`)
	r.holds("a", mine)
	said := r.ok("undo_change", hunk("2 "+head))
	redo := r.lastChange("a")
	same(t, said, "Took back hunk "+head+" of multi_edit a; redo: undo_change "+redo)
	back := strings.Replace(mine, "thirty\n", "line 30\n", 1)
	r.holds("a", back)
	r.holds("b", strings.Replace(text.String(), "line 5\n", "five\n", 1))
	r.ok("undo_change", `{"change_id":"`+redo+`"}`)
	r.holds("a", mine)
	r.ok("undo_change", hunk("3 @@ -3,7 +3,7 @@"))
	r.holds("b", text.String())

	own := strings.Replace(mine, "five\n", "five, by me\n", 1)
	r.write("a", own)
	if said := r.fails(tool.UndoConflict, "undo_change", hunk("1 @@ -3,7 +3,7 @@")); !strings.Contains(said, "+five, by me") {
		t.Errorf("the refusal does not show what was written since: %s", said)
	}
	r.holds("a", own)
}
