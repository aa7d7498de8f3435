// Package caches bounds what commands download and build: it tells how much there is, and removes what was not used for
// the longest time. It never runs a command and follows no link: what lies in the caches belongs to commands.
//
// The caches of a principal are a directory with one for commands that write, one for those that only read, and a lock
// that each command holds.
package caches

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	lockName  = "lock"
	trashName = "removed-" // and something of chance: what is on its way out
)

// ErrInUse says that a command uses the caches, so that nothing was removed.
var ErrInUse = errors.New("a command is using the caches")

// Hold keeps what is in the caches dir until release is called, as for the time of a command. It waits for a Trim or
// Remove that moves things away, which takes a moment.
func Hold(dir string) (release func(), err error) {
	f, err := locked(filepath.Join(dir, lockName), false)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil // the lock ends with the file
}

// An evictable is what goes as a whole, since programs rely on its parts.
type evictable struct {
	path  string // below the caches, with slashes
	bytes int64
	used  time.Time // last, as far as the file system tells
}

// installed are directories with programs that commands installed. They are counted and never removed for room.
var installed = []string{"bin", "go", "npm-global", "pipx", "uv-tools"}

// split are directories of which each child is an entry.
var split = []string{"npm", "xdg", "gradle", "corepack"}

// entryOf names the entry that a file belongs to, by its path below the caches; "": it stays.
func entryOf(name string) string {
	parts := strings.Split(name, "/")
	whole := func(n int) string {
		if len(parts) <= n {
			return ""
		}
		return path.Join(parts[:n+1]...)
	}
	switch {
	case len(parts) < 2: // lock
		return ""
	case slices.Contains(installed, parts[1]):
		return ""
	case slices.Contains(split, parts[1]):
		return whole(2)
	case parts[1] == "go-build": // go itself removes single files by their time
		return whole(3)
	case parts[1] == "cargo" && len(parts) > 2 && parts[2] != "registry" && parts[2] != "git":
		return ""
	case parts[1] == "cargo":
		return whole(2)
	}
	return whole(1)
}

// entriesOf returns what is in the caches, and how many bytes all files have together.
func entriesOf(ctx context.Context, root *os.Root) (all []evictable, total int64, err error) {
	at := map[string]int{}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || d.IsDir() || strings.HasPrefix(name, trashName) {
			return nil //nolint:nilerr // what cannot be read, or has gone, is not counted
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it has gone
		}
		total += info.Size()
		if name = entryOf(name); name == "" {
			return nil
		}
		i, known := at[name]
		if !known {
			i, at[name] = len(all), len(all)
			all = append(all, evictable{path: name})
		}
		all[i].bytes += info.Size()
		if used := usedAt(info); used.After(all[i].used) {
			all[i].used = used
		}
		return nil
	})
	return all, total, err
}

// Trim removes what was used the longest time ago, until the caches dir have at most so many bytes. It removes nothing
// while a command runs: ErrInUse. Programs that commands installed stay, and count.
func Trim(ctx context.Context, dir string, most int64) (freed int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }() // it is no file
	if err := emptyTrash(root); err != nil {
		return 0, err
	}
	all, total, err := entriesOf(ctx, root)
	if err != nil || total <= most {
		return 0, err
	}
	slices.SortFunc(all, func(a, b evictable) int { return a.used.Compare(b.used) })
	var old []string
	for _, e := range all {
		if total-freed <= most {
			break
		}
		old, freed = append(old, e.path), freed+e.bytes
	}
	return freed, remove(root, dir, old)
}

// Remove removes the caches dir with all that commands installed there.
func Remove(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it is no file
	children, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	var all []string
	for _, c := range children {
		if c.Name() != lockName && !strings.HasPrefix(c.Name(), trashName) {
			all = append(all, c.Name())
		}
	}
	return errors.Join(remove(root, dir, all), emptyTrash(root))
}

// remove moves what is called so aside while no command runs, and removes it then.
func remove(root *os.Root, dir string, names []string) error {
	lock, err := locked(filepath.Join(dir, lockName), true)
	if err != nil {
		return err
	}
	trash := trashName + strconv.FormatInt(time.Now().UnixNano(), 36)
	err = root.Mkdir(trash, 0o700)
	for i, name := range names {
		if err != nil {
			break
		}
		if info, e := root.Lstat(name); e == nil && info.IsDir() && info.Mode().Perm()&0o200 == 0 {
			_ = root.Chmod(name, 0o700) // else its .. cannot be changed
		}
		if e := root.Rename(name, path.Join(trash, strconv.Itoa(i))); !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	_ = lock.Close() // commands may run again
	return errors.Join(err, emptyTrash(root))
}

// emptyTrash removes what was moved aside, also by a process that was ended before it could. No command reaches it.
func emptyTrash(root *os.Root) error {
	children, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, c := range children {
		if !strings.HasPrefix(c.Name(), trashName) {
			continue
		}
		// go makes the directories of modules read-only.
		_ = fs.WalkDir(root.FS(), c.Name(), func(name string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = root.Chmod(name, 0o700) // what stays is told below
			}
			return nil
		})
		if err := root.RemoveAll(c.Name()); err != nil {
			return err
		}
	}
	return nil
}

// A Usage is what one program has in the caches.
type Usage struct {
	Name  string // its directory, as "commands/npm"
	Bytes int64
}

// Parts says what is in the caches dir, the largest first.
func Parts(ctx context.Context, dir string) ([]Usage, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it is no file
	sizes := map[string]int64{}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || d.IsDir() || name == lockName {
			return nil //nolint:nilerr // what cannot be read is not counted
		}
		if info, err := d.Info(); err == nil {
			parts := strings.Split(name, "/")
			sizes[path.Join(parts[:min(2, len(parts))]...)] += info.Size()
		}
		return nil
	})
	var all []Usage
	for name, bytes := range sizes {
		all = append(all, Usage{name, bytes})
	}
	slices.SortFunc(all, func(a, b Usage) int {
		if a.Bytes != b.Bytes {
			return int(min(max(b.Bytes-a.Bytes, -1), 1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, err
}
