package notebook

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
)

// Neither the depth of the nesting nor the number of things costs more than a small part of the file's own size.
func TestHostile(t *testing.T) {
	const million, many = 1_000_000, 200_000
	cell := `{"cell_type":"code","source":"x","outputs":[]},`
	for _, c := range []struct {
		name, content string
		valid         bool
	}{
		{"open lists", strings.Repeat("[", million), false},
		{"nested lists", one(`{"x":` + strings.Repeat("[", million) + strings.Repeat("]", million) + "}"), false},
		{"nested objects", one(`{"x":` + strings.Repeat(`{"a":`, million) + "1" + strings.Repeat("}", million) + "}"), false},
		{"nested objects that are open", strings.Repeat(`{"cells":`, million), false},
		{"as deep as allowed", one(`{"x":` + strings.Repeat("[", maxDepth-3) + strings.Repeat("]", maxDepth-3) + "}"), true},
		{"one deeper", one(`{"x":` + strings.Repeat("[", maxDepth-2) + strings.Repeat("]", maxDepth-2) + "}"), false},
		{"many cells", one(strings.Repeat("{},", many) + "{}"), false},
		{"many worksheets", `{"nbformat":3,"worksheets":[` + strings.Repeat(`{"cells":[]},`, many) + `{"cells":[]}]}`, false},
		{"as many cells as allowed", one(strings.TrimSuffix(strings.Repeat(cell, maxCells), ",")), true},
		{"many keys", one("{" + strings.Repeat(`"":0,`, many) + `"source":"a"}`), true},
		{"many keys at the top", "{" + strings.Repeat(`"cells":0,`, many) + `"nbformat":4,"cells":[{}]}`, true},
		{"many outputs", one(`{"outputs":[` + strings.Repeat(`{"output_type":"stream","text":""},`, many) + "1]}"), true},
		{"many forms", one(`{"outputs":[{"output_type":"display_data","data":{` + strings.Repeat(`"a/b":0,`, many) + `"c/d":0}}]}`), true},
		{"many lines", one(`{"source":"","outputs":[{"output_type":"error","traceback":[` + strings.Repeat(`"",`, many) + `""]}]}`), true},
		{"many slashes", one(`{"source":"` + strings.Repeat(`\\`, many) + `"}`), true},
		{"many quotes", one(`{"source":"` + strings.Repeat(`\"`, many) + `"}`), true},
		{"a long number", one(`{"execution_count":` + strings.Repeat("1", many) + `}`), true},
		{"white space", one(`{"source":[` + strings.Repeat("\n ", many) + `"a"]}`), true},
	} {
		content := []byte(c.content)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		nb, err := Parse(content)
		if len(nb.Cells) > 0 {
			_ = nb.Cells[0].Source()
			nb.Cells[0].Outputs()
		}
		result, _, applyErr := Apply(content, CellEdit{Cell: "cell-0", Source: "y"})
		runtime.ReadMemStats(&after)
		if (err == nil) != c.valid {
			t.Errorf("%s: %v", c.name, err)
		}
		if invalid, ok := errors.AsType[*InvalidError](err); err != nil && (!ok || invalid.Line != 1 || result != nil || applyErr == nil) {
			t.Errorf("%s: Parse says %v, Apply %v", c.name, err, applyErr)
		}
		// Parse and Apply keep 100,000 cells and their names, and the result is a copy.
		if used, may := after.TotalAlloc-before.TotalAlloc, uint64(64<<20+8*len(content)); used > may {
			t.Errorf("%s: %d MiB for %d MiB", c.name, used>>20, len(content)>>20)
		}
	}
}

func TestHugeString(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 50<<20/16)
	content := []byte(one(`{"id":"a","cell_type":"code","source":"` + long + `","outputs":[{"output_type":"stream","text":"` + long[:3<<20] + `"}]},{"id":"b","source":[]}`))
	nb, err := Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	if nb.Cells[0].Source() != long {
		t.Error("the source is another")
	}
	outputs, cut := nb.Cells[0].Outputs()
	if len(outputs) != 1 || len(outputs[0].Text) != maxText || !cut {
		t.Errorf("got %d outputs, cut %v", len(outputs), cut)
	}
	result, _, err := Apply(content, CellEdit{Cell: "a", Source: "x"})
	if want := one(`{"id":"a","cell_type":"code","source":["x"],"outputs":[]},{"id":"b","source":[]}`); err != nil || string(result) != want {
		t.Errorf("got %.200q, %v", result, err)
	}
}

