package media

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The decoder of the standard library holds the whole image, 400 MB for 50 megapixels of 16 bits. This one holds two
// rows. Nothing but the pixels is inflated: texts and profiles are skipped as they are.

// A pngImage is a PNG taken apart.
type pngImage struct {
	width, height int
	depth, colour byte // bits per sample; colour type: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha
	interlaced    bool
	animated      bool
	palette       []byte // PLTE: three bytes each
	clear         []byte // tRNS
	pixels        []byte // from the first IDAT on
}

// pngHeader checks all chunks, so that a file that was cut off is known before anything is decoded.
func pngHeader(data []byte) (header, error) {
	p, err := parsePNG(data)
	if err != nil {
		return header{}, err
	}
	// Two rows of samples, one of pixels.
	return header{width: p.width, height: p.height, memory: 24 * int64(p.width), animated: p.animated}, nil
}

func parsePNG(data []byte) (pngImage, error) {
	var p pngImage
	last := ""
	for rest := data[8:]; ; {
		name, body, after, err := pngChunk(rest)
		switch {
		case err != nil:
			return p, err
		case (last == "") != (name == "IHDR"):
			return p, errors.New("IHDR is not the first chunk")
		case name == "IDAT" && p.pixels != nil && last != "IDAT":
			return p, errors.New("pixels in two places")
		}
		switch name {
		case "IHDR":
			err = p.ihdr(body)
		case "PLTE":
			p.palette = body
			if len(body)%3 != 0 || len(body) > 768 {
				err = fmt.Errorf("palette of %d bytes", len(body))
			}
		case "tRNS":
			p.clear = body
		case "acTL":
			p.animated = p.pixels == nil
		case "IDAT":
			if p.pixels == nil {
				p.pixels = rest
			}
		case "IEND":
			return p, p.complete()
		default:
			// An upper-case first letter: without it the image cannot be shown.
			if name[0]&0x20 == 0 {
				err = fmt.Errorf("unknown chunk %q", name)
			}
		}
		if err != nil {
			return p, err
		}
		rest, last = after, name
	}
}

// An idat reads what is in the chunks IDAT that follow each other. The chunks were checked before.
type idat struct{ body, rest []byte }

func (r *idat) Read(b []byte) (int, error) {
	for len(r.body) == 0 {
		if string(r.rest[4:8]) != "IDAT" {
			return 0, io.EOF
		}
		n := 8 + int(binary.BigEndian.Uint32(r.rest))
		r.body, r.rest = r.rest[8:n], r.rest[n+4:]
	}
	n := copy(b, r.body)
	r.body = r.body[n:]
	return n, nil
}

// pngChunk takes the next chunk from data.
func pngChunk(data []byte) (name string, body, rest []byte, err error) {
	if len(data) < 12 {
		return "", nil, nil, io.ErrUnexpectedEOF
	}
	n := uint64(binary.BigEndian.Uint32(data))
	if n+12 > uint64(len(data)) {
		return "", nil, nil, io.ErrUnexpectedEOF
	}
	if sum := binary.BigEndian.Uint32(data[8+n:]); sum != crc32.ChecksumIEEE(data[4:8+n]) {
		return "", nil, nil, fmt.Errorf("chunk %q has a wrong checksum", data[4:8])
	}
	return string(data[4:8]), data[8 : 8+n], data[12+n:], nil
}

func (p *pngImage) ihdr(b []byte) error {
	if len(b) != 13 || b[10] != 0 || b[11] != 0 || b[12] > 1 {
		return errors.New("IHDR is not as it must be")
	}
	width, height := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if width > 1<<31-1 || height > 1<<31-1 {
		return errors.New("size out of range")
	}
	p.width, p.height = int(width), int(height)
	p.depth, p.colour, p.interlaced = b[8], b[9], b[12] == 1
	depths, ok := map[byte]string{0: "\x01\x02\x04\x08\x10", 2: "\x08\x10", 3: "\x01\x02\x04\x08", 4: "\x08\x10",
		6: "\x08\x10"}[p.colour]
	if !ok || bytes.IndexByte([]byte(depths), p.depth) < 0 {
		return fmt.Errorf("%d bits of colour type %d", p.depth, p.colour)
	}
	return nil
}

// complete says whether the chunks belong together.
func (p *pngImage) complete() error {
	switch {
	case p.pixels == nil:
		return errors.New("no pixels")
	case p.colour == 3 && len(p.palette) == 0:
		return errors.New("no palette")
	case p.colour == 3 && len(p.clear) > len(p.palette)/3, p.colour == 0 && p.clear != nil && len(p.clear) != 2,
		p.colour == 2 && p.clear != nil && len(p.clear) != 6, p.colour > 3 && p.clear != nil:
		return fmt.Errorf("transparency of %d bytes", len(p.clear))
	}
	return nil
}

// A pass is one of the seven parts of an interlaced image, or the whole.
type pass struct{ x, y, dx, dy int }

func (p *pngImage) passes() []pass {
	if !p.interlaced {
		return []pass{{0, 0, 1, 1}}
	}
	return []pass{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
}

func pngDecode(s *source, _ header, c *canvas) error {
	p, err := parsePNG(s.data)
	if err != nil {
		return err
	}
	z, err := zlib.NewReader(bufio.NewReader(&idat{rest: p.pixels}))
	if err != nil {
		return err
	}
	for _, at := range p.passes() {
		if at.x >= p.width || at.y >= p.height {
			continue
		}
		if err := p.rows(s, z, at, c); err != nil {
			return err
		}
	}
	// The end of the stream is where its checksum is compared. More pixels than the header says are a lie of one.
	if n, err := io.ReadFull(z, make([]byte, 1)); n > 0 {
		return errors.New("more pixels than the header says")
	} else if err != io.EOF {
		return err
	}
	return nil
}

// rows decodes the rows of one pass.
func (p *pngImage) rows(s *source, z io.Reader, at pass, c *canvas) error {
	n := (p.width - at.x + at.dx - 1) / at.dx
	bits := int(p.depth) * map[byte]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[p.colour]
	size, pixel := (n*bits+7)/8, max(1, bits/8)
	row, above := make([]byte, 1+size), make([]byte, 1+size)
	out, show := make([]byte, 4*n), p.shower()
	for y := at.y; y < p.height; y += at.dy {
		if err := s.alive(); err != nil {
			return err
		}
		if _, err := io.ReadFull(z, row); err != nil {
			return fmt.Errorf("row %d: %w", y, err)
		}
		if err := unfilter(row[0], row[1:], above[1:], pixel); err != nil {
			return err
		}
		if c != nil {
			show(row[1:], out)
			c.row(y, at.x, at.dx, out)
		}
		row, above = above, row
	}
	return nil
}
