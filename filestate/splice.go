package filestate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"errors"
	"hash"
	"io"
	"os"
	"sync"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
	"codehand/filestate/lines"
	"codehand/filestate/seen"
)

const (
	// spliceSize is over how many bytes a file may be changed at one place without its content in memory. The journal
	// keeps the contents of all others.
	spliceSize = journal.MaxKept

	copyStep   = 32 << 20 // bytes that the system copies between two looks at ctx
	spliceStep = 1 << 20  // bytes that are read to be hashed
)

// A Splice is a change of one place of a large file: what stands there, and what comes in its place.
type Splice struct {
	At       int64  // offset of Old in the file
	Line     int    // lines in front of it
	Old, New []byte // whole lines, so that they show the change
}

// A spliced is a large content with a Splice in it. It reads the old file for what stays.
type spliced struct {
	Splice
	from io.ReaderAt // the old file
	was  int64       // its size
	sure bool        // the stamp of the old file proves what it holds
}

func (s *spliced) size() int64 { return s.was - int64(len(s.Old)) + int64(len(s.New)) }

// rest is what both contents have behind the place, and end where that begins in the old one.
func (s *spliced) rest() (end, rest int64) {
	end = s.At + int64(len(s.Old))
	return end, s.was - end
}

// differs is the bytes of the old content that are replaced, and how many more there are of the new one.
func (s *spliced) differs() (of seen.Span, grows int64) {
	head := lines.Prefix(s.Old, s.New)
	tail := lines.Suffix(s.Old[head:], s.New[head:])
	return Span{From: s.At + int64(head), To: s.At + int64(len(s.Old)-tail)}, int64(len(s.New) - len(s.Old))
}

// ReadAt reads the new content, as io.ReaderAt says.
func (s *spliced) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		at := off + int64(n)
		var got int
		var err error
		switch behind := at - s.At - int64(len(s.New)); {
		case behind >= 0:
			end, _ := s.rest()
			got, err = s.from.ReadAt(p[n:], end+behind)
		case at >= s.At:
			got = copy(p[n:], s.New[at-s.At:])
		default:
			got, err = s.from.ReadAt(p[n:min(int64(len(p)), int64(n)+s.At-at)], at)
		}
		n += got
		if err != nil && !(errors.Is(err, io.EOF) && got > 0 && n < len(p)) {
			return n, err
		}
	}
	return n, nil
}

// splice changes one place of a large file, if the edit can tell it and nothing stands against that. false: the content
// is to be read whole, as any other, which also says what is wrong.
func (l *Ledger) splice(ctx context.Context, w *work, known *seen.Record, memErr error) (done bool, err error) {
	e := w.edit
	if e.Splice == nil || w.file == nil || w.stamp.Size <= l.spliced || e.Remove || e.Whole || e.Unseen ||
		e.Touches != nil || otherMode(w) {
		return false, nil
	}
	s, err := e.Splice(ctx, w.file, w.stamp.Size)
	if err != nil || s == nil || bytes.Equal(s.Old, s.New) {
		return false, context.Cause(ctx)
	}
	cut := &spliced{Splice: *s, from: w.file, was: w.stamp.Size,
		sure: !w.stamp.Racy && !disk.BeingWritten(w.file)}
	if cut.size() > disk.MaxSize || cut.size() <= l.spliced {
		return false, nil
	}
	if w.base, w.after, err = cut.hash(ctx); err != nil {
		return false, context.Cause(ctx)
	}
	if now, err := disk.Restamp(w.file); err != nil || !now.Same(w.stamp) {
		return false, nil //nolint:nilerr // it is read whole, which says what is wrong
	}
	w.cut = cut
	w.known = known.Of(*w.content())
	of, _ := cut.differs()
	if e.claim().Decide(w.known, memErr != nil, w.content()) != seen.GoOn ||
		!e.claim().Leaves(w.known, *w.content(), of) {
		w.cut, w.base, w.after, w.known = nil, disk.Digest{}, disk.Digest{}, known
		return false, nil
	}
	w.links = max(0, int(w.stamp.Nlink)-1)
	return true, nil
}

