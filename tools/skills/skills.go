// Package skills finds skills, and makes the text of one.
//
// A skill is a directory with a SKILL.md: YAML between two lines `---`, then instructions for a model. An Index looks
// at directories in the order of their precedence, and parses only changed files again. It reads files through a Files
// that its caller passes in, so a session finds no skill that it may not see. It runs nothing: a Rendering says which
// commands a text asks for, and the caller decides about them.
package skills

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
)

// A Trust says whose words a skill is. The zero value is the least.
type Trust int

// The trusts.
const (
	Project  Trust = iota // of the workspace: it is given no right
	User                  // of the person who started the process
	Operator              // of a directory that the operator named
)

// A Dir is one place where skills are looked for.
type Dir struct {
	Path  string // absolute
	Flat  bool   // skills are files NAME.md, as in a directory of commands; else NAME/SKILL.md
	Trust Trust
}

// Files is how an Index reaches files. What a session may not see does not exist for it: fs.ErrNotExist.
type Files interface {
	// ReadDir returns the entries of a directory, sorted by name, at most limit. A link is an entry of its target's
	// kind; its FileInfo may have a method Target, which returns what the system says of the target, so that circles
	// are seen.
	ReadDir(path string, limit int) ([]fs.FileInfo, error)
	// Open opens a regular file, and nothing else; it never blocks.
	Open(path string) (fs.File, error)
}

// A Skill is one that was found. It does not change; its slices are only read.
type Skill struct {
	Name        string // of its directory, or of its file without .md; see usable
	Description string
	WhenToUse   string
	Hint        string   // argument-hint
	Arguments   []string // names, by position
	ModelOff    bool     // only a person may run it
	UserOff     bool     // it is no prompt
	Allowed     []string // rules of allowed-tools, one each
	Fork        bool     // its text is for an agent of its own
	Agent       string   // type of that agent; "": the usual one
	Shell       string
	Paths       []string // it counts only where a file that was touched matches one; empty: always

	Trust Trust
	Dir   string          // absolute, that of SKILL.md
	File  string          // absolute, the file itself
	Front json.RawMessage // its front matter as a JSON object, all keys as they were written
	Sum   string          // SHA-256 of the file, hex
	Flat  bool            // a file alone: it has no supporting files
	Loose bool            // its front matter is no YAML (or has a key twice) and was read key by key

	place fs.FileInfo // of Dir, to know it again below itself; nil: not known
}

// A Set is what an Index found at one moment. It does not change.
//
// Paths of Dropped are absolute; some are directories of which not everything was looked at.
type Set struct {
	Skills  []Skill   // by name
	Dropped []Dropped // what looked like a skill and is none, by path
}

// A Dropped is a file that is no skill, and why: it cannot be parsed, is too large, or has a name that an earlier one
// has.
type Dropped struct{ Path, Reason string }

// Find returns the skill of that name.
func (s Set) Find(name string) (Skill, bool) {
	i, ok := slices.BinarySearchFunc(s.Skills, name,
		func(k Skill, name string) int { return strings.Compare(k.Name, name) })
	if !ok {
		return Skill{}, false
	}
	return s.Skills[i], true
}
