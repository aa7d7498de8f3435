package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/tools/tool"
)

// age gives files the times of their names' order: the first is the newest.
func (r *rig) age(names ...string) {
	r.t.Helper()
	at := time.Now().Add(-time.Hour)
	for i, name := range names {
		when := at.Add(-time.Duration(i) * time.Minute)
		if err := os.Chtimes(filepath.Join(r.dir, name), when, when); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestListFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Read(secret/**)")
	for _, name := range []string{"src/a.go", "src/deep/b.go", "top.go", ".hidden/c.go", "node_modules/m/d.go", ".git/e.go", "secret/f.go", "ignored.go", "app/[id]/g.ts",
		".codehand/worktrees/w/src/a.rb", ".claude/worktrees/w/src/a.rb", ".claude/other/b.rb"} {
		r.write(name, "")
	}
	r.write(".gitignore", "ignored.go\n")
	r.age("src/deep/b.go", "top.go", "src/a.go", ".hidden/c.go", "ignored.go", "app/[id]/g.ts", "node_modules/m/d.go")
	for _, c := range []struct{ args, want string }{
		{`{"pattern":"**/*.go"}`, "src/deep/b.go\ntop.go\nsrc/a.go\n.hidden/c.go\nignored.go"},
		{`{"pattern":"*.go"}`, "top.go\nignored.go"},
		{`{"pattern":"**/*.{ts,rs}"}`, "app/[id]/g.ts"},
		{`{"pattern":"*.go","path":"src"}`, "src/a.go"},
		{`{"pattern":"$WORK/src/**"}`, "src/deep/b.go\nsrc/a.go"},
		{`{"pattern":"$WORK/src/a.go"}`, "src/a.go"},
		{`{"pattern":"node_modules/**/*.go"}`, "node_modules/m/d.go"},
		{`{"pattern":"**/*.rb"}`, ".claude/other/b.rb"},
		{`{"pattern":".codehand/worktrees/**/*.rb"}`, ".codehand/worktrees/w/src/a.rb"},
		{`{"pattern":"**/*.rb","path":".codehand/worktrees/w"}`, ".codehand/worktrees/w/src/a.rb"},
		{`{"pattern":"**/*.none"}`, "No files found\n(node_modules is left out unless path or pattern names it.)"},
		{`{"glob_pattern":"*.ts","directory":"app/[id]"}`, "app/[id]/g.ts"},
	} {
		if got := r.ok("list_files", c.args); got != c.want {
			t.Errorf("%s: got:\n%s\nwant:\n%s", c.args, got, c.want)
		}
	}
	r.Prefs.ListGitignore = true
	same(t, r.ok("list_files", `{"pattern":"*.go"}`), "top.go")
}

func TestListFilesCut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 130 {
		r.write(fmt.Sprintf("f%03d", i), "")
	}
	res, text := r.do("list_files", `{"pattern":"*"}`)
	if n := strings.Count(text, "\n"); n != 100 || !strings.HasSuffix(text, "\n(Results are truncated: showing 100 of 130. The list is NOT complete. Use a more specific path or pattern.)") {
		t.Errorf("%d lines:\n%s", n, text)
	}
	same(t, string(res.Meta.Data), `{"numFiles":100,"totalMatches":130,"complete":true,"timedOut":false,"skippedDirs":0}`)
}

func TestListFilesRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "")
	for _, c := range []struct {
		code tool.Code
		args string
		want string
	}{
		{tool.InputInvalid, `{"pattern":""}`, `"pattern" must have 1 to`},
		{tool.PatternInvalid, `{"pattern":"a[b"}`, "position"},
		{tool.PatternInvalid, `{"pattern":"a\u0000"}`, "position 2"},
		{tool.FileNotFound, `{"pattern":"*","path":"missing"}`, "Directory does not exist: $WORK/missing."},
		{tool.NotDirectory, `{"pattern":"*","path":"f"}`, "$WORK/f is not a directory"},
		{tool.OutsideRoots, `{"pattern":"*","path":"/etc"}`, "is outside"},
		{tool.OutsideRoots, `{"pattern":"/etc/*"}`, "is outside"},
		{tool.OutsideRoots, `{"pattern":"*","path":".."}`, "is outside"},
	} {
		if text := r.fails(c.code, "list_files", c.args); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s\nhas no %q", c.args, text, c.want)
		}
	}
}

func TestListFilesBase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, base, pattern string }{
		{"*.go", "/cwd", "*.go"},
		{"/a/b/*.go", "/a/b", "*.go"},
		{"/a/b", "/a", "b"},
		{"/a/b{c,d}/e", "/a", "b{c,d}/e"},
		{"/*", "/", "*"},
		{`/a\*/b/c`, "/", `a\*/b/c`},
		{"/a/b/", "/a/b", ""},
	} {
		base, pattern := listFilesBase(listFilesInput{Pattern: c.in, Path: "/cwd"})
		if base != c.base || pattern != c.pattern {
			t.Errorf("listFilesBase(%q) = %q, %q, want %q, %q", c.in, base, pattern, c.base, c.pattern)
		}
	}
}

// TestListFilesByDirectory: a long list named the same directories again and again.
func TestListFilesByDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"top.go", "src/server/routes/b.go", "src/server/routes/c.go", "src/server/routes/d.go", "src/server/routes/e.go",
		"docs/deep/in/here/x.md", "src/server/routes/f.go"} {
		r.write(name, "")
	}
	old := time.Now().Add(-time.Hour)
	for i, name := range []string{"src/server/routes/c.go", "top.go", "src/server/routes/b.go", "docs/deep/in/here/x.md", "src/server/routes/d.go",
		"src/server/routes/e.go", "src/server/routes/f.go"} {
		at := old.Add(-time.Duration(i) * time.Minute)
		if err := os.Chtimes(filepath.Join(r.dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	same(t, r.ok("list_files", `{"pattern":"**"}`), "src/server/routes/\n c.go\n b.go\n d.go\n e.go\n f.go\ntop.go\ndocs/deep/in/here/x.md")
	same(t, r.ok("list_files", `{"pattern":"src/**/[bc].go"}`), "src/server/routes/c.go\nsrc/server/routes/b.go") // hardly shorter
	r.write(" begins with a blank", "")
	if text := r.ok("list_files", `{"pattern":"**"}`); !strings.Contains(text, "\nsrc/server/routes/b.go\n") {
		t.Errorf("a name that looks like one of a directory:\n%s", text)
	}
}
