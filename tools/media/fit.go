package media

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
)

// FitOptions bound an image. A zero field is the default.
type FitOptions struct {
	MaxEdge   int // pixels of the longer side of what is shown; 1,568
	MaxPixels int // width by height of what is shown; 1,150,000
	MaxBytes  int // above, what is shown is made a JPEG of quality 85; 500 KiB
}

// An Image is an image to be shown.
type Image struct {
	Data                    []byte // the bytes handed in, if nothing had to be changed
	MIME                    string // of Data
	Kind                    Kind   // of the file
	Width, Height           int    // of the file, upright
	ShownWidth, ShownHeight int    // of Data
	Animated                bool   // Data is the first of several frames
}

// Limits of an image file.
const (
	MaxImageBytes  = 20 << 20
	MaxImagePixels = 50_000_000
)

// Fit makes an image fit to be shown: scaled down, never up, to the sizes of o. Errors: ErrKind, ErrDamaged, ErrSlow,
// a *LimitError, or the reason for which ctx ended.
func Fit(ctx context.Context, data []byte, o FitOptions) (Image, error) {
	kind := Sniff(data)
	if !kind.Image() {
		return Image{}, ErrKind
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return Image{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if n := int64(config.Width) * int64(config.Height); n > MaxImagePixels {
		return Image{}, &LimitError{What: "pixels", Have: n, Most: MaxImagePixels}
	}
	decode := png.Decode
	if kind == JPEG {
		decode = jpeg.Decode
	}
	if _, err := decode(bytes.NewReader(data)); err != nil {
		return Image{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return Image{
		Data: data, MIME: kind.MIME(), Kind: kind, Width: config.Width, Height: config.Height,
		ShownWidth: config.Width, ShownHeight: config.Height,
	}, context.Cause(ctx)
}
