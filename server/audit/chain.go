package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// fileStamp is the time in the name of a file that is written no more.
const fileStamp = "20060102T150405.000000Z"

// fileName is the name of the file that began at t; zero: of the one that is written.
func fileName(replica string, t time.Time) string {
	if t.IsZero() {
		return "audit-" + replica + ".jsonl"
	}
	return "audit-" + replica + "-" + t.UTC().Format(fileStamp) + ".jsonl"
}

// An logFile is a file of a log, by its name.
type logFile struct {
	name    string
	replica string
	active  bool // the one that is written
	size    int64
	changed time.Time
}

// listFiles lists the files of all replicas in a directory, those of one together, by name and the active one last.
func listFiles(dir string) ([]logFile, error) { return listAgain(dir, 10, os.ReadDir) }

// listAgain reads the directory at most tries times: again when a file has left its name meanwhile.
func listAgain(dir string, tries int, read func(dir string) ([]os.DirEntry, error)) ([]logFile, error) {
	entries, err := read(dir)
	if err != nil {
		return nil, err
	}
	var files []logFile
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "audit-")
		name, tail := strings.CutSuffix(name, ".jsonl")
		if !ok || !tail || name == "" {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) && tries > 1 {
			return listAgain(dir, tries-1, read) // it may have a new name, which is not in entries
		} else if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		} else if err != nil {
			return nil, err
		}
		f := logFile{name: e.Name(), replica: name, active: true, size: info.Size(), changed: info.ModTime()}
		if at := strings.LastIndexByte(name, '-'); at > 0 {
			if _, err := time.Parse(fileStamp, name[at+1:]); err == nil {
				f.replica, f.active = name[:at], false
			}
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b logFile) int {
		return cmp.Or(strings.Compare(a.replica, b.replica), strings.Compare(a.name, b.name)) // "." comes after "-"
	})
	return files, nil
}

// An lineHead is what the chain needs of a line.
type lineHead struct {
	V    int       `json:"v"`
	Seq  int64     `json:"seq"`
	T    time.Time `json:"t"`
	Ev   string    `json:"ev"`
	Rep  string    `json:"rep"`
	Node string    `json:"node"`
	Prev string    `json:"prev"`
}

var errNotWhole = errors.New("is not whole JSON")

// parseHead reads a line without its newline.
func parseHead(line []byte, replica string) (lineHead, error) {
	var h lineHead
	err := json.Unmarshal(line, &h)
	_, cut := errors.AsType[*json.SyntaxError](err)
	switch {
	case cut:
		return h, errNotWhole
	case err != nil:
		return h, errors.New("has a field of the wrong type")
	case h.V != 1:
		return h, fmt.Errorf("has version %d", h.V)
	case h.Seq < 1 || h.Ev == "" || h.T.IsZero() || len(h.Prev) != len(noLine):
		return h, errors.New("lacks a field that every line has")
	case h.Rep != replica:
		return h, fmt.Errorf("is of replica %q", h.Rep)
	}
	return h, nil
}

// An chainEnd is where a chain ends.
type chainEnd struct {
	seq   int64     // of the last line; 0: there is none
	hash  string    // of the last line
	size  int64     // of the active file, its half line not counted
	torn  int64     // bytes of the half line at its end
	begun time.Time // of its first line; zero: it has none
}

// findEnd finds the last line of a replica.
func findEnd(dir, replica string) (chainEnd, error) {
	end := chainEnd{hash: noLine}
	files, err := listFiles(dir)
	if err != nil {
		return end, err
	}
	files = slices.DeleteFunc(files, func(f logFile) bool { return f.replica != replica })
	sortFiles(dir, files)
	for _, f := range slices.Backward(files) {
		line, whole, err := lastLine(filepath.Join(dir, f.name))
		if err != nil {
			return end, err
		}
		if f.active {
			end.size, end.torn = whole, f.size-whole
		}
		if line == nil {
			continue // the process ended before the first line
		}
		h, err := parseHead(line, replica)
		if err != nil {
			return end, fmt.Errorf("the last line of %s %w; look at it with codehand doctor --audit %s, then move "+
				"the file away",
				filepath.Join(dir, f.name), err, dir)
		}
		end.seq, end.hash = h.Seq, hashLine(line)
		if f.active {
			first, err := firstLine(filepath.Join(dir, f.name), replica)
			if err != nil {
				return end, fmt.Errorf("the first line of %s %w; look at it with codehand doctor --audit %s, then "+
					"move the file away",
					filepath.Join(dir, f.name), err, dir)
			}
			end.begun = first.T
		}
		break
	}
	return end, nil
}

