package tools

import (
	"context"
	_ "embed"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	ChangeID    string `json:"change_id,omitempty" jsonschema:"id from file_history"`
	FilePath    string `json:"file_path,omitempty" jsonschema:"undo only this file of it, or of its last change"`
	SkipChanged bool   `json:"skip_changed,omitempty" jsonschema:"leave files that cannot go back"`
	DryRun      bool   `json:"dry_run,omitempty" jsonschema:"check only"`

	Hunk     string `json:"hunk,omitempty"`     // for the page: only this one, as history.FindHunk names it
	Around   bool   `json:"around,omitempty"`   // for the page: what changed since stays, and all else goes back
	Terminal bool   `json:"terminal,omitempty"` // for codehand undo: the answer names its commands

	part history.Undo `json:"-"`
}

// words are those that the reader of the answer knows.
func (in undoChangeInput) words() history.Words {
	if in.Terminal {
		return history.ForTerminal
	}
	return history.ForModels
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
		// a dry run writes nothing, and is a question only where the undo itself is one
		return tool.Traits{ReadOnly: in.DryRun, Tries: in.DryRun, Parallel: in.DryRun, Idempotent: in.DryRun}
	},
	Hidden:   []string{"hunk", "around", "terminal"},
	Paths:    func(in *undoChangeInput) []*string { return []*string{&in.FilePath} },
	Check:    checkUndoChange,
	Complete: completeUndoChange,
	Targets: func(_ *session.State, in undoChangeInput) []permission.Target {
		var all []permission.Target
		for _, f := range in.part.Files {
			all = append(all, permission.Target{Kind: permission.Path, Value: f.Path})
		}
		return all
	},
	Details: detailUndoChange,
	Activity: func(in undoChangeInput) string {
		return "Taking back a change of " + filepath.Base(in.part.Files[0].Path)
	},
	Run: runUndoChange,
})

func checkUndoChange(in undoChangeInput) error {
	if in.ChangeID == "" && in.FilePath == "" {
		return tool.Invalid("undo_change", `"change_id" or "file_path" is required`)
	}
	if in.Around && (in.Hunk != "" || in.SkipChanged || in.DryRun) {
		return tool.Invalid("undo_change", `"around" cannot be combined with a dry run and other parts`)
	}
	if in.Hunk != "" && (in.ChangeID == "" || in.FilePath != "" || in.SkipChanged || in.DryRun ||
		!history.NamesHunk(in.Hunk)) {
		return tool.Invalid("undo_change", `"hunk" names a hunk of "change_id", alone and without a dry run`)
	}
	return nil
}

// completeUndoChange finds the change. From then on the call is about that one, whatever happens to the file meanwhile:
// what a person has said yes to is what is undone.
func completeUndoChange(ctx context.Context, s *session.State, in *undoChangeInput) (err error) {
	skip := in.SkipChanged || in.Around || in.Hunk != ""
	if in.FilePath == "" {
		in.part, err = history.Undoable(ctx, s, in.words(), in.ChangeID, "", skip)
		return err
	}
	if err := history.RefuseOutside(s, in.words(), in.FilePath); err != nil {
		return err
	}
	paths := history.Paths(s, in.FilePath)
	if in.ChangeID != "" {
		in.FilePath, in.part, err = history.UndoableFile(ctx, s, in.words(), in.ChangeID, paths, skip)
		return err
	}
	for _, path := range paths {
		last, err := s.Files.Last(ctx, journal.Query{Path: path})
		if err == nil {
			in.ChangeID, in.FilePath = last.ID, path
			in.part, err = history.Undoable(ctx, s, in.words(), last.ID, path, skip)
			return err
		}
		if !errors.Is(err, journal.ErrNoChange) {
			return history.Fault("The changes of "+in.FilePath, err)
		}
	}
	return tool.Refuse(tool.ChangeUnknown,
		"There is no change of %s by these tools to take back. Use %s to list its changes.",
		in.FilePath, in.words().History)
}

// openUndo opens what the call takes back, and says what it leaves out.
func openUndo(ctx context.Context, env tool.Env, in undoChangeInput) ([]filestate.Step, []history.Left, error) {
	if in.SkipChanged {
		return in.part.Unchanged(ctx, env, in.words())
	}
	steps, err := in.part.Steps(ctx, env, in.words())
	return steps, nil, err
}

// detailUndoChange is what an undo would do now, for the person who is asked about it; "": it would be refused.
func detailUndoChange(ctx context.Context, s *session.State, in undoChangeInput, room int) string {
	if in.Hunk != "" {
		return "Only hunk " + in.Hunk + " of change " + in.ChangeID + "."
	}
	env := tool.Env{State: s}
	steps, left, err := openUndo(ctx, env, in)
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
	notes := strings.Join(undoNotes(env, in, steps, left), "\n")
	text := history.PreviewUndo(in.part.Entry, changes, room-utf8.RuneCountInString(notes)-1)
	return strings.TrimSuffix(text+"\n"+notes, "\n")
}

