package search

import (
	"sync"

	"codehand/tools/search/pattern"
)

// A LineFilter asks a pattern of Grep's syntax about single lines. It is safe for concurrent use.
type LineFilter struct {
	mu sync.Mutex
	m  *pattern.Matcher
}

// NewLineFilter compiles a pattern. Its errors are *PatternError.
func NewLineFilter(text string) (*LineFilter, error) {
	p, err := pattern.New(text, false, false, false)
	if err != nil {
		return nil, err
	}
	return &LineFilter{m: pattern.NewMatcher(p, func() bool { return false })}, nil
}

// Match says whether a line matches; its LF, if it has one, is no part of it.
func (f *LineFilter) Match(line []byte) bool {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.m.Match(line)
}
