package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/tools/tool"
)

// changedFive is a session with one change of five files: a is edited, bin is binary, gone removed, new made, and from
// moved to to.
func changedFive(t *testing.T) (r *rig, id string) {
	t.Helper()
	r = newRig(t)
	r.write("a", "one\n")
	r.write("bin", "x\x00y")
	r.write("gone", "still needed\n")
	r.write("from", "moved\n")
	for _, name := range []string{"a", "gone", "from"} {
		r.ok("read_file", `{"file_path":"`+name+`"}`)
	}
	patch, _ := json.Marshal("*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** Delete File: gone\n*** Add File: new\n+new\n" +
		"*** Update File: from\n*** Move to: to\n@@\n-moved\n+moved and edited\n*** End Patch\n")
	r.ok("apply_patch", `{"input":`+string(patch)+`}`)
	return r, r.lastChange("a")
}

func of(id, name string) string { return `{"change_id":"` + id + `","file_path":"` + name + `"}` }

// Who wanted one file of a change back got all of them back, or a conflict because of another one. Each file goes back by
// itself, an edit, a new file, a removed one and a moved one under both its names; the rest can be taken back, and each
// undo is undone by its id.
func TestUndoOneFileOfMany(t *testing.T) {
	t.Parallel()
	r, id := changedFive(t)
	was := r.tree()
	text := r.ok("undo_change", `{"file_path":"gone"}`)
	redo := r.lastChange("gone")
	same(t, text, "Took back apply_patch gone +0 -1 (created again); redo: undo_change "+redo+
		"\n[4 other files of this change: not taken back; to take back the rest: undo_change "+id+"]")
	r.holds("gone", "still needed\n")
	r.holds("a", "two\n")
	r.fails(tool.ChangeUnknown, "undo_change", `{"file_path":"gone"}`)
	said := r.ok("file_history", `{}`)
	if !strings.Contains(said, "[takes back "+id+" in these files]") || !strings.Contains(said, "[undone in gone]") {
		t.Errorf("the history: %s", said)
	}
	if said := r.ok("show_changes", `{}`); strings.Contains(said, "gone") || !strings.Contains(said, "new +1 -0") {
		t.Errorf("the session's changes: %s", said)
	}
	r.ok("undo_change", whole(redo))
	if now := r.tree(); !slices.Equal(was, now) {
		t.Errorf("the redo left %q, want %q", now, was)
	}
	if said := r.ok("file_history", `{"change_id":"`+id+`"}`); strings.Contains(said, "undone") {
		t.Errorf("the history: %s", said)
	}

	r.ok("undo_change", of(id, "new"))
	r.gone("new")
	r.ok("undo_change", of(id, "a"))
	text = r.ok("undo_change", `{"file_path":"to"}`)
	r.gone("to")
	r.holds("from", "moved\n")
	if !strings.Contains(text, "[the change moved the file, so both of its names go back: also from]\n[1 other file of this change") {
		t.Error(text)
	}
	moved := r.lastChange("to")
	text = r.ok("undo_change", whole(id)) // the rest
	same(t, text, "Took back apply_patch gone +0 -1 (created again); redo: undo_change "+r.lastChange("gone"))
	r.holds("a", "one\n")
	if said := r.ok("file_history", `{"change_id":"`+id+`"}`); !strings.Contains(said, " [undone]") {
		t.Errorf("the history: %s", said)
	}
	r.ok("undo_change", whole(moved))
	r.holds("to", "moved and edited\n")
	r.gone("from")
	r.ok("undo_change", `{"file_path":"from"}`)
	r.gone("to")
	r.holds("from", "moved\n")
}

// A file that changed since, or that nothing is known of, kept all other files of the change from going back. The refusal
// says how many others there are, and skip_changed takes those back.
func TestUndoSkipChanged(t *testing.T) {
	t.Parallel()
	r, id := changedFive(t)
	r.write("a", "by hand\n")
	r.write("to", "by hand\n")
	was := r.tree()
	text := r.fails(tool.UndoConflict, "undo_change", whole(id))
	if !strings.Contains(text, "$WORK/a changed after that change. $WORK/to changed after that change. Nothing was written.") ||
		!strings.Contains(text, " To take back only 2 other files of the change, call again with skip_changed.") {
		t.Error(text)
	}
	if text := r.fails(tool.UndoConflict, "undo_change", of(id, "a")); strings.Contains(text, "skip_changed") {
		t.Errorf("there is nothing else to take back: %s", text)
	}
	left := "[left as they are: a (changed since), to (changed since), from (it goes back with to only)]"
	if text := r.ok("undo_change", `{"change_id":"`+id+`","skip_changed":true,"dry_run":true}`); !strings.Contains(text, left) ||
		!strings.Contains(text, "$WORK/gone: would be created again") || strings.Contains(text, "$WORK/a:") {
		t.Error(text)
	}
	if now := r.tree(); !slices.Equal(was, now) {
		t.Errorf("the files were %q, are %q", was, now)
	}
	text = r.ok("undo_change", `{"change_id":"`+id+`","skip_changed":true}`)
	redo := r.lastChange("gone")
	same(t, text, "Took back apply_patch gone +0 -1 (created again), new +1 -0 (removed); redo: undo_change "+redo+"\n"+left)
	r.holds("a", "by hand\n")
	r.holds("to", "by hand\n")
	r.gone("from")
	r.gone("new")
	r.fails(tool.UndoConflict, "undo_change", `{"change_id":"`+id+`","skip_changed":true}`)
	r.ok("undo_change", whole(redo))
	if now := r.tree(); !slices.Equal(was, now) {
		t.Errorf("the redo left %q, want %q", now, was)
	}
}

