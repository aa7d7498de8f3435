package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A comment that sends its reader to a file is of use only if the file is there.
func TestRuleFileNames(t *testing.T) {
	house := readHouse(t)
	files, err := listFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	architecture, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(lostInComments(house, files), lostInDocument("ARCHITECTURE.md", string(architecture),
		files)...) {
		t.Error(text)
	}
}

// listFiles returns the paths of all files below a directory, without hidden ones.
func listFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != dir && strings.HasPrefix(d.Name(), "."), d.Name() == "node_modules":
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir():
			below, err := filepath.Rel(dir, name)
			files = append(files, filepath.ToSlash(below))
			return err
		}
		return nil
	})
	return files, err
}

var goFile = regexp.MustCompile(`[\w./-]+\.go\b`)

// lostInComments says which files the package comments name that are neither in the room nor, with a path, in the
// module.
func lostInComments(house []*room, files []string) []string {
	var failures []string
	for _, r := range house {
		for _, f := range r.files {
			if f.tree.Doc == nil {
				continue
			}
			for _, name := range goFile.FindAllString(f.tree.Doc.Text(), -1) {
				if !slices.Contains(files, path.Join(r.name, name)) && !slices.Contains(files, name) {
					failures = append(failures, path.Join(r.name, f.name)+": the package comment names "+name+
						", which is not there: name the file that has it now")
				}
			}
		}
	}
	return failures
}

var quotedFile = regexp.MustCompile("`([\\w./-]+\\.(?:go|txt|tsv))`")

// lostInDocument says which files a document names, in back quotes, that nothing in the module ends with. A name with a
// line, as stdio.go:379, is of another module.
func lostInDocument(document, text string, files []string) []string {
	var failures []string
	for _, m := range quotedFile.FindAllStringSubmatch(text, -1) {
		there := func(file string) bool { return strings.HasSuffix("/"+file, "/"+m[1]) }
		if !slices.ContainsFunc(files, there) {
			failures = append(failures, document+" names "+m[1]+", which is not there: name the file that has it now")
		}
	}
	return failures
}

func TestPlantedFileNames(t *testing.T) {
	t.Parallel()
	house := planted(t, `
-- a/a.go --
// Package a is made of here.go, b/far.go and gone.go, and writes SKILL.md.
package a
-- a/here.go --
// other.go is no part of a package comment, since a blank line follows.

package a
`)
	files := []string{"a/a.go", "a/here.go", "b/far.go"}
	wantFailures(t, lostInComments(house, files), "a/a.go: the package comment names gone.go")
	wantFailures(t, lostInDocument("X.md", "`here.go`, `a/here.go`, `stdio.go:379`, `SKILL.md`, `ere.go`, `b/here.go`",
		files),
		"X.md names ere.go", "X.md names b/here.go")
}
