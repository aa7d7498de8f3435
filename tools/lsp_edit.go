package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"codehand/filestate"
	"codehand/tools/editing"
	"codehand/tools/language"
	servers "codehand/tools/lsp"
	"codehand/tools/permission"
	"codehand/tools/search"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed lsp_edit.md
var lspEditText string

type lspEditInput struct {
	Operation string `json:"operation" jsonschema:"what to do" rule:"enum=rename|organizeImports"`
	FilePath  string `json:"filePath" jsonschema:"absolute or relative"`
	Line      int    `json:"line,omitempty" jsonschema:"of the name, from 1" rule:"min=1"`
	Character int    `json:"character,omitempty" jsonschema:"from 1, in UTF-16 units" rule:"min=1"`
	Query     string `json:"query,omitempty" jsonschema:"the name on the line" rule:"maxlen=1000"`
	NewName   string `json:"newName,omitempty" jsonschema:"of rename" rule:"maxlen=1000"`
	DryRun    bool   `json:"dryRun,omitempty" jsonschema:"change nothing"`

	files []servers.Rewrite `json:"-"`
}

var lspEdit = tool.Define(tool.Def[lspEditInput]{
	Spec: tool.Spec{
		Name: "lsp_edit", Title: "Rename symbol", Description: lspEditText,
		Hint:     "rename a symbol everywhere, organize imports",
		Deferred: true, Backed: true, Scope: tool.ScopeWrite, Family: permission.FamilyEdit,
		Traits:    tool.Traits{Local: true},
		Card:      tool.Drawn,
		ForAgents: tool.ChangingAgents,
		Example:   `{"operation":"organizeImports","filePath":"$WORK/f"}`,
		Finds:     []string{"rename symbol", "organize imports", "refactor rename"},
	},
	Accept: map[string]string{"file_path": "filePath", "path": "filePath", "new_name": "newName", "dry_run": "dryRun",
		"column": "character"},
	Available: language.Missing,
	Traits: func(_ *session.State, in lspEditInput) tool.Traits {
		return tool.Traits{ReadOnly: in.DryRun, Parallel: in.DryRun, Idempotent: in.DryRun} // a dry run writes nothing
	},
	Paths:    func(in *lspEditInput) []*string { return []*string{&in.FilePath} },
	Check:    checkLspEdit,
	Complete: completeLspEdit,
	Targets: func(_ *session.State, in lspEditInput) []permission.Target {
		var all []permission.Target
		for _, f := range in.files {
			all = append(all, permission.Target{Kind: permission.Path, Value: f.Path})
		}
		return all
	},
	Details: func(ctx context.Context, s *session.State, in lspEditInput, room int) string {
		env := editing.Asked(s)
		edits, files, err := lspEdits(env, in)
		for _, f := range files {
			defer f.Close()
		}
		if err != nil {
			return ""
		}
		return editing.PreviewFiles(ctx, env, edits, room)
	},
	Activity: func(in lspEditInput) string {
		if in.Operation == "rename" {
			return "Renaming to " + wording.LineOf(in.NewName, 30)
		}
		return "Ordering imports of " + filepath.Base(in.FilePath)
	},
	Run: runLspEdit,
})

func checkLspEdit(in lspEditInput) error {
	var wrong []string
	if in.Operation == "rename" {
		if in.NewName == "" {
			wrong = append(wrong, `"newName" is required for rename`)
		}
		if in.Line == 0 || in.Character == 0 && in.Query == "" {
			wrong = append(wrong, `"line", and "character" or "query", are required for rename`)
		}
	} else if in.NewName != "" {
		wrong = append(wrong, `"newName" is for rename alone`)
	}
	if len(wrong) > 0 {
		return tool.Invalid("lsp_edit", wrong...)
	}
	return nil
}

