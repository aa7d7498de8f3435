package search

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"codehand/tools/search/ignore"
)

// excludes reads what lies outside a root and is used as a filter only, by absolute path: the ignore files of the
// root's parents up to the top of their repository, the exclude file of a repository, and the user's global one.
type excludes struct {
	outside          bool // parents and linked repositories may be looked at
	home, configHome string
}

// of reads .git/info/exclude of the repository whose top is d. nil: there is none.
func (x excludes) of(d folder, abs string) *ignore.List {
	st, err := d.lstat(".git")
	if err != nil {
		return nil
	}
	if st.regular {
		return x.linked(filepath.Join(abs, ".git"))
	}
	info, err := d.below(".git/info")
	if err != nil {
		return nil
	}
	defer info.close()
	data, _, err := readSmall(info, "exclude")
	if err != nil {
		return nil
	}
	return ignore.Parse(data)
}

// linked reads the exclude file of a work tree or submodule, whose .git is a file that names the place. Only a place
// with a component ".git" is followed: only git keeps files there.
func (x excludes) linked(gitFile string) *ignore.List {
	if !x.outside {
		return nil
	}
	dir, ok := strings.CutPrefix(firstLine(gitFile), "gitdir:")
	if !ok {
		return nil
	}
	dir = resolve(filepath.Dir(gitFile), strings.TrimSpace(dir))
	if common := firstLine(filepath.Join(dir, "commondir")); common != "" && insideGit(dir) {
		dir = resolve(dir, common)
	}
	if !insideGit(dir) || !sameOwner(gitFile, filepath.Join(dir, "info", "exclude")) {
		return nil
	}
	return readOutside(filepath.Join(dir, "info", "exclude"))
}

func resolve(base, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}

func insideGit(dir string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(dir), "/") {
		if part == ".git" {
			return true
		}
	}
	return false
}

// firstLine returns the first line of a small regular file, "" if there is none.
func firstLine(path string) string {
	data, err := readOutsideFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSuffix(line, "\r")
}

// readOutside reads an ignore file by path. nil: there is none.
func readOutside(path string) *ignore.List {
	data, err := readOutsideFile(path)
	if err != nil {
		return nil
	}
	return ignore.Parse(data)
}

func readOutsideFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	f, err := os.OpenFile(path, placeFlags, 0)
	if err != nil {
		return nil, err
	}
	data, _, err := readHead(f)
	return data, errors.Join(err, f.Close())
}

// above gives the rules that hold above a root: the global file, and those of its parents up to the top of the
// repository that the root lies in. Without a repository no parent is read.
func (x excludes) above(root string) *ignore.Stack {
	var rules *ignore.Stack
	if l := x.global(); l != nil {
		rules = rules.Push(ignore.Global, "", l)
	}
	if !x.outside || isRepository(root) {
		return rules
	}
	var parents []string // from the root's up to the repository's top
	for dir := filepath.Dir(root); ; dir = filepath.Dir(dir) {
		parents = append(parents, dir)
		if isRepository(dir) {
			break
		}
		if dir == filepath.Dir(dir) {
			return rules
		}
	}
	for i := len(parents) - 1; i >= 0; i-- {
		rules = x.parent(rules, parents[i], i == len(parents)-1)
	}
	return rules
}

// parent adds the rules of one directory above a root.
func (x excludes) parent(rules *ignore.Stack, dir string, top bool) *ignore.Stack {
	if top {
		rules = rules.Border()
		l := readOutside(filepath.Join(dir, ".git", "info", "exclude"))
		if l == nil {
			l = x.linked(filepath.Join(dir, ".git"))
		}
		if l != nil {
			rules = rules.Push(ignore.Exclude, filepath.ToSlash(dir), l)
		}
	}
	for kind, name := range ignoreFiles {
		if l := readOutside(filepath.Join(dir, name)); l != nil {
			rules = rules.Push(kind, filepath.ToSlash(dir), l)
		}
	}
	return rules
}

func isRepository(dir string) bool {
	for _, name := range []string{".git", ".jj"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// global reads the user's global excludes file: core.excludesFile of the user's git configuration, else git's default
// place.
func (x excludes) global() *ignore.List {
	var configs []string
	if x.home != "" {
		configs = append(configs, filepath.Join(x.home, ".gitconfig"))
	}
	if x.configHome != "" {
		configs = append(configs, filepath.Join(x.configHome, "git", "config"))
	}
	for _, c := range configs {
		data, err := readOutsideFile(c)
		if err != nil {
			continue
		}
		if path := excludesFile(string(data)); path != "" {
			if rest, ok := strings.CutPrefix(path, "~/"); ok {
				path = filepath.Join(x.home, rest)
			}
			return readOutside(path)
		}
	}
	if x.configHome == "" {
		return nil
	}
	return readOutside(filepath.Join(x.configHome, "git", "ignore"))
}

// excludesFile finds core.excludesFile in a git configuration. Includes are not followed.
func excludesFile(config string) string {
	section, found := "", ""
	lines := bufio.NewScanner(strings.NewReader(config))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			name, rest, _ := strings.Cut(line[1:], "]")
			section, line = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(rest)
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && section == "core" && strings.EqualFold(strings.TrimSpace(key), "excludesFile") {
			found = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return found
}
