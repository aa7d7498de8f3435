package tools

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"codehand/filestate"
	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

//go:embed read_file.md
var readFileText string

type readFileInput struct {
	FilePath   string `json:"file_path" jsonschema:"absolute or relative"`
	Offset     int    `json:"offset,omitempty" jsonschema:"first line, from 1" rule:"min=1"`
	Limit      int    `json:"limit,omitempty" jsonschema:"lines; default 2000" rule:"min=1"`
	Pages      string `json:"pages,omitempty" jsonschema:"of a PDF: 3 or 1-5, at most 20"`
	AllowLarge bool   `json:"allow_large,omitempty" jsonschema:"up to 100,000 tokens"`
}

// readFile is Unbounded because it pages by itself: a kept result that is read back must not be kept again.
var readFile = tool.Define(tool.Def[readFileInput]{
	Spec: tool.Spec{
		Name: "read_file", Aliases: []string{"Read"}, Title: "Read file", Description: readFileText,
		Hint: "read text files by line range", MaxRunes: tool.Unbounded, Scope: tool.ScopeRead,
		Traits: tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
	},
	Accept:   map[string]string{"path": "file_path", "filename": "file_path"},
	Hidden:   []string{"allow_large"},
	Paths:    func(in *readFileInput) []*string { return []*string{&in.FilePath} },
	Activity: func(in readFileInput) string { return "Reading " + filepath.Base(in.FilePath) },
	Check:    checkReadFile,
	Run:      runReadFile,
})

func checkReadFile(in readFileInput) error {
	first, last, isRange := strings.Cut(in.Pages, "-")
	from, err := strconv.ParseUint(first, 10, 31)
	to := from
	if err == nil && isRange {
		to, err = strconv.ParseUint(last, 10, 31)
	}
	if in.Pages != "" && (err != nil || from == 0 || to < from || to-from >= 20) {
		return tool.Refuse(tool.InputInvalid, "Input validation failed for read_file:\n- \"pages\" must be a page or a range of at most 20, such as 3 or 1-5")
	}
	return nil
}

func runReadFile(ctx context.Context, env tool.Env, in readFileInput) (tool.Result, error) {
	for try := 1; ; try++ {
		res, err := readFilePage(ctx, env, in)
		if try == 3 || !errors.Is(err, filestate.ErrMoved) {
			return res, pathRefusal(env, in.FilePath, err)
		}
	}
}

// readFilePage shows and remembers one page. filestate.ErrMoved: the file changed meanwhile.
func readFilePage(ctx context.Context, env tool.Env, in readFileInput) (tool.Result, error) {
	f, err := env.Open(in.FilePath, workspace.Read)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	r, err := env.Files.Open(ctx, f)
	if err != nil {
		return tool.Result{}, err
	}
	defer r.Close()
	head, err := sniff(r)
	if err != nil {
		return tool.Result{}, err
	}
	if in.Pages != "" {
		return tool.Result{}, tool.Refuse(tool.InputInvalid, "%s is not a PDF. Leave pages out; offset and limit choose lines.", in.FilePath)
	}
	v := &results.View{First: max(in.Offset, 1), Asked: in.Limit, Page: 2000, Tokens: env.Prefs.ReadMaxTokens, Pipe: env.Prefs.ReadPipe, Form: form(env, 500, 2)}
	if in.AllowLarge {
		v.Tokens = max(v.Tokens, 100_000)
	}
	page, err := env.Search.Page(ctx, r, search.Stamp(r.Stamp()), search.PageQuery{
		First: v.First, Lines: cmp.Or(in.Limit, v.Page), MaxLine: env.Prefs.ReadMaxLine, MaxBytes: int64(4 * v.Tokens)})
	if err != nil {
		return tool.Result{}, err
	}
	v.BOM, v.Total, v.AtLeast = strings.HasPrefix(string(head), "\ufeff"), page.Total, !page.Exact
	for _, l := range page.Lines {
		if !v.Add(results.Row(l)) {
			break
		}
	}
	if v.Lines == 0 {
		return readFileNothing(ctx, f, r, v)
	}
	spans := []filestate.Span{{}} // without any, all would count as seen
	for _, w := range v.Shown {
		spans = append(spans, filestate.Span(w))
	}
	sight, err := r.Saw(ctx, spans...)
	if err != nil && !errors.Is(err, filestate.ErrMemory) {
		return tool.Result{}, err
	}
	res := tool.Result{Shows: []string{f.Path}, Meta: tool.Meta{Version: string(sight.Version), Data: data(v.Facts())}}
	if sight.Again%2 == 1 && env.Prefs.ReadDedup && !env.Shared && filepath.Dir(f.Path) != env.Results.Dir() {
		res.Text = fmt.Sprintf("File unchanged since your last read (lines %d-%d). Use that content; call read_file again to get it anyway.", v.First, v.Last())
		return res, nil
	}
	notes := v.Remarks(in.Offset > 1 || in.Limit > 0)
	if err != nil {
		notes = append(notes, "this read could not be remembered")
	}
	if sight.Version != "" && (env.Client.Modern || env.Prefs.ReadVersion) {
		notes = append(notes, "version "+string(sight.Version))
	}
	res.Text = v.Partial() + v.String()
	if len(notes) > 0 {
		res.Text += "\n[" + strings.Join(notes, " · ") + "]"
	}
	return res, nil
}

// readFileNothing answers for an empty page. An empty file has been seen as a whole.
func readFileNothing(ctx context.Context, f filestate.File, r *filestate.Reading, v *results.View) (tool.Result, error) {
	if r.Size() > 0 {
		return tool.Result{Text: fmt.Sprintf("<system-reminder>Warning: the file exists but is shorter than the provided offset (%d). The file has %d lines.</system-reminder>", v.First, v.Total)}, nil
	}
	sight, err := r.Saw(ctx)
	if err != nil && !errors.Is(err, filestate.ErrMemory) {
		return tool.Result{}, err
	}
	return tool.Result{
		Text:  "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>",
		Shows: []string{f.Path},
		Meta:  tool.Meta{Version: string(sight.Version), Data: data(v.Facts())},
	}, nil
}