// completeLspEdit finds out which files would change, so that rules and a person judge all of them. A file that rules
// deny is left to them.
func completeLspEdit(ctx context.Context, s *session.State, in *lspEditInput) error {
	if real, _ := s.Space.Resolve(in.FilePath); s.Rules.Hidden(in.FilePath) || s.Rules.Hidden(real) ||
		language.Missing(s) != "" {
		return nil
	}
	env := editing.Asked(s)
	doc, err := language.Read(ctx, env, in.FilePath)
	if err != nil {
		return err
	}
	var at servers.Position
	if in.Operation == "rename" {
		if at, err = language.Position("lsp_edit", doc, in.Line, in.Character, in.Query); err != nil {
			return err
		}
	}
	in.files, err = language.Rewrites(ctx, env, doc, at, in.NewName)
	return err
}

// lspEdits opens all files, for writing, with what is changed in them. The caller closes the files, also after an
// error, which is a refusal.
func lspEdits(env tool.Env, in lspEditInput) (edits []filestate.Edit, files []filestate.File, err error) {
	access := workspace.Write
	if in.DryRun {
		access = workspace.Read
	}
	for _, r := range in.files {
		f, err := env.Open(r.Path, access)
		if err != nil {
			return nil, files, wording.PathRefusal(env, r.Path, err)
		}
		files = append(files, f)
		if f.Path != r.Path {
			return nil, files, lspOlder(env, r.Path)
		}
		edits = append(edits, language.Edit(f, r, func(old, now []byte) error {
			return editing.CheckSettings(env, old, now, r.Path)
		}))
	}
	return edits, files, nil
}

func lspOlder(env tool.Env, path string) error {
	return tool.Refuse(tool.Busy, "%s changed since the language server read it. Nothing was done. Try again.",
		wording.ShownName(env, path))
}

func runLspEdit(ctx context.Context, env tool.Env, in lspEditInput) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if len(in.files) == 0 {
		text := "Nothing to change: the imports are in order."
		if in.Operation == "rename" {
			text = "Nothing to change: the language server found nothing to rename."
		}
		return tool.Result{Text: text}, nil
	}
	edits, files, err := lspEdits(env, in)
	for _, f := range files {
		defer f.Close()
	}
	if err != nil {
		return tool.Result{}, err
	}
	var changes []filestate.Change
	if in.DryRun {
		changes, err = env.Files.Try(ctx, edits...)
	} else {
		changes, err = env.Files.Update(ctx, editing.By(env, "lsp_edit"), edits...)
	}
	if err != nil {
		return tool.Result{}, lspEditRefusal(ctx, env, in, err)
	}
	if in.DryRun {
		return lspTried(env, in, changes), nil
	}
	replaced := 0
	for _, r := range in.files {
		replaced += len(r.Edits)
	}
	what := "Ordered the imports"
	if in.Operation == "rename" {
		what = "Renamed to " + wording.LineOf(in.NewName, 100)
	}
	text := fmt.Sprintf("%s: %s in %s", what, wording.Plural(replaced, "edit", "edits"),
		wording.Plural(len(changes), "file", "files"))
	for i, c := range changes {
		if i == maxListed {
			text += fmt.Sprintf("\n(%d more files are not shown.)", len(changes)-i)
			break
		}
		text += "\n" + lspChanged(env, c)
	}
	res := tool.Result{Meta: editing.Meta(struct {
		Files int `json:"files"`
		Edits int `json:"edits"`
	}{len(changes), replaced}, changes...)}
	res.Text = text + lspLeft(ctx, env, in) + editing.Notes(ctx, env, nil, changes...)
	return res, nil
}

