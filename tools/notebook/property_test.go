package notebook

import (
	"flag"
	"fmt"
	"hash/crc64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var seed = flag.Uint64("seed", 0, "repeat the random tests with this seed")

// source is random, and prints how to have the same again.
func source(t *testing.T) *rand.Rand {
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("-seed %d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// A writer writes random notebooks, each with white space of its own kind.
type writer struct {
	*rand.Rand
	blanks []string
}

func (w writer) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w writer) blank() string { return w.pick(w.blanks...) }

// list writes entries between brackets.
func (w writer) list(open, end string, entries []string) string {
	for i := range entries {
		entries[i] = w.blank() + entries[i] + w.blank()
	}
	if len(entries) == 0 {
		return open + w.blank() + end
	}
	return open + strings.Join(entries, ",") + end
}

func (w writer) member(key, value string) string {
	if w.IntN(20) == 0 {
		key = fmt.Sprintf(`\u%04x`, key[0]) + key[1:]
	}
	return `"` + key + `"` + w.blank() + ":" + w.blank() + value
}

func (w writer) text() string {
	var b strings.Builder
	for range w.IntN(5) {
		b.WriteString(w.pick("a", " ", `\n`, `\r\n`, `\"`, `\\`, `\/`, "é", "日", `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00`, "\xff", `\u001b[31m`, "{", "]", ",", ":"))
	}
	return `"` + b.String() + `"`
}

func (w writer) texts() string {
	if w.IntN(3) == 0 {
		return w.text()
	}
	var all []string
	for range w.IntN(4) {
		all = append(all, w.text())
	}
	return w.list("[", "]", all)
}

func (w writer) output() string {
	switch w.IntN(4) {
	case 0:
		return w.list("{", "}", []string{w.member("output_type", `"stream"`), w.member("text", w.texts())})
	case 1:
		return w.list("{", "}", []string{w.member("traceback", w.texts()), w.member("output_type", `"error"`), w.member("ename", w.text())})
	case 2:
		data := w.list("{", "}", []string{w.member("image/png", w.pick(`"AAEC"`, `["AA\n","EC\n"]`, `"*"`)), w.member("text/plain", w.texts())})
		return w.list("{", "}", []string{w.member("data", data), w.member("output_type", w.pick(`"display_data"`, `"execute_result"`))})
	}
	return w.pick("{}", "1", "null", `{"output_type":"pyout","text":"x"}`, `{"output_type":"stream"}`)
}

func (w writer) cell() string {
	var members []string
	add := func(often int, key, value string) {
		for range 2 { // rarely twice
			if w.IntN(100) < often {
				members = append(members, w.member(key, value))
			}
			often = 5
		}
	}
	var outputs []string
	for range w.IntN(3) {
		outputs = append(outputs, w.output())
	}
	kind := w.pick("code", "code", "code", "markdown", "markdown", "raw", "sql", "heading", "")
	add(50, "id", w.pick(`"a"`, `"b"`, `"c\u0031"`, `"cell-0"`, `"cell-1"`, `"cell-01"`, `"two words"`, `""`, "5", `"00000007"`))
	add(95, "cell_type", `"`+kind+`"`)
	add(95, "source", w.texts())
	add(20, "input", w.texts())
	add(80, "metadata", w.pick("{}", `{"id": "x"}`, "{\n }"))
	if kind == "code" || w.IntN(9) == 0 {
		add(95, "outputs", w.list("[", "]", outputs))
		add(90, w.pick("execution_count", "execution_count", "prompt_number"), w.pick("null", "1", "2.0", "1.5", `"1"`))
	} else {
		add(20, "attachments", "{}")
	}
	add(10, w.pick("language", "collapsed", "level", "custom"), w.pick(`"R"`, "true", "1", `{"a":[1,{"b":"}"}]}`))
	w.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return w.list("{", "}", members)
}

func (w writer) cells() string {
	var cells []string
	for range w.IntN(5) {
		cells = append(cells, w.cell())
	}
	return w.member("cells", w.list("[", "]", cells))
}

func (w writer) notebook() string {
	w.blanks = [][]string{{""}, {" "}, {"", " "}, {"\n "}, {"\r\n\t", "\r\n", ""}, {"\n  ", "\n", " ", "", "\t"}}[w.IntN(6)]
	members := []string{w.member("metadata", "{}"), w.member("nbformat_minor", w.pick("0", "4", "5", "5"))}
	if w.IntN(4) == 0 {
		var sheets []string
		for range 1 + w.IntN(3) {
			sheets = append(sheets, w.list("{", "}", []string{w.cells(), w.member("metadata", "{}")}))
		}
		members = append(members, w.member("worksheets", w.list("[", "]", sheets)), w.member("nbformat", "3"))
	} else {
		members = append(members, w.cells(), w.member("nbformat", "4"))
	}
	w.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return w.pick("", "", "\xef\xbb\xbf") + w.blank() + w.list("{", "}", members) + w.blank()
}

func (w writer) edit() CellEdit {
	return CellEdit{
		Mode:   Mode(w.IntN(3)),
		Cell:   w.pick("", "a", "b", "c1", "cell-0", "cell-00", "cell-1", "cell-2", "cell-3", "cell-01", "cell-4", "two words", "x"),
		Type:   w.pick("", "code", "markdown", "raw", "sql"),
		Source: w.pick("", "x", "a\nb", "a\n\n", "\r\n\r", "é\u2028😀\x00\x7f", "\"\\/<>&", strings.Repeat("line\n", 50), "\xff"),
		Random: uint32(w.IntN(10)),
	}
}

func TestAgainstOracle(t *testing.T) {
	t.Parallel()
	w := writer{Rand: source(t)}
	done := map[Mode]int{}
	for range 3_000 {
		content := []byte(w.notebook())
		if text := parseComplaint(content); text != "" {
			t.Fatalf("%q: %s", content, text)
		}
		e := w.edit()
		if text := applyComplaint(content, e); text != "" {
			t.Fatalf("%q, %+v: %s", content, e, text)
		}
		if _, _, err := Apply(content, e); err == nil {
			done[e.Mode]++
		}
	}
	if min(done[Replace], done[Insert], done[Delete]) < 150 {
		t.Errorf("edits that were done, by mode: %v; most were refused", done)
	}
}

// Edits one after the other leave a notebook that is what a list of sources would be after them.
func TestApplySequences(t *testing.T) {
	t.Parallel()
	r := source(t)
	for _, name := range []string{"jupyter45", "colab", "nbformat3", "oneline", "byhand"} {
		content := notebooks(t)[name]
		nb, err := Parse(content)
		if err != nil {
			t.Fatal(err)
		}
		var model []string
		for _, c := range nb.Cells {
			model = append(model, c.Source())
		}
		for step := range 200 {
			e := CellEdit{Mode: Mode(r.IntN(3)), Type: []string{"code", "markdown", "raw"}[r.IntN(3)], Source: fmt.Sprintf("step\n%d", step), Random: r.Uint32()}
			nb, err := Parse(content)
			if err != nil {
				t.Fatal(err)
			}
			at := r.IntN(len(nb.Cells) + 1)
			switch {
			case e.Mode == Insert:
				if at > 0 {
					e.Cell = nb.Cells[at-1].ID
				}
				model = slices.Insert(model, at, e.Source)
			case at == len(nb.Cells):
				continue
			case e.Mode == Delete:
				e.Cell = nb.Cells[at].ID
				model = slices.Delete(model, at, at+1)
			default:
				e.Cell = nb.Cells[at].ID
				model[at] = e.Source
			}
			if content, _, err = Apply(content, e); err != nil {
				t.Fatalf("%s, step %d, %+v: %v", name, step, e, err)
			}
		}
		if nb, err = Parse(content); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range nb.Cells {
			got = append(got, c.Source())
		}
		if !slices.Equal(got, model) {
			t.Errorf("%s: got %q, want %q", name, got, model)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, content := range notebooks(f) {
		f.Add(content)
	}
	f.Add([]byte("\xef\xbb\xbf{\"nbformat\":4,\"cells\":[{\"source\":[\"\\ud800\\u0041\",\"\xff\"]}]}"))
	f.Add([]byte(`{"nbformat":4.0,"nbformat_minor":5,"cells":[{"id":"cell-0","outputs":[{"output_type":"stream","text":"\u001b]0;t\u0007x"}]},{}]}`))
	f.Add([]byte(`{"nbformat":4,"cells":[],"x":[NaN,-Infinity,-0.1e+2,[[],[{}]]]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if text := parseComplaint(content); text != "" {
			t.Errorf("%q: %s", content, text)
		}
	})
}

// FuzzApply edits what it is given and, since few changed bytes leave a notebook that can be read, also one that is
// written anew for each input.
func FuzzApply(f *testing.F) {
	for _, content := range notebooks(f) {
		f.Add(content, uint8(0), "cell-0", "", "x\ny", uint32(7))
		f.Add(content, uint8(1), "cell-1", "code", "", uint32(7))
		f.Add(content, uint8(2), "map", "", "", uint32(7))
	}
	f.Add([]byte(`{"cells":[ ],"nbformat":4,"nbformat_minor":5}`), uint8(1), "", "markdown", "é😀", uint32(1<<32-1))
	f.Add([]byte("{\r\n\"cells\" :\t[{\"source\" :[\"a\" , \"b\"]}\r\n, {}],\"nbformat\":4}"), uint8(0), "cell-2", "", "\r\n", uint32(0))
	f.Fuzz(func(t *testing.T, content []byte, mode uint8, cell, kind, source string, random uint32) {
		e := CellEdit{Mode: Mode(mode % 3), Cell: cell, Type: kind, Source: source, Random: random}
		if text := applyComplaint(content, e); text != "" {
			t.Errorf("%q, %+v: %s", content, e, text)
		}
		w := writer{Rand: rand.New(rand.NewPCG(crc64.Checksum(content, crc64.MakeTable(crc64.ECMA)), uint64(random)))}
		written := []byte(w.notebook())
		if edit := w.edit(); mode&0x80 != 0 { // else the cell that the input names, which is rarely there
			e = edit
			e.Source = source
		}
		if text := applyComplaint(written, e); text != "" {
			t.Errorf("written: %q, %+v: %s", written, e, text)
		}
	})
}
