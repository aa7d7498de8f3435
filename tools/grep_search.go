package tools

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"codehand/tools/history"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed grep_search.md
var grepSearchText string

type grepSearchInput struct {
	Pattern   string `json:"pattern" jsonschema:"regular expression"`
	Path      string `json:"path,omitempty" jsonschema:"file or directory" rule:"default=."`
	Glob      string `json:"glob,omitempty" jsonschema:"such as *.{ts,tsx}; ! excludes"`
	Type      string `json:"type,omitempty" jsonschema:"such as go, py, js, rust"`
	Mode      string `json:"output_mode,omitempty" jsonschema:"what to show" rule:"enum=files_with_matches|content|count"`
	After     int    `json:"-A,omitempty" jsonschema:"lines after" rule:"min=0"`
	Before    int    `json:"-B,omitempty" jsonschema:"lines before" rule:"min=0"`
	Around    int    `json:"-C,omitempty" jsonschema:"lines around" rule:"min=0"`
	Fold      bool   `json:"-i,omitempty" jsonschema:"ignore case"`
	Numbers   bool   `json:"-n,omitempty" jsonschema:"line numbers" rule:"default=true"`
	Only      bool   `json:"-o,omitempty" jsonschema:"matched parts only"`
	Multiline bool   `json:"multiline,omitempty" jsonschema:"matches may span lines"`
	Limit     int    `json:"head_limit,omitempty" jsonschema:"lines or files; 0: all" rule:"min=0 default=250"`
	Offset    int    `json:"offset,omitempty" jsonschema:"lines or files to skip" rule:"min=0"`
}

var grepSearch = tool.Define(tool.Def[grepSearchInput]{
	Spec: tool.Spec{
		Name: "grep_search", Aliases: []string{"Grep"}, Title: "Search contents", Description: grepSearchText,
		Hint: "search file contents by regular expression", MaxRunes: 20_000, Scope: tool.ScopeRead,
		Family:    permission.FamilyRead,
		Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Elsewhere: []string{"search", "grep", "search_file_content"},
		Advice: tool.Advice{
			Verb: "search", Rank: 40,
			Text: "Send independent reads and searches together: they run side by side.",
		},
		Example: `{"pattern":"one","path":"$WORK"}`,
		Finds:   []string{"grep_search"},
	},
	Hidden: []string{"-n", "-o"}, // few want them, and models that do send them unasked
	Accept: map[string]string{
		"include": "glob", "include_pattern": "glob", "regex": "pattern", "query": "pattern", "context": "-C",
		"before": "-B", "after": "-A", "ignore_case": "-i", "case_insensitive": "-i", "line_numbers": "-n",
		"only_matching": "-o",
	},
	Paths:    func(in *grepSearchInput) []*string { return []*string{&in.Path} },
	Activity: func(in grepSearchInput) string { return "Searching " + in.Pattern },
	Check:    checkGrepSearch,
	Run:      runGrepSearch,
})

func checkGrepSearch(in grepSearchInput) error {
	if strings.ContainsRune(in.Pattern, 0) {
		return tool.Refuse(tool.RegexInvalid, "Invalid regex: it contains a NUL character.")
	}
	if in.Pattern == "" || max(in.After, in.Before, in.Around) > 1000 {
		return tool.Invalid("grep_search", `"pattern" must not be empty, and "-A", "-B" and "-C" are at most 1000`)
	}
	return nil
}

func runGrepSearch(ctx context.Context, env tool.Env, in grepSearchInput) (tool.Result, error) {
	place, err := env.Space.Open(in.Path, workspace.Read)
	if err != nil {
		return tool.Result{}, wording.PathRefusal(env, in.Path, err)
	}
	defer place.Dir.Close()
	in.Mode = cmp.Or(in.Mode, env.Prefs.GrepMode, "files_with_matches")
	q := search.GrepQuery{
		Scope: search.Scope{Place: search.Place{Dir: place.Dir, Name: place.Name, Path: place.Path},
			Globs: search.SplitGlobs(in.Glob), SkipDirs: []string{".git"}},
		Pattern: in.Pattern, Fold: in.Fold, Multiline: in.Multiline, Newest: in.Mode == "files_with_matches",
		Spans:  in.Only,
		Mode:   map[string]search.Mode{"content": search.Lines, "count": search.Count}[in.Mode],
		Before: cmp.Or(in.Before, in.Around), After: cmp.Or(in.After, in.Around), Offset: in.Offset, Limit: in.Limit,
		Within:   time.Duration(env.Prefs.GrepTimeoutMS) * time.Millisecond,
		Progress: wording.Counting(env, "file", "files", in.Pattern),
	}
	if q.Mode == search.Lines {
		q.Rank = &search.Rank{First: history.ChangedHere(ctx, env)}
	}
	q.Types = strings.Fields(in.Type) // one or none
	kept := viewing.LeaveOut(env, &q.Scope)
	a, err := env.Search.Grep(ctx, q)
	if err != nil {
		return tool.Result{}, grepSearchRefusal(env, in, err)
	}
	text := slices.Concat(grepSearchBody(env, in, q, a), grepSearchNotes(env, q, a), kept.Notes(ctx, a.Coverage),
		viewing.NearNotes(ctx, env, q, a))
	if a.NFiles == 0 {
		text = append(text, viewing.HereNote(env, place.Path)...)
	}
	return tool.Result{Text: strings.Join(text, "\n"), Meta: tool.Meta{Data: wording.Data(struct {
		Files         int  `json:"files"`
		Matches       int  `json:"matches"`
		Complete      bool `json:"complete"`
		TimedOut      bool `json:"timedOut"`
		FilesSearched int  `json:"filesSearched"`
	}{a.NFiles, a.NLines, a.Coverage.Complete, a.Coverage.Why == search.Time, a.Coverage.Searched})}}, nil
}

