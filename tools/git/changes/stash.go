package changes

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codehand/tools/git"
)

// stashStays is for how long after it was stashed git surely keeps what is dropped, half of what it does by default.
const stashStays = 7 * 24 * time.Hour

// Stashes returns the commits of git's stash in the repository that holds dir, oldest first. Not lasting: git may
// remove what is dropped of them at once, since it is old, or set to be removed earlier, or nothing is known of it.
// Else it keeps that for a week at least.
func (t *Trees) Stashes(dir string) (commits []string, lasting bool) {
	place, ok := git.Find(dir)
	if !ok {
		return nil, place.Top == ""
	}
	tables := filepath.Join(place.Common, "reftable", "tables.list")
	if _, err := os.Lstat(tables); !errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	text, err := git.ReadSmall(filepath.Join(place.Common, "logs", "refs", "stash"), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true
	}
	values, whole := git.Values(t.home.dir, "gc.pruneexpire", t.home.configs(place)...)
	lasting = err == nil && whole && len(values) == 0
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		oid := words[1] // each line has the commit of before, then that of the entry
		if _, err := hex.DecodeString(oid); err != nil || len(oid) < 40 {
			return nil, false
		}
		info, err := os.Lstat(filepath.Join(place.Common, "objects", oid[:2], oid[2:]))
		lasting = lasting && err == nil && time.Since(info.ModTime()) < stashStays
		commits = append(commits, oid)
	}
	return commits, lasting
}
