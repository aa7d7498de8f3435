package search

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/tools/search/pattern/patterntest"
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
		"awkward": patterntest.Awkward(), "crlf": "a\r\nfoo\r\n\r\nreturn x;\r\n", "none": "", "end": "no newline at the end return", ".hidden": "return\n",
		".gitignore": "*.skip\n", "x.skip": "return\n", "bom": utf8Mark + "static return\n", "utf16": "\xff\xfer\x00e\x00t\x00u\x00r\x00n\x00\n\x00\xe9\x00", "nul": "return\x00\n",
	})
	sources(t, d, "strings", "unicode/utf8", "bufio")
	for _, p := range patterntest.Patterns {
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

// Random patterns on random lines, broken ones among them, give ripgrep's lines; with CODEHAND_LONG=1 for two minutes.
func TestRandomPatternsEqualRipgrep(t *testing.T) {
	t.Parallel()
	rg := needRipgrep(t)
	if rg.version < 15 {
		t.Skip(`older ripgreps find \B beside a byte that is not UTF-8; install ripgrep 15`)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	d := newDir(t, map[string]string{"text": string(patterntest.RandomText(r, 4000))})
	enough := func(n int) bool { return n == 100 }
	if os.Getenv("CODEHAND_LONG") != "" {
		end := time.Now().Add(2 * time.Minute)
		enough = func(int) bool { return time.Now().After(end) }
	}
	n := 0
	for ; !enough(n) && !t.Failed(); n++ {
		p, fold := patterntest.Random(r, 3), r.IntN(4) == 0
		if strings.Contains(p, "$") { // before a CR, too
			continue
		}
		args := []string{"-n", "--no-heading", "-a", "--color=never", "-e", p, "."}
		if fold {
			args = append(args, "-i")
		}
		a := d.grep(t, GrepQuery{Pattern: p, Fold: fold, Mode: Lines, MaxLine: 1 << 30, MaxText: 1 << 30})
		diffLines(t, fmt.Sprintf("%q, fold %v", p, fold), ourLines(d, a), rgLines(rg.run(d.path, args...)))
	}
	t.Logf("%d patterns", n)
}