func grepSearchRefusal(env tool.Env, in grepSearchInput, err error) error {
	bad, isPattern := errors.AsType[*search.PatternError](err)
	kind, isType := errors.AsType[*search.TypeError](err)
	switch {
	case isPattern && bad.Kind == "glob":
		return tool.Refuse(tool.PatternInvalid, "Invalid glob: %s (position %d). Example: *.{ts,tsx}.", bad.Text,
			bad.Offset+1)
	case isPattern:
		return wording.RegexRefusal(bad)
	case isType && len(kind.Near) > 0:
		return tool.Invalid("grep_search",
			fmt.Sprintf("\"type\" %q is unknown; use glob, or one of these near ones: %s", kind.Name,
				strings.Join(kind.Near, ", ")))
	case isType:
		return tool.Invalid("grep_search", fmt.Sprintf("\"type\" %q is unknown; use glob", kind.Name))
	case errors.Is(err, search.ErrNotRegular):
		return tool.Refuse(tool.NotRegular, "%s is a FIFO, socket or device. Only regular files can be used.", in.Path)
	}
	return wording.PathRefusal(env, in.Path, err)
}

// grepSearchBody makes the lines of the hits.
func grepSearchBody(env tool.Env, in grepSearchInput, q search.GrepQuery, a search.GrepAnswer) (out []string) {
	show := func(s string) string { s, _ = results.Show(s); return s }
	name := func(path string) string { return wording.ShownName(env, path) }
	if q.Mode == search.Lines {
		return search.Rows(a.Files, search.RowForm{Name: name, Show: show, Bare: !in.Numbers, Parts: in.Only,
			Groups: q.Before+q.After > 0, Once: len(a.Files) > 0 && a.Files[0].Path == q.Scope.Place.Path})
	}
	if q.Mode == search.FilesOnly && len(a.Files) > 0 {
		out = append(out, "Found "+viewing.AtLeast(!a.Exact, wording.Plural(a.NFiles, "file", "files")))
	}
	for _, f := range a.Files {
		if q.Mode == search.Count {
			out = append(out, fmt.Sprintf("%s:%d", name(f.Path), f.NLines))
		} else {
			out = append(out, name(f.Path))
		}
	}
	if q.Mode == search.Count && len(a.Files) > 0 {
		out = append(out,
			"Found "+viewing.AtLeast(!a.Exact, wording.Plural(a.NLines, "total occurrence", "total occurrences"))+
				" across "+wording.Plural(a.NFiles, "file", "files"))
	}
	return out
}

// grepSearchNotes says what the hits are a part of, and what was not searched.
func grepSearchNotes(env tool.Env, q search.GrepQuery, a search.GrepAnswer) []string {
	p := viewing.PageNote{From: q.Offset, Shown: len(a.Files), Total: a.NFiles, One: "file", Many: "files",
		None: "No files found", AtLeast: !a.Exact, More: a.More, Ranked: a.Ranked}
	if q.Mode != search.FilesOnly {
		p.None = "No matches found."
	}
	if q.Mode == search.Lines {
		p.Shown, p.Total, p.One, p.Many = 0, a.NLines, "line", "lines"
		for _, f := range a.Files {
			p.Shown += f.NShown()
		}
	}
	return slices.Concat(p.Notes(a.Coverage), p.RestNotes(env, q, a),
		viewing.CoverageNotes(a.Coverage, q.Within, "file", "files", "result"))
}