// lastLine returns the last whole line of a file, nil if it has none, and how many bytes there are up to its end.
func lastLine(path string) (line []byte, whole int64, err error) {
	f, err := openFile(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	from := max(0, info.Size()-2*maxLine) // room for a half line behind a whole one
	tail := make([]byte, info.Size()-from)
	if _, err := io.ReadFull(io.NewSectionReader(f, from, info.Size()-from), tail); err != nil {
		return nil, 0, err
	}
	end := bytes.LastIndexByte(tail, '\n')
	if end < 0 {
		if from > 0 {
			return nil, 0, fmt.Errorf("%s does not end with a line", path)
		}
		return nil, 0, nil
	}
	start := bytes.LastIndexByte(tail[:end], '\n') + 1
	return tail[start:end], from + int64(end) + 1, nil
}

func firstLine(path, replica string) (lineHead, error) {
	f, err := openFile(path)
	if err != nil {
		return lineHead{}, err
	}
	defer func() { _ = f.Close() }() // only read
	line, err := bufio.NewReaderSize(f, maxLine).ReadSlice('\n')
	if err != nil {
		return lineHead{}, errNotWhole
	}
	return parseHead(line[:len(line)-1], replica)
}

// openFile opens a file for reading. A pipe at its name would never answer.
func openFile(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.OpenFile(path, os.O_RDONLY|noFollow, 0)
}

// sortFiles brings the files of one replica into the order in which they were written. Their names are in this order,
// too, unless the clock was set back; where the first line of a file before the active one cannot be read, they must
// do.
func sortFiles(dir string, files []logFile) {
	seq := map[string]int64{}
	for _, f := range files {
		h, err := firstLine(filepath.Join(dir, f.name), f.replica)
		if err != nil && f.size > 0 && !f.active {
			return
		}
		if seq[f.name] = h.Seq; err != nil {
			seq[f.name] = 1<<63 - 1
		}
	}
	slices.SortStableFunc(files, func(a, b logFile) int { return cmp.Compare(seq[a.name], seq[b.name]) })
}

// An Break is the first place at which a log is not what was written.
type Break struct {
	File string // its name in the directory
	Line int    // from 1
	Kind string // changed, missing, cut
	Text string // what is wrong with the line
}

// Error names file, line and kind.
func (b *Break) Error() string {
	return fmt.Sprintf("%s:%d: %s: %s", b.File, b.Line, b.Kind, b.Text)
}

// The kinds of breaks.
const (
	auditChanged = "changed" // a line is not what the next one says it was
	auditMissing = "missing" // lines are gone
	auditCut     = "cut"     // a line is not whole
)

// auditNoEnd is the text of a break that may be none: perhaps the line is being written.
const auditNoEnd = "the line has no end"

// Check checks the chains of all replicas whose files are in dir, and says how many lines it found in order. The
// error is an *Break, for the first break; any other means that the check could not be made. A log may be written
// meanwhile.
//
// Two things do not show: that the oldest files are gone, since that is what happens to them, and that whole lines are
// gone from the end of the last file, since nothing comes after them. While the server runs, its next line shows it.
func Check(dir string) (lines int, err error) {
	chains := map[string]chain{}
	// A writer may be held up within a line, by a busy disk. A line that has no end after 2 s of pauses gets none.
	for pause := time.Duration(0); pause < 2*time.Second; pause = max(2*pause, time.Millisecond) {
		time.Sleep(pause)
		var before, after []logFile
		if before, err = listFiles(dir); err != nil {
			return 0, err
		}
		if len(before) == 0 {
			return 0, fmt.Errorf("there is no audit log in %s", dir)
		}
		if lines, err = checkChains(dir, before, chains); err == nil {
			return lines, nil
		}
		after, _ = listFiles(dir) // a file that is rotated while it is read looks like one that is missing
		if b, ok := errors.AsType[*Break](err); slices.Equal(before, after) && (!ok || b.Text != auditNoEnd) {
			break
		}
	}
	return lines, err
}

// checkChains checks the files replica by replica. chains is where a check before came to: it goes on behind the last
// file that was in order, or else a long log would never be through before the next file begins.
func checkChains(dir string, files []logFile, chains map[string]chain) (lines int, err error) {
	for len(files) > 0 {
		n := slices.IndexFunc(files, func(f logFile) bool { return f.replica != files[0].replica })
		if n < 0 {
			n = len(files)
		}
		own := slices.Clone(files[:n])
		files = files[n:]
		sortFiles(dir, own)
		c := chain{replica: own[0].replica}
		last := slices.IndexFunc(own, func(f logFile) bool { return f.name == chains[c.replica].at.file })
		if last >= 0 { // else it may be deleted, and some after it
			c = chains[c.replica]
		}
		for _, f := range own[last+1:] {
			chains[c.replica] = c
			if err := c.file(dir, f); err != nil {
				return lines + c.lines, err
			}
		}
		chains[c.replica] = c
		lines += c.lines
	}
	return lines, nil
}

// An chain follows the lines of one replica.
type chain struct {
	replica string
	lines   int

	// The last line; file "" before the first.
	at   position
	node string
	seq  int64
	hash string
}

type position struct {
	file string
	line int
}

// file checks one file.
func (c *chain) file(dir string, f logFile) error {
	in, err := openFile(filepath.Join(dir, f.name))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	return c.read(in, f)
}

func (c *chain) read(in io.Reader, f logFile) error {
	r := bufio.NewReaderSize(in, maxLine)
	for n := 1; ; n++ {
		line, err := r.ReadSlice('\n')
		here := position{f.name, n}
		switch {
		case err == io.EOF && len(line) == 0:
			if n == 1 && !f.active {
				return here.broken(auditCut, "the file is empty")
			}
			return nil
		case err == io.EOF:
			return here.broken(auditCut, auditNoEnd)
		case errors.Is(err, bufio.ErrBufferFull):
			return here.broken(auditChanged, "the line is longer than any that is written")
		case err != nil:
			return err
		}
		if err := c.line(here, line[:len(line)-1]); err != nil {
			return err
		}
		c.lines++
	}
}

func (p position) broken(kind, format string, args ...any) error {
	return &Break{File: p.file, Line: p.line, Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// line checks that a line follows the one before.
func (c *chain) line(here position, line []byte) error {
	h, err := parseHead(line, c.replica)
	if err != nil {
		kind := auditChanged
		if errors.Is(err, errNotWhole) {
			kind = auditCut
		}
		return here.broken(kind, "the line %v", err)
	}
	first := c.at.file == ""
	switch {
	case here.line == 1 && h.Ev != eventStart && h.Ev != eventRotate:
		return here.broken(auditMissing, "the beginning of the file is gone: number %d is no first line", h.Seq)
	case first && h.Seq == 1 && h.Prev != noLine:
		return here.broken(auditChanged, "the first line of all follows another")
	case first:
	case h.Seq > c.seq+1:
		return here.broken(auditMissing, "numbers %d to %d are gone", c.seq+1, h.Seq-1)
	case h.Seq <= c.seq:
		return here.broken(auditChanged, "number %d follows number %d", h.Seq, c.seq)
	case h.Node != c.node:
		return here.broken(auditChanged, "number %d is of node %q, and the one before of %q", h.Seq, h.Node, c.node)
	case h.Prev != c.hash:
		return c.at.broken(auditChanged, "number %d is not what the line after it says it was", c.seq)
	}
	c.at, c.node, c.seq, c.hash = here, h.Node, h.Seq, hashLine(line)
	return nil
}
