package media

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
)

// quality is that of a JPEG of ours.
const quality = 85

// encode writes m as a PNG if it came from a format without loss and takes at most maxBytes, else as a JPEG.
func encode(m *image.NRGBA, from Kind, maxBytes int) (data []byte, mime string, err error) {
	if from != JPEG {
		b := bounded{most: maxBytes}
		err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, m)
		if err == nil {
			return b.Bytes(), PNG.MIME(), nil
		}
		if !errors.Is(err, errFull) {
			return nil, "", err
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, onWhite(m), &jpeg.Options{Quality: quality}); err != nil {
		return nil, "", err
	}
	return b.Bytes(), JPEG.MIME(), nil
}

// onWhite lays m over white, since JPEG has no alpha. It changes m.
func onWhite(m *image.NRGBA) image.Image {
	for p := 0; p < len(m.Pix); p += 4 {
		a := uint32(m.Pix[p+3])
		for i := range 3 {
			m.Pix[p+i] = uint8((uint32(m.Pix[p+i])*a + 255*(255-a) + 127) / 255)
		}
		m.Pix[p+3] = 255
	}
	// Opaque, the two are the same bytes, and the encoder is several times faster with this one.
	return &image.RGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
}

// errFull ends the work of an encoder whose result has become too long.
var errFull = errors.New("more bytes than are wanted")

// bounded is a buffer with an end.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errFull
	}
	return b.Buffer.Write(p)
}
