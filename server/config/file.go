package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFileBytes is the most that a configuration file may hold; ours have some hundred bytes.
const maxFileBytes = 1 << 20

// readUserFile reads the operator's file. nil, nil: there is none. A link is followed, because people keep such files
// in repositories; what counts is who can write the target.
func readUserFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingUnlessLink(path)
	}
	if err != nil {
		return nil, err
	}
	if err := checkFile(info, true); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, errors.New("this user cannot read it; run codehand as the user whose it is, or change its mode")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readChecked(f, true)
}

// missingUnlessLink refuses a link without a target: its author wanted settings that are missing.
func missingUnlessLink(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return errors.New("is a link to a file that does not exist")
	}
	return nil
}

// readProjectFile reads the file at rel below dir. nil, nil: there is none. It is content, so links may not lead out
// of dir, and a file that cannot be used is a reason not to start: it might have held a deny rule.
func readProjectFile(dir, rel string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkFile(info, false); err != nil {
		return nil, err
	}
	f, err := root.Open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readChecked(f, false)
}

// readChecked checks the open file again, since the name may mean another one by now, and reads it.
func readChecked(f *os.File, own bool) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkFile(info, own); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		return nil, fmt.Errorf("is larger than %d bytes", maxFileBytes)
	}
	return data, err
}

// checkFile refuses a file that another user may have written. own: it must also belong to this user or to root; a
// project file may belong to the user who made the checkout, since it only narrows.
func checkFile(info fs.FileInfo, own bool) error {
	switch {
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	case writableByOthers(info):
		return errors.New("can be written by others; run chmod o-w on it")
	case own && !trustedOwner(info):
		return errors.New("belongs to another user")
	}
	return nil
}
