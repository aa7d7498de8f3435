package notebook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// difference is what changed between two files: the lines from the first to the last that differ, and one around them.
func difference(before, after string) string {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out strings.Builder
	write := func(sign string, lines []string) {
		for _, line := range lines {
			text, found := strings.CutSuffix(line, "\n")
			if out.WriteString(sign + text + "\n"); !found {
				out.WriteString("(no newline)\n")
			}
		}
	}
	write(" ", a[max(head-1, 0):head])
	write("-", a[head:len(a)-tail])
	write("+", b[head:len(b)-tail])
	write(" ", a[len(a)-tail:min(len(a), len(a)-tail+1)])
	return out.String()
}

// One file per notebook shows what each edit changes in it: the lines of one cell and no other.
func TestApplyNotebooks(t *testing.T) {
	t.Parallel()
	for name, content := range notebooks(t) {
		nb, err := Parse(content)
		if err != nil {
			t.Fatal(err)
		}
		last := nb.Cells[len(nb.Cells)-1].ID
		edits := []CellEdit{
			{Mode: Insert, Type: "code", Source: "first\n\nfirst()"},
			{Mode: Insert, Cell: nb.Cells[0].ID, Type: "markdown", Source: "# é \"q\" \\ <b>\t\u2028😀\n"},
			{Mode: Insert, Cell: last, Type: "raw"},
			{Mode: Replace, Cell: fmt.Sprintf("cell-%d", len(nb.Cells)), Source: "end"},
			{Mode: Delete, Cell: nb.Cells[0].ID},
			{Mode: Delete, Cell: last},
		}
		for _, c := range nb.Cells {
			edits = append(edits, CellEdit{Cell: c.ID, Source: "new\nlines\n"})
			for _, kind := range []string{"code", "markdown"} {
				if c.Type != kind {
					edits = append(edits, CellEdit{Cell: c.ID, Type: kind, Source: "changed"})
				}
			}
		}
		var out strings.Builder
		for _, e := range edits {
			e.Random = 0xc0ffee
			result, r, err := Apply(content, e)
			if err != nil {
				t.Errorf("%s, %+v: %v", name, e, err)
				continue
			}
			mode := []string{"replace", "insert", "delete"}
			fmt.Fprintf(&out, "# %s %q %s: %s %d %s (%s)", mode[e.Mode], e.Cell, e.Type, mode[r.Mode], r.Index, r.ID, r.Type)
			if r.After != "" {
				fmt.Fprintf(&out, " after %s", r.After)
			}
			if r.Dropped != nil {
				fmt.Fprintf(&out, " without %s", strings.Join(r.Dropped, ", "))
			}
			fmt.Fprintf(&out, "\n%s\n", difference(string(content), string(result)))
		}
		golden(t, name+".edits.txt", out.String())
	}
}

