package endpoint

import (
	"errors"
	"io"
	"sync"
)

const (
	// smallBody is the largest body for which memory is allocated by Content-Length alone.
	smallBody = 32 << 10
	// bodyPart is how much is allocated at a time for a larger body, as its bytes arrive: a false Content-Length costs
	// no memory.
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

// fill reads until p is full. Unlike io.ReadFull it returns the errors of r unchanged, so the caller can tell the end
// of the body (io.EOF) from a chunked body that was cut off (io.ErrUnexpectedEOF).
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	return n, err
}