// lspLeft says where a name still stands after its rename, in files of that language: a server does not know what a
// name means where nothing says the type, as often in Python and JavaScript. It may as well be another symbol.
func lspLeft(ctx context.Context, env tool.Env, in lspEditInput) string {
	const shown, within = 3, 2 * time.Second
	if in.Operation != "rename" || !lspName().MatchString(in.Query) {
		return ""
	}
	place, err := env.Space.Open(".", workspace.Read)
	if err != nil {
		return ""
	}
	defer place.Dir.Close()
	q := search.GrepQuery{
		Scope: search.Scope{Place: search.Place{Dir: place.Dir, Name: place.Name, Path: place.Path},
			Globs: []string{"*" + filepath.Ext(in.FilePath)}, SkipDirs: []string{".git", viewing.ModulesOfNode}},
		Pattern: `\b` + in.Query + `\b`, Mode: search.Lines, Limit: shown, Within: within,
	}
	viewing.LeaveOut(env, &q.Scope)
	a, err := env.Search.Grep(ctx, q)
	if err != nil || a.NLines == 0 {
		return ""
	}
	var at []string
	for _, f := range a.Files {
		for _, l := range f.Lines {
			at = append(at, fmt.Sprintf("%s:%d", wording.ShownName(env, f.Path), l.N))
		}
	}
	return fmt.Sprintf("\n%s still stands in %s, such as %s: not known to be the same symbol.", in.Query,
		viewing.AtLeast(!a.Exact, wording.Plural(a.NLines, "line", "lines")), strings.Join(at, ", "))
}

// lspName fits a name that can be searched for as a word.
var lspName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_]\w*$`) })

// lspChanged is one file that changed, in a line.
func lspChanged(env tool.Env, c filestate.Change) string {
	plus, minus := c.LinesChanged()
	return fmt.Sprintf("%s (+%d -%d)", wording.ShownName(env, c.Path), plus, minus)
}

func lspEditRefusal(ctx context.Context, env tool.Env, in lspEditInput, err error) error {
	path := in.files[0].Path
	if errors.Is(err, servers.ErrOlder) {
		return tool.Refuse(tool.Busy, "A file changed since the language server read it. Nothing was done. Try again.")
	}
	if len(in.files) > 1 {
		path = "one of the files"
	}
	refusal := editing.Guard{Name: "lsp_edit"}.Refusal(ctx, env, path, err)
	if _, ok := errors.AsType[*tool.Refusal](refusal); ok || ctx.Err() != nil {
		return refusal
	}
	return &tool.Refusal{Code: tool.LSPFailed, Text: "The edits of the language server do not fit: " +
		wording.LineOf(err.Error(), 200) + ". Nothing was done.", Cause: err}
}

// A lspProposed is one edit as multi_edit takes it.
type lspProposed struct {
	FilePath  string `json:"file_path"`
	OldString string `json:"old_string"`
	NewString string `json:"new_string"`
}

const (
	// maxListed is how many files one answer names.
	maxListed = 200
	// maxProposedFiles and maxProposedEdits are what a call of multi_edit may have.
	maxProposedFiles, maxProposedEdits = 20, 100
)

// lspTried says what would change, and how multi_edit would do it.
func lspTried(env tool.Env, in lspEditInput, changes []filestate.Change) tool.Result {
	res := tool.Result{Text: "Dry run: nothing was written. These files would change:"}
	var items []lspProposed
	whole := len(changes) <= maxProposedFiles
	for i, c := range changes {
		if i < maxListed {
			res.Text += "\n" + lspChanged(env, c)
		}
		if !whole {
			continue
		}
		hunks, ok := language.Hunks(c.Old, in.files[i])
		whole = ok && len(items)+len(hunks) <= maxProposedEdits
		for _, h := range hunks {
			items = append(items, lspProposed{FilePath: c.Path, OldString: h.Old, NewString: h.New})
		}
	}
	var proposal strings.Builder
	encode := json.NewEncoder(&proposal)
	encode.SetEscapeHTML(false) // it would help HTML only
	err := encode.Encode(struct {
		Edits []lspProposed `json:"edits"`
	}{items})
	switch {
	case err == nil && whole && proposal.Len() < editing.MaxDiff:
		res.Text += "\nCall lsp_edit without dryRun to do it, or, after reading the files, multi_edit with:\n" +
			strings.TrimSpace(proposal.String())
	default:
		var diffs []string
		for _, c := range changes {
			if diff, _ := editing.ContentDiff(c.Old, c.New, editing.MaxDiff/len(changes)); diff != "" {
				diffs = append(diffs, wording.ShownName(env, c.Path)+":\n"+diff)
			}
		}
		res.Text += "\nCall lsp_edit without dryRun to do it.\n" + strings.Join(diffs, "\n")
	}
	return res
}
