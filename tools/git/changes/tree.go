package changes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"codehand/filestate/disk"
	"codehand/tools/git"
	"codehand/tools/search/ignore"
)

const (
	maxFiles   = 50_000  // of a tree that is remembered
	maxScanned = 10_000  // of one that is gone over at each look
	maxRules   = 1 << 20 // bytes of a file with patterns
)

// A tree is what is known of one work tree. Names are relative to its top, with slashes.
type tree struct {
	place git.Place
	home  home
	use   usage

	mu     slot
	scans  bool // the kernel is not asked: it has no more watches, or a test says so
	dead   bool // it was forgotten
	known  bool // all below is that of the disk, but for what watch tells
	watch  *watch
	index  *index
	stale  bool           // what is ignored may have changed
	spans  map[*Span]bool // that go on
	looked looked         // at by Spans when they ended, and not doubted yet
	top    fs.FileInfo    // of the directory that files are those of
	unfit  *disk.Stamp    // of an index that cannot be used, or whose tree has too many files
	contents
}

// A slot is a mutex that can be waited for only so long.
type slot chan struct{}

func (s slot) Lock()   { s <- struct{}{} }
func (s slot) Unlock() { <-s }

// lockUntil says whether the slot was free before ctx ended; then the caller has it.
func (s slot) lockUntil(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	default:
	}
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// A usage says how a tree is used. It belongs to Trees.
type usage struct {
	last time.Time
	// Spans that were to begin while another one took too long to end: what changed then may be theirs
	missed atomic.Int32
	by     atomic.Int32 // calls of begin and Spans that go on; it grows under the lock of Trees
}

// looked are names that were looked at.
type looked struct {
	names []string
	all   bool // every name
}

// contents are what a walk over a whole tree finds.
type contents struct {
	files  map[string]*record
	dirs   map[string]*dir
	attrs  map[string]*attributes // by the directory of the file; replaced, never changed
	linked map[string]bool        // files that have other names, through which they can change unseen
}

// A record is one name as it was last seen.
type record struct {
	stamp   disk.Stamp
	mode    fs.FileMode
	ignored bool // it is there, and nothing else is known: ignored, not readable, or another repository

	born  int64 // of read: when the file was made, in nanoseconds since 1970
	dated bool  // born is known

	hashed bool // blob and sum are those of its content
	blob   git.OID
	sum    disk.Digest
}

// link says that a record is of a symbolic link; nil: no file.
func (r *record) link() bool { return r != nil && r.mode&fs.ModeSymlink != 0 }

// same says that two records show no change; nil: no file.
func (r *record) same(o *record) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.ignored == o.ignored && r.mode == o.mode && r.stamp.Same(o.stamp)
}

// A dir is a directory that was gone into.
type dir struct {
	rules   *ignore.Stack // about paths that begin with a slash, which is the top
	ignored bool          // only what git tracks in it counts
}

var errTooBig = errors.New("the work tree has too many files")

// above says whether one of the directories above a name is in files as something of which nothing else is known.
func above(files map[string]*record, name string) bool {
	for name = path.Dir(name); name != "."; name = path.Dir(name) {
		if r := files[name]; r != nil && r.ignored {
			return true
		}
	}
	return false
}

// forget frees what is known, for good. Spans that go on find nothing more.
func (t *tree) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.dead = false, true
	for s := range t.spans {
		s.lost = true
	}
	t.watch.close()
	t.watch, t.index, t.contents = nil, nil, contents{}
}

