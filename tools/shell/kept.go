package shell

import (
	"bytes"
	"errors"
	"io"
	"os"
	"unicode/utf8"
)

// A kept says which bytes of an output are in its file: those below head, where they belong, and those from tail on,
// shift bytes before the place where they belong.
type kept struct {
	size, head, tail, shift int64
}

// kept returns what is kept of size bytes. It depends on nothing else, so every process that knows the size of a file
// can read it.
func (l limits) kept(size int64) kept {
	if size <= 2*l.keep+l.gap {
		return kept{size: size, head: size, tail: size}
	}
	return kept{size: size, head: l.keep, tail: size - l.keep}
}

// read returns the kept bytes between two positions. None of those in the gap is made up.
func (k kept) read(f *os.File, from, to int64) (string, error) {
	var b bytes.Buffer
	for _, part := range k.parts(from, to) {
		if _, err := io.Copy(&b, part.in(f)); err != nil {
			return b.String(), err
		}
	}
	return b.String(), nil
}

// count returns the line ends among the kept bytes between two positions.
func (k kept) count(f *os.File, from, to int64) (int, error) {
	n, buffer := 0, make([]byte, bufferSize)
	for _, part := range k.parts(from, to) {
		for r := part.in(f); ; {
			got, err := r.Read(buffer)
			n += bytes.Count(buffer[:got], []byte{'\n'})
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// A part is a piece of the file.
type part struct{ offset, n int64 }

func (p part) in(f *os.File) io.Reader { return io.NewSectionReader(f, p.offset, p.n) }

// parts returns where the kept bytes between two positions are.
func (k kept) parts(from, to int64) []part {
	var list []part
	if end := min(to, k.head); from < end {
		list = append(list, part{from, end - from})
	}
	if start := max(from, k.tail); start < to {
		list = append(list, part{start - k.shift, to - start})
	}
	return list
}

// chunk returns head and tail of what follows position after, at most most bytes each; if nothing is missing between
// them, all of it is the head.
func (k kept) chunk(f *os.File, after, most int64) (c Chunk, err error) {
	after = max(0, min(after, k.size))
	c.Size, c.Next, c.Gap = k.size-after, k.size, k.tail-k.head
	gap := after < k.tail && k.head < k.tail
	if c.Size <= 2*most && !gap {
		c.Head, err = k.read(f, after, k.size)
		return c, err
	}
	headEnd, tailStart := after+most, k.size-most
	if gap {
		headEnd, tailStart = min(headEnd, k.head), max(tailStart, k.tail)
	}
	if c.Head, err = k.read(f, after, headEnd); err != nil {
		return c, err
	}
	c.Tail, err = k.read(f, tailStart, k.size)
	c.Head, c.Tail = c.Head[:len(c.Head)-cutRune(c.Head)], c.Tail[restOfRune(c.Tail):]
	return c, err
}

// cutRune returns how many bytes at the end of s are the beginning of a character whose rest is missing.
func cutRune(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if last := s[len(s)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRuneInString(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// restOfRune returns how many bytes at the beginning of s are the end of a character.
func restOfRune(s string) int {
	for n := range min(utf8.UTFMax-1, len(s)) {
		if utf8.RuneStart(s[n]) {
			return n
		}
	}
	return 0
}
