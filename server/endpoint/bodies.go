package endpoint

import (
	"errors"
	"io"
	"sync"
)

const (
	// smallBody is the size up to which a body gets its room at once: what a header promises costs no more.
	smallBody = 32 << 10
	// bodyPart is how much room a larger one gets at a time.
	bodyPart = 64 << 10
)

// bodies reads bodies of requests. The parts of a large one are used again, so one that turns out to be too large
// leaves no garbage. It is safe for concurrent use; the zero value is ready.
type bodies struct{ parts sync.Pool }

// read reads a body of size bytes; below 0: unknown. Its error is that of r.
func (b *bodies) read(r io.Reader, size int64) ([]byte, error) {
	if size >= 0 && size <= smallBody {
		body := make([]byte, size)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	var parts []*[bodyPart]byte
	defer func() {
		for _, p := range parts {
			b.parts.Put(p)
		}
	}()
	total := 0
	for {
		p, _ := b.parts.Get().(*[bodyPart]byte)
		if p == nil {
			p = new([bodyPart]byte)
		}
		parts = append(parts, p)
		n, err := fill(r, p[:])
		total += n
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err != nil {
			break
		}
	}
	if size >= 0 && int64(total) != size {
		return nil, io.ErrUnexpectedEOF
	}
	body := make([]byte, 0, total)
	for i, p := range parts {
		body = append(body, p[:min(bodyPart, total-i*bodyPart)]...)
	}
	return body, nil
}

// fill reads until p is full. Unlike io.ReadFull it returns the errors of r as they are: an end in the middle of a
// chunk is none of a body.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	return n, err
}
