package tools

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"codehand/tools/editing"
	"codehand/tools/patch"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed apply_patch.md
var applyPatchText string

type applyPatchInput struct {
	Patch string `json:"patch" jsonschema:"the whole patch"`

	files []patch.Section `json:"-"` // of Patch, with absolute paths; nil: it could not be read
}

// maxPatched is how many files a patch may name. A person who is asked sees the diff of each.
const maxPatched = 50

var applyPatch = tool.Define(tool.Def[applyPatchInput]{
	Spec: tool.Spec{
		Name: "apply_patch", Aliases: []string{"ApplyPatch"}, Title: "Apply patch", Description: applyPatchText,
		Hint:     "patch files: update, add, delete, move", // the sections of a patch
		Deferred: true, ForPatchers: true, Scope: tool.ScopeWrite, Family: permission.FamilyEdit,
		Traits:    tool.Traits{Local: true},
		Card:      tool.Drawn,
		ForAgents: tool.ChangingAgents,
		Guarded:   true,
		Elsewhere: []string{"apply_patch", "applypatch", "patch"},
		Example:   `{"patch":"*** Begin Patch\n*** Add File: $WORK/patched\n+one\n*** End Patch"}`,
		Finds:     []string{"apply_patch", "apply a patch", "V4A patch", "*** Begin Patch"},
	},
	Accept: map[string]string{"input": "patch", "patchText": "patch", "patch_text": "patch", "diff": "patch"},
	Paths: func(in *applyPatchInput) []*string {
		if in.files == nil {
			in.files, _ = patch.Parse(in.Patch) // Check says what is wrong
		}
		var paths []*string
		for i := range in.files {
			paths = append(paths, &in.files[i].Path)
			if in.files[i].To != "" {
				paths = append(paths, &in.files[i].To)
			}
		}
		return paths
	},
	Details: func(ctx context.Context, s *session.State, in applyPatchInput, room int) string {
		files, err := patchedFiles(editing.Asked(s), in)
		for _, f := range files {
			defer f.File.Close()
		}
		return editing.PreviewEdits(ctx, editing.Asked(s), files, err, room)
	},
	Activity: func(in applyPatchInput) string {
		var names []string
		for _, f := range in.files {
			names = append(names, f.Path)
		}
		return editing.Activity(names)
	},
	Check: checkApplyPatch,
	Complete: func(_ context.Context, s *session.State, in *applyPatchInput) error {
		for _, f := range in.files {
			if err := refuseSecretPatch(s, f); err != nil {
				return err
			}
		}
		return nil
	},
	Run: runApplyPatch,
})

func checkApplyPatch(in applyPatchInput) error {
	if _, err := patch.Parse(in.Patch); err != nil {
		return tool.Invalid("apply_patch", err.Error())
	}
	named := map[string]patch.Action{}
	for _, f := range in.files {
		before, again := named[f.Path]
		if again && (f.Action != patch.Update || before != patch.Update || f.To != "") {
			return tool.Invalid("apply_patch", f.Path+" stands in the patch twice; put all that is done with it into "+
				"one section")
		}
		named[f.Path] = f.Action
		if f.To == "" {
			continue
		}
		if _, again := named[f.To]; again {
			return tool.Invalid("apply_patch", f.To+" is the new name of a file, and stands in the patch itself, too")
		}
		named[f.To] = patch.Add
		named[f.Path] = patch.Delete
	}
	if len(named) > maxPatched {
		return tool.Invalid("apply_patch", fmt.Sprintf("the patch must name at most %d files, not %d", maxPatched,
			len(named)))
	}
	return nil
}

// refuseSecretPatch looks for secrets in what a section adds.
func refuseSecretPatch(s *session.State, f patch.Section) error {
	var added strings.Builder
	added.WriteString(f.Content)
	for _, h := range f.Hunks {
		for _, line := range h.New {
			added.WriteString(line + "\n")
		}
		if len(h.New) == 0 {
			added.WriteString("\n")
		}
	}
	path := f.Path
	if f.To != "" {
		path = f.To
	}
	return editing.RefuseSecret(s, path, "patch", added.String())
}

func runApplyPatch(ctx context.Context, env tool.Env, in applyPatchInput) (tool.Result, error) {
	files, err := patchedFiles(env, in)
	for _, f := range files {
		defer f.File.Close()
	}
	if err != nil {
		return tool.Result{}, err
	}
	changes, err := editing.ApplyAll(ctx, env, files)
	if err != nil {
		return tool.Result{}, err
	}
	res := tool.Result{Saw: editing.Saw(env, files...)}
	var lines, notes []string
	for i := range changes {
		res.Shows = append(res.Shows, changes[i].Path)
		if files[i].From != nil {
			continue // the line of its old name tells of it
		}
		line, more := files[i].Said(env, &changes[i], editing.MaxDiff/len(files))
		lines, notes = append(lines, line), append(notes, more...)
	}
	res.Text = strings.Join(lines, "\n") + editing.Notes(ctx, env, notes, changes...)
	res.Meta = editing.Meta(struct {
		Files int `json:"files"`
	}{len(files)}, changes...)
	return res, nil
}

// patchedFiles are the files of a patch, each with its hunks. The caller closes what comes back, also with an error.
func patchedFiles(env tool.Env, in applyPatchInput) (files []*editing.FileEdits, err error) {
	open := func(path string) (*editing.FileEdits, error) {
		opened, err := env.Open(path, workspace.Write)
		if err != nil {
			return nil, wording.PathRefusal(env, path, err)
		}
		same := func(f *editing.FileEdits) bool { return f.File.Path == opened.Path }
		if at := slices.IndexFunc(files, same); at >= 0 {
			_ = opened.Close() // a second handle on the same directory
			return files[at], nil
		}
		f := &editing.FileEdits{File: opened, Path: path, Tool: "apply_patch", Patch: true}
		files = append(files, f)
		return f, nil
	}
	for _, section := range in.files {
		f, err := open(section.Path)
		if err != nil {
			return files, err
		}
		if f.Removes || f.From != nil || len(f.Edits) > 0 && section.Action != patch.Update {
			return files, tool.Invalid("apply_patch", section.Path+" and "+f.Path+" are one file; put all that is "+
				"done with it into one section")
		}
		addHunks(env, f, section)
		if section.Action == patch.Delete || section.To != "" {
			if err := f.RefuseLink(env); err != nil {
				return files, err
			}
			f.Removes = true
		}
		if section.To == "" {
			continue
		}
		to, err := open(section.To)
		if err != nil {
			return files, err
		}
		if to == f || to.Removes || to.From != nil || len(to.Edits) > 0 {
			return files, tool.Invalid("apply_patch", section.To+" is a file that the patch names already")
		}
		f.Moves(to)
	}
	return files, editing.RefuseClash("apply_patch", files)
}

// addHunks adds to a file what a section does with its text.
func addHunks(env tool.Env, f *editing.FileEdits, section patch.Section) {
	prose := textedit.Prose(section.Path)
	if section.Action == patch.Add {
		f.Edits = append(f.Edits, textedit.Edit{New: section.Content})
	}
	for _, h := range section.Hunks {
		f.Which = append(f.Which, len(f.Which)+1)
		f.Edits = append(f.Edits, textedit.Edit{Old: strings.Join(h.Old, "\n"), New: strings.Join(h.New, "\n"),
			Prose: prose, Markers: env.Prefs.EditMarkers,
			Hunk: &textedit.Hunk{Under: h.Under, AtEnd: h.AtEnd, Insert: len(h.Old) == 0}})
	}
	f.Total = len(f.Edits)
}
