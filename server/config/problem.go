package config

import (
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
}

func (w Warning) String() string { return Problem(w).Error() }
