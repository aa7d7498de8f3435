package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxSeed bounds what is copied into a new workspace, in bytes.
const maxSeed = 1 << 30

// copySeed copies regular files, directories and links that stay inside from one directory into another, with their
// modes. What is neither is left out.
func copySeed(from, to string) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	left := int64(maxSeed)
	return fs.WalkDir(src.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		name := filepath.FromSlash(path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if err := dst.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			return dst.Chmod(name, info.Mode().Perm()|0o700)
		case info.Mode().IsRegular():
			if left -= info.Size(); left < 0 {
				return fmt.Errorf("is larger than %d bytes", maxSeed)
			}
			return copyFile(src, dst, name, info.Mode().Perm())
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := src.Readlink(name)
			if err != nil {
				return err
			}
			if filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
				return nil // it leads out
			}
			return dst.Symlink(target, name)
		}
		return nil
	})
}

func copyFile(src, dst *os.Root, name string, mode fs.FileMode) (err error) {
	in, err := src.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
