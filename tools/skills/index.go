package skills

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// What a Scan looks at, at most.
const (
	maxSkills  = 500
	maxDropped = 200
	maxEntries = 2000    // of one directory
	maxLooked  = 5000    // of all: each costs 0.1 ms, at every call that looks for skills
	maxFile    = 1 << 20 // bytes of a SKILL.md
)

// maxKept is how many files an Index remembers from Scans of different directories, some of several repositories. What
// a file says may take 128 KiB.
const maxKept = 2000

// An Index remembers what it has parsed, and hashed. It is safe for concurrent use, also by those who scan different
// directories: neither takes away what the other needs.
type Index struct {
	mu     sync.Mutex
	parsed map[place]map[string]parsed  // by the file of a skill, in its directory; the inner ones do not change
	sums   map[string]map[string]hashed // of supporting files: by the file of their skill, and their path below
}

// A place is a Dir, whosesoever words it holds.
type place struct {
	path string
	flat bool
}

// A parsed is a file that was read: a skill without what its place says, or the reason why it is none.
type parsed struct {
	stamp  stamp
	skill  Skill
	reason string
}

// New returns an empty Index.
func New() *Index { return &Index{} }

// Scan looks at dirs, the one that wins a clash first, and returns what is there now. A directory that does not exist
// has no skills. At most 500 skills are found; what does not fit, cannot be read or parsed, or has a name that an
// earlier file has is in Set.Dropped, of which there are 200 at most. Of one directory 2,000 entries are looked at, of
// all 5,000. A file that cannot be parsed keeps its name from later ones, so that breaking a skill of the user does not
// put one of the project in its place.
//
// A file is read again only when its size, modification time or identity changed, or when it was younger than 2 s as it
// was read: a second change within the clock's grain would not show. What a directory has no longer is forgotten with
// the Scan that looks at it, and all other directories once more than 2,000 files are known. The only error is ctx's.
func (x *Index) Scan(ctx context.Context, f Files, dirs []Dir) (Set, error) {
	s := scan{files: f, met: map[place]map[string]parsed{}, taken: map[string]string{}}
	for _, d := range dirs {
		d.Path = filepath.Clean(d.Path)
		at := place{d.Path, d.Flat}
		// A home directory that is also a project names its directories twice, which is no clash.
		if s.met[at] != nil {
			continue
		}
		if s.looked >= maxLooked {
			s.drop(d.Path, "%d entries of other directories were looked at, and none of its own, nor of those after it",
				s.looked)
			break
		}
		s.old, s.now = x.known(at), map[string]parsed{}
		s.met[at] = s.now
		if err := s.dir(ctx, d); err != nil {
			return Set{}, err
		}
	}
	x.keep(s.met)
	slices.SortFunc(s.set.Skills, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.set.Dropped, func(a, b Dropped) int { return strings.Compare(a.Path, b.Path) })
	return s.set, nil
}

// known returns what was parsed in a directory. The map is only read.
func (x *Index) known(at place) map[string]parsed {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.parsed[at]
}

// keep puts what a Scan met in the place of what its directories had.
func (x *Index) keep(met map[place]map[string]parsed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	count := 0
	for at, files := range x.parsed {
		now, listed := met[at]
		if !listed {
			count += len(files)
			continue
		}
		delete(x.parsed, at)
		for file := range files {
			if _, ok := now[file]; !ok {
				delete(x.sums, file)
			}
		}
	}
	for _, files := range met {
		count += len(files)
	}
	if x.parsed == nil || count > maxKept {
		x.parsed = map[place]map[string]parsed{}
	}
	for at, files := range met {
		if len(files) > 0 { // most of the directories that are asked for do not exist
			x.parsed[at] = files
		}
	}
}

// A scan is one Scan under way.
type scan struct {
	files Files
	old   map[string]parsed // what was known of the directory that is looked at; only read, as another Scan may read it
	now   map[string]parsed // what was met in it
	met   map[place]map[string]parsed
	taken map[string]string // files by name
	set   Set

	looked int // entries
}

// full reports whether there is no room for anything more.
func (s *scan) full() bool { return len(s.set.Dropped) >= maxDropped }

