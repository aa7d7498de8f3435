package search

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/search/pattern/patterntest"
)

// tableQueries are asked of real sources, beside those of patterntest: flags of ripgrep, then the pattern.
var tableQueries = []string{
	"ErrUnexpectedEOF", "xyzzy_plugh_42", "ReadHeaderTimeout|ErrAbortHandler|NewTLSListener|trimSpaceLeft|ServeHTTP2x", "-i errunexpectedeof", `\w+UnexpectedEOF`,
	`sync\.Pool|atomic\.Pointer`, `^func \(\w+ \*\w+\) Close\(`, `\bReadFull\b`, `[A-Za-z]{30}`, "func NewReader", `func \(c \*conn\) \w+`, "-i readloop", "DialContext|DialTLS",
	`type \w+ interface \{`, "-i TODO.*bradfitz", "http2Transport", "GOEXPERIMENT", `runtime\.KeepAlive`, "morestack_noctxt", "case OINDEXMAP", "ssaGenValue",
	`errors\.Is\(err, fs\.ErrNotExist\)`, "PM_RESUME", "-i PM_RESUME", "[A-Z]+_RESUME", "kmalloc_array|kvfree_rcu", `\bregister_netdev\b`, `->x\b`,
	`^static int \w+_probe\(struct platform_device`, `\w{5}\s+\w{5}\s+\w{5}\s+\w{5}\s+\w{5}`, "register_netdev", "struct ext4_inode_info", `static int ext4_\w+_iter\(`,
	"-i kmemleak", `EXPORT_SYMBOL_GPL\(sched_\w+\)`, "-i TODO.*refcount", `#define\s+PAGE_SHIFT`, `of_match_ptr\(\w+_dt_ids\)`, `case BPF_MAP_TYPE_\w+:`, "-F a.b[0]", "-F *(",
	"-F interface{}", `-F \n`, "-F -i content-type:", `\t\t\t\t\t\t\t\t`, `" \* Copyright"`, "==", "kmalloc|ReadFull|WriteString", `^#include <linux/(slab|mm)\.h>`, `^\s*return\s+\w+;$`,
	`^.{200,}$`, `\w{40}`, `(?-u)\w{40}`, `(?-u:\w+)_RESUME`, `\p{Han}{4}`, `\p{Lu}\p{Ll}+\p{Lu}\p{Ll}+\p{Lu}`, `\P{ASCII}`, `\d{7,}`, `[^\d\s\w]{8}`, `0x[0-9a-fA-F]{8}\b`, `//.*TODO`,
	"a.*b.*c.*d.*e.*f", `\x41\x42\x43`, "[[:upper:]]{12}", "[[:^alpha:]]{60}", `errors?\.(New|Is|As)\(`, `perch\w`, `\S{120}`, `[a-z_]*e[a-z_]{14}z`, `\W{50}`, `(?i)straße|größe`,
	"-i ſ", "-i kelvin", `-i \bK\b`, `(?i)(get|set)header`, `[\p{Greek}&&\p{Lu}]`, `[[:punct:]]{10}`, `^package \w+_test$`, `\bgo:(linkname|noescape|embed)\b`, `"(GET|PUT|POST)"`,
	"-U func \\w+\\(\\) \\{\n\\}", `-U import \(\s+"bytes"`, `-U (?s)type conn struct \{.{0,200}`, "-U \\}\n\n\n", `-i -U //go:build\s+linux\s+package`,
	`-t go ReadFull`, "-t md the", "-T go ReadFull", "-g *.s TEXT", "-g !*_test.go ErrUnexpectedEOF", "-g net/** Listener", "-g *.{c,h} static", "-t js function", "-t make all:",
	"-C2 ErrUnexpectedEOF", "-A3 func NewReader", `-B2 \bReadFull\b`, "-C1 -i todo", `-A1 ^func \(\w+ \*\w+\) Close\(`, "-C5 GOEXPERIMENT", "-B3 -A1 panic\\(",
}

// A tableQuery is one of them, taken apart.
type tableQuery struct {
	text  string   // as it stands above
	flags []string // of ripgrep
	ours  GrepQuery
}