// undoNotes say what else goes back, and what does not.
func undoNotes(env tool.Env, in undoChangeInput, steps []filestate.Step, left []history.Left) []string {
	notes := []string{in.part.Together(env), history.LeftNote(env, left)}
	if len(left) == 0 {
		notes = append(notes, in.part.Rest(in.words(), len(steps)))
	}
	return slices.DeleteFunc(notes, func(n string) bool { return n == "" })
}

func runUndoChange(ctx context.Context, env tool.Env, in undoChangeInput) (tool.Result, error) {
	view, err := history.NewView(env.State, "") // a command may have removed what must not be read without a question
	if err != nil {
		return tool.Result{}, err
	}
	if in.Hunk != "" {
		return undoHunk(ctx, env, in, view)
	}
	if in.Around {
		return undoAround(ctx, env, in, view)
	}
	steps, left, err := openUndo(ctx, env, in)
	for _, s := range steps {
		defer s.File.Close()
	}
	if err != nil {
		return tool.Result{}, in.part.Refusal(ctx, env, in.words(), err)
	}
	change := in.part.Shown(steps)
	notes := undoNotes(env, in, steps, left)
	if in.DryRun {
		changes, err := env.Files.TryUndo(ctx, steps...)
		if err != nil {
			return tool.Result{}, in.part.Refusal(ctx, env, in.words(), err)
		}
		what := "This change can be taken back"
		if change.Kept != "" {
			what = "This content can be written"
		}
		text, _ := history.UndoneFiles(change, changes, true, view.Sees)
		return tool.Result{Text: "Dry run: nothing was written. " + what + ":\n" +
			history.Line(env, change, change.Files, time.Now()) + text + lined(notes)}, nil
	}
	changes, err := in.part.TakeBack(ctx, env, editing.By(env, "undo_change"), steps)
	if err != nil {
		return tool.Result{}, in.part.Refusal(ctx, env, in.words(), err)
	}
	line, more := history.UndoneLine(env, in.words(), change, changes)
	notes = append(more, notes...)
	around := slices.ContainsFunc(steps, func(s filestate.Step) bool { return len(s.Rests) > 0 })
	if around || !history.Own(ctx, env, change) { // else the session knows what it wrote, and what that replaced
		text, hidden := history.UndoneFiles(change, changes, false, view.Sees)
		line += text
		notes = append(notes, history.Forget(ctx, env, changes, hidden)...)
	}
	res := tool.Result{Meta: editing.Meta(struct {
		Undone string `json:"undone"`
		Files  int    `json:"files"`
	}{change.ID, len(changes)}, changes...)}
	for _, c := range changes {
		res.Shows = append(res.Shows, c.Path)
	}
	res.Text = line + editing.Notes(ctx, env, notes, changes...)
	return res, nil
}

// lined are notes, each on a line of its own.
func lined(notes []string) string {
	text := ""
	for _, n := range notes {
		text += "\n" + n
	}
	return text
}

// undoAround takes back what nobody changed since, in one change or several.
func undoAround(ctx context.Context, env tool.Env, in undoChangeInput, view *history.View) (tool.Result, error) {
	changes, left, err := in.part.TakeBackAround(ctx, env, in.words(), editing.By(env, "undo_change"), view)
	if err != nil && len(changes) == 0 {
		return tool.Result{}, err
	}
	var names, ids []string
	for _, c := range changes {
		if name := wording.ShownName(env, c.Path); !slices.Contains(names, name) {
			names = append(names, name)
		}
		if c.ID != "" && !slices.Contains(ids, c.ID) {
			ids = append(ids, c.ID)
		}
	}
	slices.Reverse(ids) // the last one goes back first
	line := "Took back " + in.part.Entry.By.Tool + " in " + strings.Join(names, ", ") + "; redo: " + in.words().Undo +
		strings.Join(ids, ", then ")
	notes := []string{}
	if note := history.LeftNote(env, left); note != "" {
		notes = append(notes, note)
	}
	if err != nil {
		notes = append(notes, "[the rest was not tried: "+err.Error()+"]")
	}
	return tool.Result{
		Text: line + editing.Notes(ctx, env, notes, changes...), Meta: editing.Meta(struct{}{}, changes...),
	}, nil
}

// undoHunk takes back one hunk of a change.
func undoHunk(ctx context.Context, env tool.Env, in undoChangeInput, view *history.View) (tool.Result, error) {
	hunk, err := history.FindHunk(ctx, env, view, in.part.Entry, in.Hunk)
	if err != nil {
		return tool.Result{}, err
	}
	changes, err := hunk.TakeBack(ctx, env, in.words(), editing.By(env, "undo_change"))
	if err != nil {
		return tool.Result{}, err
	}
	line := "Took back hunk " + hunk.Head + " of " + in.part.Entry.By.Tool + " " + wording.ShownName(env, hunk.Path)
	if id := changes[0].ID; id != "" {
		line += "; redo: " + in.words().Undo + id
	}
	return tool.Result{
		Text:  line + editing.Notes(ctx, env, nil, changes...),
		Meta:  editing.Meta(struct{}{}, changes...),
		Shows: []string{hunk.Path},
	}, nil
}
