package tools

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"codehand/tools/editing"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed multi_edit.md
var multiEditText string

type multiEditInput struct {
	Edits    []multiEditItem `json:"edits" jsonschema:"in order" rule:"maxitems=100"`
	FilePath string          `json:"file_path,omitempty" jsonschema:"default for all edits"`
	DryRun   bool            `json:"dry_run,omitempty" jsonschema:"check only"`
}

type multiEditItem struct {
	FilePath   string `json:"file_path,omitempty" jsonschema:"default: file_path of the call"`
	OldString  string `json:"old_string" jsonschema:"exact text to replace"`
	NewString  string `json:"new_string" jsonschema:"its replacement"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"every occurrence"`
	Expected   int    `json:"expected_replacements,omitempty" jsonschema:"exact count" rule:"min=1"`
	Version    string `json:"version,omitempty" jsonschema:"shown by read_file"`
}

var multiEdit = tool.Define(tool.Def[multiEditInput]{
	Spec: tool.Spec{
		Name: "multi_edit", Aliases: []string{"MultiEdit"}, Title: "Edit files", Description: multiEditText,
		Hint: "several edits, several files, all or nothing", Scope: tool.ScopeWrite, Family: permission.FamilyEdit,
		Traits:    tool.Traits{Local: true},
		Card:      tool.Drawn,
		ForAgents: tool.ChangingAgents,
		Guarded:   true,
		Elsewhere: []string{"edit", "patch", "multiedit"},
		Example: `{"file_path":"$WORK/f","edits":[{"old_string":"one","new_string":"two"},` +
			`{"file_path":"$WORK/g","old_string":"","new_string":"g"}]}`,
	},
	Traits: func(_ *session.State, in multiEditInput) tool.Traits {
		return tool.Traits{ReadOnly: in.DryRun, Parallel: in.DryRun, Idempotent: in.DryRun} // a dry run writes nothing
	},
	Accept: map[string]string{
		"path": "file_path", "edits.path": "file_path",
		"edits.old_str": "old_string", "edits.old_text": "old_string", "edits.oldText": "old_string",
		"edits.new_str": "new_string", "edits.new_text": "new_string", "edits.newText": "new_string",
	},
	Hidden: []string{"edits.expected_replacements"},
	Paths: func(in *multiEditInput) []*string {
		paths := []*string{&in.FilePath}
		for i := range in.Edits {
			paths = append(paths, &in.Edits[i].FilePath)
		}
		return paths
	},
	Details: func(ctx context.Context, s *session.State, in multiEditInput, room int) string {
		files, err := multiEditFiles(editing.Asked(s), in)
		for _, f := range files {
			defer f.File.Close()
		}
		return editing.PreviewEdits(ctx, editing.Asked(s), files, err, room)
	},
	Activity: func(in multiEditInput) string {
		var files []string
		for _, e := range in.Edits {
			files = append(files, cmp.Or(e.FilePath, in.FilePath))
		}
		return editing.Activity(files)
	},
	Check: checkMultiEdit,
	Complete: func(_ context.Context, s *session.State, in *multiEditInput) error {
		for i, e := range in.Edits {
			if err := editing.RefuseSecret(s, cmp.Or(e.FilePath, in.FilePath), fmt.Sprintf("Edit %d: new_string", i+1),
				e.NewString); err != nil {
				return err
			}
		}
		return nil
	},
	Run: runMultiEdit,
})

func checkMultiEdit(in multiEditInput) error {
	if len(in.Edits) == 0 {
		return tool.Invalid("multi_edit", "\"edits\" must not be empty")
	}
	for i, e := range in.Edits {
		if e.FilePath == "" && in.FilePath == "" {
			return tool.Invalid("multi_edit", fmt.Sprintf("\"file_path\" is required, since edit %d names no file",
				i+1))
		}
		if err := editing.CheckEdit("multi_edit", fmt.Sprintf("Edit %d: ", i+1), e.OldString, e.NewString); err != nil {
			return err
		}
	}
	return nil
}

func runMultiEdit(ctx context.Context, env tool.Env, in multiEditInput) (tool.Result, error) {
	planned := editing.TellPlanning(env, len(in.Edits))
	files, err := multiEditFiles(env, in)
	planned()
	for _, f := range files {
		defer f.File.Close()
	}
	if err != nil {
		return tool.Result{}, err
	}
	if in.DryRun {
		return editing.TryAll(ctx, env, files)
	}
	changes, err := editing.ApplyAll(ctx, env, files)
	if err != nil {
		return tool.Result{}, err
	}
	res := tool.Result{Saw: editing.Saw(env, files...)}
	var lines, notes []string
	for i := range changes {
		line, more := files[i].Said(env, &changes[i], editing.MaxDiff/len(files))
		lines, notes = append(lines, line), append(notes, more...)
		res.Shows = append(res.Shows, changes[i].Path)
	}
	res.Text = strings.Join(lines, "\n") + editing.Notes(ctx, env, notes, changes...)
	res.Meta = editing.EditMeta(struct {
		Files int `json:"files"`
		Edits int `json:"edits"`
	}{len(files), len(in.Edits)}, files, changes)
	return res, nil
}

// multiEditFiles gathers the edits by file, whatever the spelling of its path. The caller closes what comes back, also
// with an error.
func multiEditFiles(env tool.Env, in multiEditInput) ([]*editing.FileEdits, error) {
	var files []*editing.FileEdits
	for i, e := range in.Edits {
		path := cmp.Or(e.FilePath, in.FilePath)
		opened, err := env.Open(path, workspace.Write)
		if err != nil {
			return files, wording.PathRefusal(env, path, err)
		}
		at := slices.IndexFunc(files, func(f *editing.FileEdits) bool { return f.File.Path == opened.Path })
		if at < 0 {
			at = len(files)
			files = append(files, &editing.FileEdits{File: opened, Path: path, Tool: "multi_edit"})
		} else {
			_ = opened.Close() // a second handle on the same directory
		}
		f := files[at]
		f.Version = cmp.Or(f.Version, e.Version)
		if e.Version != "" && e.Version != f.Version {
			return files, tool.Invalid("multi_edit",
				fmt.Sprintf("\"version\" of edit %d differs from that of an earlier edit of the same file", i+1))
		}
		f.Which, f.Total = append(f.Which, i+1), len(in.Edits)
		f.Edits = append(f.Edits, textedit.Edit{Old: e.OldString, New: e.NewString, All: e.ReplaceAll,
			Expect: e.Expected, Prose: textedit.Prose(path), Markers: env.Prefs.EditMarkers})
	}
	return files, editing.RefuseClash("multi_edit", files)
}