func parseTableQuery(text string) tableQuery {
	q := tableQuery{text: text, ours: GrepQuery{Mode: Lines, MaxLine: 1 << 30, MaxText: 1 << 40, Within: 1 << 40}}
	rest := text
	for strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "->") && rest != "-" {
		flag, after, ok := strings.Cut(rest, " ")
		if !ok {
			break
		}
		var n int
		switch {
		case flag == "-i":
			q.ours.Fold = true
		case flag == "-F":
			q.ours.Literal = true
		case flag == "-U":
			q.ours.Multiline = true
		case flag == "-t", flag == "-T", flag == "-g":
			var value string
			value, after, _ = strings.Cut(after, " ")
			q.flags = append(q.flags, flag)
			switch flag {
			case "-t":
				q.ours.Types = append(q.ours.Types, value)
			case "-T":
				q.ours.Globs = append(q.ours.Globs, "!*."+value)
			default:
				q.ours.Globs = append(q.ours.Globs, value)
			}
			flag = value
		default:
			if _, err := fmt.Sscanf(flag[2:], "%d", &n); err != nil {
				panic(text)
			}
			if flag[1] != 'A' {
				q.ours.Before = n
			}
			if flag[1] != 'B' {
				q.ours.After = n
			}
		}
		q.flags, rest = append(q.flags, flag), after
	}
	q.ours.Pattern = rest
	if before, ok := strings.CutSuffix(rest, "$"); ok && !q.ours.Multiline {
		rest = before + `\r?$` // ripgrep's "$" is the LF alone
	}
	q.flags = append(q.flags, "-e", rest, ".")
	return q
}

// Real sources: lines with columns and contexts, counts and names of files are ripgrep's. CODEHAND_LONG=1 asks every
// query of all of Go's sources, or of CODEHAND_TREE.
func TestTablesEqualRipgrep(t *testing.T) {
	t.Parallel()
	rg := needRipgrep(t)
	var queries []string
	for _, p := range patterntest.Patterns {
		if strings.Contains(p, `\B`) && rg.version < 15 {
			continue // older ripgreps find \B beside a byte that is not UTF-8
		}
		if !strings.Contains(p, "$") || strings.HasSuffix(p, "$") {
			queries = append(queries, p)
		}
	}
	queries = append(queries, tableQueries...)
	if len(queries) < 120 {
		t.Fatalf("%d queries", len(queries))
	}
	var d dir
	most := 100_000 // lines whose texts are compared; of a query with more, counts are
	if leaktest.Long() {
		d = treeOf(t)
	} else {
		d = newDir(t, nil)
		sources(t, d, "net/http", "bufio", "go/ast", "cmd/internal/obj/x86")
		queries = slices.DeleteFunc(queries, func(q string) bool { return len(q)%10 != 0 && !strings.HasPrefix(q, "-") })
		most = 5000
	}
	e := New(Options{Memory: 256 << 20})
	defer closeEngine(t, e)
	lines, columns := 0, 0
	for _, text := range queries {
		if t.Failed() {
			break
		}
		q := parseTableQuery(text)
		q.ours.Scope.Place = d.at("")
		n := q.counts(t, rg, d, e)
		if q.ours.Multiline || n > most {
			continue
		}
		lines++
		if q.lines(t, rg, d, e) {
			columns++
		}
	}
	t.Logf("%d queries, of %d all lines, of %d all columns: %+v", len(queries), lines, columns, e.Stats())
}

// counts compares the numbers of hits by file, and the names of files.
func (q tableQuery) counts(t *testing.T, rg ripgrep, d dir, e *Engine) (n int) {
	t.Helper()
	ours := q.ours
	ours.Mode, ours.Before, ours.After = Count, 0, 0
	a, err := e.Grep(t.Context(), ours)
	if err != nil {
		t.Fatalf("%s: %v", q.text, err)
	}
	var got, files []string
	for _, f := range a.Files {
		got = append(got, fmt.Sprintf("%s:%d", d.rel(f.Path), f.NLines))
		files = append(files, d.rel(f.Path))
	}
	slices.Sort(got)
	slices.Sort(files)
	what := "-c"
	if ours.Multiline {
		what = "--count-matches"
	}
	diffLines(t, q.text+" (counts)", got, rgLines(rg.run(d.path, append([]string{what}, q.withoutContext()...)...)))
	diffLines(t, q.text+" (files)", files, rgLines(rg.run(d.path, append([]string{"-l"}, q.withoutContext()...)...)))
	return a.NLines
}

