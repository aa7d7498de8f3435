package search

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"codehand/tools/search/ignore"
	"codehand/tools/search/index"
)

// maxIgnoreFile is how much of one ignore file is read, in bytes.
const maxIgnoreFile = 1 << 20

// ignoreFiles are the ignore files that a directory may have, by kind.
var ignoreFiles = map[ignore.Kind]string{ignore.RgIgnore: ".rgignore", ignore.DotIgnore: ".ignore",
	ignore.GitIgnore: ".gitignore"}

// rulesOf gives the rules inside a directory: those above it and its own. entries are its names, all of them if last.
func (w *walk) rulesOf(d folder, it item, entries []index.Listed, last bool) *ignore.Stack {
	has := func(name string) bool {
		if !last {
			_, err := d.lstat(name)
			return err == nil
		}
		_, found := slices.BinarySearchFunc(entries, name,
			func(e index.Listed, n string) int { return strings.Compare(e.Name, n) })
		return found
	}
	return w.pushRules(it.rules, d, it.rel, has)
}

// pushRules adds the rules of one directory to those above it. A directory with a repository of its own is a border.
func (w *walk) pushRules(rules *ignore.Stack, d folder, rel string, has func(name string) bool) *ignore.Stack {
	if has(".git") || has(".jj") {
		rules = rules.Border()
		if l := w.ex.of(d, w.abs(rel)); l != nil {
			rules = rules.Push(ignore.Exclude, w.abs(rel), l)
		}
	}
	for kind, name := range ignoreFiles {
		if !has(name) {
			continue
		}
		if l := w.ignoreFile(d, joinPath(rel, name), name); l != nil {
			rules = rules.Push(kind, w.abs(rel), l)
		}
	}
	return rules
}

// ignoreFile reads one. nil: it cannot be read, or is no regular file; git does not follow a link there either.
func (w *walk) ignoreFile(d folder, rel, name string) *ignore.List {
	data, whole, err := readSmall(d, name)
	switch {
	case vanished(err):
		return nil
	case err != nil:
		w.note(ofUnreadable, rel)
		return nil
	case !whole:
		w.note(ofPartial, rel)
	}
	return ignore.Parse(data)
}

// readSmall reads the first maxIgnoreFile bytes of a regular file, up to the last whole line if there is more.
func readSmall(d folder, name string) (data []byte, whole bool, err error) {
	f, err := d.open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.close()
	return readHead(f)
}

func readHead(r io.Reader) (data []byte, whole bool, err error) {
	data, err = io.ReadAll(io.LimitReader(r, maxIgnoreFile+1))
	if err != nil || len(data) <= maxIgnoreFile {
		return data, true, err
	}
	return data[:bytes.LastIndexByte(data[:maxIgnoreFile], '\n')+1], false, nil
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) }
