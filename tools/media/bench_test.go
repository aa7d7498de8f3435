package media

import (
	"bytes"
	"testing"
)

// A screenshot and a photograph as they are shown: 3840 by 2160 pixels each, made by ImageMagick. Beside them what the
// file weighs, so that the figures can be compared with `convert FILE -resize 1430x804 out`.
func BenchmarkFit(b *testing.B) {
	for name, args := range map[string][]string{
		"png":  {"-size", "3840x2160", "gradient:navy-orange"},
		"jpg":  {"-seed", "1", "-size", "960x540", "plasma:fractal", "-resize", "3840x2160!"},
		"gif":  {"-seed", "1", "-size", "960x540", "plasma:fractal", "-resize", "3840x2160!"},
		"webp": {"-seed", "1", "-size", "960x540", "plasma:fractal", "-resize", "3840x2160!"},
	} {
		data := made(b, "bench."+name, args...)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fit(b.Context(), data, FitOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Three pages of text, three programs.
func BenchmarkPages(b *testing.B) {
	data := open(b, pdfs(b), "three.pdf")
	r := New(Options{})
	for b.Loop() {
		if _, err := r.Pages(b.Context(), bytes.NewReader(data), int64(len(data)), 0, 0); err != nil {
			b.Fatal(err)
		}
	}
}
