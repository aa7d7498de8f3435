package journal

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"codehand/filestate/disk"
	"codehand/filestate/splices"
)

// encode gives a note the form of its file, in pieces: a content that is kept as it is is not copied.
func (j *Journal) encode(e *Note) ([][]byte, error) {
	pieces := [][]byte{nil} // the first is the header, which tells the sizes of the others
	for i := range e.Files {
		f, c := &e.Files[i], e.Parts[i]
		if c.Splices != nil {
			if err := j.encodeSplices(&pieces, f, c.Splices); err != nil {
				return nil, err
			}
		}
		if !f.Kept {
			continue
		}
		before, err := j.pack(c.Before, f.Raw)
		if err != nil {
			return nil, err
		}
		f.Packed, pieces = int64(len(before)), append(pieces, before)
		if f.After == nil {
			continue
		}
		middle, err := j.pack(c.After[f.Head:int64(len(c.After))-f.Tail], f.Raw)
		if err != nil {
			return nil, err
		}
		f.Middle, pieces = int64(len(middle)), append(pieces, middle)
	}
	line, err := json.Marshal(e.Header)
	if err != nil {
		return nil, err
	}
	pieces[0] = append(line, '\n')
	return pieces, nil
}

// encodeSplices adds what differs in one file: all that was there, then all that is in its place.
func (j *Journal) encodeSplices(pieces *[][]byte, f *File, l splices.List) error {
	var old, now []byte
	for _, s := range l {
		old, now = append(old, s.Old...), append(now, s.New...)
	}
	for _, side := range []struct {
		content []byte
		size    *int64
	}{{old, &f.Packed}, {now, &f.Middle}} {
		packed, err := j.pack(side.content, f.Raw)
		if err != nil {
			return err
		}
		*side.size, *pieces = int64(len(packed)), append(*pieces, packed)
	}
	return nil
}

// pack returns content as it is kept: compressed unless it is raw. Of an empty one nothing is kept.
func (j *Journal) pack(content []byte, raw bool) ([]byte, error) {
	if len(content) == 0 || raw {
		return content, nil
	}
	var to bytes.Buffer
	z, ok := j.packers.Get().(*gzip.Writer)
	if ok {
		z.Reset(&to)
	} else {
		var err error
		if z, err = gzip.NewWriterLevel(&to, gzip.BestSpeed); err != nil {
			return nil, err
		}
	}
	defer j.packers.Put(z)
	if _, err := z.Write(content); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// open opens the file of a note in the directory of its day. A change that was being made when the names were read may
// be done by now: then n says so.
func (n *noteName) open(day *os.Root) (*os.File, disk.Stamp, error) {
	f, stamp, err := disk.OpenRegular(day, n.base(), n.path())
	if n.state != stateOpen || !errors.Is(err, fs.ErrNotExist) {
		return f, stamp, err
	}
	for _, state := range []string{stateDone, stateUnsure} {
		ended := noteName{n.at, n.id, state}
		if f, stamp, err := disk.OpenRegular(day, ended.base(), ended.path()); err == nil {
			*n = ended
			return f, stamp, nil
		}
	}
	return nil, disk.Stamp{}, err // it did not happen
}

// header reads the first line of a note, and says errDamaged unless all of the note is there.
func (n *noteName) header(day *os.Root) (*Header, error) {
	f, stamp, err := n.open(day)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	r := bufio.NewReaderSize(io.LimitReader(f, maxHeader), headRead)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, errDamaged
	}
	return parseHeader(line, stamp.Size)
}

func parseHeader(line []byte, size int64) (*Header, error) {
	var h Header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, errDamaged
	}
	rest := size - int64(len(line))
	for _, f := range h.Files {
		if !f.adds(rest) {
			return nil, errDamaged
		}
		rest -= f.Packed + f.Middle
	}
	if rest != 0 || len(h.Files) == 0 || !validID(h.ID) {
		return nil, errDamaged
	}
	return &h, nil
}

// adds says whether the sizes of one file are such as add writes, and no more than what is left of the note. Each is
// bounded before anything is added to it or memory is taken for it.
func (f File) adds(rest int64) bool {
	for _, n := range []int64{f.OldSize, f.NewSize, f.Head, f.Tail} {
		if n < 0 || n > disk.MaxSize {
			return false
		}
	}
	return f.Packed >= 0 && f.Packed <= rest && f.Middle >= 0 && f.Middle <= rest-f.Packed &&
		f.Head+f.Tail <= min(f.OldSize, f.NewSize) && f.cutsFit()
}