// A hunk of a file that the change made could not be taken back by itself, nor the last one of a file beside others.
func TestUndoHunkOfNewFile(t *testing.T) {
	t.Parallel()
	r, id := changedFive(t)
	hunks := map[string]string{}
	name, n := "", 0
	for line := range strings.Lines(r.ok("file_history", `{"change_id":"`+id+`"}`)) {
		if strings.HasPrefix(line, "@@") {
			n++
			hunks[name] = string(rune('0'+n)) + " " + strings.TrimSpace(line)
		} else if at, ok := strings.CutSuffix(line, ":\n"); ok {
			name = at
		}
	}
	for _, name := range []string{"new", "a", "gone"} {
		r.ok("undo_change", `{"change_id":"`+id+`","hunk":"`+hunks[name]+`"}`)
	}
	r.gone("new")
	r.holds("a", "one\n")
	r.holds("gone", "still needed\n")
	r.holds("to", "moved and edited\n")
	if said := r.ok("file_history", `{"change_id":"`+id+`"}`); !strings.Contains(said, "[undone in a, gone, new]") {
		t.Errorf("the history: %s", said)
	}
	r.fails(tool.UndoConflict, "undo_change", `{"change_id":"`+id+`","hunk":"`+hunks["new"]+`"}`)
	r.ok("undo_change", whole(id))
	r.gone("to")
	r.holds("from", "moved\n")
}

// The page's undo of the other parts gave up at a new or a binary file, and said that nothing was written when parts had
// gone back. It takes back whole files and hunks, as far as nobody changed them since, names what stays, and does the
// rest when it is asked again.
func TestUndoAround(t *testing.T) {
	t.Parallel()
	p := newParted(t)
	patch, _ := json.Marshal("*** Begin Patch\n*** Update File: a\n@@\n-five\n+FIVE\n@@\n-end\n+END\n*** Add File: new\n+new\n" +
		"*** Add File: touched\n+touched\n*** End Patch\n")
	p.ok("apply_patch", `{"input":`+string(patch)+`}`)
	id, after := p.lastChange("new"), p.with(p.after, "five", "FIVE", "end\n", "END\n")
	p.write("a", p.with(after, "FIVE", "FIVE by hand"))
	p.write("touched", "touched by hand\n")
	around := `{"change_id":"` + id + `","around":true}`
	text := p.ok("undo_change", around)
	if !strings.HasPrefix(text, "Took back apply_patch in new, a; redo: undo_change "+p.lastChange("a")+", then "+p.lastChange("new")) ||
		!strings.Contains(text, "\n[left as they are: a (1 part changed since), touched (changed since)]") {
		t.Error(text)
	}
	left := p.with(p.after, "five", "FIVE by hand")
	p.holds("a", left)
	p.gone("new")
	p.holds("touched", "touched by hand\n")
	p.fails(tool.UndoConflict, "undo_change", around)
	p.holds("a", left)
	p.write("a", p.with(left, "FIVE by hand", "FIVE"))
	p.write("touched", "touched\n")
	if text := p.ok("undo_change", around); strings.Contains(text, "left as") {
		t.Error(text)
	}
	p.holds("a", p.after)
	p.gone("touched")
	if said := p.ok("file_history", `{"change_id":"`+id+`"}`); !strings.Contains(said, " [undone]") {
		t.Errorf("the history: %s", said)
	}
}

// What a file of a change was before is not written where the file leads to another place now, also if others of the
// change are where they were.
func TestUndoOneFileElsewhere(t *testing.T) {
	t.Parallel()
	r, id := changedFive(t)
	r.remove("a")
	r.write("other", "two\n")
	r.link("a", "other")
	r.fails(tool.UndoConflict, "undo_change", of(id, "a"))
	text := r.ok("undo_change", `{"change_id":"`+id+`","skip_changed":true}`)
	if !strings.Contains(text, "[left as they are: a (it is not where it was)]") {
		t.Error(text)
	}
	r.holds("other", "two\n")
	if to, err := os.Readlink(filepath.Join(r.dir, "a")); err != nil || to != "other" {
		t.Errorf("the link is %s, %v", to, err)
	}
}

// A person at a terminal was told to look at file_history, which is no command.
func TestUndoWordsOfTerminal(t *testing.T) {
	t.Parallel()
	r, id := changedFive(t)
	text := r.ok("undo_change", `{"file_path":"new","terminal":true}`)
	if !strings.Contains(text, "; redo: codehand undo "+r.lastChange("new")+"\n[4 other files of this change: not taken back; to take back the "+
		"rest: codehand undo "+id+"]") {
		t.Error(text)
	}
	r.write("a", "by hand\n")
	text = r.fails(tool.UndoConflict, "undo_change", `{"change_id":"`+id+`","terminal":true}`)
	if !strings.Contains(text, "Look at codehand history, take back later changes first, or edit the file. To take back only "+
		"3 other files of the change, run it again with --skip-changed.") {
		t.Error(text)
	}
	r.remove("a")
	all := text + r.fails(tool.UndoConflict, "undo_change", `{"file_path":"a","terminal":true}`)
	r.write("a/b", "in the way\n")
	all += r.fails(tool.UndoConflict, "undo_change", `{"file_path":"a","terminal":true}`)
	all += r.fails(tool.ChangeUnknown, "undo_change", `{"file_path":"none","terminal":true}`)
	all += r.fails(tool.ChangeUnknown, "undo_change", `{"change_id":"zzzzzzzzzzzzzzzz","terminal":true}`)
	for _, word := range []string{"file_history", "write_file", "undo_change", "skip_changed", "call again", "Ask the user"} {
		if strings.Contains(all, word) {
			t.Errorf("a person at a terminal reads %s in:\n%s", word, all)
		}
	}
}
