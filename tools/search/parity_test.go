package search

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rgFlags make ripgrep search what the default walk searches.
var rgFlags = []string{"--no-config", "--no-messages", "--hidden", "--no-require-git", "-g", "!.git", "-g", "!.svn", "-g", "!.hg", "-g", "!.bzr", "-g", "!.jj", "-g", "!.sl"}

// A ripgrep is the program that this engine must agree with.
type ripgrep struct {
	t       testing.TB
	program string
	version int // major
}

func needRipgrep(t testing.TB) ripgrep {
	t.Helper()
	program, err := exec.LookPath("rg")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("rg is missing, and it is the oracle of this test; install ripgrep")
		}
		t.Skip("rg is missing, and it is the oracle of this test; install ripgrep")
	}
	r := ripgrep{t: t, program: program}
	out, err := exec.CommandContext(t.Context(), program, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(out), "ripgrep %d.", &r.version); err != nil {
		t.Fatalf("rg --version says %q: %v", out, err)
	}
	return r
}

// run runs ripgrep in a directory.
func (r ripgrep) run(dir string, args ...string) []byte {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), r.program, append(slices.Clone(rgFlags), args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() > 1 {
		r.t.Fatalf("rg %q: %v\n%s", args, err, &stderr)
	}
	return out
}

// rgLines gives ripgrep's answer as sorted path:line:text.
func rgLines(out []byte) []string {
	var lines []string
	for line := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte("\n")), []byte("\n")) {
		if len(line) > 0 {
			lines = append(lines, strings.TrimPrefix(strings.TrimSuffix(string(line), "\r"), "./"))
		}
	}
	slices.Sort(lines)
	return lines
}

func ourLines(d dir, a GrepAnswer) []string {
	var lines []string
	for _, f := range a.Files {
		for _, l := range f.Lines {
			lines = append(lines, fmt.Sprintf("%s:%d:%s", d.rel(f.Path), l.N, l.Text))
		}
	}
	slices.Sort(lines)
	return lines
}

func diffLines(t testing.TB, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	at := func(s []string) string {
		if i < len(s) {
			return shorten(s[i])
		}
		return "(end)"
	}
	t.Errorf("%s: %d lines, want %d; first difference:\n got %q\nwant %q", what, len(got), len(want), at(got), at(want))
}

// The patterns are those on which matchers were found to differ. Where ripgrep needs another spelling, it follows.
var parityPatterns = []string{
	"return", "->", "e", "é", "日本", `\.`, `a.b[0]`, `(?i)todo`, `(?i)straße`, `(?i)ÉTÉ`, `(?i)größe`, `(?i)class`, `(?i:fix)me|XXX`, `FIXME|XXX|HACK`,
	`a|b|c|d|e|f|g|h|i|j`, `foo(bar|baz)?qux|ReadAll(At)?`, `(read|write|open|close)(file|dir|lock)`, `^func \(\w+ \*?\w+\) (Read|Write)\(`, `^$`, `^\s+$`, `\s$`,
	`^.{40,}$`, `[A-Za-z]{12}`, `\w+_RESUME`, `\w{3}\s+\w{3}`, `\bif\b`, `\bt\b`, `\bread\b.*\bwrite\b`, `\Bing\b`, `(?-u)\bt\b`, `(?-u)\w{4}`, `\p{Greek}`, `\p{Han}{2}`,
	`\p{Lu}\p{Ll}+\p{Lu}`, `[^\x00-\x7F]`, `\d{2,}`, `[^\d\s\w]{2}`, `0x[0-9a-fA-F]{2}\b`, `"[^"]*\\n"`, `'[^']{1}'`, `\(\)\s*\{`, `/\*.*\*/`, `a.*b.*c`, `(a|ab)(c|bcd)(d*)`,
	`x*`, `(?:)`, `\x41\x42`, `\u00e9|\x{e9}`, `[[:upper:]]{3}`, `[[:^alpha:]]{8}`, `(?P<k>key|val)ue`, `(?s)a.b`, `(?x) ret urn \  0`, `\Astatic`, `[\w.+-]+@[\w-]+\.[\w.-]+`,
	`\w+\s*:=\s*range\b`, `\S{20}`, `[a-z_]*e[a-z_]{4}z`, `((a+)b?)+c{2}`, `.`, `[^a]`, `(?i)[^a-z]{4}`, `\W{5}`, `[a-z&&[^aeiou]]{4}`, `[\w--\d]{5}`, `[a[bc]]{3}`, `(?i)k`, `(?i)s`,
	`(?i)ask`, `(?i)kiss`, `\S+(?i)class`, `[^k]{3}$`, `\p{L}+\P{L}+`, `(?i)\p{Lu}{3}`, `\B-\B`, `\b`, `\B`,
}

// broken makes lines of all that is awkward: broken UTF-8, folds of other length, marks, line ends.
func awkwardText() string {
	var b strings.Builder
	pieces := []string{"a", "k", "s", "ſ", "ß", "\u212a", "é", "É", "日本", "内核", "1", "٣", "_", "-", "\u0301", "\u00a0", "\u200d", "😀", "\t", " ", "\xff", "\xc3", "\xe6\x97", "\xf0\x9f\x98",
		"\xed\xa0\x80", "class", "Maſke", "TASK", "Größe", "GRÖSSE", "ΑΒΓ", "été", "ÉTÉ", "x", "foo", "todo", "\ufffd", "()", "if", "t", "ing"}
	seed := uint32(7)
	for range 3000 {
		for range 1 + seed>>3%9 {
			seed = seed*1664525 + 1013904223
			b.WriteString(pieces[seed>>8%uint32(len(pieces))])
		}
		seed = seed*1664525 + 1013904223
		b.WriteString([]string{"\n", "\n", "\n", "\r\n"}[seed>>9%4])
	}
	return b.String()
}

// goRoot is where Go's own sources are.
func goRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// sources copies some of Go's own sources, which are text of many kinds.
func sources(t testing.TB, d dir, names ...string) {
	t.Helper()
	for _, name := range names {
		from := filepath.Join(goRoot(t), "src", name)
		if err := os.CopyFS(filepath.Join(d.path, filepath.FromSlash(name)), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEqualsRipgrep(t *testing.T) {
	t.Parallel()
	rg := needRipgrep(t)
	d := newDir(t, map[string]string{
		"awkward": awkwardText(), "crlf": "a\r\nfoo\r\n\r\nreturn x;\r\n", "none": "", "end": "no newline at the end return", ".hidden": "return\n",
		".gitignore": "*.skip\n", "x.skip": "return\n", "bom": utf8Mark + "static return\n", "utf16": "\xff\xfer\x00e\x00t\x00u\x00r\x00n\x00\n\x00\xe9\x00", "nul": "return\x00\n",
	})
	sources(t, d, "strings", "unicode/utf8", "bufio")
	for _, p := range parityPatterns {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(p, `\B`) && rg.version < 15 {
				t.Skip(`older ripgreps find \B beside a byte that is not UTF-8; install ripgrep 15`)
			}
			theirs := p // ripgrep's "$" is the LF alone
			if before, ok := strings.CutSuffix(p, "$"); ok {
				theirs = before + `\r?$`
			}
			want := rgLines(rg.run(d.path, "-n", "--no-heading", "-a", "--color=never", "-g", "!nul", "-e", theirs, "."))
			got := ourLines(d, d.grep(t, GrepQuery{Pattern: p, Mode: Lines, MaxLine: 1 << 30, Scope: Scope{Globs: []string{"!nul"}}, MaxText: 1 << 30}))
			diffLines(t, p, got, want)
		})
	}
}
