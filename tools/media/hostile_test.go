package media

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
)

// chunk is one chunk of a PNG.
func chunk(name string, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(append(b, name...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// pngOf is a PNG of given chunks between header and end.
func pngOf(width, height uint32, depth, colour, interlace byte, chunks ...[]byte) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	head = append(head, depth, colour, 0, 0, interlace)
	return bytes.Join([][]byte{[]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head), bytes.Join(chunks, nil), chunk("IEND", nil)}, nil)
}

// zeros is n zeros as a zlib stream. Every MiB is the same bytes, so that making a gigabyte costs nothing.
func zeros(n int) []byte {
	part := func(n int) []byte {
		var b bytes.Buffer
		w, _ := flate.NewWriter(&b, flate.BestCompression) // the level is known
		_, _ = w.Write(make([]byte, n))                    // into memory
		_ = w.Flush()
		return b.Bytes()
	}
	out := append([]byte{0x78, 0xda}, bytes.Repeat(part(1<<20), n>>20)...)
	out = append(append(out, part(n&(1<<20-1))...), 1, 0, 0, 0xff, 0xff) // a last block, empty
	// Adler-32 of n zeros: one, and n times one.
	return binary.BigEndian.AppendUint32(out, uint32(n%65521)<<16|1)
}

// deflated is n times b, deflated.
func deflated(n int, b []byte) []byte {
	var out bytes.Buffer
	w, _ := zlib.NewWriterLevel(&out, zlib.BestSpeed) // the level is known
	for range n {
		_, _ = w.Write(b) // into memory
	}
	_ = w.Close()
	return out.Bytes()
}

// segment is one segment of a JPEG.
func segment(marker byte, body ...byte) []byte {
	return append([]byte{0xff, marker, byte((len(body) + 2) >> 8), byte(len(body) + 2)}, body...)
}

// scans is a progressive JPEG of one grey component whose n scans have nothing but runs of empty blocks.
func scans(width, height, n int) []byte {
	quant := append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)
	dc := append([]byte{0x00, 1}, make([]byte, 16)...)                        // one code of one bit: no difference
	ac := append([]byte{0x10, 0, 2}, append(make([]byte, 14), 0xe0, 0x00)...) // a run of 2^14, the end of a block
	out := append([]byte{0xff, 0xd8}, segment(0xdb, quant...)...)
	out = append(out, segment(0xc2, 8, byte(height>>8), byte(height), byte(width>>8), byte(width), 1, 1, 0x11, 0)...)
	out = append(append(out, segment(0xc4, dc...)...), segment(0xc4, ac...)...)
	blocks := ((width + 7) / 8) * ((height + 7) / 8)
	out = append(append(out, segment(0xda, 1, 1, 0, 0, 0, 0)...), make([]byte, (blocks+7)/8)...)
	for range n {
		out = append(out, segment(0xda, 1, 1, 0, 1, 63, 0)...)
		// Each run: code 00, then 14 bits. All zero: 2^14 blocks.
		for left := blocks; left > 0; left -= 1 << 14 {
			out = append(out, 0, 0)
		}
	}
	return append(out, 0xff, 0xd9)
}

