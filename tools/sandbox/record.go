package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// recordName is the file in the state directory that holds what the last process proved.
const recordName = "proven.json"

// recordMost is the most bytes that a record has.
const recordMost = 64 << 10

// A proof is a Report with what it holds for.
type proof struct {
	Machine   machine  `json:"machine"`
	Level     Level    `json:"level"`
	Gaps      []string `json:"gaps"`
	Grouped   bool     `json:"grouped"` // Report.Groups is set
	Ungrouped string   `json:"ungrouped,omitempty"`
	Failed    *Failure `json:"failed,omitempty"`
}

// Keep writes what was proven to the state directory, for Recall of later processes. A level below LevelKernel is
// forgotten instead: Start refuses to do less than a higher one, so only those cannot be claimed by mistake.
func (r Report) Keep(state string) error {
	path := filepath.Join(state, recordName)
	here, known := thisMachine(state)
	if !known || r.Level < LevelKernel || r.Unknown() {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(proof{
		Machine: here, Level: r.Level, Gaps: r.Gaps, Grouped: r.Groups != nil, Ungrouped: r.Ungrouped, Failed: r.Failed,
	}, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(state, recordName+"-") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what failed is said
	}
	return err
}

// Recall returns what an earlier process proved, if it was this program, on this machine since its last start, with the
// same rights and settings of the kernel. It takes no time, so that a first command need not wait for Probe; the caller
// proves it again beside that.
//
// The state directory is one that no command at LevelFull sees. Where commands have more, one may write a record. It
// gains nothing: a level that the machine does not have makes Start fail, and a record of no level is ever used that
// Start would not keep to. Errors: why there is no record that counts.
func Recall(state string) (Report, error) {
	text, err := readOwn(state, recordName, recordMost)
	if err != nil {
		return Report{}, err
	}
	var kept proof
	if err := json.Unmarshal(text, &kept); err != nil {
		return Report{}, err
	}
	here, known := thisMachine(state)
	switch {
	case !known:
		return Report{}, errors.New("this machine cannot be told from others")
	case kept.Level != LevelKernel && kept.Level != LevelFull,
		kept.Level == LevelFull && kept.Failed != nil,
		kept.Level == LevelKernel && (kept.Failed == nil || kept.Failed.Passing):
		return Report{}, fmt.Errorf("no process proves level %d so", kept.Level)
	}
	if changed := kept.Machine.changed(here); changed != "" {
		return Report{}, fmt.Errorf("another %s", changed)
	}
	r := Report{Level: kept.Level, Gaps: kept.Gaps, Ungrouped: kept.Ungrouped, Failed: kept.Failed}
	if kept.Grouped {
		r.Groups = here.groups
	}
	return r, nil
}

// Same reports whether two reports say the same of a machine, in whatever words.
func (r Report) Same(other Report) bool {
	failed := (r.Failed == nil) == (other.Failed == nil) && (r.Failed == nil || r.Failed.Level == other.Failed.Level)
	return failed && r.Level == other.Level && slices.Equal(r.Gaps, other.Gaps) &&
		(r.Groups == nil) == (other.Groups == nil)
}

// readOwn reads a file of at most so many bytes below dir that belongs to this user alone, as does dir.
func readOwn(dir, name string, most int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a FIFO would be waited for
		return nil, fmt.Errorf("%s is no file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	around, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, opened) || !mineAlone(opened) || !mineAlone(around) {
		return nil, fmt.Errorf("%s may be another user's", name)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
