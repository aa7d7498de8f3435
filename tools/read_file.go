package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"

	"codehand/filestate/disk"
	"codehand/tools/media"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
)

//go:embed read_file.md
var readFileText string

type readFileInput struct {
	FilePath   string `json:"file_path" jsonschema:"absolute or relative"`
	Offset     int    `json:"offset,omitempty" jsonschema:"first line or cell, from 1" rule:"min=1"`
	Limit      int    `json:"limit,omitempty" jsonschema:"lines or cells" rule:"min=1"`
	Pages      string `json:"pages,omitempty" jsonschema:"of a PDF: 3 or 1-5, at most 20"`
	AllowLarge bool   `json:"allow_large,omitempty" jsonschema:"up to 100,000 tokens"`
	AsText     bool   `json:"as_text,omitempty" jsonschema:"show a notebook as lines"`
	EndLine    int    `json:"end_line,omitempty" rule:"min=1"`
	ViewRange  []int  `json:"view_range,omitempty"`
}

// readFile is Unbounded because it pages by itself: a kept result that is read back must not be kept again.
var readFile = tool.Define(tool.Def[readFileInput]{
	Spec: tool.Spec{
		Name: "read_file", Aliases: []string{"Read"}, Title: "Read file", Description: readFileText,
		Hint: "read files, images, PDFs, notebooks", MaxRunes: tool.Unbounded, Scope: tool.ScopeRead,
		Family:    permission.FamilyRead,
		Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Simple:    true,
		Elsewhere: []string{"read", "view", "str_replace_editor", "str_replace_based_edit_tool"},
		Advice: tool.Advice{
			Verb: "read", Rank: 10, With: []string{"edit_file"},
			Text: "Read a file before you edit it; copy old_string from what read_file shows, without line numbers.",
		},
		Example: `{"file_path":"$WORK/f"}`,
	},
	Accept:   map[string]string{"path": "file_path", "filename": "file_path", "start_line": "offset"},
	Hidden:   []string{"allow_large", "as_text", "end_line", "view_range"},
	Paths:    func(in *readFileInput) []*string { return []*string{&in.FilePath} },
	Activity: func(in readFileInput) string { return "Reading " + filepath.Base(in.FilePath) },
	Check:    checkReadFile,
	Complete: func(_ context.Context, _ *session.State, in *readFileInput) error { // one form for rules, hooks, Run
		in.Offset, in.Limit, _ = in.lines()
		in.EndLine, in.ViewRange = 0, nil
		return nil
	},
	Run: runReadFile,
})

func checkReadFile(in readFileInput) error {
	if _, _, ok := viewing.PageRange(in.Pages); !ok {
		return tool.Invalid("read_file", `"pages" must be a page or a range of at most 20, such as 3 or 1-5`)
	}
	_, _, err := in.lines()
	return err
}

// lines are offset and limit; 0: not given. Other agents say first and last line instead, -1 as the last is the end.
func (in readFileInput) lines() (offset, limit int, err error) {
	first, last := in.Offset, in.EndLine
	if in.ViewRange != nil {
		if len(in.ViewRange) != 2 || first != 0 || last != 0 || in.Limit != 0 {
			return 0, 0, tool.Invalid("read_file", `"view_range" is the first and the last line, without other limits`)
		}
		if first, last = in.ViewRange[0], in.ViewRange[1]; first < 1 {
			return 0, 0, tool.Invalid("read_file", `"view_range" counts lines from 1`)
		}
		if last == -1 {
			return first, 0, nil
		}
	} else if last == 0 {
		return first, in.Limit, nil
	}
	switch from := max(first, 1); {
	case in.Limit != 0:
		return 0, 0, tool.Invalid("read_file", `"end_line" and "limit" say the same; give one of them`)
	case last < from:
		return 0, 0, tool.Invalid("read_file", fmt.Sprintf("the last line, %d, is before the first, %d", last, from))
	default:
		return first, last - from + 1, nil
	}
}

func runReadFile(ctx context.Context, env tool.Env, in readFileInput) (tool.Result, error) {
	for try := 1; ; try++ {
		res, err := readFileOnce(ctx, env, in)
		if try == 3 || !errors.Is(err, disk.ErrMoved) {
			return res, wording.PathRefusal(env, in.FilePath, err)
		}
	}
}

// readFileOnce shows the file as what its first bytes say that it is, and then its name. disk.ErrMoved: it changed
// meanwhile.
func readFileOnce(ctx context.Context, env tool.Env, in readFileInput) (tool.Result, error) {
	s, err := viewing.Open(ctx, env, in.FilePath)
	if err != nil {
		return tool.Result{}, err
	}
	defer s.Close()
	if in.AllowLarge {
		s.Tokens = max(s.Tokens, 100_000)
	}
	kind := media.Sniff(s.Head)
	switch {
	case kind == media.PDF:
		return s.Pages(ctx, in.Pages)
	case in.Pages != "":
		return tool.Result{},
			tool.Refuse(tool.InputInvalid, "%s is not a PDF. Leave pages out; offset and limit choose lines.",
				in.FilePath)
	case kind.Image():
		return s.Picture(ctx)
	case !in.AsText && s.IsArchive():
		return s.Archive(ctx, in.Offset, in.Limit)
	case !in.AsText && s.HoldsCells():
		return s.Cells(ctx, in.Offset, in.Limit)
	}
	return s.Lines(ctx, in.Offset, in.Limit)
}
