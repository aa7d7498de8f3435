package guidance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

const (
	// toldPrefix begins the keys of State.Told that are files of instructions. No skill has a name with a space in it.
	toldPrefix = "instructions "
	// maxTold is of how many files a session is told: a workspace may have any number.
	maxTold = 100
	// maxNews is how many lines one result has, maxDepth how far up a path is looked at, maxPaths how many of a call.
	maxNews  = 3
	maxDepth = 12
	maxPaths = 20
)

// A place is a file of instructions in a directory below a root.
type place struct {
	path string
	read bool // the call is about the file itself: it need not be told
}

func (p place) key() string {
	sum := sha256.Sum256([]byte(p.path))
	return toldPrefix + hex.EncodeToString(sum[:8])
}

// News returns a line for each file of instructions that lies beside paths, or above them and below their root, of
// which the session was not told: the outermost first. Paths are absolute. claim takes the first n of them, and returns
// the lines of those that no other call has taken meanwhile; the session is not told of these again. The client's own
// instructions are no exception: it does not see where our tools are at work.
func News(ctx context.Context, s *session.State, paths []string) (lines []string, claim func(n int) []string) {
	var all []place
	for _, path := range paths[:min(len(paths), maxPaths)] {
		all = besides(s, path, all)
	}
	if len(all) == 0 {
		return nil, nil
	}
	told, err := s.Told.Load(ctx)
	if err != nil {
		return nil, nil // a later call tells it
	}
	files := s.Visible()
	all = slices.DeleteFunc(all, func(p place) bool { return told[p.key()] != "" || !readable(files, p.path) })
	if len(all) == 0 || count(told) >= maxTold {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b place) int { // those that are only noted come last
		switch {
		case a.read == b.read:
			return 0
		case b.read:
			return -1
		}
		return 1
	})
	all = all[:min(len(all), maxNews)]
	for _, p := range all {
		if p.read {
			break
		}
		lines = append(lines, line(s, p))
	}
	if len(lines) == 0 {
		take(ctx, s, all)
		return nil, nil
	}
	return lines, func(n int) []string { return take(ctx, s, all[:min(n, len(lines))]) }
}

func line(s *session.State, p place) string {
	return "[instructions for this directory: " + wording.ShownName(tool.Env{State: s}, p.path) + "]"
}

// take notes that the session is told of files, and returns the lines of those of which it was not.
func take(ctx context.Context, s *session.State, all []place) (lines []string) {
	if len(all) == 0 {
		return nil
	}
	_, err := s.Told.Change(ctx, func(told map[string]string) (map[string]string, error) {
		lines = nil
		told = maps.Clone(told)
		if told == nil {
			told = map[string]string{}
		}
		for _, p := range all {
			if told[p.key()] == "" {
				told[p.key()] = "told"
				lines = append(lines, line(s, p))
			}
		}
		return told, nil
	})
	if err != nil { // it would be said each time
		return nil
	}
	return lines
}

func count(told map[string]string) (n int) {
	for key := range told {
		if strings.HasPrefix(key, toldPrefix) {
			n++
		}
	}
	return n
}

// besides adds the files of instructions that are there for a path: in its directories below its root, from the outside
// to the inside. Only what has such a name is looked at any closer.
func besides(s *session.State, path string, all []place) []place {
	root := rootOf(s, path)
	if root == "" {
		return all
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == "." {
		return all
	}
	parts := strings.Split(rel, string(filepath.Separator))
	if slices.ContainsFunc(parts, foreign) {
		return all
	}
	for i := 1; i <= min(len(parts), maxDepth); i++ { // the last one may be a directory
		dir := filepath.Join(root, filepath.Join(parts[:i]...))
		for _, name := range below {
			p := place{path: filepath.Join(dir, name)}
			p.read = p.path == path
			known := slices.ContainsFunc(all, func(q place) bool { return q.path == p.path })
			if !known && there(p.path) {
				all = append(all, p)
			}
		}
	}
	return all
}

// foreign says whether below a directory of this name nothing instructs those who work in the project.
func foreign(name string) bool { return name == ".git" || name == "node_modules" }

// rootOf is the innermost root above a path; "": it is below none.
func rootOf(s *session.State, path string) (root string) {
	if s.Space == nil || !filepath.IsAbs(path) {
		return ""
	}
	for _, r := range s.Space.Roots() {
		if len(r) > len(root) && wording.Below(r, path) {
			root = r
		}
	}
	return root
}
