package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"codehand/server/config"
	"codehand/server/state"
	"codehand/tools/confine/caches"
)

// ownName is what the state directory is called unless a person chooses another.
const ownName = "codehand"

// purge removes the state directory: with it all that tools could still undo. It shows first what is there, and removes
// nothing while a codehand runs that uses it. The user's settings stay, since a person wrote them.
func (i *installer) purge() error {
	dir := i.places.State
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		_, err := fmt.Fprintf(i.t.out, "%s: is not there; nothing to do\n", printable(dir))
		return err
	}
	dir, err := config.OpenState(dir) // refuses one that is a link, or that others could change
	if err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	if filepath.Base(dir) != ownName { // a person chose it, and may keep other things there
		return &exitError{
			code: exitFailed, hint: "remove it yourself, if all of it is codehand's",
			err: fmt.Errorf("%s is not removed: state_dir names it, and what else lies there is not known",
				printable(dir)),
		}
	}
	if err := inUse(dir); err != nil {
		return failed(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return failed(err)
	}
	tw := tabwriter.NewWriter(i.t.out, 0, 4, 2, ' ', 0)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		fmt.Fprintf(tw, "%.1f MiB\t%s\n", float64(sizeOf(path))/(1<<20), printable(path))
	}
	if err := tw.Flush(); err != nil || i.flags.dryRun {
		return err
	}
	if i.asks == nil && !i.flags.yes {
		return usage("codehand uninstall --help",
			"without a terminal you cannot be asked: agree with --yes, or look with --dry-run")
	}
	if !i.flags.yes {
		yes, err := i.agrees("Remove all of " + printable(dir) + "? No change can be undone then.")
		if err != nil || !yes {
			return err
		}
	}
	if err := removeCaches(config.CacheDir(dir)); err != nil {
		return failed(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return failed(err)
	}
	_, err = fmt.Fprintf(i.t.out, "removed %s\n", printable(dir))
	return err
}

// inUse says which codehand works with a state directory; nil: none does, so far as the system tells. Each holds its
// journal open, which Linux shows to the same user.
func inUse(dir string) error {
	if pid, used := state.InUse(dir); used {
		return &state.InUseError{Dir: dir, PID: pid}
	}
	held, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is right; elsewhere nothing is found
	own := strconv.Itoa(os.Getpid())
	for _, fd := range held {
		pid := filepath.Base(filepath.Dir(filepath.Dir(fd)))
		if file, err := os.Readlink(fd); err == nil && strings.HasPrefix(file, dir+"/") && pid != own {
			return fmt.Errorf("process %s uses %s: end the client that started it first", pid, dir)
		}
	}
	return nil
}

// removeCaches removes the caches of all principals. The error is that a command runs, or of the system. What a cache
// holds is not writable for its owner, as Go's modules, so that os.RemoveAll alone does not do it.
func removeCaches(dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, c := range all {
		if c.IsDir() {
			if err := caches.Remove(filepath.Join(dir, c.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// sizeOf is how many bytes of files are at or below path, as far as they can be looked at.
func sizeOf(path string) (bytes int64) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone, or closed: it counts as nothing
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
