package lsp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// npmBin returns the directory with the programs of packages from npm. LSP_TEST_NPM is a directory where they are
// installed.
func npmBin(t *testing.T, packages ...string) string {
	t.Helper()
	if dir := os.Getenv("LSP_TEST_NPM"); dir != "" {
		return filepath.Join(dir, "node_modules", ".bin")
	}
	return filepath.Join(installed(t, append([]string{"npm", "install", "--no-audit", "--no-fund", "--loglevel=error"}, packages...)...), "node_modules", ".bin")
}

// newReal lays the files of a project and starts a server there.
func newReal(t *testing.T, server, bin string, files map[string]string) *real {
	t.Helper()
	root := filepath.Join(leaktest.Dir(t), "project")
	for name, content := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	return startReal(t, server, bin, root)
}

// names are those of symbols, sorted.
func names(all []Symbol) string {
	var out []string
	for _, s := range all {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func neighbours(all []Neighbour) string {
	var out []Symbol
	for _, n := range all {
		out = append(out, n.Symbol)
	}
	return names(out)
}

// sorted is shown with the places in order.
func (r *real) sorted(all []Location) string {
	places := strings.Fields(r.shown(all))
	slices.Sort(places)
	return strings.Join(places, " ")
}

// renamed applies what a rename wants, and returns the new texts by the names of their files.
func (r *real) renamed(name, what, to string) map[string]string {
	r.t.Helper()
	doc, at := r.find(name, what)
	all, err := r.c.Rename(r.t.Context(), doc, at, to)
	must(r.t, err)
	texts := map[string]string{}
	for _, w := range all {
		rel, err := filepath.Rel(r.dir, w.Path)
		must(r.t, err)
		texts[rel], err = w.Apply(r.doc(rel).Text)
		must(r.t, err)
	}
	return texts
}

// typescript-language-server on a project with a byte order mark, both line ends and characters of two UTF-16 units
// before names: every operation has the place that the text shows, and a rename and new imports are exact.
func TestTypeScript(t *testing.T) {
	leaktest.OnlyLong(t, "installs typescript-language-server")
	bin := npmBin(t, "typescript-language-server@5", "typescript@5")
	shape := "\ufeffexport interface Shape { area(): number }\r\n/** a square, \U0001f600 */\r\nexport class Square implements Shape {\r\n" +
		"  constructor(readonly side: number) {}\r\n  area() { return twice(this.side) * this.side / 2 }\r\n}\r\n/* \U0001f600 */ export function twice(n: number) { return 2 * n }\r\n"
	main := "import { Square, twice } from \"./shape.js\"\nconst s = \"\U0001f600\U0001f600\"; export const a = new Square(twice(2)).area() + s.length\n" +
		"export function total(all: Square[]) { let sum = 0; for (const x of all) { sum += x.area() } return sum }\n"
	r := newReal(t, "typescript-language-server", bin, map[string]string{
		"package.json":  `{"type":"module"}`,
		"tsconfig.json": `{"compilerOptions":{"strict":true,"module":"nodenext","moduleResolution":"nodenext","noEmit":true,"target":"es2022"},"include":["src"]}`,
		"src/shape.ts":  shape, "src/main.ts": main,
		"src/z.ts": "export const z = 1\n", "src/imports.ts": "import { z } from \"./z.js\"\nimport { total, a } from \"./main.js\"\nexport const x = [z, total]\n",
	})
	ctx := t.Context()
	doc, at := r.find("src/main.ts", "new Square(t")
	got, err := r.c.Definition(ctx, doc, at)
	must(t, err)
	expect(t, "definition", r.shown(got), "src/shape.ts:6:25") // /*, a blank, two units, ...
	got, err = r.c.References(ctx, doc, at)
	must(t, err)
	expect(t, "references", r.sorted(got), "src/main.ts:0:17 src/main.ts:1:46 src/shape.ts:4:18 src/shape.ts:6:25")
	text, err := r.c.Hover(ctx, doc, at)
	must(t, err)
	if !strings.Contains(text, "twice(n: number): number") {
		t.Errorf("hover %q", text)
	}
	doc, at = r.find("src/shape.ts", "class S")
	if text, err = r.c.Hover(ctx, doc, at); err != nil || !strings.Contains(text, "a square, \U0001f600") {
		t.Errorf("hover %q %v", text, err)
	}
	doc, at = r.find("src/shape.ts", "interface S")
	got, err = r.c.Implementation(ctx, doc, at)
	must(t, err)
	expect(t, "implementation", r.shown(got), "src/shape.ts:2:13")
	symbols, err := r.c.Outline(ctx, doc)
	must(t, err)
	expect(t, "outline", names(symbols), "Shape Square area area constructor side twice")
	symbols, err = r.c.Symbols(ctx, "total")
	must(t, err)
	if len(symbols) == 0 || symbols[0].Name != "total" && symbols[0].Name != "total()" {
		t.Errorf("symbols %v", symbols)
	}
	doc, at = r.find("src/shape.ts", "function t")
	callers, err := r.c.Callers(ctx, doc, at)
	must(t, err)
	expect(t, "callers", neighbours(callers), "area main.ts")
	doc, at = r.find("src/main.ts", "function t")
	callees, err := r.c.Callees(ctx, doc, at)
	must(t, err)
	expect(t, "callees", neighbours(callees), "area")
	texts := r.renamed("src/shape.ts", "function t", "doubled\U00020bb7")
	plain := strings.TrimPrefix(shape, "\ufeff")
	expect(t, "a rename here", texts["src/shape.ts"], strings.ReplaceAll(plain, "twice", "doubled\U00020bb7"))
	expect(t, "a rename there", texts["src/main.ts"], strings.ReplaceAll(main, "twice", "doubled\U00020bb7"))
	all, err := r.c.OrganizeImports(ctx, r.doc("src/imports.ts"))
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("organizeImports %v", all)
	}
	now, err := all[0].Apply(r.doc("src/imports.ts").Text)
	must(t, err)
	expect(t, "imports", now, "import { a, total } from \"./main.js\"\nimport { z } from \"./z.js\"\nexport const x = [z, total]\n")
	r.breaks("src/main.ts", 100, func(text string, n int) (string, string) {
		what := fmt.Sprintf("broken%d", n)
		return strings.Replace(text, "s.length", what, 1), "main.ts:1:65: Cannot find name '" + what + "'."
	})
	// In the file with the mark and the other line ends.
	v, _ := r.edit("src/shape.ts", strings.Replace(shape, "return 2 * n", "return 2 * m", 1))
	expect(t, "the other line ends", found(v), "shape.ts:6:55: Cannot find name 'm'.")
	if v, _ = r.edit("src/shape.ts", shape); found(v) != "" {
		t.Errorf("after the repair: %s", found(v))
	}
}

// pyright on such a project.
func TestPyright(t *testing.T) {
	leaktest.OnlyLong(t, "installs pyright")
	bin := npmBin(t, "pyright@1.1")
	shape := "\ufefffrom abc import ABC, abstractmethod\r\n\r\n\r\nclass Shape(ABC):\r\n    @abstractmethod\r\n    def area(self) -> float: ...\r\n\r\n\r\n" +
		"class Square(Shape):\r\n    \"\"\"a square, \U0001f600\"\"\"\r\n\r\n    def __init__(self, side: float) -> None:\r\n        self.side = side\r\n\r\n" +
		"    def area(self) -> float:\r\n        return twice(self.side) * self.side / 2\r\n\r\n\r\ndef twice(n: float) -> float:\r\n    return 2 * n\r\n"
	main := "import sys\nimport os\nfrom shape import Square, twice\n\ns = \"\U0001f600\U0001f600\"; a = Square(twice(2)).area() + len(s)\n\n\n" +
		"def total(all: list[Square]) -> float:\n    return sum(x.area() for x in all)\n\n\nprint(total([]), os.name, sys.argv)\n"
	r := newReal(t, "pyright", bin, map[string]string{"pyproject.toml": "[tool.pyright]\ntypeCheckingMode = \"basic\"\n", "shape.py": shape, "main.py": main})
	ctx := t.Context()
	doc, at := r.find("main.py", "Square(t")
	got, err := r.c.Definition(ctx, doc, at)
	must(t, err)
	expect(t, "definition", r.shown(got), "shape.py:18:4")
	got, err = r.c.References(ctx, doc, at)
	must(t, err)
	expect(t, "references", r.sorted(got), "main.py:2:26 main.py:4:23 shape.py:15:15 shape.py:18:4")
	text, err := r.c.Hover(ctx, doc, at)
	must(t, err)
	if !strings.Contains(text, "def twice(n: float) -> float") {
		t.Errorf("hover %q", text)
	}
	doc, at = r.find("shape.py", "class Sq")
	if text, err = r.c.Hover(ctx, doc, at); err != nil || !strings.Contains(text, "a square, \U0001f600") {
		t.Errorf("hover %q %v", text, err)
	}
	symbols, err := r.c.Outline(ctx, doc)
	must(t, err)
	if got := names(symbols); !strings.Contains(got, "Shape Square") || !strings.Contains(got, "twice") || strings.Count(got, "area") != 2 {
		t.Errorf("outline %s", got)
	}
	symbols, err = r.c.Symbols(ctx, "total")
	must(t, err)
	expect(t, "symbols", names(symbols), "total")
	doc, at = r.find("shape.py", "def t")
	callers, err := r.c.Callers(ctx, doc, at)
	must(t, err)
	expect(t, "callers", neighbours(callers), "(module) main.py area")
	doc, at = r.find("main.py", "def t")
	callees, err := r.c.Callees(ctx, doc, at)
	must(t, err)
	if got := neighbours(callees); !strings.HasPrefix(got, "area sum") { // sum has several declarations
		t.Errorf("callees %s", got)
	}
	texts := r.renamed("shape.py", "def t", "doubled_\u00e4")
	expect(t, "a rename here", texts["shape.py"], strings.ReplaceAll(strings.TrimPrefix(shape, "\ufeff"), "twice", "doubled_\u00e4"))
	expect(t, "a rename there", texts["main.py"], strings.ReplaceAll(main, "twice", "doubled_\u00e4"))
	all, err := r.c.OrganizeImports(ctx, r.doc("main.py"))
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("organizeImports %v", all)
	}
	now, err := all[0].Apply(r.doc("main.py").Text)
	must(t, err)
	if !strings.HasPrefix(now, "import os\nimport sys\n") {
		t.Errorf("imports %q", now)
	}
	r.breaks("main.py", 100, func(text string, n int) (string, string) {
		what := fmt.Sprintf("broken%d", n)
		return strings.Replace(text, "len(s)", what, 1), "main.py:4:42: \"" + what + "\" is not defined"
	})
	v, _ := r.edit("shape.py", strings.Replace(shape, "return 2 * n", "return 2 * m", 1))
	expect(t, "the other line ends", found(v), "shape.py:19:15: \"m\" is not defined")
	if v, _ = r.edit("shape.py", shape); found(v) != "" {
		t.Errorf("after the repair: %s", found(v))
	}
}