// begin brings the tree up to date and begins a Span. It is Blind if the tree cannot be known, or another Span does not
// end before ctx does.
func (t *tree) begin(ctx context.Context) *Span {
	if !t.mu.lockUntil(ctx) {
		t.use.missed.Add(1)
		return &Span{missed: true}
	}
	defer t.mu.Unlock()
	if t.dead {
		return &Span{}
	}
	reread, err := t.readIndex()
	if err != nil {
		return &Span{}
	}
	first := !t.known
	if t.stale && len(t.spans) == 0 {
		t.known = false
	}
	changed, all, err := t.refresh()
	if err != nil {
		return &Span{}
	}
	t.doubt(first, all || reread || t.looked.all, append(changed, t.looked.names...))
	t.looked = looked{}
	s := &Span{tree: t, index: t.index, attrs: t.attrs, general: t.generalAttributes(),
		before: make(map[string]*record), dirs: make(map[string]bool), recorded: t.recorded(),
		stashes: t.stashes(), began: clock()}
	t.spans[s] = true
	return s
}

// end ends a Span that goes on.
func (t *tree) end(s *Span) {
	if t.spans[s] {
		delete(t.spans, s)
		t.use.by.Add(-1)
	}
}

// touched tells every Span what a name was before it changed; nil: nothing.
func (t *tree) touched(name string, was *record) {
	for s := range t.spans {
		if _, known := s.before[name]; !known {
			s.before[name] = was
		}
	}
}

// turned tells every Span that a directory came or went; was: it was there.
func (t *tree) turned(dir string, was bool) {
	for s := range t.spans {
		if _, known := s.dirs[dir]; !known {
			s.dirs[dir] = was
		}
	}
}

// refresh brings the files up to date, and returns the names that it looked at; all: every one.
func (t *tree) refresh() (looked []string, all bool, err error) {
	root, err := os.OpenRoot(t.place.Top)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = root.Close() }() // a directory handle holds no data
	top, err := root.Stat(".")
	if err != nil {
		return nil, false, err
	}
	if !t.known || t.watch == nil || !os.SameFile(top, t.top) {
		t.top = top
		return nil, true, t.reload(root)
	}
	names, dirs, whole := t.watch.changed()
	if !whole {
		return nil, true, t.reload(root)
	}
	t.drop(dirs)
	for _, name := range dirs { // the outer ones first
		if t.dirs[path.Dir(name)] == nil || t.dirs[name] != nil {
			continue
		}
		info, err := root.Lstat(name)
		switch {
		case err != nil:
		case info.IsDir():
			if err := t.enter(root, name); err != nil { // as with no more watches
				return nil, true, t.reload(root)
			}
		default:
			names = append(names, name)
		}
	}
	for _, name := range names {
		if t.dirs[path.Dir(name)] != nil {
			t.look(root, name)
		}
	}
	return append(names, t.others(root, names)...), len(dirs) > 0, nil
}

// others looks at the files that have other names: the kernel tells of a change through one of them only under that
// one. It returns those that changed.
func (t *tree) others(root *os.Root, looked []string) (names []string) {
	inodes := make(map[uint64]bool)
	for _, name := range looked {
		if r := t.files[name]; r != nil && r.stamp.Nlink > 1 {
			inodes[r.stamp.Ino] = true
		}
	}
	if len(inodes) > 0 {
		for name, r := range t.files {
			if inodes[r.stamp.Ino] {
				t.linked[name] = true
			}
		}
	}
	for name := range t.linked {
		was := t.files[name]
		if was == nil {
			delete(t.linked, name)
			continue
		}
		if info, err := root.Lstat(name); err != nil || !was.stamp.Same(disk.StampOf(info)) {
			t.look(root, name)
			names = append(names, name)
		}
	}
	return names
}

// drop forgets directories and all that was in them.
func (t *tree) drop(dirs []string) {
	if len(dirs) == 0 {
		return
	}
	gone := make(map[string]bool, len(dirs))
	for _, name := range dirs {
		gone[name] = true
	}
	in := func(name string) bool {
		for ; name != "."; name = path.Dir(name) {
			if gone[name] {
				return true
			}
		}
		return false
	}
	for name := range t.dirs {
		if in(name) {
			t.watch.remove(name)
			delete(t.dirs, name)
			t.turned(name, true)
		}
	}
	for name, r := range t.files {
		if in(name) {
			t.touched(name, r)
			delete(t.files, name)
			t.attribute(nil, name)
		}
	}
}

