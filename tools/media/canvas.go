package media

import "image"

// A canvas is what is shown of an image while its pixels come in, in any order. Each pixel of the canvas becomes the
// mean of the area of the image that it covers, so the image itself is never held: a canvas takes 16 bytes per pixel
// that is shown, whatever the image has. It only scales down. A nil canvas takes pixels and forgets them.
type canvas struct {
	width, height int // of the image
	w, h          int // of the canvas
	// ycc: the first three channels are luma and chroma, and all is opaque. They are converted once they are few; a
	// mean may be taken in either, since one is a linear function of the other.
	ycc  luma
	sum  []float32 // four channels per pixel of the canvas
	line []float32 // the same for the row that comes in, only reduced in width
}

func newCanvas(width, height, w, h int) *canvas {
	return &canvas{width: width, height: height, w: w, h: h, sum: make([]float32, 4*w*h), line: make([]float32, 4*w)}
}

// row takes the pixels x, x+step, x+2*step … of row y: four bytes each, colour multiplied by alpha, then alpha.
func (c *canvas) row(y, x, step int, pixels []byte) {
	if c == nil {
		return
	}
	clear(c.line)
	c.across(x, step, pixels)
	// Row y covers the units y*h to y*h+h, a row of the canvas height of them: one or two rows get a share.
	at := y * c.h
	first, off := at/c.height, at%c.height
	share := min(c.h, c.height-off)
	c.down(first, float32(share)/float32(c.height))
	if share < c.h {
		c.down(first+1, float32(c.h-share)/float32(c.height))
	}
}

// across reduces pixels in width, into line. As row does for rows, a pixel goes to one or two pixels of line.
func (c *canvas) across(x, step int, pixels []byte) {
	at := x * c.w
	cell, off := at/c.width, at%c.width
	one := float32(c.w) / float32(c.width) // the share of a pixel that lies in one cell
	var r, g, b, a uint32                  // whole pixels of this cell: at most 65,535 of 255
	flush := func() {
		p := c.line[4*cell : 4*cell+4 : 4*cell+4]
		p[0] += float32(r) * one
		p[1] += float32(g) * one
		p[2] += float32(b) * one
		p[3] += float32(a) * one
		r, g, b, a = 0, 0, 0, 0
	}
	move := step * c.w
	for ; len(pixels) >= 4; pixels = pixels[4:] {
		if share := c.width - off; share >= c.w {
			r += uint32(pixels[0])
			g += uint32(pixels[1])
			b += uint32(pixels[2])
			a += uint32(pixels[3])
		} else {
			part := float32(share) / float32(c.width)
			for i := range 4 {
				c.line[4*cell+i] += float32(pixels[i]) * part
				c.line[4*cell+4+i] += float32(pixels[i]) * (one - part)
			}
		}
		if off += move; off >= c.width {
			flush()
			cell += off / c.width
			off %= c.width
		}
	}
	if cell < c.w {
		flush()
	}
}

// down adds line to a row of the canvas.
func (c *canvas) down(row int, share float32) {
	sum := c.sum[4*c.w*row:][:len(c.line)]
	for i, v := range c.line {
		sum[i] += v * share
	}
}

// image is what has come in.
func (c *canvas) image() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, c.w, c.h))
	for p := 0; p < len(c.sum); p += 4 {
		v, to := c.sum[p:p+4:p+4], m.Pix[p:p+4:p+4]
		switch {
		case c.ycc != rgb:
			to[0], to[1], to[2] = c.ycc.toRGB(v[0], v[1], v[2])
			to[3] = 255
		case v[3] > 0:
			for i := range 3 {
				to[i] = whole(v[i] * 255 / v[3])
			}
			to[3] = whole(v[3])
		}
	}
	return m
}

// whole rounds a mean of bytes.
func whole(v float32) uint8 { return uint8(min(max(v, 0), 255) + 0.5) }

// upright is the size of an image after it was turned.
func upright(turn, width, height int) (int, int) {
	if turn >= 5 {
		return height, width
	}
	return width, height
}

// turned turns m upright. The values of turn are those of EXIF 2.32, 4.6.4, Orientation: where row 0 and column 0 of
// the file belong (3: bottom and right; 6: right and top).
func turned(m *image.NRGBA, turn int) *image.NRGBA {
	if turn <= 1 {
		return m
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	tw, th := upright(turn, w, h)
	to := image.NewNRGBA(image.Rect(0, 0, tw, th))
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch turn {
			case 2, 3:
				tx = w - 1 - x
			case 6, 7:
				tx = h - 1 - y
			case 5, 8:
				tx = y
			}
			switch turn {
			case 3, 4:
				ty = h - 1 - y
			case 7, 8:
				ty = w - 1 - x
			case 5, 6:
				ty = x
			}
			copy(to.Pix[to.PixOffset(tx, ty):][:4], m.Pix[m.PixOffset(x, y):][:4])
		}
	}
	return to
}
