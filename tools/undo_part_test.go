package tools

import (
	"strconv"
	"strings"
	"testing"

	"codehand/tools/tool"
)

// A parted is a file whose lines 5, 30 and 55 of 60 one change replaced, so that it has three hunks.
type parted struct {
	*rig
	id            string // of the change
	before, after string
	heads         []string
}

func newParted(t *testing.T) parted {
	t.Helper()
	r := newRig(t)
	var text strings.Builder
	for i := range 60 {
		text.WriteString("line " + strconv.Itoa(i) + "\n")
	}
	p := parted{rig: r, before: text.String()}
	r.write("a", p.before)
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("multi_edit", `{"edits":[{"file_path":"a","old_string":"line 5\n","new_string":"five\n"},`+
		`{"file_path":"a","old_string":"line 30\n","new_string":"thirty\nand more\n"},{"file_path":"a","old_string":"line 55\n","new_string":"end\n"}]}`)
	p.id = r.lastChange("a")
	p.after = p.with(p.before, "line 5\n", "five\n", "line 30\n", "thirty\nand more\n", "line 55\n", "end\n")
	r.holds("a", p.after)
	for line := range strings.Lines(r.ok("file_history", `{"change_id":"`+p.id+`"}`)) {
		if strings.HasPrefix(line, "@@") {
			p.heads = append(p.heads, strings.TrimSpace(line))
		}
	}
	if len(p.heads) != 3 {
		t.Fatal(p.heads)
	}
	return p
}

func (p parted) with(text string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(text)
}

// part is the input that takes back the n-th part, from 1.
func (p parted) part(n int) string {
	return `{"change_id":"` + p.id + `","hunk":"` + strconv.Itoa(n) + " " + p.heads[n-1] + `"}`
}

func whole(id string) string { return `{"change_id":"` + id + `"}` }

// TestUndoRest: who took one part of a change back could not take back the rest: that was a conflict with their own undo.
// Each step can be taken back itself, and the history says what each was.
func TestUndoRest(t *testing.T) {
	t.Parallel()
	p := newParted(t)
	p.ok("undo_change", p.part(2))
	first := p.lastChange("a")
	left := p.with(p.after, "thirty\nand more\n", "line 30\n")
	p.holds("a", left)
	if said := p.ok("file_history", `{"file_path":"a"}`); !strings.Contains(said, "[takes back hunk "+p.heads[1]+" of "+p.id+"]") ||
		strings.Contains(said, "undone") {
		t.Errorf("the history: %s", said)
	}
	if said := p.ok("undo_change", `{"change_id":"`+p.id+`","dry_run":true}`); !strings.Contains(said, "can be taken back") {
		t.Error(said)
	}
	p.holds("a", left)
	p.ok("undo_change", whole(p.id))
	p.holds("a", p.before)
	redo := p.lastChange("a")
	p.ok("undo_change", whole(redo)) // there is again what there was
	p.holds("a", left)
	p.ok("undo_change", `{"file_path":"a"}`) // an undo of a part is none that this means
	p.holds("a", p.before)
	p.ok("undo_change", whole(p.lastChange("a")))
	p.ok("undo_change", whole(first))
	p.holds("a", p.after)
	p.ok("undo_change", whole(p.id))
	p.holds("a", p.before)
}

// TestUndoPartByPart: all parts one after the other, the last of which takes the change back as a whole; a part that was
// taken back already, and what somebody wrote since, are told and left alone.
func TestUndoPartByPart(t *testing.T) {
	t.Parallel()
	p := newParted(t)
	p.ok("undo_change", p.part(3))
	third := p.lastChange("a")
	left := p.with(p.after, "end\n", "line 55\n")
	p.holds("a", left)
	if said := p.fails(tool.UndoConflict, "undo_change", p.part(3)); !strings.Contains(said, "change "+third+" took it back already") {
		t.Error(said)
	}
	mine := "mine\n" + left
	p.write("a", mine)
	p.fails(tool.UndoConflict, "undo_change", whole(p.id))
	p.holds("a", mine)
	p.ok("undo_change", p.part(1)) // which spares it
	p.holds("a", p.with(mine, "five\n", "line 5\n"))
	p.fails(tool.UndoConflict, "undo_change", whole(p.id))
	p.holds("a", p.with(mine, "five\n", "line 5\n"))
	p.write("a", p.with(left, "five\n", "line 5\n"))
	p.ok("undo_change", p.part(2))
	p.holds("a", p.before)
	if said := p.ok("file_history", `{"file_path":"a"}`); !strings.Contains(said, "[takes back "+p.id+"]") || !strings.Contains(said, "[undone]") {
		t.Errorf("the history: %s", said)
	}
	if said := p.fails(tool.UndoConflict, "undo_change", p.part(1)); !strings.Contains(said, "was taken back already") {
		t.Error(said)
	}
	p.ok("undo_change", whole(p.lastChange("a")))
	p.holds("a", p.with(p.after, "five\n", "line 5\n", "end\n", "line 55\n"))
}

// TestUndoUnderPart: a part of an earlier change was taken back, and the change that came between, or the undo of another
// part, could not be taken back any more. It goes back around that part, which stays as the person wants it.
func TestUndoUnderPart(t *testing.T) {
	t.Parallel()
	p := newParted(t)
	p.ok("edit_file", `{"file_path":"a","old_string":"line 15\n","new_string":"fifteen\n"}`)
	later := p.lastChange("a")
	p.ok("undo_change", p.part(2))
	second := p.lastChange("a")
	p.ok("undo_change", p.part(3))
	p.holds("a", p.with(p.before, "line 5\n", "five\n", "line 15\n", "fifteen\n"))
	p.ok("undo_change", whole(second)) // the third stays
	p.holds("a", p.with(p.after, "line 15\n", "fifteen\n", "end\n", "line 55\n"))
	p.ok("undo_change", p.part(2))
	p.ok("undo_change", whole(later))
	left := p.with(p.before, "line 5\n", "five\n")
	p.holds("a", left)
	p.ok("undo_change", whole(p.lastChange("a")))
	p.holds("a", p.with(left, "line 15\n", "fifteen\n"))
	p.ok("undo_change", whole(later))
	p.write("a", left+"mine\n")
	p.fails(tool.UndoConflict, "undo_change", whole(p.id))
	p.holds("a", left+"mine\n")
	p.write("a", left)
	p.ok("undo_change", whole(p.id))
	p.holds("a", p.before)
}