// look looks at one name again.
func (t *tree) look(root *os.Root, name string) {
	was := t.files[name]
	info, err := root.Lstat(name)
	if err != nil || info.IsDir() { // of a directory there is an event of its own
		if was != nil {
			t.touched(name, was)
			delete(t.files, name)
		}
		t.attribute(nil, name)
		return
	}
	now := &record{ignored: was != nil && was.ignored}
	if was == nil && t.index.entries[name] == nil {
		d := t.dirs[path.Dir(name)]
		now.ignored = d.ignored || d.rules.Ignored("/"+name, false)
	}
	if !now.ignored {
		now.stamp, now.mode = disk.StampOf(info), info.Mode()
	}
	t.touched(name, was) // also with equal stamps: what happened within one tick of the clock leaves them so
	t.note(root, name, now)
	if path.Base(name) == ".gitignore" {
		t.stale = true // until no Span goes on: what was there and ignored is not new
	}
}

// reload goes over the whole tree.
func (t *tree) reload(root *os.Root) error {
	old, oldDirs := t.files, t.dirs
	t.watch.close()
	t.watch, t.known, t.stale = nil, false, false
	if !t.scans {
		t.watch = newWatch(t.place.Top)
	}
	all := func() error {
		t.contents = contents{
			files: make(map[string]*record, len(old)), dirs: make(map[string]*dir), linked: make(map[string]bool),
		}
		return t.goInto(root, ".", &dir{rules: t.rules()})
	}
	err := all()
	if errors.Is(err, errNoWatch) { // to try again each time would take them from others
		t.watch.close()
		t.watch, t.scans = nil, true
		err = all()
	}
	if err == nil && t.watch == nil && len(t.files) > maxScanned {
		err = errTooBig
	}
	if err != nil {
		if errors.Is(err, errTooBig) {
			t.unfit = &t.index.stamp
		}
		t.watch.close()
		t.watch, t.contents = nil, contents{}
		for s := range t.spans {
			s.lost = true
		}
		return err
	}
	t.unfit, t.known = nil, true
	for name := range oldDirs {
		if t.dirs[name] == nil {
			t.turned(name, true)
		}
	}
	for name := range t.dirs {
		if oldDirs[name] == nil {
			t.turned(name, false)
		}
	}
	unknown := &record{ignored: true}
	for name, was := range old {
		now := t.files[name]
		switch {
		case now.same(was) && (was.ignored || was.stamp.Proves(now.stamp)):
			t.files[name] = was // with what is known of its content
		case now == nil && above(t.files, name): // it is ignored now
			t.touched(name, unknown)
		default:
			t.touched(name, was)
		}
	}
	for name := range t.files {
		switch {
		case old[name] != nil:
		case above(old, name): // it was ignored
			t.touched(name, unknown)
		default:
			t.touched(name, nil)
		}
	}
	return nil
}

// rules are what git ignores everywhere in the tree.
func (t *tree) rules() *ignore.Stack {
	var rules *ignore.Stack
	files, _ := t.general("core.excludesfile", "ignore")
	if len(files) > 0 { // the last one counts
		if text, err := git.ReadSmall(files[len(files)-1], maxRules); err == nil {
			rules = rules.Push(ignore.Global, "", ignore.Parse(text))
		}
	}
	if text, err := git.ReadSmall(filepath.Join(t.place.Common, "info", "exclude"), maxRules); err == nil {
		rules = rules.Push(ignore.Exclude, "", ignore.Parse(text))
	}
	return rules
}

// enter goes into a directory below one that is known, unless git ignores it.
func (t *tree) enter(root *os.Root, name string) error {
	above := t.dirs[path.Dir(name)]
	d := &dir{rules: above.rules, ignored: above.ignored || above.rules.Ignored("/"+name, true)}
	if e := t.index.entries[name]; e != nil && e.Submodule() || d.ignored && !t.index.dirs[name] {
		t.cover(name)
		return nil
	}
	return t.goInto(root, name, d)
}

