package notebook

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// notebooks are the files of testdata, by name.
func notebooks(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.ipynb")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no notebooks in testdata: %v", err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".ipynb")] = content
	}
	return files
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	want, err := os.ReadFile(path)
	if *update || err != nil && os.Getenv("CI") == "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./tools/notebook -update rewrites it); got:\n%s", path, got)
	}
}

// show writes a notebook down, one line per thing.
func show(nb Notebook) string {
	var b strings.Builder
	fmt.Fprintf(&b, "nbformat %d.%d\n", nb.Major, nb.Minor)
	for _, c := range nb.Cells {
		fmt.Fprintf(&b, "\n%s: %s %s [%d]\n%s\n", c.Path, c.ID, c.Type, c.Count, c.Source())
		outputs, cut := c.Outputs()
		for _, out := range outputs {
			fmt.Fprintf(&b, "  -> %s %q", out.MIME, out.Text)
			if image, _ := out.Image(); image != nil {
				fmt.Fprintf(&b, " %d bytes: %q", len(image), image[:min(8, len(image))])
			}
			b.WriteString("\n")
		}
		if cut {
			b.WriteString("  -> cut\n")
		}
	}
	return b.String()
}

func TestParseNotebooks(t *testing.T) {
	t.Parallel()
	for name, content := range notebooks(t) {
		nb, err := Parse(content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name+".shown.txt", show(nb))
		after := 0
		for _, c := range nb.Cells {
			from, to := c.Span()
			if from < after || content[from] != '{' || content[to-1] != '}' {
				t.Errorf("%s: the span [%d,%d) of cell %s is no object behind the one before", name, from, to, c.ID)
			}
			after = to
		}
	}
}

// one is a notebook of one cell.
func one(cell string) string { return `{"nbformat":4,"nbformat_minor":5,"cells":[` + cell + `]}` }

func TestParseSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cell, want string }{
		{`{"source":"a\nb"}`, "a\nb"},
		{`{"source":["a\n","b"]}`, "a\nb"},
		{`{"source":["a\n",1,null,["x"],"b"]}`, "a\nb"},
		{`{"source":[]}`, ""},
		{`{"source":null}`, ""},
		{`{"source":1.5e3}`, ""},
		{`{}`, ""},
		{`{"source":"first","source":"last"}`, "last"},
		{`{"s\u006furce":"\u0061\/\b\f\r\t\"\\"}`, "a/\b\f\r\t\"\\"},
		{`{"source":"\ud83d\ude00 \ud83d x \ude00 \ud83d\u0041 \uD83D\ud83d\ude00"}`, "😀 \ufffd x \ufffd \ufffdA \ufffd😀"},
		{"{\"source\":\"\xff\xe9a\xe2\x82\"}", "\ufffd\ufffda\ufffd\ufffd"},
		{`{"input":"not of this format"}`, ""},
	} {
		nb, err := Parse([]byte(one(c.cell)))
		if err != nil {
			t.Errorf("%s: %v", c.cell, err)
			continue
		}
		if got := nb.Cells[0].Source(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.cell, got, c.want)
		}
	}
}

