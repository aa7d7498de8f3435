package textedit

import (
	"fmt"
	"strings"
	"testing"
)

// code makes a file of that many bytes, with one line in the middle that is there once.
func code(size int, end string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		if b.Len() <= size/2 && b.Len()+60 > size/2 {
			b.WriteString("\tneedle := \"here\"" + end)
		}
		fmt.Fprintf(&b, "\tcase %d: return call(x, %d)%s", i, i*7, end)
	}
	return b.String()
}

var sizes = []struct {
	name string
	size int
}{{"10KB", 10 << 10}, {"1MB", 1 << 20}}

func BenchmarkApply(b *testing.B) {
	for _, s := range sizes {
		for _, c := range []struct {
			name, content string
			edit          Edit
		}{
			{"OneLine", code(s.size, "\n"), Edit{Old: "needle := \"here\"", New: "needle := \"there\""}},
			{"CRLF", code(s.size, "\r\n"), Edit{Old: "\tneedle := \"here\"\n", New: "\tneedle := \"there\"\n"}},
			{"Mixed", "\n" + code(s.size, "\r\n"), Edit{Old: "\tneedle := \"here\"\n", New: "\tneedle := \"there\"\n"}},
			{"Quotes", code(s.size, "\n"), Edit{Old: "needle := “here”", New: "needle := “there”"}},
			{"All", code(s.size, "\n"), Edit{Old: "return", New: "yield", All: true}},
		} {
			b.Run(s.name+"/"+c.name, func(b *testing.B) {
				content := []byte(c.content)
				b.SetBytes(int64(len(content)))
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := Apply(content, []Edit{c.edit}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkNotFound(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			content := []byte(code(s.size, "\n"))
			for b.Loop() {
				if _, _, err := Apply(content, []Edit{{Old: "\tneedle := \"nowhere\"\n\treturn call(x, 8)", New: "x"}}); err == nil {
					b.Fatal("found")
				}
			}
		})
	}
}

func BenchmarkDiff(b *testing.B) {
	for _, s := range sizes {
		old := code(s.size, "\n")
		for name, changed := range map[string]string{
			"OneLine": strings.Replace(old, "here", "there", 1),
			"Ends":    "x\n" + old + "y\n",
			"All":     strings.ReplaceAll(old, "return", "yield"),
		} {
			b.Run(s.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					Diff([]byte(old), []byte(changed), 8192)
				}
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, s := range sizes {
		content := []byte(code(s.size, "\r\n"))
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				if _, err := Decode(content); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
