package media

import (
	"encoding/binary"
	"fmt"
)

// unfilter restores a row of a PNG. pixel is the distance in bytes to the sample on the left.
func unfilter(filter byte, row, above []byte, pixel int) error {
	above = above[:len(row)]
	switch filter {
	case 0:
	case 1:
		for i := pixel; i < len(row); i++ {
			row[i] += row[i-pixel]
		}
	case 2:
		for i, b := range above {
			row[i] += b
		}
	case 3:
		for i := range min(pixel, len(row)) {
			row[i] += above[i] / 2
		}
		for i := pixel; i < len(row); i++ {
			row[i] += uint8((int(row[i-pixel]) + int(above[i])) / 2)
		}
	case 4:
		paeth(row, above, pixel)
	default:
		return fmt.Errorf("filter %d", filter)
	}
	return nil
}

// paeth predicts a sample by that of its three neighbours which is nearest to left+above-corner. It goes channel by
// channel, so that the neighbours of one stay in registers.
func paeth(row, above []byte, pixel int) {
	for channel := range min(pixel, len(row)) {
		left, corner := 0, 0
		for i := channel; i < len(row); i += pixel {
			up := int(above[i])
			a, b := up-corner, left-corner // distances of the estimate from left and from above
			c := a + b
			a, b, c = max(a, -a), max(b, -b), max(c, -c)
			best := corner
			if a <= b && a <= c {
				best = left
			} else if b <= c {
				best = up
			}
			left = int(row[i] + uint8(best))
			row[i] = uint8(left)
			corner = up
		}
	}
}

// shower returns what turns samples of a row into pixels of a canvas.
func (p *pngImage) shower() func(row, out []byte) {
	switch {
	case p.depth <= 8 && (p.colour == 3 || p.colour == 0):
		return lookUp(p.table(), uint(p.depth))
	case p.colour == 6 && p.depth == 8:
		return func(row, out []byte) {
			copy(out, row)
			for ; len(out) >= 4; out = out[4:] {
				if out[3] != 255 {
					multiply(out)
				}
			}
		}
	}
	return p.showSamples
}

// table has the pixel of each value of a palette, or of grey.
func (p *pngImage) table() *[256][4]byte {
	var t [256][4]byte
	for i := range t {
		t[i] = [4]byte{0, 0, 0, 255} // values outside of the palette, as browsers show them
	}
	if p.colour == 3 {
		for i := range len(p.palette) / 3 {
			copy(t[i][:], p.palette[3*i:3*i+3])
			if i < len(p.clear) {
				t[i][3] = p.clear[i]
			}
			multiply(t[i][:])
		}
		return &t
	}
	most := 1<<p.depth - 1
	for i := range most + 1 {
		v := byte(i * 255 / most)
		t[i] = [4]byte{v, v, v, 255}
	}
	if p.clear != nil {
		t[binary.BigEndian.Uint16(p.clear)&uint16(most)] = [4]byte{}
	}
	return &t
}

// lookUp unpacks values of depth bits, the highest bits of a byte first.
func lookUp(t *[256][4]byte, depth uint) func(row, out []byte) {
	return func(row, out []byte) {
		per, mask := 8/depth, byte(1<<depth-1)
		for i := range uint(len(out) / 4) {
			shift := 8 - depth*(1+i%per)
			*(*[4]byte)(out[4*i:]) = t[row[i/per]>>shift&mask]
		}
	}
}

// showSamples takes all that has no table. Of 16 bits, the upper eight are shown.
func (p *pngImage) showSamples(row, out []byte) {
	width := int(p.depth) / 8
	channels := map[byte]int{0: 1, 2: 3, 4: 2, 6: 4}[p.colour]
	for ; len(out) >= 4; out = out[4:] {
		sample := func(i int) byte { return row[i*width] }
		if channels <= 2 {
			out[0], out[1], out[2] = row[0], row[0], row[0]
		} else {
			out[0], out[1], out[2] = row[0], sample(1), sample(2)
		}
		out[3] = 255
		switch {
		case channels == 2 || channels == 4:
			out[3] = sample(channels - 1)
			multiply(out)
		case p.clear != nil && p.isClear(row[:channels*width]):
			clear(out[:4])
		}
		row = row[channels*width:]
	}
}

// isClear compares a pixel with the one colour that is transparent: always 16 bits per channel.
func (p *pngImage) isClear(pixel []byte) bool {
	if p.depth == 16 {
		return string(pixel) == string(p.clear)
	}
	for i, v := range pixel {
		if p.clear[2*i+1] != v {
			return false
		}
	}
	return true
}

// multiply multiplies the colour of a pixel by its alpha.
func multiply(p []byte) {
	a := uint32(p[3])
	for i := range 3 {
		p[i] = uint8((uint32(p[i])*a + 127) / 255)
	}
}