// cover notes a directory into which the tree does not go.
func (t *tree) cover(name string) {
	if t.known && t.files[name] == nil {
		t.touched(name, nil)
	}
	t.files[name] = &record{ignored: true}
}

// list returns what is in a directory.
func list(root *os.Root, name string) ([]fs.DirEntry, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return f.ReadDir(-1)
}

// goInto reads a directory and what is below it. A directory that vanishes meanwhile is none.
func (t *tree) goInto(root *os.Root, name string, d *dir) error {
	err := t.watch.add(name) // before it is read, so that nothing is missed
	if errors.Is(err, errNoWatch) {
		return err
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = list(root, name)
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case name == ".":
		return err
	default: // one that cannot be read hides nothing but itself
		t.watch.remove(name)
		t.cover(name)
		return nil
	}
	if len(t.files)+len(entries) > maxFiles {
		return errTooBig
	}
	has := func(file string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == file })
	}
	if name != "." && has(".git") { // another repository
		t.watch.remove(name)
		t.files[name] = &record{ignored: true}
		return nil
	}
	if has(".gitignore") {
		if text, err := git.ReadSmallIn(root, path.Join(name, ".gitignore"), maxRules); err == nil {
			d.rules = d.rules.Push(ignore.GitIgnore, strings.TrimSuffix("/"+name, "/."), ignore.Parse(text))
		}
	}
	t.dirs[name] = d
	if t.known {
		t.turned(name, false)
	}
	for _, e := range entries {
		at := path.Join(name, e.Name())
		switch {
		case at == ".git":
		case e.IsDir():
			if err := t.enter(root, at); err != nil {
				return err
			}
		default:
			t.found(root, at, e, d)
		}
	}
	return nil
}

// found notes a file that a directory has.
func (t *tree) found(root *os.Root, name string, e fs.DirEntry, d *dir) {
	r := &record{}
	if t.index.entries[name] == nil {
		r.ignored = d.ignored || d.rules.Ignored("/"+name, false)
	}
	if !r.ignored {
		info, err := e.Info()
		if err != nil {
			return // gone
		}
		r.stamp, r.mode = disk.StampOf(info), info.Mode()
	}
	if t.known && t.files[name] == nil {
		t.touched(name, nil)
	}
	t.note(root, name, r)
}

// note puts a record of a file that is there.
func (t *tree) note(root *os.Root, name string, r *record) {
	t.files[name] = r
	t.attribute(root, name)
	if r.stamp.Nlink > 1 {
		t.linked[name] = true
	} else {
		delete(t.linked, name)
	}
}

// A home is where the user's files are that git reads for every repository; "": there is none.
type home struct{ dir, config string }

// general returns the files that a key of git's configuration names for the whole tree, in git's order and behind the
// one that counts without such a key. not whole: there may be others.
func (t *tree) general(key, name string) (files []string, whole bool) {
	if t.home.config != "" {
		files = append(files, filepath.Join(t.home.config, "git", name))
	}
	values, whole := git.Values(t.home.dir, key, t.home.configs(t.place)...)
	for _, file := range values {
		switch file = git.InHome(t.home.dir, file); {
		case file == "":
			continue
		case file[0] == '~' || strings.HasPrefix(file, "%("): // the home of another user, or git's own place
			whole = false
			continue
		case !filepath.IsAbs(file):
			file = filepath.Join(t.place.Top, file)
		}
		files = append(files, file)
	}
	return files, whole
}

// configs are the files of git's configuration for a work tree, in git's order.
func (h home) configs(of git.Place) []string {
	configs := []string{"/etc/gitconfig"}
	if h.config != "" {
		configs = append(configs, filepath.Join(h.config, "git", "config"))
	}
	if h.dir != "" {
		configs = append(configs, filepath.Join(h.dir, ".gitconfig"))
	}
	return append(configs, filepath.Join(of.Common, "config"), filepath.Join(of.Dir, "config.worktree"))
}
