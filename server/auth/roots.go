package auth

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// placeholder stands for the slug of the principal in a root.
const placeholder = "{principal}"

// CheckRoot refuses what cannot be the template of a root: it is absolute, without `..`, and its only braces are those
// of {principal}. A template without {principal} is one root for everybody.
func CheckRoot(template string) error {
	rest := strings.ReplaceAll(template, placeholder, "principal")
	switch {
	case template == "":
		return errors.New("a root is empty; name a directory")
	case strings.ContainsFunc(template, unicode.IsControl), !utf8.ValidString(template):
		return fmt.Errorf("root %q is not UTF-8 or contains a control character", template)
	case strings.ContainsAny(rest, "{}"):
		return fmt.Errorf("root %q: the only braces allowed in a root are {principal}", template)
	case !filepath.IsAbs(rest):
		return fmt.Errorf("root %q must be absolute", template)
	case slices.Contains(strings.FieldsFunc(rest, isSeparator), ".."):
		return fmt.Errorf("root %q must not contain `..`", template) // it could undo {principal}
	}
	return nil
}

func isSeparator(r rune) bool { return r == '/' || r == filepath.Separator }

// expand makes a root from a checked template.
func expand(template, slug string) string {
	return filepath.Clean(strings.ReplaceAll(template, placeholder, slug))
}

// Disjoint says whether every root of a is equal to each root of b, or neither is inside the other, by component. Two
// principals for whom it is false must not both be served: one's root would open the other's files. It looks at
// spellings only, so links must be resolved before.
func Disjoint(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if within(x, y) != within(y, x) {
				return false
			}
		}
	}
	return true
}

// Real is a path with its links resolved, as far as it exists.
func Real(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	up := filepath.Dir(path)
	if up == path {
		return path
	}
	return filepath.Join(Real(up), filepath.Base(path))
}

// within says whether path is dir or inside it.
func within(path, dir string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" { // file systems that mostly do not tell case apart
		path, dir = strings.ToLower(path), strings.ToLower(dir)
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
