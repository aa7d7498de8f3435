package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// A Problem is one thing that is wrong with the configuration.
type Problem struct {
	Origin string // file:line:column, environment variable or flag
	Text   string // what is wrong, with the key
}

func (p Problem) Error() string {
	if p.Origin == "" {
		return p.Text
	}
	return p.Origin + ": " + p.Text
}

// Problems are all that is wrong, in the order of the sources. Load returns them as its error.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// add notes a problem once.
func (ps *Problems) add(origin, text string) {
	if p := (Problem{Origin: origin, Text: text}); !slices.Contains(*ps, p) {
		*ps = append(*ps, p)
	}
}

// A Warning is something that the operator should know and that does not stop the start.
type Warning struct {
	Origin string
	Text   string
	NoRoot string // why the working directory is no root, if that is what Text is about
}

func (w Warning) String() string { return Problem{Origin: w.Origin, Text: w.Text}.Error() }

// An Unusable is a configuration that was read without a problem and that serve does not start with. Hint says which
// command or key mends it; "": the error says all.
type Unusable struct {
	Err  error
	Hint string
}

func (u *Unusable) Error() string { return u.Err.Error() }
func (u *Unusable) Unwrap() error { return u.Err }

// TokenFile is where the tokens are.
func (c Config) TokenFile() string {
	if c.Auth.TokenFile != "" {
		return c.Auth.TokenFile
	}
	return filepath.Join(c.DataDir(), "tokens.jsonl")
}

// DataDir is where serve keeps what must survive it. It need not exist.
func (c Config) DataDir() string {
	if c.HTTP.DataDir != "" {
		return c.HTTP.DataDir
	}
	return c.StateDir
}
