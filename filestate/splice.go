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
	"slices"
	"sync"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
	"codehand/filestate/seen"
	"codehand/filestate/splices"
)

const (
	// spliceSize is over how many bytes a file may be changed at some places without its content in memory. The journal
	// keeps the contents of all others.
	spliceSize = journal.MaxKept

	copyStep   = 32 << 20 // bytes that the system copies between two looks at ctx
	spliceStep = 1 << 20  // bytes that are read to be hashed
)

// A Splice is a change of one place of a large file.
type Splice = splices.Splice

// Splices are changes of some places of a large file.
type Splices = splices.List

// A spliced is a large content with splices in it. It reads the old file for what stays.
type spliced struct {
	splices.List
	from *os.File // the old file
	was  int64    // its size
	sure bool     // the stamp of the old file proves what it holds
}

func (s *spliced) size() int64 { return s.was + s.Grows() }

// splice changes some places of a large file, if the edit can tell them and nothing stands against that. false: the
// content is to be read whole, as any other, which also says what is wrong.
func (l *Ledger) splice(ctx context.Context, w *work, known *seen.Record, memErr error) (done bool, err error) {
	e := w.edit
	if e.Splice == nil || w.file == nil || w.stamp.Size <= l.spliced || e.Remove || e.Whole ||
		e.Unseen && e.back == nil || e.Touches != nil || otherMode(w) {
		return false, nil
	}
	list, err := e.Splice(ctx, w.file, w.stamp.Size)
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		return false, conflict
	}
	same := func(s Splice) bool { return bytes.Equal(s.Old, s.New) }
	if err != nil || len(list) == 0 || slices.ContainsFunc(list, same) {
		return false, context.Cause(ctx)
	}
	cut := &spliced{List: list, from: w.file, was: w.stamp.Size,
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
	from, to := cut.Hull()
	if goes, err := e.back.fits(w.base, w.after); err != nil {
		return false, err
	} else if !goes || e.claim().Decide(w.known, memErr != nil, w.content()) != seen.GoOn ||
		!e.claim().Leaves(w.known, *w.content(), Span{From: from, To: to}) {
		w.cut, w.base, w.after, w.known = nil, disk.Digest{}, disk.Digest{}, known
		return false, nil
	}
	w.links = max(0, int(w.stamp.Nlink)-1)
	return true, nil
}

// hash hashes the old content and the new one: once what both begin with, then one beside the other. Of the old one
// Old is taken for what stands at a place: what another program put there meanwhile is another content.
func (s *spliced) hash(ctx context.Context) (was, is disk.Digest, err error) {
	h := sha256.New()
	start := s.List[0].At
	if err := pourInto(ctx, h, s.from, 0, start); err != nil {
		return was, is, err
	}
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return was, is, err
	}
	var wg sync.WaitGroup
	var isErr error
	wg.Go(func() {
		other := sha256.New()
		if isErr = other.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); isErr == nil {
			isErr = pourInto(ctx, other, s.Read(s.from, s.was), start, s.size()-start)
			is = disk.Digest(other.Sum(nil))
		}
	})
	var asOld splices.List
	for _, one := range s.List {
		asOld = append(asOld, Splice{At: one.At, Old: one.Old, New: one.Old})
	}
	err = pourInto(ctx, h, asOld.Read(s.from, s.was), start, s.was-start)
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
	var at int64
	for _, one := range s.List {
		if err := s.copy(ctx, f, at, one.At-at, steps); err != nil {
			return err
		}
		if _, err := f.Write(one.New); err != nil {
			return err
		}
		at = one.At + int64(len(one.Old))
	}
	if err := s.copy(ctx, f, at, s.was-at, steps); err != nil || s.sure {
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
	old := s.from
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
