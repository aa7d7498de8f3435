package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codehand/server/config"
	"codehand/server/sessions"
	"codehand/server/state"
	"codehand/tools/results"
)

func (m Machine) roots() []Finding {
	if len(m.Config.Roots) == 0 {
		for _, w := range m.Warnings {
			if w.NoRoot != "" { // a person may ask from anywhere: nothing is wrong with the machine
				return []Finding{{"roots", Note, fmt.Sprintf("%s is no root by itself: %s; a client that is started "+
					"in a project works there", m.Config.WorkDir, w.NoRoot),
					"to look at a project: codehand doctor /path/to/project"}}
			}
		}
		return []Finding{{"roots", Warn, "there is no root, so the tools can use no file",
			"give a directory: codehand stdio /path/to/project"}}
	}
	var out []Finding
	for _, r := range m.Config.Roots {
		out = append(out, m.root(r))
	}
	return out
}

// root looks at one root, and tries in a directory of its own there, which it removes, what a change needs.
func (m Machine) root(r string) Finding {
	f := Finding{"roots", OK, r, ""}
	info, err := os.Stat(r)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Finding{"roots", Fail, r + " does not exist", "create the directory, or give another one"}
	case err != nil:
		return Finding{"roots", Fail, err.Error(), "give this user the right to enter it"}
	case !info.IsDir():
		return Finding{"roots", Fail, r + " is not a directory", "give a directory"}
	}
	if _, err := os.ReadDir(r); err != nil {
		return Finding{"roots", Fail, err.Error(), "give this user the right to read it"}
	}
	const instead = "give a project's directory instead"
	switch {
	case filepath.Dir(r) == r:
		return Finding{"roots", Warn, r + " is the whole file system: the tools can change everything in it", instead}
	case same(r, m.Config.Home):
		return Finding{"roots", Warn, r + " is your home directory: the tools can change everything in it", instead}
	}
	if kind := m.system().network(r); kind != "" {
		return Finding{"roots", Warn, fmt.Sprintf("%s is on a network file system (%s): it is slow, locks may not "+
			"hold between machines, and changes of others are seen late", r, kind),
			"work in a directory on a disk of this machine"}
	}
	err = m.tryChange(r)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return Finding{"roots", Note, r + ": this file system cannot exchange two files in one step",
			"nothing needs to be done: files are changed by other steps, which take longer"}
	case err != nil:
		return Finding{"roots", Warn, fmt.Sprintf("%s: no file can be made or changed in it: %s", r, cause(err)),
			"give this user the right to write in it"}
	}
	return f
}

// tryChange exchanges two files in a new directory below dir, as a change of a file does. errors.ErrUnsupported: the
// file system cannot.
func (m Machine) tryChange(dir string) (err error) {
	dir, err = os.MkdirTemp(dir, ".codehand-doctor-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only a handle
	for _, name := range []string{"a", "b"} {
		if err := root.WriteFile(name, []byte(name), 0o600); err != nil {
			return err
		}
	}
	return m.system().swap(root, "a", "b")
}

// leastFree is how much space the state directory should have: the journal alone may take a quarter of it.
const leastFree = 1 << 30

func (m Machine) state() []Finding {
	dir, err := config.OpenState(m.Config.StateDir)
	if err != nil {
		return []Finding{{"state", Fail, err.Error(),
			"the directory must belong to you, have mode 0700 and be writable; or choose another one with --state-dir"}}
	}
	f := writable(dir)
	if free, ok := m.system().free(dir); ok && free < leastFree && f.Level == OK {
		return []Finding{{"state", Warn, fmt.Sprintf("%s has %s left", dir, results.Size(free)),
			"free some space there, or choose another directory with --state-dir"}}
	}
	return []Finding{f}
}

// writable looks whether files can be made in the state directory and in all that is in it: what was once made by sudo
// belongs to root.
func writable(dir string) Finding {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Finding{"state", Fail, err.Error(), "give this user the right to read it"}
	}
	dirs := []string{dir}
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	for _, d := range dirs {
		probe, err := os.CreateTemp(d, "doctor-*")
		if err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
		if errors.Is(err, fs.ErrNotExist) && d != dir {
			continue // a server removed it meanwhile
		}
		if err != nil {
			return Finding{"state", Fail, "no file can be made in " + d + ": " + cause(err),
				"make the directory yours, free some space, or choose another one with --state-dir"}
		}
	}
	return Finding{"state", OK, dir, ""}
}

// cause is what the system said, without the names of temporary files.
func cause(err error) string {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}

// maxRecovered is how many files of the journal are named.
const maxRecovered = 5

// journals are the directories that hold journals: that of the state, and what several machines share.
func journals(m Machine) []string {
	dirs := []string{m.Config.StateDir}
	if m.Serve {
		dirs[0] = m.Config.DataDir()
	}
	if volume := m.Config.Cluster.Volume(); volume != "" {
		dirs = append(dirs, volume)
	}
	return dirs
}

// journal names what servers that were killed left behind, and that is in no file.
func (m Machine) journal(ctx context.Context) []Finding {
	var found []sessions.Recovered
	for _, dir := range journals(m) {
		some, err := sessions.RecoveredFiles(ctx, dir)
		if err != nil {
			return []Finding{{"journal", Warn, "the journal cannot be read: " + err.Error(),
				"check the directory journal in " + dir}}
		}
		for _, r := range some {
			r.Mine = r.Mine && dir == m.Config.StateDir && !m.Serve
			found = append(found, r)
		}
	}
	var out []Finding
	for _, r := range found[:min(len(found), maxRecovered)] {
		fix := "to see it, run in a directory above the file: codehand history --change " + r.ID
		if !r.Mine {
			fix = "to see it: codehand history --principal NAME --change " + r.ID + ", with the NAME of who works there"
		}
		out = append(out,
			Finding{"journal", Note, fmt.Sprintf("a server that was killed left a version of %s, found on %s", r.Path,
				r.Time.Local().Format(time.DateTime)), fix})
	}
	if more := len(found) - maxRecovered; more > 0 {
		out = append(out, Finding{"journal", Note, fmt.Sprintf("%d more such versions are kept", more),
			"codehand history lists them"})
	}
	return out
}

