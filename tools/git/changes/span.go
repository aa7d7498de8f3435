package changes

import (
	"bytes"
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"codehand/filestate/disk"
	"codehand/tools/git"
)

// maxTaken is how many bytes of contents one Span returns.
const maxTaken = 32 << 20

// A Span is the time in which something ran. It is for one goroutine; End ends it.
type Span struct {
	tree    *tree                  // nil: blind
	missed  bool                   // blind, since another Span was ending
	index   *index                 // as it was
	attrs   map[string]*attributes // likewise
	general []*attributes          // likewise
	before  map[string]*record     // of tree.mu: what each name that changed was; nil: nothing
	dirs    map[string]bool        // of tree.mu: directories that came or went: whether each was there
	lost    bool                   // of tree.mu: the tree cannot be known any more

	recorded recorded // as it was
	stashes  stashes  // likewise
	began    int64    // of clock
}

// An Op is what happened to a file.
type Op string

// The operations, as git's letters.
const (
	Created Op = "A"
	Changed Op = "M"
	Deleted Op = "D"
)

// A Change is one file that changed while a Span went on, by whomever.
type Change struct {
	Path             string
	Op               Op
	Old, New         []byte // contents, unless Why says otherwise; nil: there was no file, or there is none
	OldMode, NewMode fs.FileMode
	Why              string // why the contents are not both known, or not taken: a clause; "": they are
	// Files is how many new files a new directory has that is told of as one, because all would be too many; 0: this is
	// one file
	Files int

	was, is uint64 // inodes before and after; 0: no file, or not known
	moved   bool   // the file of now was there before under another name, or may have been
	lost    *loss  // what is lost if it is not taken back; nil: nothing
}

// An Asker answers what a tree cannot know.
type Asker struct {
	// Inside says whether a directory lies where the session may work. It is asked once for each directory, and for
	// each link, as it may open every directory on the way.
	Inside func(path string) bool
	Hidden func(path string) bool // whether rules keep a file from being told of; asked for each file
	// Content returns the content of a file that has this hash, if another room knows it; nil: no room does
	Content func(path string, sum disk.Digest) []byte
	// Keep returns why a file is not to be taken back, a clause; "": it may be
	Keep func(path string) string
}

// A Finding is what a Span has found.
type Finding struct {
	Changes  []Change // by path
	All      int      // how many files changed; Changes may have fewer
	Trees    []Tree   // by path; their files are among the Changes, too, as far as those go
	Known    bool     // else there may be changes, and nothing is known of them
	Recorded bool     // git may have recorded something: the index changed, or the commit that is checked out
}

// A Tree is a directory that came or went with several files that changed.
type Tree struct {
	Path  string
	Op    Op // Created or Deleted
	Files int
}

// minTree is how many files of a directory that came or went make it a Tree.
const minTree = 11

// Blind says that nothing is known of the work tree, and nothing will be found: its `.git` leads to a repository that
// does not name this work tree, it is too large, or cannot be read.
func (s *Span) Blind() bool { return s.tree == nil }

// Missed says that it is Blind because what another one changed was still being compared: another Span of this tree
// may not be.
func (s *Span) Missed() bool { return s.missed }

// End returns what changed, at most that many files. Only the first time it finds anything.
func (s *Span) End(most int, ask Asker) Finding {
	if s.Blind() {
		return Finding{}
	}
	t := s.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.spans[s] {
		return Finding{Known: true}
	}
	defer t.end(s)
	if s.lost {
		return Finding{}
	}
	missed := t.use.missed.Load()
	names, all, err := t.refresh()
	if err != nil || s.lost {
		return Finding{}
	}
	t.looked = looked{append(t.looked.names, names...), t.looked.all || all}
	found := Finding{Known: true, Recorded: t.recorded() != s.recorded}
	if len(s.before) == 0 {
		return found
	}
	root, err := os.OpenRoot(t.place.Top)
	if err != nil {
		return Finding{}
	}
	defer func() { _ = root.Close() }() // a directory handle holds no data
	e := ending{Span: s, root: root, ask: ask, objects: git.NewObjects(t.place.Common), room: maxTaken,
		inside: make(map[string]bool)}
	defer e.objects.Close()
	changed, lost := e.differing()
	found.Trees = trees(changed, t.place.Top)
	changed = fold(changed, found.Trees, t.place.Top, most)
	for i := range changed {
		d := &changed[i]
		switch {
		case len(found.Changes) == most:
			if !d.was.same(d.is) {
				found.All += max(d.Files, 1)
				if d.lost != nil {
					lost = append(lost, d.lost)
				}
			}
			continue
		case d.Files > 0:
		case !e.contents(&d.Change, d.name, d.was, d.is):
			continue
		default:
			if why := ask.Keep(d.Path); d.Why == "" && why != "" {
				d.Why, d.Old, d.New = why, nil, nil
			}
		}
		found.Changes = append(found.Changes, d.Change)
		found.All += max(d.Files, 1)
	}
	keepOnly(found.Changes, lost, s.stashes.dropped(t.stashes()))
	if t.use.missed.Load() != missed {
		for i := range found.Changes {
			c := &found.Changes[i]
			c.Why, c.Old, c.New = cmp.Or(c.Why, whyMissed), nil, nil
		}
	}
	return found
}

