package nodes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codehand/server/state"
)

const (
	// volumeKey says which volume all nodes share. It is no place of anybody.
	volumeKey = state.Place + ".volume"
	// volumeFile says that in the directory itself.
	volumeFile = "cluster.id"
)

// A VolumeError says that a directory is not the one that the other nodes share.
type VolumeError struct {
	Dir      string
	Unmarked bool // no node marked it, or it is not there
}

func (e *VolumeError) Error() string {
	if e.Unmarked {
		return fmt.Sprintf("%s is not the directory that the nodes share: it has no %s. Is the volume mounted?", e.Dir,
			volumeFile)
	}
	return fmt.Sprintf("%s is not the directory that the other nodes share: its %s differs from what the store says. "+
		"Is the volume mounted?", e.Dir, volumeFile)
}

type volume struct {
	V  int    `json:"v"`
	ID string `json:"id"`
}

// sameVolume looks whether a directory is the one that the other nodes share. The first node marks it. *VolumeError.
func sameVolume(ctx context.Context, s state.Store, dir string) error {
	id, err := volumeID(dir)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(volume{1, id})
	if err != nil {
		return err
	}
	if _, err := s.Swap(ctx, volumeKey, raw, 0); err != nil {
		return err
	}
	known, err := KnownMark(ctx, s)
	if err == nil && known != id {
		err = &VolumeError{Dir: dir}
	}
	return err
}

// SameMark looks whether a directory has the mark that the Store knows, and marks nothing. *VolumeError.
func SameMark(dir, known string) error {
	switch id, err := readMark(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return &VolumeError{Dir: dir, Unmarked: true}
	case err != nil:
		return err
	case id != known:
		return &VolumeError{Dir: dir}
	}
	return nil
}

// Mounted looks whether some node marked a directory as the one that all share, and makes and marks nothing.
// *VolumeError.
func Mounted(dir string) error {
	_, err := readMark(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &VolumeError{Dir: dir, Unmarked: true}
	}
	return err
}

// Mark is that of the directory that this node shares with the others, as it is now; "": there is none.
func (n *Nodes) Mark() string {
	if n.o.Volume == "" {
		return ""
	}
	id, _ := readMark(n.o.Volume) // "" says that it cannot be read
	return id
}

// KnownMark is that of the directory that all nodes share, as the Store knows it; "": no node was there yet.
func KnownMark(ctx context.Context, s state.Store) (string, error) {
	raw, rev, err := s.Get(ctx, volumeKey)
	var known volume
	if err == nil && rev != 0 {
		err = json.Unmarshal(raw, &known)
	}
	return known.ID, err
}

func readMark(dir string) (string, error) {
	id, err := os.ReadFile(filepath.Join(dir, volumeFile))
	return strings.TrimSpace(string(id)), err
}

// volumeID is the mark of a directory, which gets one if it has none. It is there whole or not at all.
func volumeID(dir string) (string, error) {
	path := filepath.Join(dir, volumeFile)
	temp := path + "." + rand.Text()
	for {
		id, err := readMark(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return id, err
		}
		if err := os.WriteFile(temp, []byte(rand.Text()+"\n"), 0o600); err != nil {
			return "", err
		}
		err = os.Link(temp, path)
		_ = os.Remove(temp) // one that stays does no harm
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
}