// cutsFit says whether the cuts are in order, within the content, and make of its size the new one.
func (f File) cutsFit() bool {
	var at, kept int64
	grown := f.OldSize
	for _, c := range f.Cuts {
		if c.Old < 0 || c.Old > MaxDiffer || c.New < 0 || c.New > MaxDiffer || c.At < at || c.At > f.OldSize-c.Old {
			return false
		}
		at, kept, grown = c.At+c.Old, kept+c.Old+c.New, grown+c.New-c.Old
	}
	return len(f.Cuts) == 0 || !f.Kept && kept <= MaxDiffer && grown == f.NewSize && f.Before != nil && f.After != nil
}

// read reads a note with its contents, and proves each by its hash.
func (n *noteName) read(day *os.Root) (*Note, error) {
	f, stamp, err := n.open(day)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	r := bufio.NewReader(f)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, errDamaged
	}
	return readParts(r, line, stamp.Size)
}

// readParts reads what follows the first line of a note of that size.
func readParts(r io.Reader, line []byte, size int64) (*Note, error) {
	h, err := parseHeader(line, size)
	if err != nil {
		return nil, err
	}
	e := &Note{Header: *h}
	for _, f := range h.Files {
		var c Sides
		switch {
		case f.Kept:
			c, err = f.unpack(r)
		case f.Cuts != nil:
			c.Splices, err = f.unpackCuts(r)
		}
		if err != nil {
			return nil, err
		}
		e.Parts = append(e.Parts, c)
	}
	return e, nil
}

func (f File) unpack(r io.Reader) (c Sides, err error) {
	if f.Before != nil {
		if c.Before, err = f.unpackOne(r, f.Packed, f.OldSize); err != nil {
			return c, err
		}
		if disk.DigestOf(c.Before) != *f.Before {
			return c, errDamaged
		}
	}
	if f.After == nil {
		return c, nil
	}
	middle, err := f.unpackOne(r, f.Middle, f.NewSize)
	if err != nil || f.Head+f.Tail > int64(len(c.Before)) || f.Head+int64(len(middle))+f.Tail != f.NewSize {
		return c, errDamaged
	}
	c.After = make([]byte, 0, f.NewSize)
	c.After = append(c.After, c.Before[:f.Head]...)
	c.After = append(c.After, middle...)
	c.After = append(c.After, c.Before[int64(len(c.Before))-f.Tail:]...)
	if disk.DigestOf(c.After) != *f.After {
		return c, errDamaged
	}
	return c, nil
}

// unpackCuts reads what differs. That it is right, the hashes of both contents say once it is put into one of them.
func (f File) unpackCuts(r io.Reader) (l splices.List, err error) {
	old, err := f.unpackOne(r, f.Packed, MaxDiffer)
	if err != nil {
		return nil, err
	}
	now, err := f.unpackOne(r, f.Middle, MaxDiffer)
	if err != nil {
		return nil, err
	}
	for _, c := range f.Cuts {
		if c.Old > int64(len(old)) || c.New > int64(len(now)) {
			return nil, errDamaged
		}
		l = append(l, splices.Splice{At: c.At, Line: c.Line, Old: old[:c.Old:c.Old], New: now[:c.New:c.New]})
		old, now = old[c.Old:], now[c.New:]
	}
	if len(old)+len(now) > 0 {
		return nil, errDamaged
	}
	return l, nil
}

// unpackOne reads a content of at most size bytes that takes packed bytes here.
func (f File) unpackOne(r io.Reader, packed, size int64) ([]byte, error) {
	if !f.Raw {
		return unpack(r, packed, size)
	}
	if packed > size {
		return nil, errDamaged
	}
	content := make([]byte, packed)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, errDamaged
	}
	return content, nil
}

// unpack is unpackOne for what is compressed.
func unpack(r io.Reader, packed, size int64) ([]byte, error) {
	if packed == 0 {
		return []byte{}, nil
	}
	part := &io.LimitedReader{R: r, N: packed}
	z, err := gzip.NewReader(bufio.NewReader(part))
	if err != nil {
		return nil, errDamaged
	}
	z.Multistream(false)
	var out bytes.Buffer
	if _, err := io.Copy(&out, io.LimitReader(z, size+1)); err != nil || int64(out.Len()) > size {
		return nil, errDamaged
	}
	if _, err := io.Copy(io.Discard, part); err != nil {
		return nil, errDamaged
	}
	return out.Bytes(), nil
}
