package planning

import (
	"slices"
	"strings"
	"testing"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tooltest"
)

var alone = &session.State{}

// The question shows where the plan is and how it begins.
func TestPlanQuestion(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ö", 5000)
	q := Question(alone, File{Path: "/p", Text: long, Sum: "s"}, "", permission.Default)
	if n := len([]rune(q.Title + q.Text)); n > 4000 || !strings.HasPrefix(q.Text, "Plan file: /p\n\nöö") || !strings.HasSuffix(q.Text, "[the rest, 2000 characters, is in the plan file]") || q.Seen != "s" {
		t.Errorf("%d characters, %.40q … %q", n, q.Text, q.Seen)
	}
	tooltest.Same(t, Question(alone, File{Path: "/p", Text: "old"}, "new", permission.Default).Text, "Plan file: /p\n\nnew")
	tooltest.Same(t, Question(alone, File{}, "new", permission.Default).Text, "The plan is not in a file yet.\n\nnew")
	// Where edits were not asked about before plan mode, "ask for edits" promised what did not follow.
	tooltest.Same(t, Question(alone, File{Path: "/p", Text: "old"}, "new", permission.AcceptEdits).Text,
		"Plan file: /p\n\"approve, ask for edits\" returns to mode acceptEdits, which was active before plan mode.\n\nnew")
}

// Who read the beginning of a long plan was told that the rest was in the plan file, where it was not yet.
func TestPlanQuestionRest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", planShown+5)
	for _, c := range []struct {
		file File
		text string
		says string
	}{
		{File{Path: "/p", Text: long, Sum: "s"}, "", "\n[the rest, 5 characters, is in the plan file]"},
		{File{Path: "/p", Text: long, Sum: "s"}, long, "\n[the rest, 5 characters, is in the plan file]"},
		{File{Path: "/p", Text: "old", Sum: "s"}, long, "\n[5 more characters are not shown and not yet in the plan file; to read them first, keep planning and ask for them]"},
		{File{}, long, "\n[5 more characters are not shown and not yet in the plan file; to read them first, keep planning and ask for them]"},
	} {
		if q := Question(alone, c.file, c.text, permission.AcceptEdits); !strings.HasSuffix(q.Text, c.says) || len(q.Title+q.Text) > 4000 {
			t.Errorf("got …%s\nwant %s", q.Text[len(q.Text)-200:], c.says)
		}
	}
}

// One conversation's approval let the edits of all others that shared its session pass unasked, and for good.
func TestPlanQuestionShared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		back   permission.Mode
		shared bool
		offers bool
	}{
		{permission.Default, false, true},
		{permission.Default, true, false},
		{permission.DontAsk, true, false},
		{permission.AcceptEdits, true, true},
		{permission.Bypass, true, true},
	} {
		choices := Question(&session.State{Shared: c.shared}, File{}, "new", c.back).Fields[0].Choices
		if slices.Contains(choices, approveAccept) != c.offers || !slices.Contains(choices, approveAsk) || !slices.Contains(choices, keepPlanning) {
			t.Errorf("%+v: %q", c, choices)
		}
	}
}
