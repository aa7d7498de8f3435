package media

import (
	"bytes"
	"context"
	"image"
	"testing"
	"time"
)

// seeds are small files that lie. Those that do not were made by ImageMagick and are in testdata/fuzz/FuzzFit.
func seeds(f *testing.F) {
	for _, data := range [][]byte{
		scans(64, 64, 3), pngOf(8, 8, 8, 6, 1, chunk("IDAT", zeros(300))), pngOf(3, 3, 1, 3, 0, chunk("PLTE", make([]byte, 6)), chunk("IDAT", zeros(6))),
		webpOf("VP8X", []byte{0x10, 0, 0, 0, 9, 0, 0, 9, 0, 0}, "VP8L", []byte{0x2f, 9, 0x40, 2, 0x10, 0, 0}),
		[]byte("GIF89a\x08\x00\x08\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x08\x00\x08\x00\x40\x02\x02\x44\x01\x00;"), []byte(pdf),
	} {
		f.Add(data)
	}
}

// Whatever comes in, fit answers in time with an image that other code reads, in the sizes that it was asked for, or
// with one of its errors.
func FuzzFit(f *testing.F) {
	seeds(f)
	o := FitOptions{MaxEdge: 64, MaxPixels: 2048, MaxBytes: 4096, MaxTime: 200 * time.Millisecond}
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		m, err := fit(context.Background(), data, o)
		if took := time.Since(start); took > time.Minute { // a hang: the fuzzer itself would wait for ever
			t.Fatalf("took %v", took)
		}
		if err != nil {
			if !typed(err) {
				t.Fatalf("%v, want one of the errors of media.go", err)
			}
			return
		}
		if m.ShownWidth < 1 || m.ShownHeight < 1 || m.ShownWidth > min(64, m.Width) || m.ShownHeight > min(64, m.Height) || m.ShownWidth*m.ShownHeight > 2048 {
			t.Fatalf("%dx%d shown at %dx%d", m.Width, m.Height, m.ShownWidth, m.ShownHeight)
		}
		if &m.Data[0] == &data[0] { // other readers take less than ours: chunks in disorder, for instance
			return
		}
		config, name, err := image.DecodeConfig(bytes.NewReader(m.Data))
		if err != nil || "image/"+name != m.MIME || config.Width != m.ShownWidth || config.Height != m.ShownHeight {
			t.Fatalf("%v: %s of %dx%d, want %s of %dx%d", err, name, config.Width, config.Height, m.MIME, m.ShownWidth, m.ShownHeight)
		}
	})
}

// Sniff knows what fit takes, by sixteen bytes.
func FuzzSniff(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		kind := Sniff(data)
		if again := Sniff(data[:min(len(data), SniffBytes)]); again != kind {
			t.Errorf("%v by all, %v by the first bytes", kind, again)
		}
		if kind.Image() != (kind != None && kind != PDF) || (kind == None) != (kind.MIME() == "") {
			t.Errorf("%v: %v %q", kind, kind.Image(), kind.MIME())
		}
	})
}
