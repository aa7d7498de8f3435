package lsp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/sandbox"
)

// installed returns a directory with a program that go or npm installs.
func installed(t *testing.T, command ...string) string {
	t.Helper()
	dir := leaktest.Dir(t)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "npm_config_prefix="+dir)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// goplsVersion is the newest gopls that go 1.26 builds.
const goplsVersion = "v0.23.0"

// A real is a root with a real server.
type real struct {
	*rig
	server Server
	c      *Client
}

func startReal(t *testing.T, name, bin, root string) *real {
	t.Helper()
	i := slices.IndexFunc(Presets(), func(s Server) bool { return s.Name == name })
	s := Presets()[i]
	r := &real{rig: &rig{t: t, dir: root, pool: New([]Server{s}, Limits{}, slog.New(slog.NewTextHandler(t.Output(), nil)))}, server: s}
	t.Cleanup(r.pool.Close)
	env := append(sandbox.Environ(sandbox.EnvOptions{}), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	path, err := sandbox.Find(env[len(env)-1:], s.Argv[0])
	env = append(env, s.Env...)
	must(t, err)
	c, done, err := r.pool.Use(t.Context(), r.place(), s, func(ctx context.Context, s Server) (Process, error) {
		return Start(ctx, sandbox.Cmd{Path: path, Args: s.Argv[1:], Env: env, Dir: openRoot(t, root)}, nil, slog.New(slog.DiscardHandler))
	})
	must(t, err)
	t.Cleanup(done)
	r.c = c
	return r
}

// find is the position of the last byte of what in a file, which names it.
func (r *real) find(name, what string) (Document, Position) {
	r.t.Helper()
	d := r.doc(name)
	at := strings.Index(d.Text, what)
	if at < 0 {
		r.t.Fatalf("%s has no %q", name, what)
	}
	at += len(what) - 1
	before := d.Text[:at]
	return d, Position{strings.Count(before, "\n"), Units(before[strings.LastIndexByte(before, '\n')+1:])}
}

// edit is check for the server of r, and how long it took.
func (r *real) edit(name, content string) (Verdict, time.Duration) {
	r.t.Helper()
	old, _ := os.ReadFile(r.path(name))
	r.write(name, content)
	begun := time.Now()
	v := r.pool.Check(r.t.Context(), r.place(), r.server, Question{For: "me", Edits: []Edit{{r.path(name), old, []byte(content)}}})
	return v, time.Since(begun)
}

// breaks makes edits that break a file and repair it, and counts those that were told at once.
func (r *real) breaks(name string, times int, broken func(text string, n int) (content, message string)) {
	t := r.t
	good := r.doc(name).Text
	begun := time.Now()
	_, err := r.c.Problems(t.Context(), r.doc(name))
	must(t, err)
	t.Logf("%s: its first diagnostics took %v", r.server.Name, time.Since(begun))
	var took []time.Duration
	told, late := 0, 0
	for n := range times {
		content, message := broken(good, n)
		v, d := r.edit(name, content)
		took = append(took, d)
		switch {
		case v.Late:
			late++
		case strings.Contains(found(v), message):
			told++
		default:
			t.Errorf("%d: wanted %q, got %q", n, message, found(v))
		}
		if v, _ := r.edit(name, good); found(v) != "" && !v.Late {
			t.Errorf("%d: after the repair: %q", n, found(v))
		}
	}
	slices.Sort(took)
	t.Logf("%s: %d of %d edits told at once, %d late; p50 %v, p95 %v", r.server.Name, told, times, late, took[times/2], took[times*95/100])
	if told < times*95/100 {
		t.Errorf("%d of %d were told", told, times)
	}
}

// gopls on Go's own source: every operation, diagnostics of broken edits at once, a rename over 50 files.
func TestGopls(t *testing.T) {
	leaktest.OnlyLong(t, "installs gopls")
	bin := os.Getenv("LSP_TEST_BIN")
	if bin == "" {
		bin = installed(t, "go", "install", "golang.org/x/tools/gopls@"+goplsVersion)
	}
	root := filepath.Join(leaktest.Dir(t), "std")
	must(t, os.MkdirAll(filepath.Join(root, "text", "many"), 0o700))
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	src := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	copyTree(t, filepath.Join(src, "text"), filepath.Join(root, "text"))
	copyTree(t, filepath.Join(src, "internal", "fmtsort"), filepath.Join(root, "internal", "fmtsort"))
	must(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.com/std\n\ngo 1.26\n"), 0o600))
	r := startReal(t, "gopls", bin, root)
	ctx := t.Context()
	doc, at := r.find("text/template/exec.go", "func (s *state) walk")
	got, err := r.c.References(ctx, doc, at)
	must(t, err)
	if n := strings.Count(doc.Text, ".walk("); len(got) < n {
		t.Errorf("%d references of walk, %d in its own file", len(got), n)
	}
	doc, at = r.find("text/template/exec.go", "s.walk(dot, list.Nodes[i]); s.walk"[:6])
	got, err = r.c.Definition(ctx, doc, at)
	must(t, err)
	if len(got) != 1 || !strings.HasSuffix(got[0].Path, "text/template/exec.go") {
		t.Errorf("definition %v", got)
	}
	doc, at = r.find("text/template/exec.go", "type state")
	text, err := r.c.Hover(ctx, doc, at)
	must(t, err)
	if !strings.Contains(text, "state represents the state of an execution") {
		t.Errorf("hover %q", text)
	}
	symbols, err := r.c.Outline(ctx, doc)
	must(t, err)
	if !slices.ContainsFunc(symbols, func(s Symbol) bool { return s.Name == "state" && s.Kind == "struct" && s.At.Line == at.Line }) {
		t.Errorf("outline %v", symbols)
	}
	symbols, err = r.c.Symbols(ctx, "walkRange")
	must(t, err)
	if len(symbols) == 0 {
		t.Error("no symbols")
	}
	doc, at = r.find("text/template/parse/node.go", "type Node")
	got, err = r.c.Implementation(ctx, doc, at)
	must(t, err)
	if len(got) < 10 {
		t.Errorf("implementations %v", got)
	}
	doc, at = r.find("text/template/exec.go", "func (s *state) walk")
	in, err := r.c.Callers(ctx, doc, at)
	must(t, err)
	out, err := r.c.Callees(ctx, doc, at)
	must(t, err)
	if len(in) == 0 || len(out) == 0 {
		t.Errorf("callers %v, callees %v", in, out)
	}
	r.breaks("text/template/exec.go", 100, func(text string, n int) (string, string) {
		what := fmt.Sprintf("broken%d", n)
		return strings.Replace(text, "func (s *state) walk(", fmt.Sprintf("var _ = %s\n\nfunc (s *state) walk(", what), 1), "undefined: " + what
	})
	// A file that is new to its package: the server reads the package again, so the first answers may be late.
	v := Verdict{Late: true}
	for n := 0; v.Late && n < 20; n++ {
		v, _ = r.edit("text/template/new.go", "package template\n\nfunc usesWalk(s *state) { s.walk(s.wrong, nil) }\n"+
			strings.Repeat("\n", n))
	}
	expect(t, "a new file", found(v), "new.go:2:35: s.wrong undefined (type *state has no field or method wrong)")
	must(t, os.Remove(r.path("text/template/new.go")))

	r.write("text/many/shared.go", "package many\n\nfunc shared() int { return 1 }\n")
	for n := range 59 {
		r.write(fmt.Sprintf("text/many/f%02d.go", n), fmt.Sprintf("package many\n\nvar _, v%d = \"\U0001f600\", shared() // of shared\n", n))
	}
	texts := r.renamed("text/many/shared.go", "func s", "common")
	if len(texts) != 60 {
		t.Errorf("the rename changes %d files", len(texts))
	}
	expect(t, "a rename here", texts["text/many/shared.go"], "package many\n\nfunc common() int { return 1 }\n")
	for n := range 59 {
		name := fmt.Sprintf("f%02d.go", n)
		expect(t, "a rename in "+name, texts["text/many/"+name], fmt.Sprintf("package many\n\nvar _, v%d = \"\U0001f600\", common() // of shared\n", n))
	}

	// imports
	r.write("text/imports.go", "package text\n\nimport (\n\t\"os\"\n\t\"fmt\"\n\t\"strings\"\n)\n\nvar _ = fmt.Sprint(os.Args)\n")
	all, err := r.c.OrganizeImports(ctx, r.doc("text/imports.go"))
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("organizeImports %v", all)
	}
	now, err := all[0].Apply(r.doc("text/imports.go").Text)
	must(t, err)
	expect(t, "imports", now, "package text\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nvar _ = fmt.Sprint(os.Args)\n")
}

// copyTree copies the files of a directory, without tests.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	must(t, filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if e.IsDir() {
			if e.Name() == "testdata" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		if strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go") {
			return nil
		}
		b, err := os.ReadFile(path)
		b = []byte(strings.NewReplacer(`"internal/`, `"example.com/std/internal/`, `"text/`, `"example.com/std/text/`).Replace(string(b)))
		return errors.Join(err, os.WriteFile(filepath.Join(to, rel), b, 0o600))
	}))
}