func encoded(t testing.TB, encode func(b *bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// hostileImages are files that lie, or cost far more than they weigh. What each costs is measured in memory_test.go.
func hostileImages(t testing.TB) map[string][]byte {
	t.Helper()
	most := zeros(8000 * 6000 * 4)
	var frames gif.GIF
	for range 2000 {
		frames.Image = append(frames.Image, image.NewPaletted(image.Rect(0, 0, 16, 16), color.Palette{color.Black, color.White}))
		frames.Delay = append(frames.Delay, 0)
	}
	grey := image.NewGray(image.Rect(0, 0, 64, 64))
	return map[string][]byte{
		"PNG that claims 4 gigapixels":                pngOf(1<<31-1, 2, 8, 6, 0, chunk("IDAT", most)),
		"PNG that claims 60 megapixels":               pngOf(10000, 6000, 8, 6, 0, chunk("IDAT", most)),
		"PNG of 48 megapixels of zeros":               pngOf(8000, 6000, 8, 6, 0, chunk("IDAT", zeros(6000*(8000*4+1)))),
		"PNG of 48 megapixels, cut":                   pngOf(8000, 6000, 8, 6, 0, chunk("IDAT", most)),
		"interlaced PNG of 48 megapixels of zeros":    pngOf(8000, 6000, 8, 6, 1, chunk("IDAT", zeros(6000*8000*4+11_250))),
		"PNG of 48 megapixels of 16 bits":             pngOf(8000, 6000, 16, 6, 0, chunk("IDAT", zeros(6000*(8000*8+1)))),
		"PNG of one pixel with a gigabyte behind":     pngOf(1, 1, 8, 0, 0, chunk("IDAT", zeros(1<<30))),
		"PNG with a profile of a gigabyte":            pngOf(1, 1, 8, 0, 0, chunk("iCCP", append([]byte("p\x00\x00"), zeros(1<<30)...)), chunk("IDAT", zeros(2))),
		"PNG with texts of a gigabyte":                pngOf(1, 1, 8, 0, 0, chunk("zTXt", append([]byte("k\x00\x00"), zeros(1<<30)...)), chunk("IDAT", zeros(2))),
		"PNG of a million chunks":                     pngOf(1, 1, 8, 0, 0, bytes.Repeat(chunk("teXt", nil), 1_000_000), chunk("IDAT", zeros(2))),
		"PNG of a million empty pieces":               pngOf(1, 1, 8, 0, 0, bytes.Repeat(chunk("IDAT", nil), 1_000_000), chunk("IDAT", zeros(2))),
		"PNG of 50 million rows":                      pngOf(1, 50_000_000, 1, 0, 0, chunk("IDAT", zeros(100_000_000))),
		"PNG of 65535 rows":                           pngOf(700, 65535, 8, 2, 0, chunk("IDAT", deflated(65535, append([]byte{4}, make([]byte, 2100)...)))),
		"PNG of size 0":                               pngOf(0, 0, 8, 2, 0, chunk("IDAT", most)),
		"PNG with bits that there are not":            pngOf(1, 1, 7, 2, 0, chunk("IDAT", zeros(8))),
		"JPEG of 10,000 scans":                        scans(4000, 3900, 10_000),
		"JPEG of 100,000 scans":                       scans(800, 800, 100_000),
		"JPEG that claims 4 gigapixels":               scans(65535, 65535, 0),
		"JPEG that claims 50 megapixels, progressive": scans(8000, 6200, 1),
		"JPEG with two frames":                        bytes.Replace(scans(64, 64, 1), []byte{0xff, 0xda}, append(segment(0xc0, 8, 0x1f, 0x40, 0x1f, 0x40, 1, 1, 0x11, 0), 0xff, 0xda), 1),
		"JPEG of fill bytes":                          append([]byte{0xff, 0xd8}, bytes.Repeat([]byte{0xff}, MaxImageBytes-2)...),
		"JPEG of segments":                            append([]byte{0xff, 0xd8}, bytes.Repeat(segment(0xfe), 4_000_000)...),
		"GIF of 2000 frames":                          encoded(t, func(b *bytes.Buffer) error { return gif.EncodeAll(b, &frames) }),
		"GIF of 1.6 million frames":                   frameful(1_600_000),
		"GIF that claims 4 gigapixels":                append([]byte("GIF89a\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x02\x44\x01\x00"), ';'),
		"GIF of 49 megapixels, cut":                   append([]byte("GIF89a\x58\x1b\x58\x1b\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x58\x1b\x58\x1b\x00\x02\x02\x44\x01\x00"), ';'),
		"GIF of blocks":                               append([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00"), bytes.Repeat([]byte{0x21, 0xfe, 0}, 5_000_000)...),
		"WebP that claims 16383 by 16383":             webpOf("VP8L", []byte{0x2f, 0xfe, 0xbf, 0xff, 0x0f, 0, 0, 0, 0, 0}),
		"WebP whose headers disagree":                 webpOf("VP8X", []byte{0, 0, 0, 0, 9, 0, 0, 9, 0, 0}, "VP8L", []byte{0x2f, 0xfe, 0xbf, 0xff, 0x0f, 0}),
		"WebP of alpha only":                          webpOf("VP8X", []byte{0x10, 0, 0, 0, 0xff, 0x0f, 0, 0xff, 0x0f, 0}, "ALPH", []byte{1, 0, 0, 0, 0, 0, 0, 0}),
		"WebP of a million chunks":                    append(webpOf("VP8X", []byte{0, 0, 0, 0, 9, 0, 0, 9, 0, 0})[:30], bytes.Repeat([]byte("XXXX\x00\x00\x00\x00"), 1_000_000)...),
		"HTML that is called an image":                []byte("<!doctype html><title>not found</title>"),
		"PNG that is a JPEG":                          append([]byte("\x89PNG\r\n\x1a\n"), encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, grey, nil) })...),
		"file of 21 MiB":                              append(encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, grey) }), make([]byte, 21<<20)...),
	}
}

