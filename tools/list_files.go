package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
	"codehand/tools/workspace"
	"codehand/tools/worktrees"
)

//go:embed list_files.md
var listFilesText string

type listFilesInput struct {
	Pattern string `json:"pattern" jsonschema:"such as **/*.{ts,tsx}" rule:"absent=**"`
	Path    string `json:"path,omitempty" jsonschema:"directory" rule:"default=."`
}

var listFiles = tool.Define(tool.Def[listFilesInput]{
	Spec: tool.Spec{
		Name: "list_files", Aliases: []string{"Glob"}, Title: "List files", Description: listFilesText,
		Hint: "find files by name pattern", Scope: tool.ScopeRead, Family: permission.FamilyRead,
		Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Elsewhere: []string{"search", "glob", "list", "ls", "list_directory"},
		Advice: tool.Advice{
			Rank: 20, With: []string{"grep_search", "read_file", "run_shell"},
			Text: "Use list_files, grep_search and read_file to find and read files, not shell commands.",
		},
		Example: `{"pattern":"**/*","path":"$WORK"}`,
	},
	Accept: map[string]string{"glob_pattern": "pattern", "glob": "pattern", "dir_path": "path", "directory": "path"},
	Paths:  func(in *listFilesInput) []*string { return []*string{&in.Path} },
	Targets: func(s *session.State, in listFilesInput) []permission.Target {
		base, _ := listFilesBase(in)
		return []permission.Target{{Kind: permission.Path, Value: s.Space.Abs(base)}}
	},
	Activity: func(in listFilesInput) string { return "Listing " + in.Pattern },
	Check:    checkListFiles,
	Run:      runListFiles,
})

func checkListFiles(in listFilesInput) error {
	if at := strings.IndexByte(in.Pattern, 0); at >= 0 {
		return tool.Refuse(tool.PatternInvalid, "The pattern contains a NUL character at position %d.", at+1)
	}
	if in.Pattern == "" || utf8.RuneCountInString(in.Pattern) > 1000 {
		return tool.Invalid("list_files", "\"pattern\" must have 1 to 1000 characters")
	}
	return nil
}

// listFilesBase splits an absolute pattern into the directory before its first special character and the rest.
func listFilesBase(in listFilesInput) (base, pattern string) {
	if !path.IsAbs(in.Pattern) {
		return in.Path, in.Pattern
	}
	end := len(in.Pattern)
	if at := strings.IndexAny(in.Pattern, `*?[{\`); at >= 0 {
		end = at
	}
	at := strings.LastIndexByte(in.Pattern[:end], '/') + 1
	return path.Clean(in.Pattern[:at]), in.Pattern[at:]
}

// isOtherTrees says whether a directory holds other work trees of the same repository, ours or Claude Code's: copies of
// all files, the newest first, of which a model must not take one for the file that is meant.
func isOtherTrees(dir string) bool {
	dir = filepath.ToSlash(dir)
	return strings.HasSuffix(dir, "/"+worktrees.Below) || strings.HasSuffix(dir, "/.claude/worktrees")
}

func runListFiles(ctx context.Context, env tool.Env, in listFilesInput) (tool.Result, error) {
	base, pattern := listFilesBase(in)
	place, err := env.Space.Open(base, workspace.Read)
	if errors.Is(err, fs.ErrNotExist) {
		return tool.Result{}, tool.Refuse(tool.FileNotFound, "Directory does not exist: %s. %s", base,
			wording.Whereabouts(env, base))
	}
	if err != nil {
		return tool.Result{}, wording.PathRefusal(env, base, err)
	}
	defer place.Dir.Close()
	if info, err := place.Dir.Lstat(place.Name); err != nil {
		return tool.Result{}, wording.PathRefusal(env, base, err)
	} else if !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 { // a link was put there since: the search says so
		return tool.Result{},
			tool.Refuse(tool.NotDirectory, "%s is not a directory. Use its directory as path, or read_file.", base)
	}
	scope := search.Scope{Place: search.Place{Dir: place.Dir, Name: place.Name, Path: place.Path},
		Ignored: !env.Prefs.ListGitignore, SkipDirs: []string{".git"}}
	kept := viewing.LeaveOut(env, &scope)
	if !slices.Contains(strings.Split(in.Pattern, "/"), viewing.ModulesOfNode) {
		scope.SkipDirs = append(scope.SkipDirs, viewing.ModulesOfNode)
	}
	if !strings.Contains(in.Pattern, "worktrees") {
		closed := scope.Skip
		scope.Skip = func(path string) bool { return isOtherTrees(path) || closed(path) }
	}
	within := time.Duration(env.Prefs.ListTimeoutMS) * time.Millisecond
	if info, err := place.Dir.Lstat(path.Join(place.Name, pattern)); err == nil && info.IsDir() {
		pattern = strings.TrimRight(pattern, "/") + "/**" // it names a directory: what is in it is meant
	}
	answer, err := env.Search.Files(ctx, search.FileQuery{
		Scope: scope, Pattern: pattern, Limit: env.Prefs.ListLimit, Within: within,
		Progress: wording.Counting(env, "name", "names", in.Pattern),
	})
	if bad, ok := errors.AsType[*search.PatternError](err); ok {
		return tool.Result{},
			tool.Refuse(tool.PatternInvalid, "Invalid pattern: %s (position %d). Example: src/**/*.{ts,tsx}.", bad.Text,
				bad.Offset+1)
	}
	if err != nil {
		return tool.Result{}, wording.PathRefusal(env, base, err)
	}
	result := listFilesResult(env, answer, within)
	if answer.N == 0 && slices.Contains(scope.SkipDirs, viewing.ModulesOfNode) {
		if info, err := place.Dir.Lstat(path.Join(place.Name, viewing.ModulesOfNode)); err == nil && info.IsDir() {
			result.Text += "\n(node_modules is left out unless path or pattern names it.)"
		}
	}
	result.Text = strings.Join(append([]string{result.Text}, kept.Notes(ctx, answer.Coverage)...), "\n")
	if answer.N == 0 {
		result.Text = strings.Join(append([]string{result.Text}, viewing.HereNote(env, place.Path)...), "\n")
	}
	return result, nil
}

func listFilesResult(env tool.Env, a search.FileAnswer, within time.Duration) tool.Result {
	var names []string
	for _, f := range a.Files {
		names = append(names, wording.ShownName(env, f.Path))
	}
	lines := viewing.ByDirectory(names)
	if a.N == 0 && a.Coverage.Complete {
		lines = append(lines, "No files found")
	}
	if a.N > len(a.Files) {
		lines = append(lines,
			fmt.Sprintf("(Results are truncated: showing %s of %s. The list is NOT complete. Use a more specific "+
				"path or pattern.)",
				results.Count(len(a.Files)), results.Count(a.N)))
	}
	lines = append(lines, viewing.CoverageNotes(a.Coverage, within, "directory", "directories", "list")...)
	return tool.Result{
		Text: strings.Join(lines, "\n"),
		Meta: tool.Meta{Data: wording.Data(struct {
			NumFiles     int  `json:"numFiles"`
			TotalMatches int  `json:"totalMatches"`
			Complete     bool `json:"complete"`
			TimedOut     bool `json:"timedOut"`
			SkippedDirs  int  `json:"skippedDirs"`
		}{len(a.Files), a.N, a.Coverage.Complete, a.Coverage.Why == search.Time, a.Coverage.Unreadable.N})},
	}
}
