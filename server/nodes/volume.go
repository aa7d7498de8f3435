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
type VolumeError struct{ Dir string }

func (e *VolumeError) Error() string {
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
	var known volume
	if raw, _, err = s.Get(ctx, volumeKey); err == nil {
		err = json.Unmarshal(raw, &known)
	}
	if err == nil && known.ID != id {
		err = &VolumeError{dir}
	}
	return err
}

// volumeID is the mark of a directory, which gets one if it has none. It is there whole or not at all.
func volumeID(dir string) (string, error) {
	path := filepath.Join(dir, volumeFile)
	temp := path + "." + rand.Text()
	for {
		id, err := os.ReadFile(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return strings.TrimSpace(string(id)), err
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
