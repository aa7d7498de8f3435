package tools

import (
	"bufio"
	"context"
	_ "embed"
	"io"
	"path/filepath"

	"codehand/tools/permission"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed word_count.md
var wordCountText string

type wordCountInput struct {
	FilePath string `json:"file_path" jsonschema:"absolute or relative"`
}

var wordCount = tool.Define(tool.Def[wordCountInput]{
	Spec: tool.Spec{
		Name: "word_count", Title: "Count words", Description: wordCountText,
		Hint: "count words of a file", Deferred: true, Scope: tool.ScopeRead, Family: permission.FamilyRead,
		Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Example:   `{"file_path":"$WORK/f"}`,
		Finds:     []string{"count words", "word count"},
	},
	Paths:    func(in *wordCountInput) []*string { return []*string{&in.FilePath} },
	Activity: func(in wordCountInput) string { return "Counting words of " + filepath.Base(in.FilePath) },
	Run:      runWordCount,
})

func runWordCount(ctx context.Context, env tool.Env, in wordCountInput) (tool.Result, error) {
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
	words := bufio.NewScanner(io.NewSectionReader(from, 0, from.Size()))
	words.Split(bufio.ScanWords)
	n := 0
	for words.Scan() {
		n++
	}
	if err := words.Err(); err != nil {
		return tool.Result{}, wording.PathRefusal(env, in.FilePath, err)
	}
	return tool.Result{Text: wording.Plural(n, "word", "words") + " in " + in.FilePath}, nil
}
