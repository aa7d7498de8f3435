package filestate

import (
	"context"
	"errors"
	"os"
	"time"

	"codehand/filestate/disk"
)

const (
	// writerWait is how long a program is waited for that has opened a file for writing since it was read: it is about
	// to save, and its content shall win.
	writerWait = time.Second
	// holderWait is the same for a file that was open for writing before it was read, as a log is, or what an editor
	// holds locked. Such a program may keep it for hours; what it writes later is for the journal (Journal.WatchLate).
	holderWait = 20 * time.Millisecond
	writerPoll = time.Millisecond

	// stampedSize is the size from which a displaced file is known by its stamp, where that proves something. A smaller
	// one is read again: that costs nothing, and sees even a program that writes and then sets the times back.
	stampedSize = 1 << 20
)

// A found is what stands at a name below a work's directory.
type found struct {
	same    bool   // it is what was asked about
	content []byte // if it is not
	stamp   disk.Stamp
}

// is says whether the content want stands at a name. since is the stamp of the file when it had that content; the zero
// Stamp proves nothing.
func (w *work) is(ctx context.Context, name string, want text, since disk.Stamp) (found, error) {
	for range readTries {
		f, err := w.isOnce(ctx, name, want, since)
		if err == nil && !f.same {
			f.content, f.stamp, err = w.look(ctx, name)
			f.same = err == nil && want.is(f.content)
		}
		if !errors.Is(err, disk.ErrMoved) {
			return f, err
		}
	}
	return found{}, disk.ErrMoved
}

func (w *work) isOnce(ctx context.Context, name string, want text, since disk.Stamp) (found, error) {
	file, stamp, busy, err := w.settled(ctx, name)
	if err != nil {
		return found{}, err
	}
	defer func() { _ = file.Close() }() // only read
	f := found{stamp: stamp}
	if stamp.Size != want.size {
		return f, nil
	}
	if !busy && stamp.Size >= stampedSize && since.ProvesDisplaced(stamp) {
		f.same = true
		return f, nil
	}
	if f.same, err = want.in(ctx, file); err != nil {
		return f, err
	}
	return f, unmoved(file, stamp)
}

// look reads what stands at a name.
func (w *work) look(ctx context.Context, name string) ([]byte, disk.Stamp, error) {
	for range readTries {
		content, stamp, err := w.lookOnce(ctx, name)
		if !errors.Is(err, disk.ErrMoved) {
			return content, stamp, err
		}
	}
	return nil, disk.Stamp{}, disk.ErrMoved
}

func (w *work) lookOnce(ctx context.Context, name string) ([]byte, disk.Stamp, error) {
	file, stamp, _, err := w.settled(ctx, name)
	if err != nil {
		return nil, disk.Stamp{}, err
	}
	defer func() { _ = file.Close() }() // only read
	content, err := disk.ReadAll(ctx, file, stamp.Size)
	if err != nil {
		return nil, disk.Stamp{}, err
	}
	return content, stamp, unmoved(file, stamp)
}

// settled opens what stands at a name. If that is the temporary one, programs that are writing to it are waited for;
// busy says that one still is.
func (w *work) settled(ctx context.Context, name string) (file *os.File, stamp disk.Stamp, busy bool, err error) {
	file, _, err = disk.OpenRegular(w.dir, name, w.path)
	if err != nil {
		return nil, disk.Stamp{}, false, err
	}
	if name == w.temporary {
		busy = w.awaitWriters(ctx, file)
	}
	stamp, err = disk.Restamp(file)
	if err == nil && stamp.Size > disk.MaxSize {
		err = disk.ErrTooLarge
	}
	if err != nil {
		_ = file.Close() // only read
	}
	return file, stamp, busy, err
}

// unmoved says ErrMoved if an open file does not have that stamp any more.
func unmoved(file *os.File, stamp disk.Stamp) error {
	now, err := disk.Restamp(file)
	if err == nil && !now.Same(stamp) {
		err = disk.ErrMoved
	}
	return err
}

// awaitWriters waits until no program is writing to a displaced file, and says whether one still is. A program that
// saves in place has opened the file before it was displaced, and writes to it just afterwards; no program can open it
// under its new name. All waiting for one file takes w.wait at most.
func (w *work) awaitWriters(ctx context.Context, f *os.File) (busy bool) {
	start := time.Now()
	defer func() { w.wait = max(0, w.wait-time.Since(start)) }()
	for disk.BeingWritten(f) {
		if time.Since(start) >= w.wait {
			return true
		}
		timer := time.NewTimer(writerPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return true
		case <-timer.C:
		}
	}
	return false
}
