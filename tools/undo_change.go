package tools

import (
	"context"
	_ "embed"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/editing"
	"codehand/tools/history"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed undo_change.md
var undoChangeText string

type undoChangeInput struct {
	ChangeID string `json:"change_id,omitempty" jsonschema:"id from file_history"`
	FilePath string `json:"file_path,omitempty" jsonschema:"undo its last change"`
	DryRun   bool   `json:"dry_run,omitempty" jsonschema:"check only"`

	Hunk string `json:"hunk,omitempty"` // for the page: only this one, as history.FindHunk names it

	change journal.Entry `json:"-"`
}

var undoChange = tool.Define(tool.Def[undoChangeInput]{
	Spec: tool.Spec{
		Name: "undo_change", Title: "Undo change", Description: undoChangeText,
		Hint: "undo, revert or roll back a file change", Deferred: true, MaxRunes: 50_000, Scope: tool.ScopeWrite,
		Family:    permission.FamilyEdit,
		Traits:    tool.Traits{Local: true},
		Card:      tool.CardButton,
		ForAgents: tool.ChangingAgents,
		Example:   `{"file_path":"$WORK/h"}`,
		Finds:     []string{"undo", "undo last change", "revert edit", "roll back a file"},
	},
	Traits: func(_ *session.State, in undoChangeInput) tool.Traits {
		return tool.Traits{ReadOnly: in.DryRun, Parallel: in.DryRun, Idempotent: in.DryRun} // a dry run writes nothing
	},
	Hidden:   []string{"hunk"},
	Paths:    func(in *undoChangeInput) []*string { return []*string{&in.FilePath} },
	Check:    checkUndoChange,
	Complete: completeUndoChange,
	Targets: func(_ *session.State, in undoChangeInput) []permission.Target {
		var all []permission.Target
		for _, f := range in.change.Files {
			all = append(all, permission.Target{Kind: permission.Path, Value: f.Path})
		}
		return all
	},
	Details: detailUndoChange,
	Activity: func(in undoChangeInput) string {
		return "Taking back a change of " + filepath.Base(in.change.Files[0].Path)
	},
	Run: runUndoChange,
})

func checkUndoChange(in undoChangeInput) error {
	if (in.ChangeID == "") == (in.FilePath == "") {
		return tool.Invalid("undo_change", `exactly one of "change_id" and "file_path" is required`)
	}
	if in.Hunk != "" && (in.ChangeID == "" || in.DryRun || !history.NamesHunk(in.Hunk)) {
		return tool.Invalid("undo_change", `"hunk" names a hunk of "change_id", without a dry run`)
	}
	return nil
}

// completeUndoChange finds the change. From then on the call is about that one, whatever happens to the file meanwhile:
// what a person has said yes to is what is undone.
func completeUndoChange(ctx context.Context, s *session.State, in *undoChangeInput) (err error) {
	if in.ChangeID != "" {
		in.change, err = history.Undoable(ctx, s, in.ChangeID)
		return err
	}
	if err := history.RefuseOutside(s, in.FilePath); err != nil {
		return err
	}
	for _, path := range history.Paths(s, in.FilePath) {
		last, err := s.Files.Last(ctx, journal.Query{Path: path})
		if err == nil {
			in.ChangeID, in.FilePath = last.ID, ""
			in.change, err = history.Undoable(ctx, s, last.ID)
			return err
		}
		if !errors.Is(err, journal.ErrNoChange) {
			return history.Fault("The changes of "+in.FilePath, err)
		}
	}
	return tool.Refuse(tool.ChangeUnknown,
		"There is no change of %s by these tools to take back. Use file_history to list its changes.",
		in.FilePath)
}

// detailUndoChange is what an undo would do now, for the person who is asked about it; "": it would be refused.
func detailUndoChange(ctx context.Context, s *session.State, in undoChangeInput, room int) string {
	if in.Hunk != "" {
		return "Only hunk " + in.Hunk + " of change " + in.ChangeID + "."
	}
	steps, err := history.UndoSteps(ctx, tool.Env{State: s}, in.change)
	for _, step := range steps {
		defer step.File.Close()
	}
	if err != nil {
		return ""
	}
	changes, err := s.Files.TryUndo(ctx, steps...)
	if err != nil {
		return ""
	}
	return history.PreviewUndo(in.change, changes, room)
}

func runUndoChange(ctx context.Context, env tool.Env, in undoChangeInput) (tool.Result, error) {
	steps, err := history.UndoSteps(ctx, env, in.change)
	for _, s := range steps {
		defer s.File.Close()
	}
	if err != nil {
		return tool.Result{}, err
	}
	view, err := history.NewView(env.State, "") // a command may have removed what must not be read without a question
	if err != nil {
		return tool.Result{}, err
	}
	if in.Hunk != "" {
		return undoHunk(ctx, env, in, steps, view)
	}
	if in.DryRun {
		changes, err := env.Files.TryUndo(ctx, steps...)
		if err != nil {
			return tool.Result{}, history.UndoRefusal(ctx, env, in.change, err)
		}
		what := "This change can be taken back"
		if in.change.Kept != "" {
			what = "This content can be written"
		}
		text, _ := history.UndoneFiles(in.change, changes, true, view.Sees)
		return tool.Result{Text: "Dry run: nothing was written. " + what + ":\n" +
			history.Line(env, in.change, in.change.Files, time.Now()) + text}, nil
	}
	changes, err := env.Files.Undo(ctx, editing.By(env, "undo_change"), steps...)
	if err != nil {
		return tool.Result{}, history.UndoRefusal(ctx, env, in.change, err)
	}
	line, notes := history.UndoneLine(env, in.change, changes)
	around := slices.ContainsFunc(steps, func(s filestate.Step) bool { return len(s.Rests) > 0 })
	if around || !history.Own(ctx, env, in.change) { // else the session knows what it wrote, and what that replaced
		text, hidden := history.UndoneFiles(in.change, changes, false, view.Sees)
		line += text
		notes = append(notes, history.Forget(ctx, env, changes, hidden)...)
	}
	res := tool.Result{Meta: editing.Meta(struct {
		Undone string `json:"undone"`
		Files  int    `json:"files"`
	}{in.change.ID, len(changes)}, changes...)}
	for _, c := range changes {
		res.Shows = append(res.Shows, c.Path)
	}
	res.Text = line + editing.Notes(ctx, env, notes, changes...)
	return res, nil
}

// undoHunk takes back one hunk of a change.
func undoHunk(ctx context.Context, env tool.Env, in undoChangeInput, steps []filestate.Step,
	view *history.View) (tool.Result, error) {
	hunk, err := history.FindHunk(ctx, env, view, in.change, in.Hunk)
	if err != nil {
		return tool.Result{}, err
	}
	changes, err := hunk.TakeBack(ctx, env, editing.By(env, "undo_change"), steps)
	if err != nil {
		return tool.Result{}, err
	}
	line := "Took back hunk " + hunk.Head + " of " + in.change.By.Tool + " " + wording.ShownName(env, hunk.Path)
	if id := changes[0].ID; id != "" {
		line += "; redo: undo_change " + id
	}
	return tool.Result{
		Text:  line + editing.Notes(ctx, env, nil, changes...),
		Meta:  editing.Meta(struct{}{}, changes...),
		Shows: []string{hunk.Path},
	}, nil
}
