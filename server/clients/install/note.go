package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// notesFile is where the notes are, in the state directory.
const notesFile = "installs.json"

// A note is what one install did to one file, so that an uninstall leaves the file as it was, byte for byte, or, if
// another program has changed it since, keeps at least those changes.
type note struct {
	Client string
	// Command is the program that the entry starts; "": it is remote, or no entry was written.
	Command string   `json:",omitzero"`
	Sum     string   // SHA-256 of the content after
	Made    bool     // there was no file
	Dirs    []string `json:",omitzero"` // that were made for it, as on the disk, the outermost first
	Drop    []string `json:",omitzero"` // keys of the top level that were not there
	// At the offset At, Out was replaced by In. Both are what differs, so they say nothing of the rest of the file.
	At      int
	Out, In []byte
	Added   map[string][]string `json:",omitzero"` // values that were added to lists, by their path with dots
}

// noteOf compares the content before the first install, nil for no file, with that after.
func noteOf(client string, before, after []byte) note {
	n := note{Client: client, Sum: sum(after), Made: before == nil}
	for n.At < min(len(before), len(after)) && before[n.At] == after[n.At] {
		n.At++
	}
	tail := 0
	for tail < min(len(before), len(after))-n.At && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	n.Out, n.In = bytes.Clone(before[n.At:len(before)-tail]), bytes.Clone(after[n.At:len(after)-tail])
	return n
}

// undo is the content before the install; nil: there was no file. Not ok: what it wrote is not there any more, or not
// only once.
func (n note) undo(now []byte) ([]byte, bool) {
	if sum(now) == n.Sum {
		if n.Made {
			return nil, true
		}
		return n.replaced(now, n.At), true
	}
	if n.Made || len(n.In) == 0 || bytes.Count(now, n.In) != 1 {
		return nil, false
	}
	at := bytes.Index(now, n.In)
	return n.replaced(now, at), true
}

// replaced is the content with Out in place of In at an offset; never nil, which means no file.
func (n note) replaced(now []byte, at int) []byte {
	out := make([]byte, 0, len(now)-len(n.In)+len(n.Out))
	return append(append(append(out, now[:at]...), n.Out...), now[at+len(n.In):]...)
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// lastOf is the note of the install that was made last; the zero note if there is none.
func lastOf(known []note) note {
	if len(known) == 0 {
		return note{}
	}
	return known[len(known)-1]
}

// readNotes reads the notes of all files. None are there before the first install.
func readNotes(state string) (map[string][]note, error) {
	notes := map[string][]note{}
	if state == "" {
		return notes, nil
	}
	file := filepath.Join(state, notesFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return notes, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &notes); err != nil {
		return nil, fmt.Errorf("%s: %w; move it away: then uninstall removes entries, and leaves what was made for "+
			"them", file, err)
	}
	return notes, nil
}
