package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"codehand/filestate/journal"
	"codehand/tools/editing"
	"codehand/tools/history"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed show_changes.md
var showChangesText string

type showChangesInput struct {
	Path    string `json:"path,omitempty" jsonschema:"file or directory"`
	Summary bool   `json:"summary,omitempty" jsonschema:"line counts only, no diffs"`
}

var showChanges = tool.Define(tool.Def[showChangesInput]{
	Spec: tool.Spec{
		Name: "show_changes", Title: "Show changes", Description: showChangesText,
		Hint: "review the diff of all edits of this session", Deferred: true, MaxRunes: 50_000,
		Scope: tool.ScopeRead, Family: permission.FamilyRead,
		Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
		Card:      tool.Drawn,
		ForAgents: tool.AllAgents,
		Example:   `{"path":"$WORK/h"}`,
		Finds: []string{
			"what did this session change", "diff of all edits", "review my work", "show changes", "summary of edits",
		},
	},
	Accept: map[string]string{"file_path": "path"},
	Paths:  func(in *showChangesInput) []*string { return []*string{&in.Path} },
	Targets: func(s *session.State, in showChangesInput) []permission.Target {
		if in.Path != "" {
			return nil
		}
		return []permission.Target{{Kind: permission.Path, Value: s.Space.Cwd()}}
	},
	Activity: func(in showChangesInput) string {
		if in.Path == "" {
			return "Comparing what changed"
		}
		return "Comparing " + filepath.Base(in.Path)
	},
	Run: runShowChanges,
})

func runShowChanges(ctx context.Context, env tool.Env, in showChangesInput) (tool.Result, error) {
	view, err := history.NewView(env.State, in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	made, err := history.MadeHere(ctx, env, view)
	unread, partly := errors.AsType[*journal.UnreadError](err)
	if err != nil && (!partly || len(made) == 0) {
		return tool.Result{}, history.Fault("The changes of this session", err)
	}
	done := wording.TellIfSlow(env, "comparing "+wording.Plural(len(made), "file", "files"))
	defer done()
	p := showPage{form: wording.Form(env, 1000, 10), files: len(made), summary: in.Summary}
	trees := history.NewTrees(env, nil)
	if in.Path == "" {
		trees = history.NewTrees(env, made)
	}
	for _, m := range made {
		now, same, err := m.Now(ctx, env)
		if err != nil {
			return tool.Result{}, history.Fault("The changes of "+wording.ShownName(env, m.Path), err)
		}
		if !same && !trees.Take(&now) {
			p.add(env, &now)
		}
	}
	p.trees = trees.All()
	return tool.Result{Text: p.text(env, in.Path, unread), Shows: p.shows}, nil
}

// A showPage is the answer of show_changes while it grows: files with their diffs, then files by name, then a count.
type showPage struct {
	form           results.Form
	summary        bool
	files          int // that there may be, for each one's part of the room
	changed        int
	added, removed int
	shows          []string
	body           strings.Builder // of files with their diffs
	named          strings.Builder // of files for whose diffs there is no room
	unnamed        int
	trees          []*history.Tree // of files that are told as one
}

// add adds a file. A diff gets a part of the room that is left beside the names of the files to come: the first ones
// take no more than the last ones.
func (p *showPage) add(env tool.Env, now *history.Now) {
	p.changed, p.added, p.removed = p.changed+1, p.added+now.Added, p.removed+now.Removed
	line, left := now.Line(env)+"\n", max(0, p.files-p.changed)
	if p.named.Len() == 0 && p.show(now, line, left) {
		return
	}
	if p.form.Fits(p.body.String() + p.named.String() + line) {
		p.named.WriteString(line)
		return
	}
	p.unnamed++
}

// show adds a file with its diff, and says whether there was room. left is how many files may follow.
func (p *showPage) show(now *history.Now, line string, left int) bool {
	const name, least = 150, 400 // a diff of less than that does not help
	if p.summary || !now.Known {
		fits := p.form.Fits(p.body.String() + line)
		if fits {
			p.body.WriteString(line)
		}
		return fits
	}
	room := history.Room(p.form, p.body.String()+line)
	room -= min(room/2, left*name)
	for part := max(room/(left+1), min(editing.MaxDiff, room/2)); part >= least; part /= 2 {
		text := line
		if diff := now.Diff(part - least/2); diff != "" {
			text += diff + "\n"
		}
		if p.form.Fits(p.body.String() + text) {
			if p.body.WriteString(text); text != line {
				p.shows = append(p.shows, now.Path)
			}
			return true
		}
	}
	return false
}

func (p *showPage) text(env tool.Env, path string, unread *journal.UnreadError) string {
	text := "No changes in this session."
	if path != "" {
		text = "No changes of " + wording.ShownName(env, path) + " in this session."
	}
	listed, more := "", 0
	for _, t := range p.trees {
		p.changed, p.added = p.changed+t.Files, p.added+t.Added
		if line := t.Line() + "\n"; p.form.Fits(p.body.String() + p.named.String() + listed + line) {
			listed += line
		} else {
			more++
		}
	}
	if more > 0 {
		listed += fmt.Sprintf("(And new files in %d more directories.)\n", more)
	}
	if p.changed > 0 {
		text = fmt.Sprintf("%s changed in this session: +%d -%d\n",
			wording.Plural(p.changed, "file", "files"), p.added, p.removed) + listed + p.body.String()
	}
	if env.Shared {
		text = "Several conversations share this session; these are the changes of all of them.\n" + text
	}
	if p.named.Len() > 0 {
		text += "(For want of room without a diff; give path to see one:)\n" + p.named.String()
	}
	if p.unnamed > 0 {
		text += fmt.Sprintf("(And %s; give path as a directory to see them.)\n",
			wording.Plural(p.unnamed, "more file", "more files"))
	}
	if unread != nil {
		text += "(There may be other changes: a part of the journal cannot be read: " + history.UnreadCause(unread) +
			".)\n"
	}
	return strings.TrimSuffix(text, "\n")
}
