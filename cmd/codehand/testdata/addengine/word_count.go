package tools

import (
	"context"
	_ "embed"
	"io"
	"path/filepath"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/words"
	"codehand/tools/workspace"
)

//go:embed word_count.md
var wordCountText string

type wordCountInput struct {
	FilePath string `json:"file_path" jsonschema:"absolute or relative"`
}

func wordCount(counter *words.Counter) tool.Tool {
	return tool.Define(tool.Def[wordCountInput]{
		Spec: tool.Spec{
			Name: "word_count", Title: "Count words", Description: wordCountText,
			Hint: "count words of a file", Deferred: true, Scope: tool.ScopeRead, Family: permission.FamilyRead,
			Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
			ForAgents: tool.AllAgents,
			Example:   `{"file_path":"$WORK/f"}`,
			Finds:     []string{"count words", "word count"},
		},
		Available: func(*session.State) string {
			if counter == nil {
				return "this server counts no words."
			}
			return ""
		},
		Paths:    func(in *wordCountInput) []*string { return []*string{&in.FilePath} },
		Activity: func(in wordCountInput) string { return "Counting words of " + filepath.Base(in.FilePath) },
		Run: func(ctx context.Context, env tool.Env, in wordCountInput) (tool.Result, error) {
			f, err := env.Open(in.FilePath, workspace.Read)
			if err != nil {
				return tool.Result{}, wording.PathRefusal(env, in.FilePath, err)
			}
			defer f.Close()
			from, err := env.Files.Open(ctx, f)
			if err != nil {
				return tool.Result{}, wording.PathRefusal(env, in.FilePath, err)
			}
			defer from.Close()
			n, err := counter.Count(ctx, io.NewSectionReader(from, 0, from.Size()))
			if err != nil {
				return tool.Result{}, wording.PathRefusal(env, in.FilePath, err)
			}
			return tool.Result{Text: wording.Plural(n, "word", "words") + " in " + in.FilePath}, nil
		},
	})
}
