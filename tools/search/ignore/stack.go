package ignore

import "strings"

// A Kind tells ignore files apart. The strongest comes first: a kind decides before the next is asked.
type Kind int

// The kinds, in the order in which they are asked.
const (
	RgIgnore  Kind = iota // .rgignore
	DotIgnore             // .ignore
	GitIgnore             // .gitignore
	Exclude               // .git/info/exclude
	Global                // the user's global excludes file
	kinds
)

// A Stack is the ignore files that apply in one directory. It is immutable, so that directories which are
// walked at the same time can share what is above them. The nil Stack has no rules.
type Stack struct {
	top [kinds]*layer
}

// A layer is one file of a kind; within a kind the file nearest to the path comes first.
type layer struct {
	dir   string // of the file, without a slash at the end
	list  *List
	above *layer
}

// Push returns s with a file of a kind on top, whose patterns are relative to dir. Paths of one Stack are all
// absolute, or all relative to the same place.
func (s *Stack) Push(kind Kind, dir string, l *List) *Stack {
	next := s.copy()
	next.top[kind] = &layer{dir: strings.TrimSuffix(dir, "/"), list: l, above: next.top[kind]}
	return next
}

// Border returns s for the top directory of a repository: the .gitignore and exclude files of an outer
// repository do not reach into it.
func (s *Stack) Border() *Stack {
	next := s.copy()
	next.top[GitIgnore], next.top[Exclude] = nil, nil
	return next
}

func (s *Stack) copy() *Stack {
	if s == nil {
		return new(Stack)
	}
	next := *s
	return &next
}

// Ignored reports whether the rules leave path out. Paths outside a layer's directory are not its business.
func (s *Stack) Ignored(path string, dir bool) bool {
	if s == nil {
		return false
	}
	for _, l := range s.top {
		for ; l != nil; l = l.above {
			if len(path) <= len(l.dir)+1 || path[len(l.dir)] != '/' || path[:len(l.dir)] != l.dir {
				continue
			}
			if v := l.list.Match(path[len(l.dir)+1:], dir); v != None {
				return v == Ignore
			}
		}
	}
	return false
}
