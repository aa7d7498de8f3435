package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What a Directory reads at most. All of it can be more than one Book may hold, for files can be copied by hand; such a
// list can still be read, and made smaller.
const (
	maxEntries = 10_000  // names in the directory
	maxFiles   = 1000    // of tasks
	maxFile    = 1 << 20 // bytes of one
	maxBytes   = 8 << 20 // of all files
)

// stored is what the files of a Directory hold.
type stored struct {
	book        Book
	tasks       map[string]string // the content of each file that can be used, as encode would write it, by id
	last        int               // in the file with the last id; 0: there is none
	lastDamaged string            // why that file cannot be used; "": it can
}

// read reads all files of the list.
func read(ctx context.Context, root *os.Root) (stored, error) {
	s := stored{tasks: map[string]string{}}
	names, err := taskFiles(root)
	if err != nil {
		return s, err
	}
	s.readLast(root)
	s.book.Last = s.last
	total := 0
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return s, err
		}
		id := strings.TrimSuffix(name, ".json")
		n, _ := number(id)
		s.book.Last = max(s.book.Last, n) // also of one that cannot be used
		text, err := readFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed by hand since
		}
		if total += len(text); total > maxBytes {
			return s, &DirectoryError{Step: "read", Err: fmt.Errorf("its tasks have more than %d bytes", maxBytes)}
		}
		t := Task{}
		if err == nil {
			t, err = decode(id, text)
		}
		var whole []byte
		if err == nil {
			whole, err = encode(t)
		}
		if err != nil {
			s.book.Damaged = append(s.book.Damaged, Damaged{ID: id, File: name, Reason: bare(err).Error()})
			continue
		}
		s.book.Tasks, s.tasks[id] = append(s.book.Tasks, t), string(whole)
		for _, other := range slices.Concat(t.Blocks, t.BlockedBy) {
			n, _ := number(other)
			s.book.Last = max(s.book.Last, n) // of a task that was deleted, if the file with the last id is gone
		}
	}
	s.book.mend()
	return s, nil
}

// readLast reads the last id.
func (s *stored) readLast(root *os.Root) {
	text, err := readFile(root, lastFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	digits := strings.TrimSuffix(string(text), "\n")
	n, ok := number(digits)
	switch {
	case err != nil:
		s.lastDamaged = bare(err).Error()
	case !ok:
		s.lastDamaged = "it holds no id"
	default:
		s.last = n
		return
	}
	s.book.Damaged = append(s.book.Damaged, Damaged{File: lastFile, Reason: s.lastDamaged})
}

// taskFiles lists the names of the files of tasks, in order of their ids.
func taskFiles(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, &DirectoryError{Step: "open", Err: bare(err)}
	}
	defer func() { _ = dir.Close() }() // only read
	all, err := dir.Readdirnames(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &DirectoryError{Step: "list", Err: bare(err)}
	}
	if len(all) > maxEntries {
		return nil, &DirectoryError{Step: "list", Err: fmt.Errorf("it has more than %d entries", maxEntries)}
	}
	names := slices.DeleteFunc(all, func(name string) bool {
		id, isTask := strings.CutSuffix(name, ".json")
		_, isID := number(id)
		return !isTask || !isID
	})
	if len(names) > maxFiles {
		return nil, &DirectoryError{Step: "list", Err: fmt.Errorf("it has %d files of tasks, at most %d can be read",
			len(names), maxFiles)}
	}
	slices.SortFunc(names, byID)
	return names, nil
}

func fileOf(id string) string { return id + ".json" }

// readFile reads a regular file.
func readFile(root *os.Root, name string) ([]byte, error) {
	named, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := regular(named); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, readFlags, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(named, info) {
		return nil, errors.New("it was replaced while it was read")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return text, nil
}

// regular says what is wrong with what is no regular file.
func regular(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		return errors.New("it is a link")
	case mode.IsDir():
		return errors.New("it is a directory")
	}
	return errors.New("it is no regular file")
}

// decode reads a task as strictly as a change needs it: what it does not know would be lost when it is written again.
func decode(id string, text []byte) (Task, error) {
	var t Task
	if !utf8.Valid(text) {
		return t, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return t, errors.New("there is more than one JSON value in it")
	}
	switch {
	case t.ID != id:
		return t, fmt.Errorf("the id in it is %s", strconv.Quote(t.ID))
	case t.Status != Pending && t.Status != InProgress && t.Status != Completed:
		return t, fmt.Errorf("the status in it is %s", strconv.Quote(t.Status))
	case tooDeep(t.Metadata):
		return t, ErrDepth
	}
	for _, other := range slices.Concat(t.Blocks, t.BlockedBy) {
		if _, ok := number(other); !ok {
			return t, fmt.Errorf("it names a task %s", strconv.Quote(other))
		}
	}
	return t, nil
}

// encode writes a task as its file holds it. It fails for metadata only that is no JSON.
func encode(t Task) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(t)
	return b.Bytes(), err
}
