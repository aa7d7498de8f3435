// Package workspace decides which paths a session may touch, and reaches them.
//
// Every path goes through a Space. A path is chosen by whole components and then
// reached through a directory handle (os.Root), so that no string prefix and no swap
// between check and use decides what is touched. It knows no rules, no tools and no
// file contents.
package workspace

import (
	"errors"
	"os"
)

// Access says what a place is opened for. The zero value is the one that needs more.
type Access int

// The accesses.
const (
	Write Access = iota // change or create: every part of the path must be in a writable area
	Read                // look at: read-only areas are enough, and the file must exist
)

// Options of a Space.
type Options struct {
	Home     string   // what `~` means; "": `~` is refused with ErrSpelling
	Cwd      string   // where relative paths start; "": the first root
	Readable []string // directories besides the roots that may be read and never changed (kept results, job output)
}

// A Space is a set of areas together with a cwd. It is safe for concurrent use; At makes copies that share the handles.
type Space struct {
	// unexported: helper B
}

// A Place is a path as it will be reached: Dir is a handle on the deepest existing directory on the
// way, Name the rest of the path below it ("." for a root itself), Path the canonical absolute path (links
// resolved). The caller closes Dir. filestate.File and search.Place have the same fields and convert.
type Place struct {
	Dir  *os.Root
	Name string
	Path string
}

// Open makes a Space over roots, which must be existing directories. `/`, `/proc`, `/sys`, `/dev`, `/etc` and
// directories below the last four are refused. No roots: every path is outside.
func Open(roots []string, o Options) (*Space, error) { panic("skeleton") }

// Close releases the handles. Places that were handed out stay usable.
func (s *Space) Close() error { panic("skeleton") }

// At returns the Space with another cwd, sharing everything else. cwd must be absolute.
func (s *Space) At(cwd string) *Space { panic("skeleton") }

// Readable returns the Space with further areas that may be read and never changed. dirs need not exist yet.
func (s *Space) Readable(dirs ...string) *Space { panic("skeleton") }

// Roots returns the canonical roots, in the order given.
func (s *Space) Roots() []string { panic("skeleton") }

// Cwd returns where relative paths start.
func (s *Space) Cwd() string { panic("skeleton") }

// Abs returns path absolute and clean: `~` expanded, `file://` URLs decoded, the cwd joined. It does not touch the
// disk. A spelling that Open refuses comes back unchanged, so that Open can refuse it.
func (s *Space) Abs(path string) string { panic("skeleton") }

// Rel returns path as it is shown: relative to the cwd when it is inside it, else unchanged.
func (s *Space) Rel(path string) string { panic("skeleton") }

// Open resolves path and returns its Place. Links are followed while their targets lie in an area. With Read the
// path must exist (*MissingError); with Write it may be missing, also with missing parents: Name then has several
// components, and nothing is created through a dangling link that leads outside. Open does not open the last
// component itself, so a FIFO does not block it.
//
// Errors: *OutsideError, *MissingError, ErrSpelling, *InvalidError, or what the system said.
func (s *Space) Open(path string, a Access) (Place, error) { panic("skeleton") }

// Resolve returns the canonical path of path (links resolved as far as it exists) and whether both the spelling and
// the target lie inside the roots (read-only areas do not count). It never fails: what cannot be resolved is outside.
func (s *Space) Resolve(path string) (real string, inside bool) { panic("skeleton") }

// Inside says whether path lies in a root, by spelling and by target.
func (s *Space) Inside(path string) bool { panic("skeleton") }

// Same says whether a and b name the same file: by identity where both exist, else by canonical path.
func (s *Space) Same(a, b string) bool { panic("skeleton") }

// Near returns at most 3 existing paths (absolute) that a caller who asked for the missing path may have meant: the
// same stem with another extension, a name at edit distance at most 2 in that directory, the same relative path
// below the cwd. allow, if not nil, filters them.
func (s *Space) Near(path string, allow func(path string) bool) []string { panic("skeleton") }

// ErrSpelling says that the path is a network or device spelling, which is never opened.
var ErrSpelling = errors.New("network or device path")

// An InvalidError says that the text is no path: empty, with a NUL, too long, `~user`.
type InvalidError struct{ Path, Reason string }

func (e *InvalidError) Error() string { return e.Path + ": " + e.Reason }

// An OutsideError says that the path, or the target of a link on its way, lies in no area.
type OutsideError struct {
	Path  string
	Link  string // the link that leads out; "": the path itself is outside
	Roots []string
}

func (e *OutsideError) Error() string { return e.Path + " is outside the allowed directories" }

// A MissingError says that there is no such file.
type MissingError struct {
	Path string
}

func (e *MissingError) Error() string { return e.Path + " does not exist" }

// Unwrap returns fs.ErrNotExist.
func (e *MissingError) Unwrap() error { return os.ErrNotExist }
