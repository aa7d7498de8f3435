package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// stateDir finds the state directory: the setting, $STATE_DIRECTORY of systemd, or the platform's place. The data
// directory of serve is the same one by default.
func (l *loader) stateDir() {
	c := &l.config
	if c.StateDir == "" {
		c.StateDir = l.usualStateDir()
	}
	if c.StateDir == "" {
		l.problems.add("", "state_dir: the home directory is not known; set HOME or CODEHAND_STATE_DIR")
	}
	if c.HTTP.DataDir == "" {
		c.HTTP.DataDir = c.StateDir
	}
}

func (l *loader) usualStateDir() string {
	// systemd joins several with colons; the first one is the service's own.
	if dir, _, _ := strings.Cut(l.env["STATE_DIRECTORY"], ":"); runtime.GOOS == "linux" && filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	var base string
	switch {
	case filepath.IsAbs(l.env["XDG_STATE_HOME"]):
		base = l.env["XDG_STATE_HOME"]
	case runtime.GOOS == "windows":
		base = l.base("LOCALAPPDATA", "AppData/Local")
	case runtime.GOOS == "darwin":
		base = l.base("", "Library/Application Support")
	default:
		base = l.base("", ".local/state")
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, "codehand")
}

// OpenState makes the state directory with mode 0700, if it is missing, and returns its canonical path. It refuses a
// directory that another user could read or replace: one that is a link, belongs to another user, has mode bits for
// others, lies below a directory that others may write without the sticky bit, or has a link inside. The error names
// the component.
func OpenState(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("state directory %s: must be absolute", dir)
	}
	dir = filepath.Clean(dir)
	if err := checkParents(filepath.Dir(dir)); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("state directory: %w", err)
	}
	// Once more: another process may have made the parents meanwhile, and links resolve only now.
	real, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	for _, parent := range []string{filepath.Dir(dir), real} {
		if err := checkParents(parent); err != nil {
			return "", err
		}
	}
	real = filepath.Join(real, filepath.Base(dir))
	if err := checkState(real); err != nil {
		return "", err
	}
	return real, checkInside(real, insideDepth, workspaces, caches)
}

// caches is the directory, in the state directory, for what commands download and build.
const caches = "cache"

// CacheDir is the directory for what commands download and build, in the opened state directory state.
func CacheDir(state string) string { return filepath.Join(state, caches) }

// insideDepth is how many directories deep the names of a state directory can be foreseen, as
// sessions/PRINCIPAL/SESSION/jobs. Below, files are made anew and have names of chance.
const insideDepth = 4

// checkInside refuses links within the state directory: the server makes none, and behind one it would write where
// another user wants. It reads names only and opens no file. The directories called but belong to people, and to
// commands, which may have put links there: the server follows none of those.
func checkInside(dir string, depth int, but ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // another process tidies up
		return fmt.Errorf("state directory: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("state directory: %s is a link; remove it", path)
		case e.IsDir() && depth > 1 && !slices.Contains(but, e.Name()):
			if err := checkInside(path, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkState looks at the directory itself.
func checkState(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("state directory: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("state directory %s is a link; name its target", dir)
	case !info.IsDir():
		return fmt.Errorf("state directory %s is not a directory", dir)
	case !mine(info):
		return fmt.Errorf("state directory %s belongs to another user", dir)
	case othersHaveRights(info):
		return fmt.Errorf("state directory %s has mode %04o; run chmod 700 on it", dir, info.Mode().Perm())
	}
	return nil
}

// checkParents refuses a path on which another user could replace a directory. The server makes what does not exist
// yet.
func checkParents(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("state directory: %w", err)
		case info.Mode()&fs.ModeSticky == 0 && replaceable(info):
			return fmt.Errorf("state directory: %s can be written by others (mode %04o); run chmod go-w on it, or "+
				"set state_dir", at, info.Mode().Perm())
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// CallsDir is where a process on stdio records its calls; "": nowhere.
func CallsDir(c Config) string {
	switch {
	case c.Audit.Dir != "":
		return c.Audit.Dir
	case !c.Console.Record:
		return ""
	}
	return filepath.Join(c.StateDir, "calls")
}
