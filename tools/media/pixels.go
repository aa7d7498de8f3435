package media

import (
	"fmt"
	"image"
	"image/color"
)

// A luma says how brightness and colour of ITU-R BT.601 are written in bytes.
type luma int

const (
	rgb    luma = iota // not at all
	full               // JPEG: luma 0 to 255
	studio             // WebP: luma 16 to 235, chroma 16 to 240; x/image says image.YCbCr, which is full
)

// toRGB converts one pixel.
func (l luma) toRGB(y, cb, cr float32) (r, g, b uint8) {
	cb, cr = cb-128, cr-128
	if l == studio {
		y, cb, cr = (y-16)*255/219, cb*255/224, cr*255/224
	}
	return whole(y + 1.402*cr), whole(y - 0.344136*cb - 0.714136*cr), whole(y + 1.772*cb)
}

// paint copies a decoded image, whose own corner is 0, 0, onto a canvas, with that corner at at.
func paint(s *source, m image.Image, at image.Point, l luma, c *canvas) error {
	if c == nil {
		return nil
	}
	size := m.Bounds().Size()
	_, now := m.(*image.YCbCr)
	if now && size == image.Pt(c.width, c.height) { // nothing beside it, which would be transparent
		c.ycc, now = l, false
	}
	row := make([]byte, 4*size.X)
	for y := range size.Y {
		if err := s.alive(); err != nil {
			return err
		}
		if err := pixelsOf(m, y, row, l); err != nil {
			return err
		}
		for p := row; now && len(p) >= 4; p = p[4:] {
			p[0], p[1], p[2] = l.toRGB(float32(p[0]), float32(p[1]), float32(p[2]))
		}
		c.row(at.Y+y, at.X, 1, row)
	}
	return nil
}

// pixelsOf writes row y of an image as a canvas takes it.
func pixelsOf(m image.Image, y int, row []byte, l luma) error {
	switch m := m.(type) {
	case *image.YCbCr:
		lumaRow(m, y, row)
	case *image.NYCbCrA:
		lumaRow(&m.YCbCr, y, row)
		for x := range len(row) / 4 {
			p := row[4*x : 4*x+4]
			p[0], p[1], p[2] = l.toRGB(float32(p[0]), float32(p[1]), float32(p[2]))
			p[3] = m.A[m.AOffset(x, y)]
			multiply(p)
		}
	case *image.Gray:
		for x, v := range m.Pix[y*m.Stride:][:len(row)/4] {
			*(*[4]byte)(row[4*x:]) = [4]byte{v, v, v, 255}
		}
	case *image.RGBA:
		copy(row, m.Pix[y*m.Stride:])
	case *image.NRGBA:
		copy(row, m.Pix[y*m.Stride:])
		for p := row; len(p) >= 4; p = p[4:] {
			if p[3] != 255 {
				multiply(p)
			}
		}
	case *image.CMYK:
		for x := range len(row) / 4 {
			p := m.Pix[m.PixOffset(x, y):][:4]
			r, g, b := color.CMYKToRGB(p[0], p[1], p[2], p[3])
			*(*[4]byte)(row[4*x:]) = [4]byte{r, g, b, 255}
		}
	default:
		return fmt.Errorf("unknown colours: %T", m)
	}
	return nil
}

// lumaRow writes brightness and colour as they are.
func lumaRow(m *image.YCbCr, y int, row []byte) {
	bright := m.Y[m.YOffset(0, y):][:len(row)/4]
	at := m.COffset(0, y)
	cb, cr := m.Cb[at:], m.Cr[at:]
	var shift uint
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420:
		shift = 1
	case image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410:
		shift = 2
	}
	for x, v := range bright {
		*(*[4]byte)(row[4*x:]) = [4]byte{v, cb[x>>shift], cr[x>>shift], 255}
	}
}
