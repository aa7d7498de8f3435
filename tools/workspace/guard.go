package workspace

import (
	"io/fs"
	"slices"
)

// A Guard judges everything that Open arrives at, before the caller of Open gets it; its error is that of Open. Rules
// judge a path, and another process may change where that leads afterwards; a Guard judges what was opened. Open calls
// it in its own goroutine. If a file turns out to have several names when it is opened, Place.Linked calls the Guard
// once more, in the goroutine that opens the file.
type Guard func(Opened) error

// Guarded returns the Space with another Guard. What looks at paths without opening them for anyone (Resolve, Names,
// Folds, Below, Same, Barred) does not ask it.
func (s *Space) Guarded(g Guard) *Space {
	c := *s
	c.guard = g
	return &c
}

// An Opened is what Open arrived at. It is good as long as the Guard runs.
type Opened struct {
	Asked  string // as Open was asked for it: absolute, clean
	Path   string // what it is: canonical, every component walked by handles
	Access Access

	space *Space
	place Place
	info  fs.FileInfo // nil: nothing is there yet, or it is an area
}

// Is reports whether the opened file is still the one that rules judged. real is what Resolve returned for the path
// then; also and whole are what Names returned. A file with one name costs no system call.
func (o Opened) Is(real string, also []string, whole bool) bool {
	if o.Path != real && o.Real() != real {
		return false
	}
	names, all := o.Names()
	stranger := func(name string) bool { return !slices.Contains(also, name) }
	return (all || !whole) && !slices.ContainsFunc(names, stranger)
}

// Real is what Resolve says of it.
func (o Opened) Real() string { return o.space.asStored(o.place) }

// Inside says whether it lies in a root.
func (o Opened) Inside() bool {
	a, _, ok := o.space.areas.find(o.Path)
	return ok && !a.readOnly && !a.file
}

// Names is what Space.Names says of it.
func (o Opened) Names() (names []string, whole bool) {
	if o.info == nil {
		return nil, true
	}
	return o.space.NamesOf(o.place, o.info)
}

// Folds is what Space.Folds says of it.
func (o Opened) Folds() bool { return o.space.foldsAt(o.place) }
