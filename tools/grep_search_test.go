package tools

import (
	"fmt"
	"strings"
	"testing"

	"codehand/tools/tool"
	"codehand/tools/tooltest"
)

func TestGrepSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Read(secret/**)")
	r.write("a.go", "package a\n\nfunc One() {}\nfunc two() {}\n")
	r.write("sub/b.txt", "one func\nx\nx\nx\nfunc\x1b[31m ONE\n")
	r.write("secret/c.go", "func hidden() {}\n")
	r.write("skipped.log", "func\n")
	r.write(".gitignore", "*.log\n")
	r.write("bin", "func\x00")
	r.age("sub/b.txt", "a.go")
	for _, c := range []struct{ name, args, want string }{
		{"files", `{"pattern":"func"}`, "Found 2 files\nsub/b.txt\na.go"},
		{"one file", `{"pattern":"One"}`, "Found 1 file\na.go"},
		{"no files", `{"pattern":"nothing like it"}`, "No files found"},
		{"content", `{"pattern":"func","output_mode":"content"}`, "a.go:3:func One() {}\na.go:4:func two() {}\nsub/b.txt:1:one func\nsub/b.txt:5:func\\x1b[31m ONE"},
		{"no content", `{"pattern":"nothing like it","output_mode":"content"}`, "No matches found."},
		{"no numbers", `{"pattern":"two","output_mode":"content","-n":false}`, "a.go:func two() {}"},
		{"fold", `{"pattern":"ONE","output_mode":"content","-i":true,"glob":"*.go"}`, "a.go:3:func One() {}"},
		{"parts", `{"pattern":"[Oo]ne|two","output_mode":"content","-o":true}`, "a.go:3:One\na.go:4:two\nsub/b.txt:1:one"},
		{"context", `{"pattern":"func","output_mode":"content","-C":1,"path":"sub"}`, "sub/b.txt:1:one func\nsub/b.txt-2-x\n--\nsub/b.txt-4-x\nsub/b.txt:5:func\\x1b[31m ONE"},
		{"before", `{"pattern":"two","output_mode":"content","-B":2}`, "a.go-2-\na.go-3-func One() {}\na.go:4:func two() {}"},
		{"count", `{"pattern":"func","output_mode":"count"}`, "a.go:2\nsub/b.txt:2\nFound 4 total occurrences across 2 files"},
		{"type", `{"pattern":"func","type":"go"}`, "Found 1 file\na.go"},
		{"globs", `{"pattern":"func","glob":"*.{go,txt} !sub/**"}`, "Found 1 file\na.go"},
		{"multiline", `{"pattern":"\\{\\}\\nfunc two","multiline":true}`, "Found 1 file\na.go"},
		{"a file that is ignored", `{"pattern":"func","path":"skipped.log","output_mode":"content"}`, "skipped.log:1:func"},
		{"a binary file", `{"pattern":"func","path":"bin","output_mode":"content"}`, "Binary file bin matches"},
		{"page", `{"pattern":"func","output_mode":"content","head_limit":1,"offset":1}`, "sub/b.txt:5:func\\x1b[31m ONE\n(Showing 2-2 of 4 lines, definitions and newest files first. Next: offset=2.)"},
		{"last page", `{"pattern":"func","output_mode":"content","head_limit":10,"offset":3}`, "a.go:4:func two() {}\n(Showing 4-4 of 4 lines.)"},
		{"past the last", `{"pattern":"func","output_mode":"content","offset":9}`, "No entries at this offset (there are 4)."},
		{"other names", `{"regex":"two","output_mode":"content","before":1,"line_numbers":false}`, "a.go-func One() {}\na.go:func two() {}"},
	} {
		t.Run(c.name, func(t *testing.T) { same(t, r.counted(c.args), c.want) })
	}
	res, _ := r.do("grep_search", `{"pattern":"func"}`)
	if !strings.HasPrefix(string(res.Meta.Data), `{"files":2,"matches":`) {
		t.Error(string(res.Meta.Data))
	}
}

// counted is ok for a search, made again while its totals were not counted to the end: only a tenth of a second is spent on
// them, in which a busy machine may not get there.
func (r *rig) counted(args string) (text string) {
	r.t.Helper()
	tooltest.Eventually(r.t, func() bool {
		text = r.ok("grep_search", args)
		return !strings.Contains(text, "at least")
	})
	return text
}

func TestGrepSearchLongLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", strings.Repeat("a", 3000)+"needle"+strings.Repeat("b", 3000)+"\n")
	text := r.ok("grep_search", `{"pattern":"needle","output_mode":"content"}`)
	if len(text) > 600 || !strings.HasPrefix(text, "f:1:[... cut] a") || !strings.HasSuffix(text, "b [... cut]") || !strings.Contains(text, "needle") {
		t.Errorf("%d characters: %s", len(text), text)
	}
}

func TestGrepSearchLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", strings.Repeat("x\n", 300))
	text := r.counted(`{"pattern":"x","output_mode":"content"}`)
	if n := strings.Count(text, "f:"); n != 250 || !strings.HasSuffix(text, "\n(Showing 1-250 of 300 lines, definitions and newest files first. Next: offset=250.)") {
		t.Errorf("%d lines:\n%s", n, text)
	}
	text = r.ok("grep_search", `{"pattern":"x","output_mode":"content","head_limit":0}`)
	if n := strings.Count(text, "f:"); n != 300 || strings.Contains(text, "Showing") {
		t.Errorf("%d lines", n)
	}
	for i := range 3 {
		r.write(fmt.Sprintf("g%d", i), "x\n")
	}
	text = r.counted(`{"pattern":"x","head_limit":2}`)
	if !strings.HasPrefix(text, "Found 4 files\n") || !strings.HasSuffix(text, "\n(Showing 1-2 of 4 files. Next: offset=2.)") {
		t.Error(text)
	}
}

func TestGrepSearchRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct {
		code tool.Code
		args string
		want string
	}{
		{tool.InputInvalid, `{"pattern":"x","-A":-1}`, `"-A"`},
		{tool.InputInvalid, `{"pattern":"x","type":"golang"}`, `"type"`},
		{tool.InputInvalid, `{"pattern":"x","output_mode":"lines"}`, `"output_mode"`},
		{tool.RegexInvalid, `{"pattern":"("}`, "Invalid regex: "},
		{tool.RegexInvalid, `{"pattern":"(?=x)"}`, "look-around"},
		{tool.RegexInvalid, `{"pattern":"(x)\\1"}`, "back-reference"},
		{tool.RegexInvalid, `{"pattern":"x\u0000"}`, "NUL"},
		{tool.PatternInvalid, `{"pattern":"x","glob":"a[b"}`, "Invalid glob"},
		{tool.FileNotFound, `{"pattern":"x","path":"missing"}`, "File does not exist: $WORK/missing."},
		{tool.OutsideRoots, `{"pattern":"x","path":"/etc"}`, "is outside"},
	} {
		if text := r.fails(c.code, "grep_search", c.args); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s\nhas no %q", c.args, text, c.want)
		}
	}
}
