package media

import (
	"bufio"
	"compress/lzw"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
)

// image/gif holds a frame, and an interlaced one twice. Here its rows go to the canvas as they come.

// A gifFrame is the first frame of a GIF.
type gifFrame struct {
	size       image.Point // of the image
	at         image.Rectangle
	interlaced bool
	table      [256][4]byte // pixels by their number
	codes      []byte       // width of the codes, then blocks
}

func gifHeader(data []byte) (header, error) {
	f, frames, err := parseGIF(data)
	return header{width: f.size.X, height: f.size.Y, memory: 8 * int64(f.at.Dx()), animated: frames > 1}, err
}

// parseGIF walks over the blocks of all frames without decoding any: how many there are, and whether the file has an
// end. What is kept is the first.
func parseGIF(data []byte) (f gifFrame, frames int, err error) {
	if len(data) < 13 {
		return f, 0, io.ErrUnexpectedEOF
	}
	f.size = image.Pt(int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:])))
	colours, rest, err := gifColours(data[10], data[13:])
	if err != nil {
		return f, 0, err
	}
	transparent := -1
	for {
		if len(rest) == 0 {
			return f, frames, io.ErrUnexpectedEOF
		}
		block := rest[0]
		rest = rest[1:]
		switch block {
		case 0x21: // extension: its kind, then blocks
			if len(rest) >= 6 && rest[0] == 0xf9 && rest[1] == 4 && rest[2]&1 == 1 && frames == 0 {
				transparent = int(rest[5])
			}
			if len(rest) > 0 {
				rest, err = gifBlocks(rest[1:])
			}
		case 0x2c:
			if frames++; frames == 1 {
				rest, err = f.read(rest, colours, transparent)
			} else {
				rest, err = skipGIFFrame(rest)
			}
		case 0x3b:
			if frames == 0 {
				err = errors.New("no frame")
			}
			return f, frames, err
		default:
			err = fmt.Errorf("unknown block %#x", block)
		}
		if err != nil {
			return f, frames, err
		}
	}
}

// gifColours takes a table of colours, if flags say that there is one.
func gifColours(flags byte, data []byte) (colours, rest []byte, err error) {
	n := 0
	if flags&0x80 != 0 {
		n = 3 << (flags&7 + 1)
	}
	if len(data) < n {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return data[:n], data[n:], nil
}

// read takes a frame: place, size, flags, colours, codes.
func (f *gifFrame) read(data, colours []byte, transparent int) (rest []byte, err error) {
	own, codes, err := gifFrameParts(data)
	if err != nil {
		return nil, err
	}
	word := func(i int) int { return int(binary.LittleEndian.Uint16(data[i:])) }
	f.at = image.Rect(word(0), word(2), word(0)+word(4), word(2)+word(6))
	f.interlaced = data[8]&0x40 != 0
	if len(own) > 0 {
		colours = own
	}
	for i := range len(colours) / 3 {
		f.table[i] = [4]byte{colours[3*i], colours[3*i+1], colours[3*i+2], 255}
	}
	if transparent >= 0 {
		f.table[transparent] = [4]byte{}
	}
	f.codes = codes
	return gifBlocks(codes[1:])
}

// skipGIFFrame goes over a frame that is only counted. There may be a million: none is worth a table of colours.
func skipGIFFrame(data []byte) (rest []byte, err error) {
	_, codes, err := gifFrameParts(data)
	if err != nil {
		return nil, err
	}
	return gifBlocks(codes[1:])
}

// gifFrameParts are the colours of a frame alone, if it has some, and from its codes on the rest of the file.
func gifFrameParts(data []byte) (own, codes []byte, err error) {
	if len(data) < 9 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	own, codes, err = gifColours(data[8], data[9:])
	if err == nil && len(codes) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return own, codes, err
}

// gifBlocks skips blocks up to the empty one. Each begins with its length.
func gifBlocks(data []byte) ([]byte, error) {
	for len(data) > 0 && len(data) > int(data[0]) {
		n := int(data[0])
		if data = data[1+n:]; n == 0 {
			return data, nil
		}
	}
	return nil, io.ErrUnexpectedEOF
}

// A gifReader reads what is in blocks. They were checked before.
type gifReader struct{ body, rest []byte }

func (r *gifReader) Read(b []byte) (int, error) {
	if len(r.body) == 0 {
		n := int(r.rest[0])
		if n == 0 {
			return 0, io.EOF
		}
		r.body, r.rest = r.rest[1:1+n], r.rest[1+n:]
	}
	n := copy(b, r.body)
	r.body = r.body[n:]
	return n, nil
}

// gifDecode decodes the first frame. It may cover a part of the image; the rest is transparent.
func gifDecode(s *source, _ header, c *canvas) error {
	f, _, err := parseGIF(s.data)
	if err != nil {
		return err
	}
	bits := int(f.codes[0])
	if f.at.Empty() || !f.at.In(image.Rectangle{Max: f.size}) || bits < 2 || bits > 8 {
		return fmt.Errorf("frame %v of %d bits in %v", f.at, bits, f.size)
	}
	r := lzw.NewReader(bufio.NewReader(&gifReader{rest: f.codes[1:]}), lzw.LSB, bits)
	defer func() { _ = r.Close() }() // it has no more than was read
	line, row := make([]byte, f.at.Dx()), make([]byte, 4*f.at.Dx())
	for y := range f.rows {
		if err := s.alive(); err != nil {
			return err
		}
		if _, err := io.ReadFull(r, line); err != nil {
			return fmt.Errorf("row %d: %w", y, err)
		}
		if c != nil {
			for x, v := range line {
				*(*[4]byte)(row[4*x:]) = f.table[v]
			}
			c.row(f.at.Min.Y+y, f.at.Min.X, 1, row)
		}
	}
	return nil
}

// rows are the rows of a frame in the order of the file.
func (f *gifFrame) rows(yield func(y int) bool) {
	passes := [][2]int{{0, 1}}
	if f.interlaced {
		passes = [][2]int{{0, 8}, {4, 8}, {2, 4}, {1, 2}}
	}
	for _, p := range passes {
		for y := p[0]; y < f.at.Dy(); y += p[1] {
			if !yield(y) {
				return
			}
		}
	}
}