// An image is decoded when it is asked for, and not if it has more than 20 MiB: a file of 100 MiB that was nothing else
// cost 275 MiB besides.
func TestHugeImages(t *testing.T) { // not parallel: it counts what is allocated
	for _, c := range []struct {
		name   string
		text   string
		images int // of that text, each
		want   int // bytes of each image
		long   bool
	}{
		{"one of 24 MiB", strings.Repeat("A", 32<<20), 1, 0, true},
		{"one of 1 MiB in lines", strings.Repeat(strings.Repeat("A", 76)+`\r\n`, 1<<20/57), 1, 1 << 20 / 57 * 57, false},
		{"one of 20 MiB and a little", strings.Repeat("A", maxImage/3*4+8), 1, 0, true},
		{"ten of 1 MiB", strings.Repeat("A", 4<<20/3/4*4), 10, 4 << 20 / 3 / 4 * 3, false},
		{"a small one in 32 MiB of white space", "QUJD" + strings.Repeat(" ", 32<<20) + "REVG", 1, 6, false}, // was said to be too large
		{"one of 20 MiB in lines of 4", strings.Repeat("AAAA\\n", maxImage/3), 1, maxImage / 3 * 3, false},   // likewise
		{"one that is none", strings.Repeat("A", 1<<20) + "*", 1, 0, false},
	} {
		output := `{"output_type":"display_data","data":{"image/png":"` + c.text + `"}}`
		nb, err := Parse([]byte(one(`{"outputs":[` + strings.Repeat(output+",", c.images-1) + output + `]}`)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		outputs, cut := nb.Cells[0].Outputs()
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 || len(outputs) != c.images || cut {
			t.Errorf("%s: %d outputs, cut %v, for %d KiB", c.name, len(outputs), cut, used>>10)
		}
		for _, out := range outputs {
			runtime.ReadMemStats(&before)
			image, long := out.Image()
			runtime.ReadMemStats(&after)
			if len(image) != c.want || long != c.long {
				t.Errorf("%s: %d bytes, %v; want %d, %v", c.name, len(image), long, c.want, c.long)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 5*maxImage/2+1<<20 {
				t.Errorf("%s: %d MiB for one image", c.name, used>>20)
			}
		}
	}
}

func TestTooLarge(t *testing.T) {
	content := append([]byte(one(`{}`)), bytes.Repeat([]byte("\n"), MaxBytes)...)
	if _, err := Parse(content); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Parse of more than 100 MiB: %v", err)
	}
	if nb, err := Parse(content[:MaxBytes]); err != nil || len(nb.Cells) != 1 {
		t.Errorf("Parse of 100 MiB: %v", err)
	}
	if _, _, err := Apply(content[:MaxBytes], CellEdit{Cell: "cell-0", Source: "x"}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Apply that makes more than 100 MiB: %v", err)
	}
	if result, _, err := Apply(content[:MaxBytes], CellEdit{Cell: "cell-0", Mode: Delete}); err != nil || len(result) != MaxBytes-2 {
		t.Errorf("Apply that makes less than 100 MiB: %d, %v", len(result), err)
	}
	lines := CellEdit{Cell: "cell-0", Source: strings.Repeat("\n", 4<<20)}
	wide := "{\"nbformat\":4,\"cells\":[{\n" + strings.Repeat(" ", maxGap-2) + "\"source\":[]}]}"
	if _, _, err := Apply([]byte(wide), lines); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Apply of 4 million lines with a wide indent: %v", err)
	}
}

// A file that was cut anywhere is refused, and the error is at its end or where the string begins that has no end.
func TestTruncated(t *testing.T) {
	t.Parallel()
	for name, content := range notebooks(t) {
		for n := range len(strings.TrimRight(string(content), "\n")) {
			_, err := Parse(content[:n])
			invalid, ok := errors.AsType[*InvalidError](err)
			if !ok {
				t.Errorf("%s, %d bytes: %v", name, n, err)
				continue
			}
			end := invalid.Line == 1+strings.Count(string(content[:n]), "\n")
			if !end || !strings.Contains(invalid.Reason, "the file ends") && !strings.Contains(invalid.Reason, "string") &&
				!strings.Contains(invalid.Reason, "such escape") && !strings.Contains(invalid.Reason, "value must be here") {
				t.Errorf("%s, %d bytes: %v", name, n, err)
			}
		}
	}
}

// Any byte of a small notebook may be another: it is refused, or it is still what encoding/json reads.
func TestOneByteChanged(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/byhand.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	for i := range content {
		for _, b := range []byte("\x00\"\\{],:0e\xff") {
			changed := append([]byte(nil), content...)
			changed[i] = b
			if text := parseComplaint(changed); text != "" {
				t.Errorf("%q: %s", changed, text)
			}
			if text := applyComplaint(changed, CellEdit{Cell: "cell-1", Type: "markdown", Source: "x"}); text != "" {
				t.Errorf("%q: %s", changed, text)
			}
		}
	}
}
