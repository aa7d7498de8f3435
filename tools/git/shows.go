package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Show is what one git command shows the contents of, or changes, as far as its text tells.
type Show struct {
	From   string   // where git starts: absolute, or as seen from where the command line starts
	Words  []string // operands before `--`: revisions, or paths where a file is there
	Paths  []string // operands behind `--`, as git is given them
	Dashes bool     // there is a `--`, so that Words are revisions
	Past   bool     // it shows more than what git tracks now, whatever Words are
	Trees  bool     // of REV:path it shows all that is below
	// Blobs: only the contents of what is no commit are shown, as by `git show --stat`
	Blobs bool
	Whole bool // the text does not tell what Words and Paths are
}

// Shows says why git may show contents that the session may not read without a question; "": it shows none. What git
// tracks now is known from its index, of which each name is asked about. What it kept before is not known: there, a
// place must be a file that is still tracked, or one that no rule can be about.
func (g *Inspector) Shows(cwd string, shows []Show) string {
	g.cwd = cwd
	for i := range shows {
		r, why := g.from(shows[i].From)
		if why == "" && r != nil { // else git stops
			why = g.shows(r, &shows[i])
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// shows is Shows for one command, in the repository that it finds.
func (g *Inspector) shows(r *repository, s *Show) string {
	c := closing{g: g, out: g.Inside != nil && !g.Inside(r.top)}
	if g.Ruled == nil && !c.out {
		return ""
	}
	if why := g.named(r); why != "" {
		return why
	}
	from := real(g.abs(s.From))
	past, whole := s.Past, s.Whole
	var now, then []string // places: as they are, and as they ever were
	for _, w := range s.Words {
		name, inRevision := blobName(w)
		switch {
		case inRevision && name == "": // `HEAD:` is the whole tree
			past, whole = true, whole || s.Trees
		case inRevision:
			place := filepath.Join(r.top, name)
			if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
				place = filepath.Join(from, name)
			}
			if s.Trees {
				then = append(then, place)
			} else if c.has(place) {
				return c.why(name)
			}
		case s.Blobs && isCommit(w):
		case !s.Dashes && exists(below(from, w)):
			now = append(now, placed(from, w))
		default:
			past, whole = true, whole || s.Blobs
		}
	}
	for _, p := range s.Paths {
		// git has globs of its own, and `:!x` is all else
		whole = whole || strings.HasPrefix(p, ":") || strings.ContainsAny(p, `*?[\`)
		now = append(now, placed(from, p))
	}
	if nothing := s.Blobs || len(s.Words) > 0 && allNamed(s.Words); whole || len(now) == 0 && !nothing {
		now = []string{r.top}
	} else if s.Blobs {
		now = nil // commits show no contents
	}
	if past {
		then = append(then, now...)
	}
	return c.tracked(r, now, then)
}

// placed is the path that git takes a word for.
func placed(from, word string) string {
	p := below(from, word)
	return filepath.Join(real(filepath.Dir(p)), filepath.Base(p))
}

// A closing knows what of one repository must not be shown without a question.
type closing struct {
	g   *Inspector
	out bool // it stands above the roots
}

func (c *closing) has(path string) bool {
	return c.g.Ruled != nil && c.g.Ruled(path) || c.out && !c.g.Inside(path)
}

// spares says that it has nothing at place or below it, whatever has been there.
func (c *closing) spares(place string) bool {
	return (c.g.Below == nil || !c.g.Below(place)) && (!c.out || c.g.Inside(place))
}

func (c *closing) why(name string) string {
	if c.out {
		return "the repository has files outside of the roots, as " + clip(name) + "; name other files after --"
	}
	return "a rule covers " + clip(name) + ", which the repository has; name other files after --"
}

// tracked holds against the index what is shown as it is now, and what is shown as it was.
func (c *closing) tracked(r *repository, now, then []string) string {
	if len(now)+len(then) == 0 {
		return ""
	}
	is, found := map[string]bool{}, ""
	err := c.g.index(filepath.Join(r.dir, "index"), func(name string, _ bool) bool {
		path := filepath.Join(r.top, name)
		for _, places := range [...][]string{now, then} {
			for _, place := range places {
				if !isBelow(place, path) {
					continue
				}
				is[path] = is[path] || place == path
				if c.has(path) {
					found = name
					return true
				}
			}
		}
		return false
	})
	switch {
	case found != "":
		return c.why(found)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "a rule names files, and the list of files in the repository cannot be read"
	}
	for _, place := range then {
		if !is[place] && !c.spares(place) {
			return "a rule may cover what was in the repository before; name files that it has now after --"
		}
	}
	return ""
}

// blobName is the path in `REV:path` and `:N:path`. not ok: a word is something else, as `:/text` and `:(top)x`.
func blobName(word string) (name string, ok bool) {
	_, name, ok = strings.Cut(word, ":")
	if !ok || strings.HasPrefix(word, ":/") || strings.HasPrefix(word, ":(") || strings.HasPrefix(word, ":!") ||
		strings.HasPrefix(word, ":^") || strings.ContainsAny(word[:len(word)-len(name)], "{") {
		return "", false
	}
	if stage, rest, staged := strings.Cut(name, ":"); staged && word[0] == ':' && len(stage) == 1 &&
		stage[0] >= '0' && stage[0] <= '3' {
		name = rest
	}
	return name, true
}

// allNamed says whether each word is `REV:path`, so that nothing else is shown.
func allNamed(words []string) bool {
	for _, w := range words {
		if name, ok := blobName(w); !ok || name == "" {
			return false
		}
	}
	return true
}

// isCommit says whether a word can only be a commit, of which the text alone tells.
func isCommit(word string) bool {
	switch {
	case strings.HasSuffix(word, "^{commit}"), strings.HasPrefix(word, ":/"), strings.HasPrefix(word, "@{"):
		return true
	case strings.ContainsAny(word, "{:"):
		return false
	case strings.ContainsAny(word, "~^"), strings.Contains(word, ".."):
		return true
	}
	return word == "@" || word == "HEAD" || strings.HasSuffix(word, "_HEAD")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// isBelow says whether path is place or below it. Both are clean.
func isBelow(place, path string) bool {
	return place == path || strings.HasPrefix(path, strings.TrimSuffix(place, "/")+"/")
}
