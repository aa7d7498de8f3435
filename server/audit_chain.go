package server

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

// auditStamp is the time in the name of a file that is written no more.
const auditStamp = "20060102T150405.000000Z"

// auditName is the name of the file that began at t; zero: of the one that is written.
func auditName(replica string, t time.Time) string {
	if t.IsZero() {
		return "audit-" + replica + ".jsonl"
	}
	return "audit-" + replica + "-" + t.UTC().Format(auditStamp) + ".jsonl"
}

// An auditEntry is a file of a log, by its name.
type auditEntry struct {
	name    string
	replica string
	active  bool // the one that is written
	size    int64
	changed time.Time
}

// auditFiles lists the files of all replicas in a directory, those of one together, by name and the active one last.
func auditFiles(dir string) ([]auditEntry, error) { return listAudit(dir, 10, os.ReadDir) }

// listAudit reads the directory at most tries times: again when a file has left its name meanwhile.
func listAudit(dir string, tries int, read func(dir string) ([]os.DirEntry, error)) ([]auditEntry, error) {
	entries, err := read(dir)
	if err != nil {
		return nil, err
	}
	var files []auditEntry
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "audit-")
		name, tail := strings.CutSuffix(name, ".jsonl")
		if !ok || !tail || name == "" {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) && tries > 1 {
			return listAudit(dir, tries-1, read) // it may have a new name, which is not in entries
		} else if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		} else if err != nil {
			return nil, err
		}
		f := auditEntry{name: e.Name(), replica: name, active: true, size: info.Size(), changed: info.ModTime()}
		if at := strings.LastIndexByte(name, '-'); at > 0 {
			if _, err := time.Parse(auditStamp, name[at+1:]); err == nil {
				f.replica, f.active = name[:at], false
			}
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b auditEntry) int {
		return cmp.Or(strings.Compare(a.replica, b.replica), strings.Compare(a.name, b.name)) // "." comes after "-"
	})
	return files, nil
}

// An auditHead is what the chain needs of a line.
type auditHead struct {
	V    int       `json:"v"`
	Seq  int64     `json:"seq"`
	T    time.Time `json:"t"`
	Ev   string    `json:"ev"`
	Rep  string    `json:"rep"`
	Prev string    `json:"prev"`
}

var errNotWhole = errors.New("is not whole JSON")

