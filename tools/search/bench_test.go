package search

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// goSources is the tree that the benchmarks search: some 230 MB of text.
func goSources(b testing.TB) dir {
	b.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join(goRoot(b), "src"))
	if err != nil {
		b.Fatal(err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = root.Close() })
	return dir{path, root}
}

// BenchmarkGrep has ripgrep's time beside ours, if it is installed: its output is read through a pipe.
func BenchmarkGrep(b *testing.B) {
	d := goSources(b)
	rg, err := exec.LookPath("rg")
	for _, c := range []struct {
		name, pattern string
		fold          bool
	}{
		{"literal", "ErrUnexpectedEOF", false}, {"none", "xyzzy_plugh_42", false}, {"common", "return", false}, {"fold", "errunexpectedeof", true},
		{"suffix", `\w+UnexpectedEOF`, false}, {"alternation", "ReadHeaderTimeout|ErrAbortHandler|NewTLSListener", false},
		{"word", `\bReadFull\b`, false}, {"func", `^func \(\w+ \*\w+\) Close\(`, false}, {"noliteral", `[A-Za-z]{30}`, false},
	} {
		b.Run(c.name+"/ours", func(b *testing.B) {
			e := New(Options{})
			defer closeEngine(b, e)
			for b.Loop() {
				if _, err := e.Grep(b.Context(), GrepQuery{Scope: Scope{Place: d.at("")}, Pattern: c.pattern, Fold: c.fold, Mode: Lines, MaxText: 1 << 30}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/rg", func(b *testing.B) {
			if err != nil {
				b.Skip("rg is missing; install ripgrep to compare")
			}
			args := append(append([]string{}, rgFlags...), "-n", "--no-heading", "-e", c.pattern, ".")
			if c.fold {
				args = append(args, "-i")
			}
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), rg, args...)
				cmd.Dir = d.path
				if _, err := cmd.Output(); err != nil && cmd.ProcessState.ExitCode() > 1 {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFiles(b *testing.B) {
	d := goSources(b)
	e := New(Options{})
	defer closeEngine(b, e)
	for _, c := range []struct {
		name    string
		ignored bool
	}{{"rules", false}, {"norules", true}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				a, err := e.Files(b.Context(), FileQuery{Scope: Scope{Place: d.at(""), Ignored: c.ignored}, Pattern: "**/*.go", Limit: 100})
				if err != nil || len(a.Files) != 100 {
					b.Fatal(len(a.Files), err)
				}
			}
		})
	}
}

// BenchmarkRepeated searches a tree that is remembered.
func BenchmarkRepeated(b *testing.B) {
	d := goSources(b)
	e := New(Options{Memory: 256 << 20})
	defer closeEngine(b, e)
	q := GrepQuery{Scope: Scope{Place: d.at("")}, Pattern: "ErrUnexpectedEOF", Mode: Lines}
	for range 2 {
		if _, err := e.Grep(b.Context(), q); err != nil {
			b.Fatal(err)
		}
		e.Settle()
	}
	for b.Loop() {
		if _, err := e.Grep(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}
