package media

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
)

// A jpegFrame is what the segments of a JPEG before its first scan say.
type jpegFrame struct {
	header
	progressive bool
	sampling    []byte // per component: horizontal and vertical, four bits each
	ids         string // of the components
	jfif, adobe bool
	transform   byte // of Adobe's segment; 0: RGB or CMYK
}

// jpegHeader goes through the segments as image/jpeg of Go 1.26 does (reader.go, decode), which passes over bytes that
// are no marker: if it saw another frame than this, it would take more memory than was foreseen.
func jpegHeader(data []byte) (header, error) {
	var f jpegFrame
	for at := 2; ; {
		marker, next, err := jpegMarker(data, at)
		if err != nil {
			return header{}, err
		}
		if marker >= 0xd0 && marker <= 0xd7 { // a restart, which has no length
			at = next
			continue
		}
		if len(data) < next+2 {
			return header{}, io.ErrUnexpectedEOF
		}
		n := int(binary.BigEndian.Uint16(data[next:]))
		if n < 2 {
			return header{}, errors.New("segment too short")
		}
		if len(data) < next+n {
			return header{}, io.ErrUnexpectedEOF
		}
		body := data[next+2 : next+n]
		at = next + n
		switch marker {
		case 0xc0, 0xc1, 0xc2:
			f.progressive = marker == 0xc2
			err = f.start(body)
		case 0xd9, 0xda: // end, scan
			return f.complete()
		case 0xe0:
			f.jfif = f.jfif || len(body) >= 5 && string(body[:5]) == "JFIF\x00"
		case 0xe1:
			if f.turn == 0 {
				f.turn = orientation(body)
			}
		case 0xee:
			if len(body) >= 12 && string(body[:5]) == "Adobe" {
				f.adobe, f.transform = true, body[11]
			}
		}
		if err != nil {
			return header{}, err
		}
	}
}

// jpegMarker finds the next marker, and where its segment begins.
func jpegMarker(data []byte, at int) (marker byte, next int, err error) {
	for ; at+1 < len(data); at++ {
		if data[at] != 0xff || data[at+1] == 0 || data[at+1] == 0xff {
			continue
		}
		return data[at+1], at + 2, nil
	}
	return 0, 0, io.ErrUnexpectedEOF
}

// start reads a frame's segment.
func (f *jpegFrame) start(b []byte) error {
	if f.sampling != nil || len(b) < 6 || len(b) != 6+3*int(b[5]) {
		return errors.New("frame is not as it must be")
	}
	f.height, f.width = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	for c := b[6:]; len(c) > 0; c = c[3:] {
		f.ids += string(c[0:1])
		f.sampling = append(f.sampling, c[1])
	}
	return nil
}

// complete foresees the memory that image/jpeg takes: a byte per sample, four more for the coefficients of a
// progressive one, and another image if the colours are not those of JFIF.
func (f *jpegFrame) complete() (header, error) {
	var most [2]int
	samples := 0
	for _, s := range f.sampling {
		h, v := int(s>>4), int(s&15)
		if h < 1 || h > 4 || v < 1 || v > 4 {
			return header{}, fmt.Errorf("sampling of %d by %d", h, v)
		}
		most[0], most[1] = max(most[0], h), max(most[1], v)
		samples += h * v
	}
	if samples == 0 {
		return header{}, errors.New("no frame before the first scan")
	}
	if len(f.sampling) == 1 { // the one component is not interleaved, whatever its sampling
		most, samples = [2]int{1, 1}, 1
	}
	across, down := (f.width-1)/(8*most[0])+1, (f.height-1)/(8*most[1])+1
	f.memory = 64 * int64(samples) * int64(across) * int64(down)
	if f.progressive {
		f.memory *= 5
	}
	rgb := !f.jfif && (f.adobe && f.transform == 0 || f.ids == "RGB")
	if len(f.sampling) == 4 || len(f.sampling) == 3 && rgb {
		f.memory += 4 * int64(f.width) * int64(f.height)
	}
	f.foreign = len(f.sampling) == 4
	return f.header, nil
}

// orientation finds how to turn the image in a segment of EXIF: a TIFF file, whose first directory has the tag 0x112.
// 0: it does not say. Damage there is no damage of the image.
func orientation(b []byte) int {
	if len(b) < 14 || string(b[:6]) != "Exif\x00\x00" {
		return 0
	}
	b = b[6:]
	var order binary.ByteOrder = binary.BigEndian
	if string(b[:2]) == "II" {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(b[4:]))
	if at+2 > uint64(len(b)) {
		return 0
	}
	entries := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(entries) < 12 {
			return 0
		}
		const tag, short = 0x112, 3
		if v := int(order.Uint16(entries[8:])); order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short &&
			v <= 8 {
			return v
		}
		entries = entries[12:]
	}
	return 0
}

func jpegDecode(s *source, h header, c *canvas) error {
	m, err := jpeg.Decode(s)
	if err != nil {
		return err
	}
	if size := m.Bounds().Size(); size != image.Pt(h.width, h.height) {
		return fmt.Errorf("%d by %d pixels, and the header says %d by %d", size.X, size.Y, h.width, h.height)
	}
	return paint(s, m, image.Point{}, full, c)
}
