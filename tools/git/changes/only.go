package changes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"codehand/filestate/disk"
	"codehand/tools/git"
)

const (
	whyMoved   = "it was there before under a name that is not taken back"
	whyStashed = "it may be the only copy of what a dropped stash had"
)

// A loss is a file whose content of before is no longer there and is not taken back. A copy may be the only one.
type loss struct {
	name string // "": it must not be reported
	was  *record
	any  bool // nothing is known of its content when it went: every new file may be a copy
}

// lose returns what is lost of a file that was there, if it is not as before and is not taken back; nil: nothing.
func (e *ending) lose(name string, c *Change, was *record, shown bool) *loss {
	l := loss{name: name, was: was, any: was.ignored || c.Op == Deleted && e.ask.Keep(c.Path) != ""}
	if !shown || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		l.name = ""
	}
	if !l.any && (!was.mode.IsRegular() || was.stamp.Size == 0) {
		return nil
	}
	return &l
}

// mayBe says whether what a change left may be a copy of the file.
func (l *loss) mayBe(c *Change, sum disk.Digest) bool {
	if !l.any && l.was.hashed {
		return l.was.sum == sum
	}
	// An edit is no copy, most likely. Else no edit of a command that also removes an ignored file could be taken back.
	return c.Op == Created && (l.any || l.was.stamp.Size == int64(len(c.New)))
}

func (l *loss) why() string {
	if l.name == "" {
		return "it may be the only copy of another file"
	}
	return "it may be the only copy of " + l.name
}

// keepOnly takes the contents from the changes that, taken back, would remove the only copy of something: a file was
// moved or copied from a name that is not taken back itself, because git does not track it, for example, or it was in
// a stash that was dropped. lost are the losses that are not among the changes.
func keepOnly(changes []Change, lost []*loss, dropped bool) {
	olds, news := make([]disk.Digest, len(changes)), make([]disk.Digest, len(changes))
	for i, c := range changes {
		if c.Why == "" {
			olds[i], news[i] = disk.DigestOf(c.Old), disk.DigestOf(c.New)
		}
	}
	for again := true; again; {
		again = false
		back := make(map[uint64]bool)          // inodes of files that are taken back to the name that they had
		restored := make(map[disk.Digest]bool) // contents that are there again after all is taken back
		gone := lost
		for i := range changes {
			c := &changes[i]
			if c.Why != "" {
				if c.lost != nil {
					gone = append(gone[:len(gone):len(gone)], c.lost)
				}
				continue
			}
			if c.was != 0 {
				back[c.was] = true
			}
			if c.Old != nil {
				restored[olds[i]] = true
			}
		}
		for i := range changes {
			c := &changes[i]
			if c.Why != "" {
				continue
			}
			switch {
			case c.moved && !back[c.is]:
				c.Why = whyMoved
			case len(c.New) == 0 || restored[news[i]]:
			case dropped:
				c.Why = whyStashed
			default:
				for _, l := range gone {
					if l.mayBe(c, news[i]) {
						c.Why = l.why()
						break
					}
				}
			}
			if c.Why != "" {
				c.Old, c.New, again = nil, nil, true
			}
		}
	}
}

// stashes are the entries of git's stash, which all work trees of a repository share; nil: they cannot be read.
type stashes map[string]bool

func (t *tree) stashes() stashes {
	text, err := git.ReadSmall(filepath.Join(t.place.Common, "logs", "refs", "stash"), maxIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	all := make(stashes)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 {
			all[words[1]] = true // each line has the commit of before, then that of the entry
		}
	}
	tables := filepath.Join(t.place.Common, "reftable", "tables.list")
	if _, err := os.Lstat(tables); errors.Is(err, fs.ErrNotExist) {
		return all
	}
	text, err = git.ReadSmall(tables, maxRules)
	if err != nil {
		return nil
	}
	all["reftable "+string(text)] = true // what is recorded there is not read, so any change may be of a stash
	return all
}

// dropped says whether entries are, or may be, gone.
func (s stashes) dropped(now stashes) bool {
	for entry := range s {
		if !now[entry] {
			return true
		}
	}
	return s == nil || now == nil
}
