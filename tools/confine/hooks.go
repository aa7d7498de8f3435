package confine

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"codehand/tools/git"
	"codehand/tools/sandbox"
)

// Installers of packages write git hooks on the way, as husky, lefthook, simple-git-hooks and pre-commit do, and what
// calls them fails with them: `npm install` of a project with husky. Hooks run outside of the sandbox, so a command
// writes them in copies, which end with it, and a line says what is not kept.

// hookCopies are the directories of hooks of which one command has copies. nil has none.
type hookCopies struct {
	temp *os.Root // of the session
	dir  string   // has the copies, in temp
	all  []hookCopy
}

// A hookCopy is one of them.
type hookCopy struct {
	path string
	copy string                       // below hookCopies.temp
	base map[string][sha256.Size]byte // of what the copy had, by name
}

const (
	// maxHookCopies is how many directories of hooks a command can write. More stay as they are, as does one with more
	// files.
	maxHookCopies = 10
	maxHooks      = 100
	maxHookBytes  = 1 << 20 // of one directory
)

// huskyHooks is where husky has the hooks that git runs. No repository tracks it, as it ignores itself.
const huskyHooks = ".husky/_"

// ownHooks gives a command copies of the directories of hooks that p protects in the directories that it writes, but
// for those that rules keep. It changes p.
func ownHooks(p *sandbox.Profile, written, keep []string) *hookCopies {
	temp, err := os.OpenRoot(p.Temp)
	if err != nil {
		return nil // all of them stay as they are
	}
	h := &hookCopies{temp: temp, dir: ".git-hooks-" + rand.Text()[:10]}
	ruled := func(path string) bool {
		return slices.ContainsFunc(slices.Concat(keep, p.Hidden), func(at string) bool {
			return within(path, at) || within(at, path)
		})
	}
	for _, path := range hookDirs(p.Protected, ruled) {
		if len(h.all) == maxHookCopies {
			break
		}
		if own, ok := h.add(path, written); ok {
			p.Copied = append(p.Copied, sandbox.Link{Path: path, Target: own})
			p.Protected = slices.DeleteFunc(p.Protected, func(at string) bool { return at == path })
		}
	}
	return h
}

// hookDirs returns the directories of hooks among what is protected and not ruled, and makes that of husky where a
// project has none so far: it is where nothing can be made while the command runs. Git does not see an empty directory.
func hookDirs(protected []string, ruled func(path string) bool) (dirs []string) {
	for _, path := range protected {
		if ruled(path) {
			continue
		}
		switch filepath.Base(path) {
		case "hooks":
			if exists(filepath.Join(filepath.Dir(path), "HEAD")) {
				dirs = append(dirs, path)
			}
		case filepath.Dir(huskyHooks):
			if info, err := os.Lstat(path); err != nil || !info.IsDir() {
				continue
			}
			if root, err := os.OpenRoot(path); err == nil {
				_ = root.Mkdir(filepath.Base(huskyHooks), 0o755) // else there is no copy
				_ = root.Close()                                 // a directory handle holds no data
				dirs = append(dirs, filepath.Join(path, filepath.Base(huskyHooks)))
			}
		}
	}
	return dirs
}

// add makes a copy of a directory of hooks. Not ok: it is none that a copy could stand for.
func (h *hookCopies) add(path string, written []string) (own string, ok bool) {
	dir, err := openAround(path, written)
	if err != nil {
		return "", false
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	info, err := dir.Lstat(filepath.Base(path))
	if err != nil || !info.IsDir() {
		return "", false
	}
	from, err := dir.OpenRoot(filepath.Base(path))
	if err != nil {
		return "", false
	}
	defer func() { _ = from.Close() }() // a directory handle holds no data
	names, ok := hooksIn(from)
	if !ok {
		return "", false
	}
	one := hookCopy{path: path, copy: filepath.Join(h.dir, strconv.Itoa(len(h.all))),
		base: map[string][sha256.Size]byte{}}
	if h.temp.MkdirAll(one.copy, 0o700) != nil {
		return "", false
	}
	left := maxHookBytes
	for name, mode := range names {
		content, err := git.ReadSmallIn(from, name, maxHookBytes)
		if left -= len(content); err != nil || left < 0 {
			return "", false
		}
		if h.temp.WriteFile(filepath.Join(one.copy, name), content, mode) != nil {
			return "", false
		}
		one.base[name] = sha256.Sum256(content)
	}
	h.all = append(h.all, one)
	return filepath.Join(h.temp.Name(), one.copy), true
}

// hooksIn returns the files of a directory of hooks with their modes, but for the samples that git puts there. Not ok:
// there is anything else, or too much.
func hooksIn(dir *os.Root) (files map[string]fs.FileMode, ok bool) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }() // a directory handle holds no data
	entries, err := f.ReadDir(-1)
	if err != nil || len(entries) > maxHooks {
		return nil, false
	}
	files = map[string]fs.FileMode{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".sample") {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil, false
		}
		files[e.Name()] = info.Mode().Perm() | 0o600
	}
	return files, true
}

// drop removes the copies.
func (h *hookCopies) drop() {
	if h == nil {
		return
	}
	if len(h.all) > 0 {
		_ = h.temp.RemoveAll(h.dir) // the rest goes with the session's temporary directory
	}
	_ = h.temp.Close() // a directory handle holds no data
}

// unkept returns a line for each directory of which the command has changed its copy.
func (h *hookCopies) unkept(shown func(path string) string) (lines []string) {
	if h == nil {
		return nil
	}
	for _, one := range h.all {
		if names := h.changed(one); len(names) > 0 {
			lines = append(lines, fmt.Sprintf("[%s: not kept: %s. Git would run hooks outside of the sandbox; the "+
				"user installs them in a terminal of their own, or sets permissions.unprotect = [%q]]",
				shown(one.path), named(sorted(names)), hooksName(one.path)))
		}
	}
	return lines
}

// changed returns the names that differ in a copy from what it was made of.
func (h *hookCopies) changed(one hookCopy) (names []string) {
	dir, err := h.temp.OpenRoot(one.copy)
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	f, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // a directory handle holds no data
	entries, _ := f.ReadDir(-1)      // what can be read counts
	left := map[string]bool{}
	for _, e := range entries {
		left[e.Name()] = true
		content, err := git.ReadSmallIn(dir, e.Name(), maxHookBytes)
		if sum, had := one.base[e.Name()]; !had || err != nil || sum != sha256.Sum256(content) {
			names = append(names, e.Name())
		}
	}
	for name := range one.base {
		if !left[name] {
			names = append(names, name)
		}
	}
	return names
}

// hooksName is the protected name that a directory of hooks falls under.
func hooksName(path string) string {
	if filepath.Base(path) == filepath.Base(huskyHooks) {
		return filepath.Dir(huskyHooks)
	}
	return madeName(path)
}