// frameful is a GIF of one pixel and 256 colours, with so many frames behind the first that have no pixels. To look at
// those with the colours took 1.5 s.
func frameful(frames int) []byte {
	const frame = ",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02"
	head := append([]byte("GIF89a\x01\x00\x01\x00\xf7\x00\x00"), make([]byte, 3*256)...)
	head = append(head, frame+"\x02\x44\x01\x00"...)
	return append(append(head, bytes.Repeat([]byte(frame+"\x00"), frames)...), ';')
}

// webpOf is a WebP of the given chunks, name and body in turn.
func webpOf(first string, rest ...any) []byte {
	body, name := []byte("WEBP"), first
	for _, r := range rest {
		switch r := r.(type) {
		case string:
			name = r
		case []byte:
			body = append(binary.LittleEndian.AppendUint32(append(body, name...), uint32(len(r))), r...)
			if len(r)%2 == 1 {
				body = append(body, 0)
			}
		}
	}
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// typed says whether an error is one of those that fit promises.
func typed(err error) bool {
	_, limit := errors.AsType[*LimitError](err)
	return limit || errors.Is(err, ErrKind) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrSlow)
}

// What is hostile is refused, or shown small; nothing panics, and nothing else comes out.
func TestFitHostile(t *testing.T) {
	t.Parallel()
	harmless := map[string]bool{ // only large, or with something beside that the reader ignores
		"PNG of 48 megapixels of zeros": true, "interlaced PNG of 48 megapixels of zeros": true, "PNG of 48 megapixels of 16 bits": true,
		"PNG with a profile of a gigabyte": true, "PNG with texts of a gigabyte": true, "PNG of a million chunks": true,
		"PNG of a million empty pieces": true, "PNG of 65535 rows": true, "GIF of 2000 frames": true,
		"GIF of 1.6 million frames": true,
	}
	o := FitOptions{}
	if underRace { // all is ten times slower, and a refusal for that is fine
		o.MaxTime = defaultTime / 5
	}
	for name, data := range leaktest.SomeOf(5, hostileImages(t)) {
		start := time.Now()
		m, err := fit(t.Context(), data, o)
		took := time.Since(start)
		t.Logf("%-45s %8d bytes, %4d ms: %v", name, len(data), took.Milliseconds(), err)
		switch {
		case err != nil && !typed(err):
			t.Errorf("%s: %v, want one of the errors of media.go", name, err)
		case err == nil && !harmless[name]:
			t.Errorf("%s: shown at %dx%d, want a refusal", name, m.ShownWidth, m.ShownHeight)
		case err != nil && harmless[name] && !errors.Is(err, ErrSlow):
			t.Errorf("%s: %v, want it to be shown", name, err)
		case err == nil && m.ShownWidth*m.ShownHeight > defaultPixels:
			t.Errorf("%s: shown at %dx%d", name, m.ShownWidth, m.ShownHeight)
		}
	}
}

