package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"

	"golang.org/x/image/webp"
)

// A webpImage is a WebP taken apart, as far as its first frame.
type webpImage struct {
	header
	at    image.Point // of the frame in the image
	frame image.Point // its size
	alpha []byte      // chunk ALPH, whole
	data  []byte      // chunk "VP8 " or VP8L, whole
}

func webpHeader(data []byte) (header, error) {
	w, err := parseWebP(data)
	return w.header, err
}

func parseWebP(data []byte) (webpImage, error) {
	var w webpImage
	size := uint64(binary.LittleEndian.Uint32(data[4:]))
	if size+8 > uint64(len(data)) {
		return w, io.ErrUnexpectedEOF
	}
	for rest := data[12 : 8+size]; len(rest) > 0; {
		name, body, chunk, after, err := riffChunk(rest)
		if err != nil {
			return w, err
		}
		switch {
		case name == "VP8X" && len(body) >= 10:
			w.width, w.height = 1+uint24(body[4:]), 1+uint24(body[7:])
			w.frame = image.Pt(w.width, w.height)
		case name == "ANMF" && w.data == nil:
			err = w.firstFrame(body)
		case name == "ANMF":
			w.animated = true
		default:
			err = w.take(name, body, chunk)
		}
		if err != nil {
			return w, err
		}
		rest = after
	}
	return w, w.complete()
}

// riffChunk takes the next chunk: its name, what is in it, and both with the length and the padding.
func riffChunk(data []byte) (name string, body, chunk, rest []byte, err error) {
	if len(data) < 8 {
		return "", nil, nil, nil, io.ErrUnexpectedEOF
	}
	n := uint64(binary.LittleEndian.Uint32(data[4:]))
	end := 8 + n + n&1
	if end > uint64(len(data)) {
		return "", nil, nil, nil, io.ErrUnexpectedEOF
	}
	return string(data[:4]), data[8 : 8+n], data[:end], data[end:], nil
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// firstFrame reads a frame of an animation: its place, its size, and chunks as a still image has them.
func (w *webpImage) firstFrame(body []byte) error {
	if len(body) < 16 || w.width == 0 {
		return errors.New("frame is not as it must be")
	}
	w.at, w.frame = image.Pt(2*uint24(body), 2*uint24(body[3:])), image.Pt(1+uint24(body[6:]), 1+uint24(body[9:]))
	if w.at.X+w.frame.X > w.width || w.at.Y+w.frame.Y > w.height {
		return errors.New("frame is larger than the image")
	}
	for rest := body[16:]; len(rest) > 0; {
		name, body, chunk, after, err := riffChunk(rest)
		if err == nil {
			err = w.take(name, body, chunk)
		}
		if err != nil {
			return err
		}
		rest = after
	}
	return nil
}

// take keeps the chunks of pixels.
func (w *webpImage) take(name string, body, chunk []byte) error {
	switch {
	case w.data != nil:
		return nil
	case name == "ALPH" && w.alpha == nil && w.width > 0:
		w.alpha = chunk
		return nil
	case name == "VP8L" && len(body) >= 5:
		bits := binary.LittleEndian.Uint32(body[1:])
		return w.pixels(chunk, int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1)
	case name == "VP8 " && len(body) >= 10:
		return w.pixels(chunk, int(binary.LittleEndian.Uint16(body[6:])&0x3fff),
			int(binary.LittleEndian.Uint16(body[8:])&0x3fff))
	}
	return nil
}

// pixels compares the size that a chunk of pixels names with that of the frame.
func (w *webpImage) pixels(chunk []byte, width, height int) error {
	if w.width == 0 { // a file without VP8X
		w.width, w.height, w.frame = width, height, image.Pt(width, height)
	}
	if w.frame != image.Pt(width, height) {
		return fmt.Errorf("%d by %d pixels, and the header says %d by %d", width, height, w.frame.X, w.frame.Y)
	}
	w.data = chunk
	return nil
}

// complete foresees the memory that golang.org/x/image v0.47.0 takes: a copy of the data; lossy one and a half bytes
// per pixel of blocks of 16 by 16, and five with alpha; without loss four, and two more if the colours are indexed.
func (w *webpImage) complete() error {
	if w.data == nil {
		return errors.New("no pixels")
	}
	blocks := int64((w.frame.X+15)/16) * int64((w.frame.Y+15)/16) * 256
	switch {
	case w.lossless():
		w.memory = 6 * blocks
	case w.alpha != nil:
		w.memory = blocks*13/2 + int64(len(w.data))
	default:
		w.memory = blocks*3/2 + int64(len(w.data))
	}
	return nil
}

func (w *webpImage) lossless() bool { return string(w.data[:4]) == "VP8L" }

// still is the first frame as a file of its own, without profile and remarks.
func (w *webpImage) still() []byte {
	body := []byte("WEBP")
	if w.alpha != nil && !w.lossless() {
		const hasAlpha = 1 << 4
		size := make([]byte, 8)
		binary.LittleEndian.PutUint32(size, uint32(w.frame.X-1))
		binary.LittleEndian.PutUint32(size[3:], uint32(w.frame.Y-1)) // the first has 24 bits
		body = append(append(body, "VP8X\x0a\x00\x00\x00"+string(rune(hasAlpha))+"\x00\x00\x00"...), size[:6]...)
		body = append(body, w.alpha...)
	}
	head := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body)+len(w.data)))
	return bytes.Join([][]byte{head, body, w.data}, nil)
}

func webpDecode(s *source, _ header, c *canvas) error {
	w, err := parseWebP(s.data)
	if err != nil {
		return err
	}
	m, err := webp.Decode(&source{data: w.still(), alive: s.alive})
	if err != nil {
		return err
	}
	if size := m.Bounds().Size(); size != w.frame {
		return fmt.Errorf("%d by %d pixels, and the header says %d by %d", size.X, size.Y, w.frame.X, w.frame.Y)
	}
	return paint(s, m, w.at, studio, c)
}
