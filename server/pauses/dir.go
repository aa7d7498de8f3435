package pauses

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"codehand/server/pipeline"
)

// fileName is that of the file which is there while the calls of a user are paused.
const fileName = "paused.json"

// A Dir keeps in a state directory that the one user of it has paused all calls. There is no other memory of it, so
// that all processes agree, also on systems where they cannot reach each other.
type Dir string

// Of returns the pause that holds for a principal: the user's own. A file that cannot be read is one.
func (d Dir) Of(principal string, _ bool) []Pause {
	if _, err := os.Lstat(d.path()); errors.Is(err, fs.ErrNotExist) { // half of what it costs to open it
		return nil
	}
	text, err := os.ReadFile(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var p Pause
	if err != nil || json.Unmarshal(text, &p) != nil {
		p = Pause{}
	}
	p.Of = principal
	return []Pause{p}
}

// Paused is pipeline.Pipeline.Paused.
func (d Dir) Paused(principal string) *pipeline.Pause {
	for _, p := range d.Of(principal, false) {
		return &pipeline.Pause{By: p.By, Since: p.Since, Where: "with `codehand page`"}
	}
	return nil
}

// Pause pauses all calls of the user.
func (d Dir) Pause(_ context.Context, by string, _ bool) error {
	if len(d.Of(by, false)) > 0 {
		return nil
	}
	text, err := json.Marshal(Pause{Of: by, By: by, Since: time.Now()})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(string(d), fileName+".*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), d.path())
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what is left of it pauses nothing
	}
	return err
}

// Resume ends the pause.
func (d Dir) Resume(context.Context, string, string, bool) error {
	err := os.Remove(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotYours
	}
	return err
}

func (d Dir) path() string { return filepath.Join(string(d), fileName) }
