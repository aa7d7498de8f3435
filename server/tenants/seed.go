package tenants

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// found makes a root that is missing, 0700. One with a seed is filled beside its place and then moved there, so that
// no session ever works in half of it.
func (r *Registry) found(root, seed string) error {
	r.founding.Lock()
	defer r.founding.Unlock()
	info, err := os.Stat(root)
	switch {
	case err == nil && !info.IsDir():
		return errors.New("is not a directory")
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent, name, err := makeParents(root)
	if err != nil {
		return err
	}
	defer parent.Close()
	if seed == "" {
		return parent.Mkdir(name, 0o700)
	}
	fresh := "." + name + ".seed" // one that a crash left is begun again
	if err := parent.RemoveAll(fresh); err != nil {
		return err
	}
	if err := parent.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	if err := copySeed(seed, filepath.Join(filepath.Dir(root), fresh)); err != nil {
		return fmt.Errorf("seed %s: %w", seed, errors.Join(err, parent.RemoveAll(fresh)))
	}
	return parent.Rename(fresh, name)
}

// makeParents makes the directories above a root that does not exist, without following a link below the deepest one
// that does, and opens the last.
func makeParents(root string) (parent *os.Root, name string, err error) {
	var missing []string
	at := filepath.Dir(root)
	for {
		info, err := os.Stat(at)
		if err == nil {
			if !info.IsDir() {
				return nil, "", fmt.Errorf("%s is not a directory", at)
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
		missing = append(missing, filepath.Base(at))
		at = filepath.Dir(at)
	}
	dir, err := os.OpenRoot(at)
	if err != nil {
		return nil, "", err
	}
	for _, m := range slices.Backward(missing) {
		if err := dir.Mkdir(m, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, "", errors.Join(err, dir.Close())
		}
		below, err := dir.OpenRoot(m)
		if err = errors.Join(err, dir.Close()); err != nil {
			return nil, "", err
		}
		dir = below
	}
	return dir, filepath.Base(root), nil
}
