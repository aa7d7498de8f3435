package tools

import (
	"context"
	_ "embed"
	"path/filepath"

	"codehand/filestate"
	"codehand/tools/editing"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed edit_file.md
var editFileText string

type editFileInput struct {
	FilePath   string `json:"file_path" jsonschema:"absolute or relative"`
	OldString  string `json:"old_string" jsonschema:"exact text to replace"`
	NewString  string `json:"new_string" jsonschema:"its replacement"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"every occurrence"`
	Expected   int    `json:"expected_replacements,omitempty" jsonschema:"refuse any other number; > 1 replaces all" rule:"min=1"`
	Version    string `json:"version,omitempty" jsonschema:"shown by read_file"`
}

var editFile = tool.Define(tool.Def[editFileInput]{
	Spec: tool.Spec{
		Name: "edit_file", Aliases: []string{"Edit"}, Title: "Edit file", Description: editFileText,
		Hint: "replace exact text in a file", Scope: tool.ScopeWrite, Family: permission.FamilyEdit,
		Traits:    tool.Traits{Local: true},
		Card:      tool.Drawn,
		ForAgents: tool.ChangingAgents,
		Simple:    true,
		Guarded:   true,
		Elsewhere: []string{"edit", "replace", "patch", "str_replace_editor", "str_replace_based_edit_tool"},
		Advice: tool.Advice{
			Verb: "edit", Rank: 70,
			Text: "If a result shows a version, pass it with the edit.",
		},
		Example: `{"file_path":"$WORK/f","old_string":"one","new_string":"two"}`,
	},
	Accept: map[string]string{
		"path": "file_path", "old_str": "old_string", "old_text": "old_string", "oldText": "old_string",
		"new_str": "new_string", "new_text": "new_string", "newText": "new_string",
	},
	Hidden: []string{"expected_replacements"},
	Paths:  func(in *editFileInput) []*string { return []*string{&in.FilePath} },
	Details: func(ctx context.Context, s *session.State, in editFileInput, room int) string {
		env := editing.Asked(s)
		f, err := env.Open(in.FilePath, workspace.Write)
		if err != nil {
			return ""
		}
		defer f.Close()
		return editing.PreviewEdits(ctx, env, []*editing.FileEdits{editFileEdits(env, f, in)}, nil, room)
	},
	Activity: func(in editFileInput) string { return "Editing " + filepath.Base(in.FilePath) },
	Check:    checkEditFile,
	Complete: func(_ context.Context, s *session.State, in *editFileInput) error {
		return editing.RefuseSecret(s, in.FilePath, "new_string", in.NewString)
	},
	Run: runEditFile,
})

func checkEditFile(in editFileInput) error {
	return editing.CheckEdit("edit_file", "", in.OldString, in.NewString)
}

func editFileEdits(env tool.Env, f filestate.File, in editFileInput) *editing.FileEdits {
	return &editing.FileEdits{
		File: f, Path: in.FilePath, Version: in.Version, Tool: "edit_file",
		Edits: []textedit.Edit{{Old: in.OldString, New: in.NewString, All: in.ReplaceAll, Expect: in.Expected,
			Prose: textedit.Prose(in.FilePath), Markers: env.Prefs.EditMarkers}},
	}
}

func runEditFile(ctx context.Context, env tool.Env, in editFileInput) (tool.Result, error) {
	f, err := env.Open(in.FilePath, workspace.Write)
	if err != nil {
		return tool.Result{}, wording.PathRefusal(env, in.FilePath, err)
	}
	defer f.Close()
	edit := editFileEdits(env, f, in)
	if err := edit.RefuseNotebook(ctx, env); err != nil {
		return tool.Result{}, err
	}
	defer editing.TellStages(env, edit)()
	changes, err := env.Files.Update(ctx, editing.By(env, "edit_file"), edit.Change(env))
	if err != nil {
		return tool.Result{}, edit.Refusal(ctx, env, err)
	}
	text, notes := edit.Said(env, &changes[0], editing.MaxDiff)
	c, done := changes[0], edit.Report.Edits[0]
	return tool.Result{
		Text: text + editing.Notes(ctx, env, notes, c), Shows: []string{c.Path}, Saw: editing.Saw(env, edit),
		Meta: editing.EditMeta(struct {
			Replacements int `json:"replacements"`
			Level        int `json:"level"`
			BytesChanged int `json:"bytesChanged"`
		}{done.Replacements, int(done.Level) + 1, done.Changed}, []*editing.FileEdits{edit}, changes),
	}, nil
}
