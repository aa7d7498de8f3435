package journal

import "slices"

// A taken is which files of a change later changes took back; zero: none. It is never changed in place.
type taken struct {
	files []string // these
	all   bool     // and all others,
	but   []string // but these
}

// of says whether a file was taken back.
func (t taken) of(path string) bool {
	return slices.Contains(t.files, path) || t.all && !slices.Contains(t.but, path)
}

// rest is what t leaves.
func (t taken) rest() taken {
	if !t.all {
		return taken{all: true, but: t.files}
	}
	return taken{files: slices.DeleteFunc(slices.Clone(t.but), t.of)}
}

// and is what t took back, or other did.
func (t taken) and(other taken) taken {
	sum := taken{files: slices.Concat(t.files, other.files), all: t.all || other.all, but: t.but}
	switch {
	case !t.all:
		sum.but = other.but
	case other.all:
		sum.but = slices.DeleteFunc(slices.Clone(t.but), other.of)
	}
	return sum
}

// takesBack notes what a change takes back, as far as it is not taken back itself.
func takesBack(undone map[string]taken, state, id string, of *about) {
	if state != stateDone || !of.takes() {
		return
	}
	own := undone[id]
	for _, id := range of.undoes {
		undone[id] = undone[id].and(own.rest())
	}
	if of.part != "" {
		files := slices.DeleteFunc(slices.Clone(of.paths), own.of)
		undone[of.part] = undone[of.part].and(taken{files: files})
	}
}
