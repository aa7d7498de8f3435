package media

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"
)

// FitOptions bound what is shown of an image, and how long that may take. A zero field is the default.
type FitOptions struct {
	MaxEdge   int           // pixels of the longer side; 1,568, which is the most for a page of a PDF
	MaxPixels int           // width by height; 1,150,000
	MaxBytes  int           // above, it is made a JPEG of quality 85; 500 KiB
	MaxTime   time.Duration // to decode; 1.5 s, which leaves the rest of 2 s to read the file and to encode
}

// The defaults of FitOptions.
const (
	defaultEdge   = 1568
	defaultPixels = 1_150_000
	defaultBytes  = 500 << 10
	defaultTime   = 1500 * time.Millisecond
)

// Limits of an image file.
const (
	MaxImageBytes  = 20 << 20
	MaxImagePixels = 50_000_000
	MaxImageEdge   = 65_535 // pixels, the most that JPEG and GIF can say
)

// maxMemory is how many bytes the decoder of an image may hold for its pixels, by what the header says. With a file of
// 20 MiB, the canvas and what is encoded from it, that stays below 128 MiB. It is enough for 50 megapixels of PNG,
// GIF and the usual JPEG; progressive and unreduced JPEG and WebP end earlier, since their decoders hold the whole
// image, and some of them twice.
const maxMemory = 78 << 20

// worthCollecting is how much a decoder must hold, in bytes, for its garbage to be collected at once.
const worthCollecting = 16 << 20

// An Image is an image to be shown.
type Image struct {
	Data                    []byte // the bytes handed in, if nothing had to be changed
	MIME                    string // of Data
	Kind                    Kind   // of the file
	Width, Height           int    // of the file, turned upright
	ShownWidth, ShownHeight int    // of Data
	Animated                bool   // Data is the first of several frames
}

// A header is what an image says about itself before its pixels.
type header struct {
	width, height int
	memory        int64 // bytes of the decoder, as long as it runs
	turn          int   // how to turn it upright: the eight values of EXIF; 0 and 1: it is
	animated      bool
	foreign       bool // colours that few programs show: never hand the file out as it is
}

// A format is how one kind of image is read. Both functions take hostile bytes, and may panic.
type format struct {
	header func(data []byte) (header, error)
	// decode gives every pixel to c. Whatever it reads, it reads from s.
	decode func(s *source, h header, c *canvas) error
}

func formatOf(kind Kind) (format, bool) {
	switch kind {
	case PNG:
		return format{pngHeader, pngDecode}, true
	case JPEG:
		return format{jpegHeader, jpegDecode}, true
	case GIF:
		return format{gifHeader, gifDecode}, true
	case WebP:
		return format{webpHeader, webpDecode}, true
	}
	return format{}, false
}

// fit makes an image fit to be shown: turned upright as its EXIF says, its first frame alone, and scaled down, never
// up, to the sizes of o. What fits already is returned as it is, but only after all of it was decoded. Colour profiles
// are ignored. Errors: ErrKind, ErrDamaged, ErrSlow, a *LimitError, or the reason for which ctx ended.
//
// It is safe for concurrent use, but each call may hold 100 MiB: use Reader.Fit in a server.
func fit(ctx context.Context, data []byte, o FitOptions) (Image, error) {
	kind := Sniff(data)
	f, ok := formatOf(kind)
	if !ok {
		return Image{}, ErrKind
	}
	if len(data) > MaxImageBytes {
		return Image{}, &LimitError{What: "bytes", Have: int64(len(data)), Most: MaxImageBytes}
	}
	h, err := checked(data, f)
	if err != nil {
		return Image{}, err
	}
	width, height := upright(h.turn, h.width, h.height)
	m := Image{Kind: kind, Width: width, Height: height, Animated: h.animated}
	m.ShownWidth, m.ShownHeight = shown(width, height, cmp.Or(o.MaxEdge, defaultEdge),
		cmp.Or(o.MaxPixels, defaultPixels))

	if h.memory > worthCollecting {
		// Else the next image comes on top of what this one leaves behind: three in a row took 153 MiB instead of 111
		// (TestFitMemory, the JPEG of 10,000 scans).
		defer runtime.GC()
	}
	maxBytes := cmp.Or(o.MaxBytes, defaultBytes)
	var c *canvas // nil: the pixels are looked at and forgotten
	if width != m.ShownWidth || height != m.ShownHeight || h.turn > 1 || h.animated || h.foreign ||
		len(data) > maxBytes {
		tw, th := upright(h.turn, m.ShownWidth, m.ShownHeight)
		c = newCanvas(h.width, h.height, tw, th)
	}
	if err := decode(ctx, data, f, h, c, cmp.Or(o.MaxTime, defaultTime)); err != nil {
		return Image{}, err
	}
	m.Data, m.MIME = data, kind.MIME()
	if c == nil {
		return m, nil
	}
	small, mime, err := encode(turned(c.image(), h.turn), kind, maxBytes)
	if err != nil {
		return Image{}, err
	}
	// A JPEG of the right size that does not become smaller stays what it was.
	if kind != JPEG || len(small) < len(data) || width != m.ShownWidth || h.turn > 1 || h.foreign {
		m.Data, m.MIME = small, mime
	}
	return m, nil
}

// checked reads the header of an image and refuses what is too large to be decoded.
func checked(data []byte, f format) (header, error) {
	var h header
	if err := guarded(func() (err error) { h, err = f.header(data); return err }); err != nil {
		return header{}, err
	}
	pixels, edge := int64(h.width)*int64(h.height), int64(max(h.width, h.height))
	switch {
	case h.width <= 0 || h.height <= 0:
		return header{}, fmt.Errorf("%w: %d by %d pixels", ErrDamaged, h.width, h.height)
	case edge > MaxImageEdge:
		return header{}, &LimitError{What: "pixels on one side", Have: edge, Most: MaxImageEdge}
	case pixels > MaxImagePixels:
		return header{}, &LimitError{What: "pixels", Have: pixels, Most: MaxImagePixels}
	case h.memory > maxMemory:
		return header{}, &LimitError{What: "bytes of memory to decode it", Have: h.memory, Most: maxMemory}
	}
	return h, nil
}

// decode runs the decoder of f, for a time.
func decode(ctx context.Context, data []byte, f format, h header, c *canvas, most time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, ErrSlow)
	defer cancel()
	alive := func() error { return context.Cause(ctx) }
	err := guarded(func() error { return f.decode(&source{data: data, alive: alive}, h, c) })
	// The end of ctx comes first: a decoder takes it for a file that is cut off.
	return cmp.Or(alive(), err)
}

// guarded runs a decoder. What it says means ErrDamaged, and so does a panic: the bytes are a stranger's, and decoders
// of the standard library have panicked before.
func guarded(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the decoder panicked: %v", ErrDamaged, p)
		}
	}()
	err = run()
	if _, limit := errors.AsType[*LimitError](err); err == nil || limit || errors.Is(err, ErrDamaged) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// shown is the size at which an image is shown.
func shown(width, height, maxEdge, maxPixels int) (int, int) {
	scale := min(1, float64(maxEdge)/float64(max(width, height)),
		math.Sqrt(float64(maxPixels)/(float64(width)*float64(height))))
	w, h := max(1, int(math.Round(float64(width)*scale))), max(1, int(math.Round(float64(height)*scale)))
	if w*h > maxPixels && h > 1 { // both were rounded up
		h--
	}
	return min(w, width), min(h, height)
}
