package skills

import (
	"path"
	"strings"

	"codehand/tools/search/ignore"
)

const (
	// maxBraces is what the braces of one pattern may make of it. A pattern with more counts with its braces as they
	// are.
	maxBraces = 64
	// maxPatterns is how many patterns of a skill are looked at, with their braces written out: every one is held
	// against every file, for each of 500 skills, at every call that looks for skills.
	maxPatterns = 100
)

// Matches reports whether the skill counts where these files were touched: slash paths below the project's directory.
// A skill without Paths always counts. Patterns are those of gitignore and may have braces ({a,b}); a file below a
// directory that matches counts as well, and of several patterns the last that matches. Of more than 100 the first
// count.
func (s Skill) Matches(touched ...string) bool {
	if len(s.Paths) == 0 {
		return true
	}
	var lines []string
	for _, p := range s.Paths {
		for _, line := range braces(p) {
			if len(lines) == maxPatterns {
				break
			}
			if not, ok := strings.CutPrefix(line, "!"); ok {
				lines = append(lines, "!"+strings.TrimPrefix(not, "./"))
			} else {
				lines = append(lines, strings.TrimPrefix(line, "./"))
			}
		}
	}
	patterns := ignore.Parse([]byte(strings.Join(lines, "\n")))
	for _, t := range touched {
		if matches(patterns, path.Clean(t)) {
			return true
		}
	}
	return false
}

// matches asks for each directory on the way to rel and then for rel, as the patterns want it.
func matches(patterns *ignore.List, rel string) bool {
	if rel == "." || rel == ".." || strings.HasPrefix(rel, "../") || path.IsAbs(rel) {
		return false
	}
	for i := range rel {
		if rel[i] == '/' && patterns.Match(rel[:i], true) == ignore.Ignore {
			return true
		}
	}
	return patterns.Match(rel, false) == ignore.Ignore
}

// braces writes out the alternatives of a pattern: a.{go,md} is a.go and a.md. Gitignore has no braces.
func braces(pattern string) []string {
	out := []string{pattern}
	for i := 0; i < len(out); {
		before, choices, after, ok := firstBraces(out[i])
		if !ok {
			i++
			continue
		}
		if len(out)-1+len(choices) > maxBraces {
			return []string{pattern}
		}
		next := append([]string(nil), out[:i]...)
		for _, c := range choices {
			next = append(next, before+c+after)
		}
		out = append(next, out[i+1:]...)
	}
	return out
}

// firstBraces finds the first pair of braces that has a comma and no braces within: the inner ones come first.
func firstBraces(p string) (before string, choices []string, after string, ok bool) {
	open, comma := -1, false // the last that was opened, and whether it has a comma
	for i := range len(p) {
		switch {
		case p[i] == '{':
			open, comma = i, false
		case p[i] == ',':
			comma = true
		case p[i] == '}' && open >= 0 && comma:
			return p[:open], strings.Split(p[open+1:i], ","), p[i+1:], true
		}
	}
	return "", nil, "", false
}
