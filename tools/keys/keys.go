// Package keys reads the operator's keys for services, such as a search endpoint or a model.
//
// A key is read when it is needed and kept nowhere, so a new one in the file counts at once. It never stands in an
// error, and Redact takes it out of what a service sends back. The package writes nothing.
package keys

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

// A Source says where a key is. The zero Source has none.
type Source struct {
	Env    string                   // name of a variable
	Lookup func(name string) string // of the environment; nil: it is empty
	File   string                   // absolute path of a file that only its owner may read; not with Env
}

// maxKey bounds a key, in bytes.
const maxKey = 8 << 10

// Set says whether there should be a key.
func (s Source) Set() bool { return s.Env != "" || s.File != "" }

// Read returns the key without the white space around it; "" for the zero Source. A key that could end a header, or
// that is empty, is an error. Errors name the variable or the file, and never what is in it.
func (s Source) Read() (string, error) {
	switch {
	case s.Env != "" && s.File != "":
		return "", errors.New("the key has two places, a variable and a file")
	case s.Env != "":
		var text string
		if s.Lookup != nil {
			text = s.Lookup(s.Env)
		}
		key, err := checked(text)
		if err != nil {
			return "", fmt.Errorf("the variable %s %w", s.Env, err)
		}
		return key, nil
	case s.File != "":
		key, err := readFile(s.File)
		if err != nil {
			return "", fmt.Errorf("the file %s %w", s.File, err)
		}
		return key, nil
	}
	return "", nil
}

func checked(text string) (string, error) {
	key := strings.TrimSpace(text)
	switch {
	case key == "":
		return "", errors.New("is empty or not set")
	case len(key) > maxKey:
		return "", fmt.Errorf("has more than %d bytes", maxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", errors.New("holds white space or characters that no key has")
	}
	return key, nil
}

// readFile reads a key from a regular file that belongs to this user or root and that no other user may open.
func readFile(path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // to open a FIFO would wait
		return "", errors.New("cannot be read, or is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", errors.New("cannot be read")
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.New("cannot be read, or is no regular file")
	}
	if err := private(info); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKey+2))
	if err != nil {
		return "", errors.New("cannot be read")
	}
	return checked(string(text))
}

// Redact replaces key in a text, also where it is escaped as in a URL.
func Redact(text, key string) string {
	if key == "" {
		return text
	}
	text = strings.ReplaceAll(text, key, "[masked]")
	for _, form := range []string{url.QueryEscape(key), url.PathEscape(key)} {
		text = strings.ReplaceAll(text, form, "[masked]")
	}
	return text
}