func (s *scan) drop(path, format string, args ...any) {
	if !s.full() {
		s.set.Dropped = append(s.set.Dropped, Dropped{path, sentence(format, args...)})
	}
}

// dir looks at one directory.
func (s *scan) dir(ctx context.Context, d Dir) error {
	limit := min(maxEntries, maxLooked-s.looked)
	entries, err := s.files.ReadDir(d.Path, limit+1)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.drop(d.Path, "its directory cannot be listed: %v", cause(err))
		}
		return ctx.Err()
	}
	if len(entries) > limit {
		entries = entries[:limit]
		s.drop(d.Path, "its directory has more than %d entries, and only the first were looked at", limit)
	}
	s.looked += len(entries)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.full() {
			return nil
		}
		s.entry(d, e)
	}
	return ctx.Err()
}

// entry looks at one entry of a directory. What begins with a dot belongs to some program.
func (s *scan) entry(d Dir, e fs.FileInfo) {
	name, file := e.Name(), filepath.Join(d.Path, e.Name())
	skill := Skill{Name: name, Trust: d.Trust, Dir: file, place: e}
	if strings.HasPrefix(name, ".") || e.IsDir() == d.Flat {
		return
	}
	if d.Flat {
		var ok bool
		if skill.Name, ok = strings.CutSuffix(name, ".md"); !ok {
			return
		}
		skill.Dir, skill.Flat, skill.place = d.Path, true, nil
	} else {
		file = filepath.Join(file, "SKILL.md")
	}
	skill.File = file
	s.file(skill)
}

// file reads the file of a skill, unless it is known.
func (s *scan) file(skill Skill) {
	old, known := s.old[skill.File]
	p, ok := s.read(skill, old, known)
	if !ok {
		return
	}
	s.now[skill.File] = p
	first, clash := s.taken[skill.Name]
	if !clash {
		s.taken[skill.Name] = skill.File
	}
	switch {
	case !usable(skill.Name):
		s.drop(skill.File, "a skill cannot be named %q", cut(skill.Name, 80))
	case p.reason != "":
		s.drop(skill.File, "%s", p.reason)
	case clash:
		s.drop(skill.File, "%s has its name and goes first", first)
	case len(s.set.Skills) >= maxSkills:
		s.drop(skill.File, "there are %d skills already", maxSkills)
	default:
		s.set.Skills = append(s.set.Skills, p.skill.at(skill))
	}
}

// read returns what the file of a skill says. ok is false when there is no such file.
func (s *scan) read(skill Skill, old parsed, known bool) (p parsed, ok bool) {
	var before *stamp
	if known && old.stamp.info != nil {
		before = &old.stamp
	}
	c, fresh, err := load(s.files, skill.File, maxFile, before)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return parsed{}, false
	case errors.Is(err, ErrTooLarge):
		return parsed{reason: "it has more than 1 MiB"}, true
	case err != nil:
		return parsed{reason: "it cannot be read: " + cause(err).Error()}, true
	case !fresh:
		return old, true
	case known && old.skill.Sum == c.sum: // written again, or young: the same words mean the same
		old.stamp = c.stamp
		return old, true
	}
	p = parsed{stamp: c.stamp}
	p.skill.Sum = c.sum
	if err := p.skill.parse(c.data); err != nil {
		p.skill, p.reason = Skill{Sum: c.sum}, err.Error()
	}
	return p, true
}

// parse fills in what a file says.
func (s *Skill) parse(data []byte) error {
	front, body, err := split(data)
	if err != nil {
		if errors.Is(err, ErrNotText) {
			return errors.New("it is not UTF-8 text")
		}
		return err
	}
	v, loose, err := readFront(strings.Clone(front))
	if err != nil {
		return err
	}
	s.Loose = loose
	s.describe(v, body)
	// It may be a line of the body, all of which would be kept with it.
	s.Description = strings.Clone(s.Description)
	if len(s.Front) > maxBytes { // several keys, each with aliases of its own
		return errBomb
	}
	return nil
}

// at returns what a file says as a skill of a place.
func (s Skill) at(place Skill) Skill {
	s.Name, s.Trust, s.Dir, s.File, s.Flat, s.place = place.Name, place.Trust, place.Dir, place.File, place.Flat,
		place.place
	return s
}