// parseAudit reads a line without its newline.
func parseAudit(line []byte, replica string) (auditHead, error) {
	var h auditHead
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

// An auditEnd is where a chain ends.
type auditEnd struct {
	seq   int64     // of the last line; 0: there is none
	hash  string    // of the last line
	size  int64     // of the active file, its half line not counted
	torn  int64     // bytes of the half line at its end
	begun time.Time // of its first line; zero: it has none
}

// findAuditEnd finds the last line of a replica.
func findAuditEnd(dir, replica string) (auditEnd, error) {
	end := auditEnd{hash: noLine}
	files, err := auditFiles(dir)
	if err != nil {
		return end, err
	}
	files = slices.DeleteFunc(files, func(f auditEntry) bool { return f.replica != replica })
	sortAudit(dir, files)
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
		h, err := parseAudit(line, replica)
		if err != nil {
			return end, fmt.Errorf("the last line of %s %w; look at it with codehand doctor --audit %s, then move the file away",
				filepath.Join(dir, f.name), err, dir)
		}
		end.seq, end.hash = h.Seq, hashLine(line)
		if f.active {
			first, err := firstLine(filepath.Join(dir, f.name), replica)
			if err != nil {
				return end, fmt.Errorf("the first line of %s %w; look at it with codehand doctor --audit %s, then move the file away",
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
	f, err := openAuditFile(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	from := max(0, info.Size()-2*maxAuditLine) // room for a half line behind a whole one
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

func firstLine(path, replica string) (auditHead, error) {
	f, err := openAuditFile(path)
	if err != nil {
		return auditHead{}, err
	}
	defer func() { _ = f.Close() }() // only read
	line, err := bufio.NewReaderSize(f, maxAuditLine).ReadSlice('\n')
	if err != nil {
		return auditHead{}, errNotWhole
	}
	return parseAudit(line[:len(line)-1], replica)
}

// openAuditFile opens a file for reading. A pipe at its name would never answer.
func openAuditFile(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.OpenFile(path, os.O_RDONLY|noFollow, 0)
}

// sortAudit brings the files of one replica into the order in which they were written. Their names are in this order,
// too, unless the clock was set back; where the first line of a file before the active one cannot be read, they must do.
func sortAudit(dir string, files []auditEntry) {
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
	slices.SortStableFunc(files, func(a, b auditEntry) int { return cmp.Compare(seq[a.name], seq[b.name]) })
}

// An AuditBreak is the first place at which a log is not what was written.
type AuditBreak struct {
	File string // its name in the directory
	Line int    // from 1
	Kind string // changed, missing, cut
	Text string // what is wrong with the line
}

// Error names file, line and kind.
func (b *AuditBreak) Error() string {
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

// CheckAudit checks the chains of all replicas whose files are in dir, and says how many lines it found in order. The
// error is an *AuditBreak, for the first break; any other means that the check could not be made. A log may be written
// meanwhile.
//
// Two things do not show: that the oldest files are gone, since that is what happens to them, and that whole lines are
// gone from the end of the last file, since nothing comes after them. While the server runs, its next line shows it.
func CheckAudit(dir string) (lines int, err error) {
	chains := map[string]auditChain{}
	// A writer may be held up within a line, by a busy disk. A line that has no end after 2 s of pauses gets none.
	for pause := time.Duration(0); pause < 2*time.Second; pause = max(2*pause, time.Millisecond) {
		time.Sleep(pause)
		var before, after []auditEntry
		if before, err = auditFiles(dir); err != nil {
			return 0, err
		}
		if len(before) == 0 {
			return 0, fmt.Errorf("there is no audit log in %s", dir)
		}
		if lines, err = checkChains(dir, before, chains); err == nil {
			return lines, nil
		}
		after, _ = auditFiles(dir) // a file that is rotated while it is read looks like one that is missing
		if b, ok := errors.AsType[*AuditBreak](err); slices.Equal(before, after) && (!ok || b.Text != auditNoEnd) {
			break
		}
	}
	return lines, err
}

// checkChains checks the files replica by replica. chains is where a check before came to: it goes on behind the last file
// that was in order, or else a long log would never be through before the next file begins.
func checkChains(dir string, files []auditEntry, chains map[string]auditChain) (lines int, err error) {
	for len(files) > 0 {
		n := slices.IndexFunc(files, func(f auditEntry) bool { return f.replica != files[0].replica })
		if n < 0 {
			n = len(files)
		}
		own := slices.Clone(files[:n])
		files = files[n:]
		sortAudit(dir, own)
		c := auditChain{replica: own[0].replica}
		last := slices.IndexFunc(own, func(f auditEntry) bool { return f.name == chains[c.replica].at.file })
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

// An auditChain follows the lines of one replica.
type auditChain struct {
	replica string
	lines   int

	// The last line; file "" before the first.
	at   auditPlace
	seq  int64
	hash string
}

type auditPlace struct {
	file string
	line int
}

// file checks one file.
func (c *auditChain) file(dir string, f auditEntry) error {
	in, err := openAuditFile(filepath.Join(dir, f.name))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	return c.read(in, f)
}

func (c *auditChain) read(in io.Reader, f auditEntry) error {
	r := bufio.NewReaderSize(in, maxAuditLine)
	for n := 1; ; n++ {
		line, err := r.ReadSlice('\n')
		here := auditPlace{f.name, n}
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

func (p auditPlace) broken(kind, format string, args ...any) error {
	return &AuditBreak{File: p.file, Line: p.line, Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// line checks that a line follows the one before.
func (c *auditChain) line(here auditPlace, line []byte) error {
	h, err := parseAudit(line, c.replica)
	if err != nil {
		kind := auditChanged
		if errors.Is(err, errNotWhole) {
			kind = auditCut
		}
		return here.broken(kind, "the line %v", err)
	}
	first := c.at.file == ""
	switch {
	case here.line == 1 && h.Ev != auditStart && h.Ev != auditRotate:
		return here.broken(auditMissing, "the beginning of the file is gone: number %d is no first line", h.Seq)
	case first && h.Seq == 1 && h.Prev != noLine:
		return here.broken(auditChanged, "the first line of all follows another")
	case first:
	case h.Seq > c.seq+1:
		return here.broken(auditMissing, "numbers %d to %d are gone", c.seq+1, h.Seq-1)
	case h.Seq <= c.seq:
		return here.broken(auditChanged, "number %d follows number %d", h.Seq, c.seq)
	case h.Prev != c.hash:
		return c.at.broken(auditChanged, "number %d is not what the line after it says it was", c.seq)
	}
	c.at, c.seq, c.hash = here, h.Seq, hashLine(line)
	return nil
}