// store tries the Store of serve in a directory of its own beside the real one, and reads a copy of the real one.
func (m Machine) store(ctx context.Context) []Finding {
	if state.Kind(m.Config.Store.URL) == "nats" {
		return natsStore(ctx, m.Config)
	}
	if m.Config.Store.URL != state.OnDisk {
		return []Finding{{"store", OK, m.Config.Store.URL + " serve keeps nothing on disk", ""}}
	}
	dir := m.Config.DataDir()
	if _, err := os.Stat(dir); err != nil {
		// What can be wrong with it, state says. Whether it is there yet, is chance on a first run: servers that doctor
		// starts beside this check make it, too.
		return []Finding{{"store", OK, fmt.Sprintf("embedded in %s: the first serve makes it", dir), ""}}
	}
	text, paused, err := tryStore(ctx, dir)
	if err != nil {
		return []Finding{storeFailed(dir, err)}
	}
	return append([]Finding{{"store", OK, fmt.Sprintf("embedded in %s: %s", dir, text), ""}}, paused...)
}

// natsStore looks whether serve could begin on the servers of NATS. A server that works with them is the best sign.
func natsStore(ctx context.Context, cfg config.Config) []Finding {
	o, url := cfg.StoreOptions(), cfg.Store.URL
	o.Impatient = true
	s, err := state.Open(ctx, url, o)
	if held, ok := errors.AsType[*state.HeldError](err); ok {
		return []Finding{{"store", OK,
			fmt.Sprintf("%s: codehand serve on %s (process %d) uses it", url, held.Host, held.PID), ""}}
	}
	var paused []Finding
	if err == nil {
		if err = s.Ping(ctx); err == nil {
			paused, err = pausedIn(ctx, "store", s)
		}
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		return []Finding{{"store", Fail, err.Error(), "start the servers of NATS, or fix what the line says; see " +
			"docs/team-nats.md"}}
	}
	return append([]Finding{{"store", OK, url + ": streams are as they must be. Whether the servers sync what they " +
		"write (sync_interval: always) no client can see", ""}}, paused...)
}

func storeFailed(dir string, err error) Finding {
	files := filepath.Join(dir, "store")
	f := Finding{"store", Fail, err.Error(), "make the directory " + dir + " yours and free some space, or choose " +
		"another one with --http-data-dir"}
	if _, ok := errors.AsType[*state.DamagedError](err); ok {
		f.Fix = fmt.Sprintf("restore %s from a backup, or move it away: sessions and tokens then begin anew", files)
	} else if errors.Is(err, state.ErrNewer) {
		f.Fix = "use the newer codehand that wrote it, or move " + files + " away"
	}
	return f
}

// tryStore carries out one of each operation on a copy of the Store of dir, or on a new one if a server uses it or it
// is too large to be copied. paused is what the copy says of calls that people have paused.
func tryStore(ctx context.Context, dir string) (text string, paused []Finding, err error) {
	scratch, err := os.MkdirTemp(dir, "doctor-*")
	if err != nil {
		return "", nil, fmt.Errorf("no file can be made in %s: %s", dir, cause(err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	text = "written and read back"
	if pid, used := state.InUse(dir); used {
		if text += ", a server uses it"; pid > 0 {
			text += fmt.Sprintf(" (process %d)", pid)
		}
	} else if err := copyStore(filepath.Join(dir, "store"), filepath.Join(scratch, "store")); err != nil {
		return "", nil, err
	}
	s, err := state.Open(ctx, state.OnDisk, state.Options{Dir: scratch})
	if err != nil {
		return "", nil, anonymous(err, scratch, dir)
	}
	if paused, err = pausedIn(ctx, "store", s); err == nil {
		err = useStore(ctx, s)
	}
	return text, paused, anonymous(errors.Join(err, s.Close()), scratch, dir)
}

// anonymous makes an error about the copy one about the original.
func anonymous(err error, scratch, dir string) error {
	if err == nil {
		return nil
	}
	if d, ok := errors.AsType[*state.DamagedError](err); ok {
		original := *d
		original.File = strings.Replace(d.File, scratch, dir, 1)
		return &original
	}
	return err
}

// maxCopied is how many bytes of a Store are copied to look at them.
const maxCopied = 64 << 20

// copyStore copies the files of a Store that no process writes. Nothing to copy, or too much, is no error.
func copyStore(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var size int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // the Store says what is wrong with it
		}
		size += info.Size()
	}
	if size > maxCopied {
		return nil
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// useStore writes, reads back, watches and deletes a key.
func useStore(ctx context.Context, s state.Store) error {
	if err := s.Ping(ctx); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	key, value := state.Key(state.Replica, "doctor"), "written by doctor"
	if err := s.Set(ctx, key, []byte(value)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	got, _, err := s.Get(ctx, key)
	if err == nil && string(got) != value {
		err = fmt.Errorf("got %q", got)
	}
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	watch, stop := context.WithCancel(ctx)
	seen := false
	err = s.Watch(watch, state.Replica, func(k string) {
		seen = seen || k == key
		stop()
	})
	stop()
	if err != nil || !seen && ctx.Err() == nil {
		return fmt.Errorf("watch: the written key was not seen (%w)", errors.Join(err, ctx.Err()))
	}
	return s.Delete(ctx, key)
}
