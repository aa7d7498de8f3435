package notebook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// large makes a notebook of that many bytes: code, a table of text and a chart of 100 KB per cell.
func large(size int) []byte {
	var b strings.Builder
	b.WriteString("{\n \"cells\": [\n")
	chart := strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 100_000/24)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "  {\n   \"cell_type\": \"code\",\n   \"execution_count\": %d,\n   \"id\": \"cell%04d\",\n   \"metadata\": {},\n   \"outputs\": [\n", i+1, i)
		b.WriteString("    {\n     \"name\": \"stdout\",\n     \"output_type\": \"stream\",\n     \"text\": [\n")
		for line := range 200 {
			fmt.Fprintf(&b, "      \"row %d \\u001b[32m%d\\u001b[0m é\\n\",\n", line, line*i)
		}
		fmt.Fprintf(&b, "      \"end\"\n     ]\n    },\n    {\n     \"data\": {\n      \"image/png\": \"%s\"\n     },\n     \"output_type\": \"display_data\"\n    }\n   ],\n", chart)
		b.WriteString("   \"source\": [\n    \"df.plot()\\n\",\n    \"show()\"\n   ]\n  }")
	}
	b.WriteString("\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n")
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	content := large(10 << 20)
	b.Run("10MB", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Parse(content); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("10MB/Outputs", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		b.ReportAllocs()
		for b.Loop() {
			nb, err := Parse(content)
			if err != nil {
				b.Fatal(err)
			}
			for _, c := range nb.Cells {
				_ = c.Source()
				c.Outputs()
			}
		}
	})
	b.Run("10MB/Valid", func(b *testing.B) { // of encoding/json, to compare with
		b.SetBytes(int64(len(content)))
		for b.Loop() {
			if !json.Valid(content) {
				b.Fatal("invalid")
			}
		}
	})
}

func BenchmarkApply(b *testing.B) {
	content := large(10 << 20)
	for _, c := range []struct {
		name string
		edit CellEdit
	}{
		{"Replace", CellEdit{Cell: "cell0050", Source: "x = 1\nx"}},
		{"Insert", CellEdit{Mode: Insert, Cell: "cell0050", Type: "code", Source: "é = 1\nx"}},
		{"Delete", CellEdit{Mode: Delete, Cell: "cell0050"}},
	} {
		b.Run("10MB/"+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Apply(content, c.edit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