// Every cell has a name that finds it and no other.
func TestParseNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cells, want string }{
		{`{},{}`, "cell-0 cell-1"},
		{`{"id":"a"},{},{"id":"b"}`, "a cell-1 b"},
		{`{"id":"a"},{"id":"a"},{"id":"a"}`, "a cell-1 cell-2"},
		{`{"id":"cell-1"},{},{"id":"cell-01"}`, "cell-1 cell-001 cell-01"},
		{`{"id":"cell-1"},{"id":"cell-0"}`, "cell-1 cell-0"},
		{`{"id":""},{"id":7},{"id":null},{"id":["x"]}`, "cell-0 cell-1 cell-2 cell-3"},
		{`{"id":"a b"},{"id":"\"><x"},{"id":"a\nb"},{"id":"\u202ea"},{"id":"é-日"}`, "cell-0 cell-1 cell-2 cell-3 é-日"},
		{`{"id":"` + strings.Repeat("x", 64) + `"},{"id":"` + strings.Repeat("x", 65) + `"}`, strings.Repeat("x", 64) + " cell-1"},
		{`{"id":"first","id":"last"}`, "last"},
	} {
		nb, err := Parse([]byte(one(c.cells)))
		if err != nil {
			t.Errorf("%s: %v", c.cells, err)
			continue
		}
		var names []string
		for i, cell := range nb.Cells {
			names = append(names, cell.ID)
			_, r, err := Apply([]byte(one(c.cells)), CellEdit{Mode: Delete, Cell: cell.ID})
			if err != nil || r.Index != i {
				t.Errorf("%s: %s finds cell %d, %v; want %d", c.cells, cell.ID, r.Index, err, i)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.cells, got, c.want)
		}
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	stream := func(text string) string { return `{"output_type":"stream","text":"` + text + `"}` }
	gif := base64.StdEncoding.EncodeToString([]byte("GIF89a.."))
	for _, c := range []struct{ name, outputs, want string }{
		{"none", ``, ``},
		{"no text", `{"output_type":"stream"},{"output_type":"stream","text":[]},{"text":"x"},{"output_type":"odd","text":"x"},3`, ``},
		{"colors", stream(`\u001b[1;31ma\u001b[0m\u001b]0;title\u0007b\u001b]8;;http://x\u001b\\c\u001b(Bd\u001b=e\u001b`), `text/plain "abcde"`},
		{"half a sequence", stream(`a\u001b[12`) + `,` + stream(`b\u001b[1\nc`), `text/plain "a" text/plain "b\nc"`},
		{"traceback", `{"output_type":"error","ename":"E","evalue":"v","traceback":["\u001b[31mone\u001b[39m","two"]}`, `text/plain "one\ntwo"`},
		{"no traceback", `{"output_type":"error","ename":"E","evalue":"\u001b[31mv","traceback":[]}`, `text/plain "E: v"`},
		{"image first in the file", `{"output_type":"display_data","data":{"image/gif":"` + gif + `","text/plain":"a gif"}}`, `text/plain "a gif" image/gif "GIF89a.."`},
		{"broken lines", `{"output_type":"execute_result","data":{"image/gif":["R0lG\n","ODlh\r\n  ","Li4="]}}`, `image/gif "GIF89a.."`},
		{"one image", `{"output_type":"display_data","data":{"image/jpeg":"AAAA","image/png":"AAEC"}}`, `image/png "\x00\x01\x02"`},
		{"no base64", `{"output_type":"display_data","data":{"image/png":"***"}}`, `image/png`},
		{"markdown", `{"output_type":"display_data","data":{"text/html":"<b>","text/markdown":["**b**"]}}`, `text/markdown "**b**"`},
		{"html beside an image", `{"output_type":"display_data","data":{"text/html":"<img>","image/png":"AAEC"}}`, `image/png "\x00\x01\x02"`},
		{"neither", `{"output_type":"display_data","data":{"application/json":{"a":1},"image/svg+xml":"<svg/>"}}`, `application/json`},
		{"empty text", `{"output_type":"display_data","data":{"text/plain":""}}`, ``},
	} {
		nb, err := Parse([]byte(one(`{"cell_type":"code","outputs":[` + c.outputs + `]}`)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		outputs, cut := nb.Cells[0].Outputs()
		var got []string
		for _, out := range outputs {
			got = append(got, out.MIME)
			image, _ := out.Image()
			if data := out.Text + string(image); data != "" {
				got = append(got, fmt.Sprintf("%q", data))
			}
		}
		if text := strings.Join(got, " "); text != c.want || cut {
			t.Errorf("%s: got %s, cut %v; want %s", c.name, text, cut, c.want)
		}
	}
}

func TestOutputsAreCut(t *testing.T) {
	t.Parallel()
	stream := func(n int, text string) string {
		return `{"output_type":"stream","text":"` + strings.Repeat(text, n) + `"}`
	}
	image := `{"output_type":"display_data","data":{"image/png":"AAEC"}}`
	for _, c := range []struct {
		name, outputs string
		runes, count  int
		cut           bool
	}{
		{"all", stream(10_000, "日"), 10_000, 1, false},
		{"one more", stream(10_001, "日"), 10_000, 1, true},
		{"together", stream(9_999, "a") + "," + stream(3, "é"), 10_000, 2, true},
		{"characters and not bytes", stream(5_000, "日") + "," + stream(5_000, "é"), 10_000, 2, false},
		{"colors do not count", stream(10_000, `\u001b[31ma`), 10_000, 1, false},
		{"an image after much text", stream(20_000, "a") + "," + stream(1, "b") + "," + image, 10_000, 2, true},
		{"a text that is large", stream(3_000_000, "a"), 10_000, 1, true},
		{"a text that is all colors", stream(300_000, `\u001b[31m`), 0, 0, true},
		{"100 images", strings.Repeat(image+",", 99) + image, 0, 100, false},
		{"101 images", strings.Repeat(image+",", 100) + image, 0, 100, true},
	} {
		nb, err := Parse([]byte(one(`{"cell_type":"code","outputs":[` + c.outputs + `]}`)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		outputs, cut := nb.Cells[0].Outputs()
		runes := 0
		for _, out := range outputs {
			runes += len([]rune(out.Text))
		}
		if runes != c.runes || len(outputs) != c.count || cut != c.cut {
			t.Errorf("%s: got %d characters in %d outputs, cut %v; want %d, %d, %v", c.name, runes, len(outputs), cut, c.runes, c.count, c.cut)
		}
	}
}

func TestParseInvalid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ content, want string }{
		{"", "1:1: the file ends where a value must be"},
		{" \n ", "2:2: the file ends where a value must be"},
		{"\xef\xbb\xbf", "1:1: the file ends where a value must be"},
		{"\xef\xbb\xbfx", "1:1: a value must be here"},
		{"\xff\xfe{\x00}\x00", "1:1: a value must be here"},
		{"{\x00}", "1:2: a key in double quotes must be here"},
		{"{}\x00", "1:3: the end of the file must be here"},
		{"{} {}", "1:4: the end of the file must be here"},
		{"{\n \"é日\": 1\n \"b\": 2}", "3:2: a comma or } must be here"},
		{"{\r\n \"a\": [1 2]}", "2:10: a comma or ] must be here"},
		{`{"é": tru}`, "1:7: a value must be here"},
		{`{"a": 1,}`, "1:9: a key in double quotes must be here"},
		{`{"a": [1,]}`, "1:10: a value must be here"},
		{`{"a": [1}`, "1:9: a comma or ] must be here"},
		{`{"a" 1}`, "1:6: a colon must be here"},
		{`{'a': 1}`, "1:2: a key in double quotes must be here"},
		{`{"a": "b`, "1:7: a string begins here and does not end"},
		{"{\"a\": \"b\n\"}", "1:9: a control character must be escaped in a string"},
		{`{"a": "\x41"}`, "1:8: JSON has no such escape"},
		{`{"a": "\u12g4"}`, "1:8: JSON has no such escape"},
		{`{"a": 012}`, "1:7: a number must not begin with 0"},
		{`{"a": 1.}`, "1:9: a digit must be here"},
		{`{"a": 1e+}`, "1:10: a digit must be here"},
		{`{"a": -}`, "1:7: a value must be here"},
		{`{"a": -Inf}`, "1:8: a value must be here"},
		{`{"a": [[[`, "1:10: the file ends where a value must be"},
		{`{"cells": [`, "1:12: the file ends where a value must be"},
		{`[]`, "1:1: a notebook is an object"},
		{`"x"`, "1:1: a notebook is an object"},
		{`{"cells": []}`, "1:1: the notebook has no nbformat"},
		{`{"nbformat": 2, "cells": []}`, "1:14: nbformat must be 3 or 4"},
		{`{"nbformat": 5, "cells": []}`, "1:14: nbformat must be 3 or 4"},
		{`{"nbformat": "4", "cells": []}`, "1:14: nbformat must be 3 or 4"},
		{`{"nbformat": 4.5, "cells": []}`, "1:14: nbformat must be 3 or 4"},
		{`{"nbformat": NaN, "cells": []}`, "1:14: nbformat must be 3 or 4"},
		{`{"nbformat": 4, "nbformat_minor": -1, "cells": []}`, "1:35: nbformat_minor must be a number"},
		{`{"nbformat": 4}`, "1:1: a list of cells is missing"},
		{`{"nbformat": 4, "cells": {}}`, "1:1: a list of cells is missing"},
		{`{"nbformat": 4, "cells": [], "cells": null}`, "1:1: a list of cells is missing"},
		{`{"nbformat": 4, "Cells": []}`, "1:1: a list of cells is missing"},
		{"{\"nbformat\": 4, \"cells\": [{},\n 3]}", "2:2: a cell is an object"},
		{`{"nbformat": 3, "cells": []}`, "1:1: a notebook of nbformat 3 has a list of worksheets"},
		{`{"nbformat": 3, "worksheets": []}`, "1:31: the notebook has no worksheet"},
		{`{"nbformat": 3, "worksheets": [1]}`, "1:32: a worksheet is an object"},
		{`{"nbformat": 3, "worksheets": [{}]}`, "1:32: a list of cells is missing"},
		{one(strings.Repeat("{},", maxCells) + "{}"), "1:300043: the notebook has more than 100,000 cells"},
	} {
		_, err := Parse([]byte(c.content))
		invalid, ok := errors.AsType[*InvalidError](err)
		if !ok || invalid.Error() != c.want {
			t.Errorf("%.80q: got %v, want %s", c.content, err, c.want)
		}
		if _, _, other := Apply([]byte(c.content), CellEdit{Mode: Delete, Cell: "cell-0"}); fmt.Sprint(other) != fmt.Sprint(err) {
			t.Errorf("%.80q: Apply says %v, Parse %v", c.content, other, err)
		}
	}
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		"\xef\xbb\xbf \t\r\n{\"nbformat\": 4, \"cells\": []}\r\n\t ",
		`{"nbformat":4.0,"nbformat_minor":5e0,"cells":[ ]}`,
		`{"nbf\u006frmat":4,"c\u0065lls":[]}`,
		`{"nbformat":3,"nbformat":4,"cells":3,"cells":[]}`,
		`{"nbformat":4,"cells":[],"x":[NaN,-Infinity,Infinity,-0,-0.0e-1,1E+2,true,false,null,"",{},[]]}`,
		"{\"nbformat\":4,\"cells\":[],\"\xff\x7f\":\"\xff\\ud800\"}",
	} {
		if nb, err := Parse([]byte(content)); err != nil || nb.Major != 4 || len(nb.Cells) != 0 {
			t.Errorf("%q: got %#v, %v", content, nb, err)
		}
	}
}

// Where the source and the outputs are, for those who must know which bytes were shown. Of two the last counts, as in Source.
func TestRanges(t *testing.T) {
	t.Parallel()
	for content, want := range map[string][2]string{
		`{"nbformat":4,"cells":[{"outputs":[1],"source":["a"]}]}`:                                              {`["a"]`, `[1]`},
		`{"nbformat":4,"cells":[{"source":"a","outputs":[1],"s\u006furce":"b","outputs":[2]}]}`:                {`"b"`, `[2]`},
		`{"nbformat":4,"cells":[{"cell_type":"raw"}]}`:                                                         {`{`, ``},
		`{"nbformat":3,"worksheets":[{"cells":[{"cell_type":"code","source":"a","input":"b","outputs":[]}]}]}`: {`"b"`, `[]`},
		`{"nbformat":3,"worksheets":[{"cells":[{"cell_type":"markdown","source":"a","input":"b"}]}]}`:          {`"a"`, ``},
	} {
		nb, err := Parse([]byte(content))
		if err != nil {
			t.Fatal(err)
		}
		source, outputs := nb.Cells[0].SourceRange(), nb.Cells[0].OutputsRange()
		if got := [2]string{content[source.From:source.To], content[outputs.From:outputs.To]}; got != want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
		for _, mode := range []Mode{Replace, Delete, Insert} {
			_, r, err := Apply([]byte(content), CellEdit{Mode: mode, Cell: "cell-0", Type: "markdown"})
			if wanted := map[bool]Range{true: {}, false: source}[mode == Insert]; err != nil || r.Source != wanted {
				t.Errorf("%s, mode %d: %v, %v, want %v", content, mode, r.Source, err, wanted)
			}
		}
	}
}
