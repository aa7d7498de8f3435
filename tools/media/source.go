package media

import "io"

// A source is the bytes of an image as its decoder reads them: in small pieces, with a look at the clock before each.
// Decoders do not know of a ctx, and some read a few bytes between long loops over all pixels.
type source struct {
	data  []byte
	at    int
	alive func() error // nil: go on
}

// piece is how many bytes are handed out at once. 512 bytes of a progressive JPEG are at most about 30 scans.
const piece = 512

func (s *source) Read(p []byte) (int, error) {
	if err := s.alive(); err != nil {
		return 0, err
	}
	if s.at == len(s.data) {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), piece)], s.data[s.at:])
	s.at += n
	return n, nil
}
