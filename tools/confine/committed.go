package confine

import (
	"bytes"
	"path/filepath"

	"codehand/tools/git"
	"codehand/tools/permission"
)

// Committed counts, for each rule that denies reading files, those that git tracks in the repositories of the roots.
// What was committed of them lies in git's objects as well, where the kernel does not hide it: all that git does needs
// them, and one object holds parts of many files. A repository whose index cannot be read counts as one without such
// files.
func Committed(rules *permission.Policy, roots []string) map[permission.Rule]int {
	var hides []permission.Coverage
	for _, c := range rules.Coverage() {
		if c.Verdict == permission.Deny && c.Kind == permission.Path &&
			c.Names("Read", nil, permission.FamilyRead) {
			hides = append(hides, c)
		}
	}
	counted, seen := map[permission.Rule]int{}, map[string]bool{}
	for _, root := range roots {
		place, ok := git.Find(root)
		if len(hides) == 0 || !ok || seen[place.Dir] {
			continue
		}
		seen[place.Dir] = true
		index, err := git.ReadSmall(filepath.Join(place.Dir, "index"), maxIndex) // it may be a pipe
		if err != nil {
			continue // nothing is tracked yet
		}
		_ = git.ReadIndex(bytes.NewReader(index), func(e *git.Entry) bool {
			path := filepath.Join(place.Top, filepath.FromSlash(e.Name))
			for _, c := range hides {
				if c.Covers(path) {
					counted[c.Rule]++
				}
			}
			return true
		})
	}
	return counted
}
