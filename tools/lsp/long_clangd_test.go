package lsp

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// clangd on a project with a byte order mark, both line ends and characters of two UTF-16 units before names: what it
// can do has the place that the text shows, and what it cannot is an error that says so.
func TestClangd(t *testing.T) {
	leaktest.OnlyLong(t, "starts clangd")
	if _, err := exec.LookPath("clangd"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("it needs clangd: apt-get install clangd")
		}
		t.Skip("it needs clangd: install it")
	}
	head := "\ufeff#pragma once\r\n/** a shape, \U0001f600 */\r\nstruct Shape { virtual double area() const = 0; };\r\n" +
		"/* \U0001f600 */ double twice(double n);\r\n"
	square := "#include \"shape.h\"\n\nstruct Square : Shape {\n  double side = 1;\n  double area() const override { return twice(side) * side / 2; }\n};\n\n" +
		"double twice(double n) { return 2 * n; }\n"
	main := "#include \"shape.h\"\n\nconst char *s = \"\U0001f600\U0001f600\"; double a = twice(2);\n\n" +
		"double total(const Shape &x) { return x.area() + twice(1); }\n\nint main() { return int(a); }\n"
	r := newReal(t, "clangd", "", map[string]string{
		"compile_flags.txt": "-std=c++17\n-xc++\n", "shape.h": head, "square.cpp": square, "main.cpp": main,
	})
	ctx := t.Context()
	// Without a compilation database nothing of other files is indexed until they are open.
	for _, name := range []string{"shape.h", "square.cpp", "main.cpp"} {
		problems, err := r.c.Problems(ctx, r.doc(name))
		must(t, err)
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	doc, at := r.find("main.cpp", "a = twice")
	got, err := r.c.Definition(ctx, doc, at)
	must(t, err)
	expect(t, "definition", r.shown(got), "square.cpp:7:7")
	got, err = r.c.References(ctx, doc, at)
	must(t, err)
	expect(t, "references", r.sorted(got), "main.cpp:2:35 main.cpp:4:49 shape.h:3:16 square.cpp:4:40 square.cpp:7:7")
	text, err := r.c.Hover(ctx, doc, at)
	must(t, err)
	if !strings.Contains(text, "double twice(double n)") {
		t.Errorf("hover %q", text)
	}
	doc, at = r.find("shape.h", "struct S")
	if text, err = r.c.Hover(ctx, doc, at); err != nil || !strings.Contains(text, "a shape, \U0001f600") {
		t.Errorf("hover %q %v", text, err)
	}
	doc, at = r.find("shape.h", "virtual double a")
	got, err = r.c.Implementation(ctx, doc, at)
	must(t, err)
	expect(t, "implementation", r.shown(got), "square.cpp:4:9")
	symbols, err := r.c.Outline(ctx, r.doc("square.cpp"))
	must(t, err)
	expect(t, "outline", names(symbols), "Square area side twice")
	symbols, err = r.c.Symbols(ctx, "total")
	must(t, err)
	expect(t, "symbols", names(symbols), "total")
	doc, at = r.find("square.cpp", "double twice(")
	at.Character-- // on the name, and not behind it
	callers, err := r.c.Callers(ctx, doc, at)
	must(t, err)
	if all := neighbours(callers); !strings.Contains(all, "area") || !strings.Contains(all, "total") {
		t.Errorf("callers %s", all)
	}
	if callees, err := r.c.Callees(ctx, doc, at); err == nil && len(callees) > 0 { // clangd has them from 20 on
		t.Errorf("callees %v", callees)
	}
	texts := r.renamed("main.cpp", "a = twice", "doubled")
	for name, was := range map[string]string{"shape.h": strings.TrimPrefix(head, "\ufeff"), "square.cpp": square, "main.cpp": main} {
		expect(t, "a rename in "+name, texts[name], strings.ReplaceAll(was, "twice", "doubled"))
	}
	if all, err := r.c.OrganizeImports(ctx, r.doc("main.cpp")); err == nil && len(all) > 0 { // it offers nothing like it
		t.Errorf("organizeImports %v", all)
	}
	r.breaks("main.cpp", 100, func(text string, n int) (string, string) {
		what := fmt.Sprintf("broken%d", n)
		return strings.Replace(text, "int(a)", what, 1), "undeclared identifier '" + what + "'"
	})
	v, _ := r.edit("shape.h", strings.Replace(head, "double n);", "wrong n);", 1))
	if got := found(v); !strings.Contains(got, "shape.h:3:22: ") || !strings.Contains(got, "'wrong'") {
		t.Errorf("the other line ends: %q", got)
	}
	if v, _ = r.edit("shape.h", head); found(v) != "" {
		t.Errorf("after the repair: %s", found(v))
	}
}
