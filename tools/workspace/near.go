package workspace

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxNear is how many names are suggested: more would hide the right one.
	maxNear = 3
	// maxNearEntries is how many entries of a directory are compared; some 5 ms.
	maxNearEntries = 5000
	// maxDropped is how many directories at the beginning of a path a caller may have put in; each is looked for.
	maxDropped = 16
	// maxDistance is the largest edit distance of a name that was probably meant.
	maxDistance = 2
)

// Near returns at most 3 existing paths (absolute) that a caller who asked for the missing path may have meant: the
// same relative path in another root, the same stem with another extension, a name at edit distance at most 2 in that
// directory, the same relative path below the cwd. allow, if not nil, filters them; it is called only for names that
// would be suggested. Of a large directory the first 5,000 entries are looked at.
func (s *Space) Near(path string, allow func(path string) bool) []string {
	abs, err := s.spell(path)
	if err != nil {
		return nil
	}
	var found []string
	for _, candidate := range slices.Concat(s.inOtherRoots(abs), s.nearNames(abs), s.belowCwd(abs)) {
		if len(found) == maxNear {
			break
		}
		if candidate == abs || slices.Contains(found, candidate) {
			continue
		}
		p, err := s.Open(candidate, Read) // by the Guard, too: where there is nothing for the caller, nothing is near
		if err != nil {
			continue
		}
		if _, err := p.Dir.Lstat(p.Name); err == nil && (allow == nil || allow(candidate)) {
			found = append(found, candidate)
		}
		_ = p.Dir.Close() // it was only looked at
	}
	return found
}

// nearNames returns the names in abs's directory that look like its own, the best first.
func (s *Space) nearNames(abs string) []string {
	dir, want := filepath.Split(abs)
	type match struct {
		name string
		rank int
	}
	var matches []match
	for _, name := range s.names(dir, maxNearEntries) {
		if rank, ok := likeness(want, name); ok {
			matches = append(matches, match{name, rank})
		}
	}
	slices.SortFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.name, b.name))
	})
	paths := make([]string, len(matches))
	for i, m := range matches {
		paths[i] = filepath.Join(dir, m.name)
	}
	return paths
}

// names lists at most limit entries of a directory; nil if it cannot be listed.
func (s *Space) names(dir string, limit int) []string {
	p, err := s.Open(dir, Read)
	if err != nil {
		return nil
	}
	defer p.Dir.Close()
	d, err := openDir(p.Dir, p.Name)
	if err != nil {
		return nil
	}
	defer d.Close()
	f, err := d.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, err := f.ReadDir(limit)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return entryNames(entries)
}

func entryNames(entries []fs.DirEntry) []string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// likeness says whether name may have been meant by want, and how well it fits: 0 is the same stem, and then the edit
// distance. In very short names every letter may differ, which means nothing.
func likeness(want, name string) (rank int, ok bool) {
	if stem(want) == stem(name) {
		return 0, true
	}
	if strings.EqualFold(want, name) {
		return 1, true
	}
	d := distance(want, name)
	return d, d <= maxDistance && d < min(utf8.RuneCountInString(want), utf8.RuneCountInString(name))
}

func stem(name string) string {
	if s := strings.TrimSuffix(name, filepath.Ext(name)); s != "" {
		return s
	}
	return name // .bashrc has no extension
}

// distance is the Levenshtein distance in runes, or something over maxDistance if it is certainly larger.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); d > maxDistance || -d > maxDistance {
		return maxDistance + 1
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j, q := range y {
			change := diagonal
			if r != q {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(y)]
}

// inOtherRoots returns what a path below the cwd is in each other root, also where it begins with that root's name: a
// caller with several directories takes one for the cwd.
func (s *Space) inOtherRoots(abs string) (paths []string) {
	rel, err := filepath.Rel(s.cwd, abs)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return nil
	}
	first, rest, _ := strings.Cut(rel, string(filepath.Separator))
	for _, root := range s.roots {
		paths = append(paths, filepath.Join(root, rel))
		if rest != "" && first == filepath.Base(root) {
			paths = append(paths, filepath.Join(root, rest))
		}
	}
	return paths
}

// belowCwd returns the paths below the cwd that end as abs does, the longest first: a caller who left a directory out,
// or put one in, finds the file again.
func (s *Space) belowCwd(abs string) []string {
	names := components(abs[len(filepath.VolumeName(abs)):])
	var paths []string
	for i := range min(len(names), maxDropped) {
		paths = append(paths, filepath.Join(append([]string{s.cwd}, names[i:]...)...))
	}
	return paths
}