// A differing is a name whose stat data changed while a Span went on.
type differing struct {
	Change
	name    string
	top     string // the outermost directory above that came or went; "": none
	was, is *record
}

// differing returns the names whose stat data changed, and what is lost of those that must not be told of.
func (e *ending) differing() (changed []differing, lost []*loss) {
	t := e.tree
	for _, name := range slices.Sorted(maps.Keys(e.before)) {
		was, is := e.before[name], t.files[name]
		c := Change{Path: filepath.Join(t.place.Top, filepath.FromSlash(name)), Op: Changed}
		shown := e.shows(name, c.Path, was, is)
		if is == nil {
			c.Op = Deleted
		}
		if was != nil && (!was.ignored || is == nil && !above(t.files, name)) {
			c.lost = e.lose(name, &c, was, shown)
		}
		switch {
		case was == nil && is == nil, was == nil && above(e.before, name):
			continue
		case was != nil && was.ignored, is != nil && is.ignored, is == nil && above(t.files, name), !shown:
			if c.lost != nil && !was.same(is) {
				lost = append(lost, c.lost)
			}
			continue
		case was == nil:
			c.Op = Created
		}
		changed = append(changed, differing{name: name, top: e.top(name, c.Op), Change: c, was: was, is: is})
	}
	return changed, lost
}

// top returns the outermost directory above a name that came with it, or went with it; "": none.
func (s *Span) top(name string, op Op) string {
	if op == Changed {
		return ""
	}
	outermost := ""
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		was, touched := s.dirs[dir]
		_, is := s.tree.dirs[dir]
		if touched && (op == Created && !was && is || op == Deleted && was && !is) {
			outermost = dir
		}
	}
	return outermost
}

// trees returns the directories that came or went with at least minTree files.
func trees(changed []differing, top string) []Tree {
	counts := make(map[string]*Tree)
	for _, d := range changed {
		if d.top == "" {
			continue
		}
		if counts[d.top] == nil {
			counts[d.top] = &Tree{Path: filepath.Join(top, filepath.FromSlash(d.top)), Op: d.Op}
		}
		counts[d.top].Files++
	}
	var all []Tree
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		if counts[dir].Files >= minTree {
			all = append(all, *counts[dir])
		}
	}
	return all
}

// fold makes one Change of each new directory with many files, the largest first, until there are at most that many.
func fold(changed []differing, trees []Tree, top string, most int) []differing {
	largest := slices.Clone(trees)
	slices.SortStableFunc(largest, func(a, b Tree) int { return b.Files - a.Files })
	folded, left := make(map[string]int), 0
	for _, d := range changed {
		if !d.was.same(d.is) { // the others may differ in what they hold, most do not
			left++
		}
	}
	for _, t := range largest {
		if left > most && t.Op == Created {
			folded[t.Path], left = t.Files, left-t.Files+1
		}
	}
	if len(folded) == 0 {
		return changed
	}
	var all []differing
	for _, d := range changed {
		dir := filepath.Join(top, filepath.FromSlash(d.top))
		switch files, ok := folded[dir]; {
		case d.top == "" || !ok:
			all = append(all, d)
		case files > 0: // the first one stands for all
			all = append(all, differing{name: d.top, is: d.is, Change: Change{Path: dir, Op: Created, Files: files,
				Why: "it has too many new files to note each"}})
			folded[dir] = 0
		}
	}
	return all
}

// whyMissed says why nothing is taken back of a command whose files were compared too late.
const whyMissed = "another command began before the files were compared"

