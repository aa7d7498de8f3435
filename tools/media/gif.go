package media

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"io"
)

// gifHeader walks over the blocks of all frames without decoding any: whether there is a second one, and whether the
// file has an end.
func gifHeader(data []byte) (header, error) {
	if len(data) < 13 {
		return header{}, io.ErrUnexpectedEOF
	}
	h := header{width: int(binary.LittleEndian.Uint16(data[6:])), height: int(binary.LittleEndian.Uint16(data[8:]))}
	rest, err := skipped(data[13:], colours(data[10]))
	for frames := 0; err == nil; {
		if len(rest) == 0 {
			return header{}, io.ErrUnexpectedEOF
		}
		block := rest[0]
		rest = rest[1:]
		switch block {
		case 0x21: // extension: its kind, then blocks
			if rest, err = skipped(rest, 1); err == nil {
				rest, err = gifBlocks(rest)
			}
		case 0x2c:
			if frames++; frames == 1 && len(rest) >= 9 {
				h.memory = gifMemory(rest)
			}
			rest, err = gifFrame(rest)
		case 0x3b:
			h.animated = frames > 1
			if frames == 0 {
				return header{}, errors.New("no frame")
			}
			return h, nil
		default:
			return header{}, fmt.Errorf("unknown block %#x", block)
		}
	}
	return header{}, err
}

// colours is the length of a colour table in bytes, by the flags before it.
func colours(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// gifMemory is what image/gif takes for a frame: a byte per pixel, twice if its rows must be put in order.
func gifMemory(descriptor []byte) int64 {
	n := int64(binary.LittleEndian.Uint16(descriptor[4:])) * int64(binary.LittleEndian.Uint16(descriptor[6:]))
	if descriptor[8]&0x40 != 0 {
		n *= 2
	}
	return n
}

// gifFrame skips a frame: descriptor, colours, width of the codes, blocks.
func gifFrame(data []byte) ([]byte, error) {
	if len(data) < 9 {
		return nil, io.ErrUnexpectedEOF
	}
	rest, err := skipped(data, 9+colours(data[8])+1)
	if err != nil {
		return nil, err
	}
	return gifBlocks(rest)
}

// gifBlocks skips blocks up to the empty one. Each begins with its length.
func gifBlocks(data []byte) ([]byte, error) {
	for len(data) > 0 {
		n := int(data[0])
		rest, err := skipped(data, 1+n)
		if err != nil || n == 0 {
			return rest, err
		}
		data = rest
	}
	return nil, io.ErrUnexpectedEOF
}

func skipped(data []byte, n int) ([]byte, error) {
	if len(data) < n {
		return nil, io.ErrUnexpectedEOF
	}
	return data[n:], nil
}

// gifDecode decodes the first frame. It may cover a part of the image; the rest is transparent.
func gifDecode(s *source, h header, c *canvas) error {
	decoded, err := gif.Decode(s)
	if err != nil {
		return err
	}
	m, ok := decoded.(*image.Paletted)
	if !ok {
		return fmt.Errorf("unknown colours: %T", decoded)
	}
	if c == nil {
		return nil
	}
	var table [256][4]byte
	for i, colour := range m.Palette {
		r, g, b, a := colour.RGBA()
		table[i] = [4]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8), byte(a >> 8)}
	}
	row := make([]byte, 4*m.Rect.Dx())
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		if err := s.alive(); err != nil {
			return err
		}
		for x, v := range m.Pix[(y-m.Rect.Min.Y)*m.Stride:][:m.Rect.Dx()] {
			*(*[4]byte)(row[4*x:]) = table[v]
		}
		c.row(y, m.Rect.Min.X, 1, row)
	}
	return nil
}
