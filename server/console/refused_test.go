package console

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"codehand/server/auth"
)

// A stubborn journal refuses each undo with its text.
type stubborn struct {
	journal
	text string
}

func (s *stubborn) Undo(context.Context, auth.Principal, string, Extent) (string, bool, error) {
	return s.text, false, nil
}

// TestRefusedForPerson: the page showed a person what was written for a model, such as to read the file again. It says
// what happened and what a person can do, with the code, and what differs.
func TestRefusedForPerson(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 16)
	for name, tt := range map[string]struct {
		said string
		has  []string
		not  []string
	}{
		"a conflict": {
			"UNDO_CONFLICT: /w/<b> changed after that change. Nothing was written. Look at file_history, take back later changes first, or edit the file. Since then:\n@@ -1 +1 @@\n-old\n+new <i>",
			[]string{"/w/&lt;b&gt; changed after that change. ", ">UNDO_CONFLICT<", "edit the file yourself", `<span class="minus">-old</span>`, "&lt;i&gt;", `href="../changes/` + id},
			[]string{"file_history", "<b>", "<i>", "Since then"},
		},
		"no copy":       {"UNDO_UNAVAILABLE: There is no copy of it. Restore it with git.", []string{"There is no copy of it. <", "version control"}, []string{"with git"}},
		"another code":  {"WRITE_FAILED: The disk is full. Use run_shell to look.", []string{"The disk is full. <", "Try again"}, []string{"run_shell"}},
		"without code":  {"There is no change any more.", []string{"There is no change any more."}, []string{"What you can do"}},
		"no code: text": {"Note: this is no code. It stays.", []string{"Note: this is no code. It stays."}, []string{"What you can do"}},
	} {
		c := site(ann(), &desk{})
		c.o.Changes = &stubborn{text: tt.said}
		w := undo(c, url.Values{"csrf": {"csrf-of-ann"}, "change": {id}})
		text := w.Body.String()
		for _, want := range tt.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in %s", name, want, text)
			}
		}
		for _, not := range tt.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q is in %s", name, not, text)
			}
		}
	}
}

// TestPartlyUndone: a change of which a part was taken back says so in the list, and the undo of the part is an undo.
func TestPartlyUndone(t *testing.T) {
	t.Parallel()
	id := func(letter string) string { return strings.Repeat(letter, 16) }
	file := []ChangedFile{{Path: "/w/a", Op: "update"}}
	j := &journal{all: []Change{
		{ID: id("a"), Session: "00000001", Tool: "undo_change", Portion: &Portion{ID: id("c")}, Files: file},
		{ID: id("b"), Session: "00000001", Tool: "undo_change", Portion: &Portion{ID: id("d")}, Undone: true, Files: file},
		{ID: id("c"), Session: "00000001", Tool: "edit_file", Files: file},
		{ID: id("d"), Session: "00000001", Tool: "edit_file", Files: file},
	}}
	text := get(changing(ann(), j), "/changes?session=00000001").Body.String()
	if strings.Count(text, "partly undone") != 1 || !strings.Contains(text, id("c")+"</a> partly undone") ||
		!strings.Contains(text, "undo of a part") || !strings.Contains(text, "Undo 2 changes of this session") {
		t.Error(text)
	}
}