func (q tableQuery) withoutContext() []string {
	return slices.DeleteFunc(slices.Clone(q.flags), func(f string) bool {
		return len(f) == 3 && f[0] == '-' && '0' <= f[2] && f[2] <= '9' && strings.ContainsRune("ABC", rune(f[1]))
	})
}

// lines compares lines with their texts, contexts and, where no match is empty, columns, which it reports.
func (q tableQuery) lines(t *testing.T, rg ripgrep, d dir, e *Engine) (columns bool) {
	t.Helper()
	ours := q.ours
	ours.Spans = true
	a, err := e.Grep(t.Context(), ours)
	if err != nil {
		t.Fatalf("%s: %v", q.text, err)
	}
	columns = !strings.HasPrefix(ours.Pattern, `\A`) // ripgrep shows none for them
	for _, f := range a.Files {
		columns = columns && !slices.ContainsFunc(f.Lines, func(l Line) bool { return !l.Context && len(l.Spans) == 0 })
	}
	var got []string
	for _, f := range a.Files {
		for _, l := range f.Lines {
			switch name := d.rel(f.Path); {
			case l.Context:
				got = append(got, fmt.Sprintf("%s-%d-%s", name, l.N, l.Text))
			case columns:
				got = append(got, fmt.Sprintf("%s:%d:%d:%s", name, l.N, l.Spans[0].From+1, l.Text))
			default:
				got = append(got, fmt.Sprintf("%s:%d:%s", name, l.N, l.Text))
			}
		}
	}
	slices.Sort(got)
	args := []string{"-n", "--no-heading", "--color=never", "--no-context-separator"}
	if columns {
		args = append(args, "--column")
	}
	diffLines(t, q.text, got, rgLines(rg.run(d.path, append(args, q.flags...)...)))
	return columns
}

// Names of files are those of rg --files.
func TestFilesEqualRipgrep(t *testing.T) {
	t.Parallel()
	rg := needRipgrep(t)
	d := newDir(t, map[string]string{".gitignore": "*.skip\nout/\n", "x.skip": "", "out/x": "", ".hidden/x": "", "a b": "", "é/ü": "", ".git/x": "", "sub/.ignore": "!x.skip\ny", "sub/x.skip": "", "sub/y": ""})
	if leaktest.Long() {
		d = treeOf(t)
	} else {
		sources(t, d, "net/http", "bufio")
	}
	for _, c := range []struct {
		args []string
		q    FileQuery
	}{
		{nil, FileQuery{}},
		{[]string{"-t", "go"}, FileQuery{Scope: Scope{Types: []string{"go"}}}},
		{[]string{"-g", "*_test.go"}, FileQuery{Scope: Scope{Globs: []string{"*_test.go"}}}},
		{[]string{"-g", "!*.go"}, FileQuery{Scope: Scope{Globs: []string{"!*.go"}}}},
		{[]string{"--no-ignore"}, FileQuery{Scope: Scope{Ignored: true}}},
	} {
		c.q.Pattern = "**"
		var got []string
		for _, f := range d.files(t, c.q).Files {
			got = append(got, d.rel(f.Path))
		}
		slices.Sort(got)
		diffLines(t, fmt.Sprint(c.args), got, rgLines(rg.run(d.path, append([]string{"--files"}, c.args...)...)))
	}
}

// treeOf is CODEHAND_TREE, or Go's sources.
func treeOf(t *testing.T) dir {
	t.Helper()
	path := os.Getenv("CODEHAND_TREE")
	if path == "" {
		path = filepath.Join(goRoot(t), "src")
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return dir{path, root}
}
