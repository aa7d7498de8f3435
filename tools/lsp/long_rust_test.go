package lsp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// rust-analyzer on a crate with a byte order mark, both line ends and characters of two UTF-16 units before names.
func TestRustAnalyzer(t *testing.T) {
	leaktest.OnlyLong(t, "starts rust-analyzer")
	program, err := exec.LookPath("rust-analyzer")
	if err == nil { // rustup has a program of that name also where it is not installed
		err = exec.Command(program, "--version").Run()
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("it needs rust-analyzer: .ci/rust-analyzer DIR")
		}
		t.Skip("it needs rust-analyzer: .ci/rust-analyzer DIR")
	}
	shape := "\ufeffpub trait Shape {\r\n    fn area(&self) -> f64;\r\n}\r\n/// a square, \U0001f600\r\npub struct Square(pub f64);\r\n" +
		"impl Shape for Square {\r\n    fn area(&self) -> f64 { twice(self.0) * self.0 / 2.0 }\r\n}\r\n/* \U0001f600 */ pub fn twice(n: f64) -> f64 { 2.0 * n }\r\n"
	main := "mod shape;\nuse shape::{twice, Shape, Square};\n\nfn total(all: &[Square]) -> f64 {\n    let mut sum = 0.0;\n    for x in all { sum += x.area(); }\n    sum\n}\n\n" +
		"fn main() {\n    let s = \"\U0001f600\U0001f600\"; let a = twice(2.0);\n    println!(\"{} {} {}\", s, a, total(&[Square(1.0)]));\n}\n"
	r := newReal(t, "rust-analyzer", filepath.Dir(program), map[string]string{
		"Cargo.toml": "[package]\nname = \"shapes\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "src/shape.rs": shape, "src/main.rs": main,
	})
	ctx := t.Context()
	doc, at := r.find("src/main.rs", "a = twice")
	got, err := r.c.Definition(ctx, doc, at)
	for errors.Is(err, ErrReading) { // on a slow machine
		got, err = r.c.Definition(ctx, doc, at)
	}
	must(t, err)
	expect(t, "definition", r.shown(got), "src/shape.rs:8:16")
	got, err = r.c.References(ctx, doc, at)
	must(t, err)
	expect(t, "references", r.sorted(got), "src/main.rs:10:28 src/main.rs:1:12 src/shape.rs:6:28 src/shape.rs:8:16")
	text, err := r.c.Hover(ctx, doc, at)
	must(t, err)
	if !strings.Contains(text, "fn twice(n: f64) -> f64") {
		t.Errorf("hover %q", text)
	}
	doc, at = r.find("src/shape.rs", "struct Sq")
	if text, err = r.c.Hover(ctx, doc, at); err != nil || !strings.Contains(text, "a square, \U0001f600") {
		t.Errorf("hover %q %v", text, err)
	}
	doc, at = r.find("src/shape.rs", "trait Sh")
	got, err = r.c.Implementation(ctx, doc, at)
	must(t, err)
	expect(t, "implementation", r.shown(got), "src/shape.rs:5:15")
	symbols, err := r.c.Outline(ctx, doc)
	must(t, err)
	expect(t, "outline", names(symbols), "Shape Square area area impl Shape for Square twice")
	symbols, err = r.c.Symbols(ctx, "total")
	must(t, err)
	expect(t, "symbols", names(symbols), "total")
	doc, at = r.find("src/shape.rs", "pub fn tw")
	callers, err := r.c.Callers(ctx, doc, at)
	must(t, err)
	expect(t, "callers", neighbours(callers), "area main")
	doc, at = r.find("src/main.rs", "fn to")
	callees, err := r.c.Callees(ctx, doc, at)
	must(t, err)
	expect(t, "callees", neighbours(callees), "area")
	texts := r.renamed("src/shape.rs", "pub fn tw", "doubled")
	expect(t, "a rename here", texts["src/shape.rs"], strings.ReplaceAll(strings.TrimPrefix(shape, "\ufeff"), "twice", "doubled"))
	expect(t, "a rename there", texts["src/main.rs"], strings.ReplaceAll(main, "twice", "doubled"))
	r.breaks("src/main.rs", 100, func(text string, n int) (string, string) {
		return strings.Replace(text, "twice(2.0)", fmt.Sprintf("twice(2.0, %d)", n), 1), "expected 1 argument, found 2"
	})
	v, _ := r.edit("src/shape.rs", strings.Replace(shape, "twice(self.0)", "twice()", 1))
	expect(t, "the other line ends", found(v), "shape.rs:6:33: expected 1 argument, found 0")
	if v, _ = r.edit("src/shape.rs", shape); found(v) != "" {
		t.Errorf("after the repair: %s", found(v))
	}
}
