package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"codehand/filestate/owner"
)

// A running is a note on disk about a command, as long as it runs. The end of a command looks at what it made; if the
// server is killed, that end does not come, and the next server tells what appeared.
type running struct {
	Began   time.Time
	Roots   []string
	Known   []string // protected names, and what git obeys, that were there
	Allowed []string // by a person
}

// runningDir has the notes, below Options.State. No command sees them.
const runningDir = "running"

// maxRunning is how large a note may be: it has a path for each protected name.
const maxRunning = 16 << 20

// noteRunning writes the note about a command, and returns how it is removed. Without a note a kill goes untold.
func (c *Confiner) noteRunning(u Use, known map[string]os.FileInfo) (remove func()) {
	if c.o.State == "" {
		return func() {}
	}
	note, err := json.Marshal(running{Began: time.Now(), Roots: u.Roots, Known: slices.Collect(maps.Keys(known)),
		Allowed: u.Allowed})
	dir := filepath.Join(c.o.State, runningDir)
	path := filepath.Join(dir, c.self.TempName())
	if err == nil {
		err = os.WriteFile(path, note, 0o600)
	}
	if errors.Is(err, fs.ErrNotExist) && os.MkdirAll(dir, 0o700) == nil {
		_ = os.WriteFile(path, note, 0o600) // as said above
	}
	return func() { _ = os.Remove(path) } // else the next server tells of it
}

// killed tells, once, what appeared in roots of u after a command began there whose server was killed; "": nothing did.
func (c *Confiner) killed(u Use) (line string) {
	if c.o.State == "" {
		return ""
	}
	dir := filepath.Join(c.o.State, runningDir)
	entries, _ := os.ReadDir(dir) // it may not be there yet
	var appeared []string
	var since time.Time
	for _, e := range entries {
		maker, mark, ok := owner.Of(e.Name())
		if !ok || maker == c.self.Process || !maker.Dead() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil || mark != c.self.Mark() && time.Since(info.ModTime()) < owner.LeftAfter {
			continue // on another host it may still run
		}
		var note running
		if text, err := readNote(path, info); err != nil || json.Unmarshal(text, &note) != nil ||
			!slices.ContainsFunc(note.Roots, exists) {
			_ = os.Remove(path) // its writer was killed, or there is nothing to look at any more
			continue
		}
		if !slices.ContainsFunc(note.Roots, func(root string) bool { return slices.Contains(u.Roots, root) }) {
			continue
		}
		appeared = append(appeared, c.appeared(note, u.Roots)...)
		if since.IsZero() || note.Began.Before(since) {
			since = note.Began
		}
		_ = os.Remove(path) // else it is told twice
	}
	if len(appeared) == 0 {
		return ""
	}
	return fmt.Sprintf("[codehand was killed while a command ran here, and nothing looked at what that made. These "+
		"appeared since %s, by it or by the user: %s. Tell the user to look at them before git or another program "+
		"obeys them]", since.Format(time.DateTime), named(sorted(appeared)))
}

func readNote(path string, info fs.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() || info.Size() > maxRunning {
		return nil, fs.ErrInvalid
	}
	return os.ReadFile(path)
}

// appeared returns what there is now of protected names, and of what git obeys, in those roots of a note that are among
// roots, and was not there when its command began.
func (c *Confiner) appeared(note running, roots []string) (all []string) {
	shown := &configs{roots: roots}
	for _, root := range note.Roots {
		if !slices.Contains(roots, root) {
			continue
		}
		now, _ := c.finder(nil).protectedIn(root) // no command starts in what is too large
		for _, o := range now.obeyed {
			now.found = append(now.found, o.Path)
		}
		for _, path := range slices.Concat(now.found, now.dots) {
			if exists(path) && !slices.Contains(note.Known, path) &&
				!slices.ContainsFunc(note.Allowed, func(a string) bool { return within(path, a) || within(a, path) }) {
				all = append(all, shown.shown(path))
			}
		}
	}
	return all
}