// variants spell a notebook in other ways: the same edit changes the same cell in each, in its own spelling.
var variants = []struct {
	name  string
	spell func(string) string
}{
	{"CRLF", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
	{"BOM", func(s string) string { return "\xef\xbb\xbf" + s }},
	{"no final newline", func(s string) string { return strings.TrimRight(s, "\n") }},
	{"blank lines around it", func(s string) string { return "\n\n" + s + "\n \n" }},
	{"tabs", func(s string) string {
		lines := strings.SplitAfter(s, "\n")
		for i, line := range lines {
			text := strings.TrimLeft(line, " ")
			lines[i] = strings.Repeat("\t", len(line)-len(text)) + text
		}
		return strings.Join(lines, "")
	}},
}

func TestApplyKeepsSpelling(t *testing.T) {
	t.Parallel()
	content := string(notebooks(t)["jupyter45"])
	for _, v := range variants {
		for _, e := range []CellEdit{
			{Cell: "0b6d9c34", Source: "a\nb"},
			{Cell: "0b6d9c34", Type: "markdown", Source: "a\nb"},
			{Cell: "8f1c2a7e", Type: "code", Source: "a\nb"},
			{Cell: "ffffffff", Source: "a\nb"},
			{Mode: Insert, Type: "code", Source: "a\nb"},
			{Mode: Insert, Cell: "map", Type: "markdown", Source: "a\nb"},
			{Mode: Delete, Cell: "8f1c2a7e"},
			{Mode: Delete, Cell: "ffffffff"},
		} {
			plain, _, err := Apply([]byte(content), e)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := Apply([]byte(v.spell(content)), e)
			if want := v.spell(string(plain)); err != nil || string(got) != want {
				t.Errorf("%s, %+v: %v\n%s", v.name, e, err, difference(want, string(got)))
			}
		}
	}
}

// A file that Jupyter wrote has the same bytes after a cell is replaced by what it says already.
func TestApplySameSource(t *testing.T) {
	t.Parallel()
	for name, content := range notebooks(t) {
		nb, err := Parse(content)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range nb.Cells {
			outputs, _ := c.Outputs()
			if c.Count > 0 || outputs != nil || slices.Contains([]string{"one string", "torch.ones(1)", "select 1", "## Lone half: \ufffd."}, c.Source()) {
				continue // these are not stored as lines, or cannot be said
			}
			got, _, err := Apply(content, CellEdit{Cell: c.ID, Source: c.Source()})
			if err != nil || string(got) != string(content) {
				t.Errorf("%s, cell %d: %v\n%s", name, i, err, difference(string(content), string(got)))
			}
		}
	}
}

func TestApplySmall(t *testing.T) {
	t.Parallel()
	const v4, v45 = `"nbformat":4,"nbformat_minor":4`, `"nbformat":4,"nbformat_minor":5`
	insert := CellEdit{Mode: Insert, Type: "markdown", Source: "x"}
	for _, c := range []struct {
		name, content string
		edit          CellEdit
		want          string
	}{
		{"no cells", `{"cells":[],` + v4 + `}`, insert, `{"cells":[{"cell_type":"markdown","metadata":{},"source":["x"]}],` + v4 + `}`},
		{"no cells, a blank", `{"cells": [ ], ` + v4 + `}`, insert, `{"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["x"]}], ` + v4 + `}`},
		{"no cells, replace the next", `{"cells":[],` + v4 + `}`, CellEdit{Cell: "cell-0"},
			`{"cells":[{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":[]}],` + v4 + `}`},
		{"no cells, indent 2", "{\n  \"cells\": [],\n  " + v4 + "\n}\n", insert,
			"{\n  \"cells\": [\n    {\n      \"cell_type\": \"markdown\",\n      \"metadata\": {},\n      \"source\": [\n        \"x\"\n      ]\n    }\n  ],\n  " + v4 + "\n}\n"},
		{"no cells on two lines, CRLF", "{\r\n\t" + v4 + ",\r\n\t\"cells\" : [\r\n\t]\r\n}", insert,
			"{\r\n\t" + v4 + ",\r\n\t\"cells\" : [\r\n\t\t{\r\n\t\t\t\"cell_type\":\"markdown\",\r\n\t\t\t\"metadata\":{},\r\n\t\t\t\"source\":[\r\n\t\t\t\t\"x\"\r\n\t\t\t]\r\n\t\t}\r\n\t]\r\n}"},
		{"indent 0", "{\n\"cells\": [\n{\n\"source\": []\n}\n],\n" + v4 + "\n}", CellEdit{Cell: "cell-0", Source: "a\nb"},
			"{\n\"cells\": [\n{\n\"source\": [\n\"a\\n\",\n\"b\"\n]\n}\n],\n" + v4 + "\n}"},
		{"the only cell goes", "{\"cells\":[ {}\n]," + v4 + "}", CellEdit{Mode: Delete, Cell: "cell-0"}, `{"cells":[],` + v4 + `}`},
		{"the first goes", `{"cells":[ {"id":"a"} , {"id":"b"}],` + v4 + `}`, CellEdit{Mode: Delete, Cell: "a"}, `{"cells":[ {"id":"b"}],` + v4 + `}`},
		{"the last goes", `{"cells":[ {"id":"a"} , {"id":"b"} ],` + v4 + `}`, CellEdit{Mode: Delete, Cell: "b"}, `{"cells":[ {"id":"a"} ],` + v4 + `}`},
		{"one in the middle goes", `{"cells":[{"id":"a"} ,{},  {"id":"b"}],` + v4 + `}`, CellEdit{Mode: Delete, Cell: "cell-1"}, `{"cells":[{"id":"a"},  {"id":"b"}],` + v4 + `}`},
		{"comma first", "{\"cells\":[\n {\"id\":\"a\"}\n ,{\"id\":\"b\"}\n]," + v4 + "}", CellEdit{Mode: Insert, Cell: "a", Type: "raw"},
			"{\"cells\":[\n {\"id\":\"a\"}\n ,{\"cell_type\":\"raw\",\"metadata\":{},\"source\":[]}\n ,{\"id\":\"b\"}\n]," + v4 + "}"},
		{"an empty cell", `{"cells":[{}],` + v45 + `}`, CellEdit{Cell: "cell-0", Source: "x"}, `{"cells":[{"source":["x"]}],` + v45 + `}`},
		{"an empty cell gets a type", `{"cells":[{}],` + v45 + `}`, CellEdit{Cell: "cell-0", Type: "code", Source: "x"},
			`{"cells":[{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":["x"]}],` + v45 + `}`},
		{"an id", `{"cells":[],` + v45 + `}`, CellEdit{Mode: Insert, Type: "raw", Random: 0xab}, `{"cells":[{"cell_type":"raw","id":"000000ab","metadata":{},"source":[]}],` + v45 + `}`},
		{"an id that is taken", `{"cells":[{"id":"ffffffff"}],` + v45 + `}`, CellEdit{Mode: Insert, Type: "raw", Random: 1<<32 - 1},
			`{"cells":[{"cell_type":"raw","id":"00000000","metadata":{},"source":[]},{"id":"ffffffff"}],` + v45 + `}`},
		{"order of keys of a neighbour", `{"cells":[{"id":"a","source":"","metadata":{},"cell_type":"raw","x":1}],` + v45 + `}`, CellEdit{Mode: Insert, Cell: "a", Type: "raw"},
			`{"cells":[{"id":"a","source":"","metadata":{},"cell_type":"raw","x":1},{"id":"00000000","source":[],"metadata":{},"cell_type":"raw"}],` + v45 + `}`},
		{"keys of ours stay", `{"cells":[{"x":[ 1 ],"cell_type":"code","outputs":[{}],"execution_count":3,"source":"a" , "y":"\u00e9\/"}],` + v4 + `}`,
			CellEdit{Cell: "cell-0", Source: "b"},
			`{"cells":[{"x":[ 1 ],"cell_type":"code","outputs":[],"execution_count":null,"source":["b"] , "y":"\u00e9\/"}],` + v4 + `}`},
		{"empty outputs keep their spelling", `{"cells":[{"cell_type":"code","outputs":[ ],"execution_count":null,"source":[]}],` + v4 + `}`, CellEdit{Cell: "cell-0"},
			`{"cells":[{"cell_type":"code","outputs":[ ],"execution_count":null,"source":[]}],` + v4 + `}`},
		{"keys twice", `{"cells":[{"cell_type":"raw","source":"a","cell_type":"code","source":"b","outputs":[1],"outputs":[2]}],` + v4 + `}`,
			CellEdit{Cell: "cell-0", Source: "c"},
			`{"cells":[{"cell_type":"raw","source":"a","cell_type":"code","source":["c"],"outputs":[],"outputs":[]}],` + v4 + `}`},
		{"keys twice go", `{"cells":[{"outputs":[1],"cell_type":"code","source":"b","outputs":[2]}],` + v4 + `}`, CellEdit{Cell: "cell-0", Type: "markdown", Source: "c"},
			`{"cells":[{"cell_type":"markdown","metadata":{},"source":["c"]}],` + v4 + `}`},
		{"keys with escapes", `{"c\u0065lls":[{"\u0073ource":"a","cell_type":"code","output\u0073":[1]}],` + v4 + `}`, CellEdit{Cell: "cell-0", Source: "b"},
			`{"c\u0065lls":[{"\u0073ource":["b"],"cell_type":"code","output\u0073":[]}],` + v4 + `}`},
		{"another type", `{"cells":[{"cell_type":"sql","outputs":[1],"source":"a"}],` + v4 + `}`, CellEdit{Cell: "cell-0", Source: "b"},
			`{"cells":[{"cell_type":"sql","outputs":[1],"source":["b"]}],` + v4 + `}`},
		{"only escapes", `{"cells":[{"source":"\u00e9"}],` + v4 + `}`, CellEdit{Cell: "cell-0", Source: "é\u007f😀\u0001"},
			`{"cells":[{"source":["\u00e9` + "\u007f" + `\ud83d\ude00\u0001"]}],` + v4 + `}`},
		{"escapes and others", `{"cells":[{"source":"\u00e9","x":"é"}],` + v4 + `}`, CellEdit{Cell: "cell-0", Source: "é\r\n\r\xff"},
			`{"cells":[{"source":["é\r\n","\r` + "\ufffd" + `"],"x":"é"}],` + v4 + `}`},
		{"bytes that are not UTF-8", "{\"cells\":[{\"\xff\":\"\xe9\\ud800\",\"source\":\"\xff\"},{\"source\":\"\xff\"}]," + v4 + "}", CellEdit{Cell: "cell-0", Source: "a"},
			"{\"cells\":[{\"\xff\":\"\xe9\\ud800\",\"source\":[\"a\"]},{\"source\":\"\xff\"}]," + v4 + "}"},
		{"a list on one line", "{\n \"cells\": [\n  {\n   \"source\": [ \"a\" ]\n  }\n ],\n " + v4 + "\n}", CellEdit{Cell: "cell-0", Source: "a\nb"},
			"{\n \"cells\": [\n  {\n   \"source\": [ \"a\\n\", \"b\" ]\n  }\n ],\n " + v4 + "\n}"},
		{"on one line beside others", "{\n \"cells\": [\n  {\n   \"source\": [\n    \"a\"\n   ]\n  },\n  {\"source\":[]}\n ],\n " + v4 + "\n}", CellEdit{Cell: "cell-1", Source: "a\nb"},
			"{\n \"cells\": [\n  {\n   \"source\": [\n    \"a\"\n   ]\n  },\n  {\"source\":[\"a\\n\", \"b\"]}\n ],\n " + v4 + "\n}"},
	} {
		got, _, err := Apply([]byte(c.content), c.edit)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
}

// White space of the file that is repeated with every line must not be a way to fill the memory.
func TestApplyLongGaps(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat(" ", 1<<17)
	for _, content := range []string{
		`{"nbformat":4,"cells":[{"source":[` + wide + `"a"` + wide + `,` + wide + `"b"` + wide + `]}]}`,
		"{\"nbformat\":4,\"cells\":[{\n" + wide + "\"source\":[]\n" + wide + "}]}",
		"{" + wide + "\"nbformat\":4" + wide + "," + wide + "\"cells\"" + wide + ":" + wide + "[" + wide + "]}",
		"{\"nbformat\":4,\"cells\":[" + wide + "{" + wide + "}" + wide + "]}",
		"{\n" + wide + "\"nbformat\":4,\"cells\":[]}",
	} {
		for _, e := range []CellEdit{
			{Cell: "cell-0", Source: strings.Repeat("x\n", 1000)},
			{Mode: Insert, Type: "code", Source: strings.Repeat("x\n", 1000)},
		} {
			got, _, err := Apply([]byte(content), e)
			if grown := len(got) - len(content); err != nil || grown > 1000*(2*maxGap+8)+1000 {
				t.Errorf("%.40q, mode %d: grown by %d bytes, %v", content, e.Mode, grown, err)
			}
			if _, err := Parse(got); err != nil {
				t.Errorf("%.40q, mode %d: %v", content, e.Mode, err)
			}
		}
	}
}

func TestApplyErrors(t *testing.T) {
	t.Parallel()
	native := one(`{"id":"a1"},{},{"id":"cell-7"}`)
	for _, c := range []struct {
		content string
		edit    CellEdit
		want    error
	}{
		{native, CellEdit{Cell: "b2"}, &NotFoundError{Cell: "b2", IDs: []string{"a1", "cell-1", "cell-7"}, Native: true}},
		{native, CellEdit{Cell: "cell-4"}, &NotFoundError{Cell: "cell-4", IDs: []string{"a1", "cell-1", "cell-7"}, Native: true}},
		{one("{},{}"), CellEdit{}, &NotFoundError{IDs: []string{"cell-0", "cell-1"}}},
		{one("{}"), CellEdit{Cell: "cell-1", Mode: Delete}, &NotFoundError{Cell: "cell-1", IDs: []string{"cell-0"}}},
		{one("{}"), CellEdit{Cell: "cell-1", Mode: Insert, Type: "code"}, &NotFoundError{Cell: "cell-1", IDs: []string{"cell-0"}}},
		{one("{}"), CellEdit{Cell: "cell--0"}, &NotFoundError{Cell: "cell--0", IDs: []string{"cell-0"}}},
		{one("{}"), CellEdit{Cell: "cell-+0"}, &NotFoundError{Cell: "cell-+0", IDs: []string{"cell-0"}}},
		{one("{}"), CellEdit{Cell: "cell-"}, &NotFoundError{Cell: "cell-", IDs: []string{"cell-0"}}},
		{one("{}"), CellEdit{Cell: "cell-99999999999999999999"}, &NotFoundError{Cell: "cell-99999999999999999999", IDs: []string{"cell-0"}}},
		{one(""), CellEdit{Cell: "", Mode: Delete}, &NotFoundError{}},
		{one("{}"), CellEdit{Mode: Insert}, ErrType},
		{one("{}"), CellEdit{Cell: "cell-0", Type: "heading"}, ErrType},
		{one("{}"), CellEdit{Cell: "cell-0", Mode: 3}, errors.New("no such mode: 3")},
		{one("{" + strings.Repeat(`"x":0,`, maxKeys) + `"y":0}`), CellEdit{Cell: "cell-0"}, &InvalidError{Line: 1, Column: 6044, Reason: "a cell has more than 1,000 keys"}},
	} {
		got, r, err := Apply([]byte(c.content), c.edit)
		if got != nil || fmt.Sprintf("%#v", r) != fmt.Sprintf("%#v", Report{}) || fmt.Sprintf("%T %+v", err, err) != fmt.Sprintf("%T %+v", c.want, c.want) {
			t.Errorf("%.60s, %+v: got %v, %v; want %v", c.content, c.edit, r, err, c.want)
		}
		want, _ := errors.AsType[*NotFoundError](c.want)
		if missing, ok := errors.AsType[*NotFoundError](err); ok && fmt.Sprintf("%#v", *missing) != fmt.Sprintf("%#v", *want) {
			t.Errorf("%.60s, %+v: got %#v, want %#v", c.content, c.edit, missing, want)
		}
	}
}
