package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The names of the files. Logs are numbered; a snapshot names the first log that is newer than it.
const (
	snapshotName = "snapshot"
	logPrefix    = "log."
	tempSuffix   = ".new" // never read: what was not renamed was not finished
)

func logName(generation uint64) string { return fmt.Sprintf("%s%08d", logPrefix, generation) }

// load reads the snapshot and the logs after it, cuts off what is torn, and opens the last log. It removes files that
// the snapshot replaced. A disk without files is a new Store.
func (w *writer) load(ctx context.Context) error {
	names, err := w.disk.names()
	if err != nil {
		return err
	}
	first, err := w.loadSnapshot(ctx, slices.Contains(names, snapshotName))
	if err != nil {
		return err
	}
	var logs []uint64
	for _, name := range names {
		generation, isLog := logNumber(name)
		switch {
		case isLog && generation >= first:
			logs = append(logs, generation)
		case isLog || strings.HasSuffix(name, tempSuffix):
			if err := w.disk.remove(name); err != nil {
				return err
			}
		}
	}
	slices.Sort(logs)
	if len(logs) == 0 && first == 1 {
		if w.log, w.head, err = w.newLog(first); err != nil {
			return err
		}
		w.size, w.synced = headerSize, headerSize
	} else if err := w.loadLogs(ctx, first, logs); err != nil {
		return err
	}
	w.health.change(func(s *Stats) { s.Disk = w.shot + w.older + w.size })
	return nil
}

func logNumber(name string) (uint64, bool) {
	digits, found := strings.CutPrefix(name, logPrefix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, found && err == nil && name == logName(n)
}

// loadSnapshot restores the snapshot and returns the number of the first log that is newer.
func (w *writer) loadSnapshot(ctx context.Context, there bool) (uint64, error) {
	if !there {
		return 1, nil
	}
	ended := false
	h, whole, size, err := w.read(ctx, snapshotName, kindSnapshot, func(r record) {
		ended = r.op == opEnd
	})
	if err != nil {
		return 0, err
	}
	if whole < size || !ended {
		return 0, &DamagedError{w.disk.path(snapshotName), whole, "it does not go on to its end"}
	}
	w.shot = size
	return h.generation, nil
}

// read restores the records of a file and returns how much of it is whole.
func (w *writer) read(ctx context.Context, name string, kind uint32,
	each func(record)) (h header, whole, size int64, err error) {
	f, err := w.disk.open(name, 0)
	if err != nil {
		return header{}, 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return header{}, 0, 0, err
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	now := w.m.now()
	h, whole, err = readLog(f, w.disk.path(name), info.Size(), func(r record) error {
		w.m.table.restore(r, now)
		each(r)
		return ctx.Err()
	})
	if err == nil && h.kind != kind {
		err = &DamagedError{w.disk.path(name), 0, "it is a file of another kind"}
	}
	w.m.table.last = max(w.m.table.last, h.last)
	return h, whole, info.Size(), err
}

// An end says how much of a log that was read is whole.
type end struct {
	name        string
	whole, size int64
}

// loadLogs reads logs, which must follow each other from first on, and opens the last one. It changes no file before it
// has read them all.
func (w *writer) loadLogs(ctx context.Context, first uint64, logs []uint64) error {
	var ends []end
	var torn *DamagedError
	for i := range max(1, len(logs)) {
		generation := first + uint64(i)
		name := logName(generation)
		if i >= len(logs) || logs[i] != generation {
			return &DamagedError{w.disk.path(name), 0, "the file is missing"}
		}
		records := 0
		h, whole, size, err := w.read(ctx, name, kindLog, func(record) { records++ })
		if err != nil {
			return err
		}
		if h.generation != generation {
			return &DamagedError{w.disk.path(name), 0, fmt.Sprintf("it is log %d under another name", h.generation)}
		}
		if torn != nil && records > 0 { // a log is whole before anything is written to the next one
			return torn
		}
		if whole < size && torn == nil {
			torn = &DamagedError{w.disk.path(name), whole, "the checksum is wrong, and the next log has records"}
		}
		ends = append(ends, end{name, whole, size})
		w.head = h
	}
	for i, e := range ends {
		f, err := w.settleEnd(e)
		if err != nil {
			return err
		}
		if i == len(ends)-1 {
			w.log, w.size, w.synced = f, e.whole, e.whole
			break
		}
		w.older += e.whole
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// settleEnd cuts a log where it is torn and syncs it, so that all that was restored will be there again.
func (w *writer) settleEnd(e end) (file, error) {
	f, err := w.disk.open(e.name, 0)
	if err != nil {
		return nil, err
	}
	if e.whole < e.size {
		err = f.Truncate(e.whole)
		w.health.change(func(s *Stats) { s.Cut += e.size - e.whole })
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// newLog makes an empty log. It has its name only when its header is on the disk, so no log is ever without one.
func (w *writer) newLog(generation uint64) (file, header, error) {
	w.m.mu.Lock()
	h := header{kind: kindLog, generation: generation, salt: newSalt(), last: w.m.table.last}
	w.m.mu.Unlock()
	name := logName(generation)
	f, err := w.create(name + tempSuffix)
	if err != nil {
		return nil, h, err
	}
	_, err = f.WriteAt(h.encode(), 0)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil { // Windows renames no open file
		return nil, h, err
	}
	if err := w.disk.rename(name+tempSuffix, name); err != nil {
		return nil, h, err
	}
	if err := w.disk.sync(); err != nil {
		return nil, h, err
	}
	f, err = w.disk.open(name, 0)
	return f, h, err
}

// create makes a new file: it never opens one that another user put there.
func (w *writer) create(name string) (file, error) {
	if err := w.disk.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return w.disk.open(name, os.O_CREATE|os.O_EXCL)
}