// A file that was cut off anywhere is refused.
func TestFitTruncated(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.png", "a.jpg", "a.gif", "a.webp"} {
		for _, more := range []string{"", "-interlace Plane", "-define webp:lossless=true", "( +clone -negate )"} {
			if strings.HasPrefix(more, "( ") && name == "a.jpg" || strings.HasPrefix(more, "( ") && name == "a.png" {
				continue // several files
			}
			args := append([]string{"-seed", "1", "-size", "120x90", "plasma:fractal"}, strings.Fields(more)...)
			data := made(t, name, args...)
			if Sniff(data) == WebP { // ImageMagick 6.9.11 writes more after the end
				data = data[:8+binary.LittleEndian.Uint32(data[4:])]
			}
			if _, err := fit(t.Context(), data, FitOptions{MaxTime: patient}); err != nil {
				t.Errorf("%s %s: %v", name, more, err)
			}
			for n := 0; n < len(data); n += 64 {
				if m, err := fit(t.Context(), data[:n], FitOptions{MaxTime: patient}); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrKind) {
					t.Errorf("%s %s, %d of %d bytes: %v, shown %v", name, more, n, len(data), err, err == nil && m.ShownWidth > 0)
				}
			}
		}
	}
}

// The end of ctx and of the time ends a decode, and says which it was.
func TestFitEnds(t *testing.T) {
	t.Parallel()
	data := scans(4000, 3900, 10_000)
	reason := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := fit(ctx, data, FitOptions{}); !errors.Is(err, reason) || errors.Is(err, ErrDamaged) {
		t.Errorf("ended before: %v, want %v", err, reason)
	}
	if _, err := fit(t.Context(), data, FitOptions{MaxTime: time.Millisecond}); !errors.Is(err, ErrSlow) || errors.Is(err, ErrDamaged) {
		t.Errorf("too long: %v, want %v", err, ErrSlow)
	}
}

// A decoder that panics means that the file is damaged.
func TestGuarded(t *testing.T) {
	t.Parallel()
	if err := guarded(func() error { var none []byte; _ = none[len(none)]; return nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("a panic became %v, want ErrDamaged", err)
	}
}

// Who waits for the decoder leaves when its call ends, and does not decode.
func TestReaderTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{})
		r.decoding <- struct{}{} // another call is decoding
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Fit(ctx, []byte("GIF89a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited: %v, want the end of ctx", err)
		}
		<-r.decoding
		if _, err := r.Fit(t.Context(), []byte("GIF89a")); !errors.Is(err, ErrDamaged) {
			t.Errorf("after it: %v, want ErrDamaged", err)
		}
	})
}

// The first frame of an animation may cover a part only; beside it nothing is shown.
func TestFitPart(t *testing.T) {
	t.Parallel()
	part := image.NewPaletted(image.Rect(10, 5, 20, 10), color.Palette{color.RGBA{200, 50, 40, 255}})
	data := encoded(t, func(b *bytes.Buffer) error {
		return gif.EncodeAll(b, &gif.GIF{Image: []*image.Paletted{part, part}, Delay: []int{0, 0}, Config: image.Config{Width: 30, Height: 20}})
	})
	m, err := fit(t.Context(), data, FitOptions{MaxTime: patient})
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(m.Data))
	if err != nil || !m.Animated || m.ShownWidth != 30 || m.ShownHeight != 20 {
		t.Fatalf("%v, %+v", err, m)
	}
	for _, c := range []struct {
		x, y int
		want color.NRGBA
	}{{9, 5, color.NRGBA{}}, {10, 5, color.NRGBA{200, 50, 40, 255}}, {19, 9, color.NRGBA{200, 50, 40, 255}}, {19, 10, color.NRGBA{}}, {20, 9, color.NRGBA{}}} {
		if at := color.NRGBAModel.Convert(got.At(c.x, c.y)); at != c.want {
			t.Errorf("pixel %d, %d is %v, want %v", c.x, c.y, at, c.want)
		}
	}
}
