package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// list is a list of names, each of which passes check. A source replaces the whole list.
type list struct {
	p     *[]string
	check func(string) error
}

func (v list) set(in input) error {
	names, err := entries(in)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := v.check(name); err != nil {
			return err
		}
	}
	*v.p = names
	return nil
}

func (v list) text() string { return strings.Join(*v.p, ",") }

// entries returns the entries of a list. In flags and environment they are separated by commas; one inside
// parentheses belongs to its entry, since rules contain some.
func entries(in input) ([]string, error) {
	switch raw := in.raw.(type) {
	case []any:
		texts := make([]string, len(raw))
		for i, e := range raw {
			s, ok := e.(string)
			if !ok {
				return nil, errors.New("must be a list of texts")
			}
			texts[i] = s
		}
		return texts, nil
	case string:
		if !in.file {
			return splitList(raw)
		}
	}
	return nil, errors.New(`must be a list of texts, such as ["a", "b"]`)
}

// splitList refuses a list whose entries cannot be told apart: a rule would vanish in the one before it.
func splitList(s string) ([]string, error) {
	var texts []string
	depth, start := 0, 0
	take := func(part string) {
		if part = strings.TrimSpace(part); part != "" {
			texts = append(texts, part)
		}
	}
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth = max(depth-1, 0)
		case r == ',' && depth == 0:
			take(s[start:i])
			start = i + 1
		}
	}
	take(s[start:])
	if depth > 0 && strings.Contains(s[start:], ",") {
		return nil, errors.New("a parenthesis is not closed, so the list cannot be split at its commas; write the " +
			"list in a file")
	}
	return texts, nil
}

// dirs is a list of directories. In flags and environment they are separated as in PATH, since names contain commas.
type dirs struct{ p *[]string }

func (v dirs) set(in input) error {
	var texts []string
	if s, ok := in.raw.(string); ok && !in.file {
		for _, part := range filepath.SplitList(s) {
			if part != "" {
				texts = append(texts, part)
			}
		}
	} else if e, err := entries(in); err != nil {
		return err
	} else {
		texts = e
	}
	paths := make([]string, len(texts))
	for i, s := range texts {
		path, err := absolute(s, in)
		if err != nil {
			return err
		}
		paths[i] = path
	}
	*v.p = paths
	return nil
}

func (v dirs) text() string { return strings.Join(*v.p, string(filepath.ListSeparator)) }

// file is the path of a file or directory.
type file struct{ p *string }

func (v file) set(in input) error {
	s, ok := in.raw.(string)
	if !ok {
		return errors.New("must be a path")
	}
	path, err := absolute(s, in)
	if err != nil {
		return err
	}
	*v.p = path
	return nil
}

func (v file) text() string { return *v.p }

// absolute expands `~` and makes a path absolute and clean. A relative path in a file would mean another place for
// each directory that the server is started in, so it is refused there.
func absolute(path string, in input) (string, error) {
	switch {
	case path == "" || strings.ContainsRune(path, 0):
		return "", errors.New("must be a path")
	case path == "~" || strings.HasPrefix(path, "~/"):
		if in.home == "" {
			return "", fmt.Errorf("%s: the home directory is not known", path)
		}
		return filepath.Join(in.home, path[1:]), nil
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	case in.base == "":
		return "", fmt.Errorf("%s: must be an absolute path, or begin with ~/", path)
	}
	return filepath.Join(in.base, path), nil
}

func checkVersion(name string) error {
	if !slices.Contains(versions[:], name) {
		return fmt.Errorf("%s: must be one of %s", name, strings.Join(versions[:], ", "))
	}
	return nil
}

// secretWords mark the names of variables that usually hold credentials. To let commands see one needs a second
// setting, shell.env_allow_secret.
var secretWords = [...]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"}

func checkEnvName(name string) error {
	if err := checkEnvPattern(name); err != nil {
		return err
	}
	bare := strings.TrimSuffix(name, "*")
	for _, word := range secretWords {
		if strings.Contains(strings.ToUpper(bare), word) {
			return fmt.Errorf("%s: variables named like %s belong into shell.env_allow_secret", name, word)
		}
	}
	return nil
}

// checkEnvPattern refuses what can be no variable's name or its beginning.
func checkEnvPattern(name string) error {
	bare := strings.TrimSuffix(name, "*")
	if bare == "" || strings.ContainsFunc(bare, func(r rune) bool { return !nameRune(r) }) {
		return fmt.Errorf("%s: must be NAME or PREFIX_*", name)
	}
	return nil
}

// checkToolName refuses what cannot be the name of a tool. Whether there is one is not known here.
func checkToolName(name string) error {
	if name == "" || len(name) > 64 ||
		strings.ContainsFunc(name, func(r rune) bool { return !nameRune(r) && r != '-' }) {
		return fmt.Errorf("%s: must be the name of a tool", name)
	}
	return nil
}

func nameRune(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
}