// Drop ends the Span without a look. It may be called after End, and does nothing then.
func (s *Span) Drop() {
	if s.Blind() {
		return
	}
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	s.tree.end(s)
}

// An ending is one End.
type ending struct {
	*Span
	root    *os.Root
	ask     Asker
	objects *git.Objects
	room    int             // bytes that may still be returned
	inside  map[string]bool // what Asker.Inside said of directories
}

// shows says whether a file may be told of. What is no link lies where its directory lies.
func (e *ending) shows(name, file string, was, is *record) bool {
	dir := path.Dir(name)
	inside, asked := e.inside[dir]
	if !asked {
		inside = e.ask.Inside(filepath.Dir(file))
		e.inside[dir] = inside
	}
	if inside && (was.link() || is.link()) {
		inside = e.ask.Inside(file)
	}
	return inside && !e.ask.Hidden(file)
}

// moved says whether a file that has a name now was there before the Span under another one, as far as is known.
func (e *ending) moved(was, is *record) bool {
	switch {
	case is == nil, was != nil && was.stamp.Ino == is.stamp.Ino:
		return false
	case !is.dated:
		return was == nil // what replaced a file was most likely made for that
	}
	return is.born < e.began
}

// contents finds the contents of a file before and after, and says whether it changed at all.
func (e *ending) contents(c *Change, name string, was, is *record) bool {
	// What is known of the stat data only: with another ctime alone, it got or lost another name, or was moved back.
	differs := was == nil || is == nil || was.mode != is.mode || was.stamp.Size != is.stamp.Size ||
		was.stamp.Mtime != is.stamp.Mtime || was.stamp.Ino != is.stamp.Ino
	if was != nil && was.mode.IsRegular() && is.link() { // the file went, and can come back once the link is away
		c.Op, is = Deleted, nil
	}
	for _, r := range []*record{was, is} {
		switch {
		case r == nil:
		case !r.mode.IsRegular():
			c.Why = "not a regular file"
			return differs
		case r.stamp.Size > maxContent:
			c.Why = "over 4 MiB"
			return differs
		}
	}
	if was != nil {
		c.was = was.stamp.Ino
	}
	if is != nil {
		content, now, err := e.tree.read(e.root, name)
		if err != nil {
			c.Why = "it goes on changing, or cannot be read"
			return true
		}
		c.New, c.NewMode = content, now.mode
		c.is, c.moved = now.stamp.Ino, e.moved(was, now)
		if was != nil && was.hashed {
			if was.sum == disk.DigestOf(content) {
				c.Old, c.OldMode = content, was.mode
			} else {
				differs = true // also with the stat data of before, within one tick of the clock
			}
		}
		if now.mode.Perm() == 0 {
			c.Why = "it has no permissions left"
		}
		if now.stamp.Nlink > 1 {
			c.Why = "it has other names (hard links)"
		}
	}
	if was != nil && c.Old == nil {
		old, why := e.original(c.Path, name, was)
		if why != "" {
			c.Why, c.New = why, nil
			return differs
		}
		c.Old = old
		c.OldMode = was.mode
	}
	if was != nil && is != nil && bytes.Equal(c.Old, c.New) && (c.OldMode^c.NewMode)&disk.KeptMode == 0 {
		return false
	}
	if e.room -= len(c.Old) + len(c.New); c.Why == "" && e.room < 0 {
		c.Why = "too much changed at once"
	}
	if c.Why != "" {
		c.Old, c.New = nil, nil
	}
	return true
}

// original returns what a file was, or why that is not known.
func (e *ending) original(path, name string, was *record) (content []byte, why string) {
	entry := e.index.entries[name]
	switch {
	case was.hashed && entry != nil && entry.Stage == 0 && entry.OID == was.blob:
	case was.hashed:
		if content = e.ask.Content(path, was.sum); content != nil {
			return content, ""
		}
		if entry == nil {
			return nil, "git did not track it"
		}
		return nil, "it was not clean in git"
	case entry == nil:
		return nil, "git did not track it"
	case !e.index.proves(name, was):
		return nil, "it was not known to be clean in git"
	case e.converts(name):
		return nil, "a filter or an encoding of .gitattributes applies"
	}
	content, err := e.objects.Blob(entry.OID, maxContent)
	switch {
	case err != nil:
		return nil, "git has no copy that can be read"
	case int64(len(content)) != was.stamp.Size:
		return nil, "git converts its line ends or keywords"
	}
	return content, ""
}