// hash hashes the old content and the new one: once what both begin with, then one beside the other. Of the old one
// Old is taken for what stands at the place: what another program put there meanwhile is another content.
func (s *spliced) hash(ctx context.Context) (was, is disk.Digest, err error) {
	h := sha256.New()
	if err := pourInto(ctx, h, s.from, 0, s.At); err != nil {
		return was, is, err
	}
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return was, is, err
	}
	var wg sync.WaitGroup
	var isErr error
	end, rest := s.rest()
	wg.Go(func() {
		other := sha256.New()
		if isErr = other.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); isErr == nil {
			other.Write(s.New)
			isErr = pourInto(ctx, other, s.from, end, rest)
			is = disk.Digest(other.Sum(nil))
		}
	})
	h.Write(s.Old)
	err = pourInto(ctx, h, s.from, end, rest)
	wg.Wait()
	return disk.Digest(h.Sum(nil)), is, errors.Join(err, isErr)
}

// pourInto hashes n bytes of a file from an offset on. ErrMoved: the file ends before.
func pourInto(ctx context.Context, h hash.Hash, from io.ReaderAt, at, n int64) error {
	buf := make([]byte, min(spliceStep, n))
	for n > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		got, err := from.ReadAt(buf[:min(int64(len(buf)), n)], at)
		h.Write(buf[:got])
		at, n = at+int64(got), n-int64(got)
		if errors.Is(err, io.EOF) && n > 0 {
			return disk.ErrMoved
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// write writes the new content to f. What stays is copied by the system, which shares the blocks where the file system
// can. If the stamp of the old file does not prove that it stayed as it was hashed, what was written is hashed, too.
func (s *spliced) write(ctx context.Context, f *os.File, sum disk.Digest, steps fault.Check) error {
	end, rest := s.rest()
	if err := s.copy(ctx, f, 0, s.At, steps); err != nil {
		return err
	}
	if _, err := f.Write(s.New); err != nil {
		return err
	}
	if err := s.copy(ctx, f, end, rest, steps); err != nil || s.sure {
		return err
	}
	wrote, err := disk.StreamDigest(ctx, f, s.size())
	if err == nil && wrote != sum {
		err = disk.ErrMoved
	}
	return err
}

// copy appends n bytes of the old file, from an offset on, to f.
func (s *spliced) copy(ctx context.Context, f *os.File, at, n int64, steps fault.Check) error {
	old, ok := s.from.(*os.File)
	if !ok {
		return os.ErrInvalid
	}
	if _, err := old.Seek(at, io.SeekStart); err != nil {
		return err
	}
	for n > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		got, err := io.CopyN(f, old, min(n, copyStep))
		n -= got
		if errors.Is(err, io.EOF) {
			return disk.ErrMoved
		}
		if err != nil {
			return err
		}
		if err := steps.Before(fault.Write); err != nil {
			return err
		}
	}
	return nil
}

// A text is a content that a file is compared with.
type text struct {
	bytes []byte
	size  int64
	sum   *disk.Digest // of one that is not in memory; nil: it is bytes
}

func textOf(content []byte) text { return text{bytes: content, size: int64(len(content))} }

// was is the old content of a work, and will the new one.
func (w *work) was() text {
	if w.cut != nil {
		return text{size: w.cut.was, sum: &w.base}
	}
	return textOf(w.old)
}

func (w *work) will() text {
	if w.cut != nil {
		return text{size: w.cut.size(), sum: &w.after}
	}
	return textOf(w.next)
}

// in says whether a file has that content, and holds no second one in memory.
func (t text) in(ctx context.Context, f *os.File) (bool, error) {
	if t.sum == nil {
		return disk.Holds(ctx, f, t.bytes)
	}
	now, err := disk.StreamDigest(ctx, f, t.size)
	if errors.Is(err, disk.ErrMoved) {
		return false, nil
	}
	return now == *t.sum, err
}

func (t text) is(content []byte) bool {
	if t.sum == nil {
		return bytes.Equal(content, t.bytes)
	}
	return int64(len(content)) == t.size && disk.DigestOf(content) == *t.sum
}
