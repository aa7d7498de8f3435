package changes

import (
	"context"
	"io/fs"

	"codehand/tools/git"
)

// An Own is what only the work tree has of itself: nothing of it is in git.
type Own struct {
	Top   string    // of the work tree, without links
	Files []OwnFile // that are not as git's index proves them to be, in no order
	// Covered are names below Top of which nothing is known, in no order: files and directories that git ignores,
	// directories that cannot be read, other repositories
	Covered []string
}

// An OwnFile is a regular file that is untracked, or may have been changed since `git add` or a commit.
type OwnFile struct {
	Name string // below Top, with slashes
	Mode fs.FileMode
	Size int64
	Blob git.OID // what git tracks under that name; the zero OID: nothing
}

// Own looks at the work tree that holds dir, an absolute directory. No place: there is none. Not ok: nothing can be
// known of it, as for a Span that is Blind; then only Top is set. It waits as Begin does.
func (t *Trees) Own(dir string) (own Own, ok bool) {
	place, _ := git.Find(dir)
	if place.Top == "" {
		return Own{}, true
	}
	s := t.Begin(context.Background(), dir)
	if s == nil || s.Blind() {
		return Own{Top: place.Top}, false
	}
	defer s.Drop()
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	if s.lost {
		return Own{Top: place.Top}, false
	}
	return ownOf(s.tree), true
}

func ownOf(t *tree) Own {
	own := Own{Top: t.place.Top}
	for name, r := range t.files {
		if r.ignored {
			own.Covered = append(own.Covered, name)
			continue
		}
		if !r.mode.IsRegular() || t.index.proves(name, r) {
			continue
		}
		f := OwnFile{Name: name, Mode: r.mode, Size: r.stamp.Size}
		if e := t.index.entries[name]; e != nil && e.Stage == 0 && e.Mode&0o170000 == 0o100000 {
			if f.Blob = e.OID; r.hashed && r.blob == e.OID && !r.stamp.Racy {
				continue
			}
		}
		own.Files = append(own.Files, f)
	}
	return own
}
