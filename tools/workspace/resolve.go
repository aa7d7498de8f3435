package workspace

import (
	"errors"
	"os"
	"syscall"
)

// Resolve returns the canonical path of path (links resolved as far as it exists, and spelled as the disk spells it
// where the file system ignores letter case) and whether both the spelling and the target lie inside the roots
// (read-only areas and single files do not count). It never fails: what cannot be resolved is outside. Where a link
// leads outside, real is the link's target, so that rules can name it.
func (s *Space) Resolve(path string) (real string, inside bool) {
	p, err := openBy(s, path, Write, nil)
	if err != nil {
		return s.resolveOther(path, err)
	}
	defer p.Dir.Close()
	return s.located(p)
}

// Look is Resolve and, of what is inside, Names, in one walk to it.
func (s *Space) Look(path string) (real string, inside bool, names []string, whole bool) {
	p, err := openBy(s, path, Write, nil)
	if err != nil {
		real, inside = s.resolveOther(path, err)
		return real, inside, nil, true
	}
	defer p.Dir.Close()
	if real, inside = s.located(p); !inside {
		return real, inside, nil, true
	}
	names, whole = s.namesAt(p)
	return real, inside, names, whole
}

// located is Resolve of a Place that may be written to.
func (s *Space) located(p Place) (real string, inside bool) {
	real = s.asStored(p)
	a, _, ok := s.areas.find(real)
	return real, ok && !a.file
}

// resolveOther is Resolve of a path that may not be written to, with the error of that.
func (s *Space) resolveOther(path string, err error) (real string, inside bool) {
	if real, err := realBy(s, path, Read); err == nil { // in a read-only area
		return real, false
	}
	if out, ok := errors.AsType[*OutsideError](err); ok && out.Link != "" {
		return out.Target, false
	}
	return s.Abs(path), false
}

// realBy is the canonical path of what an Open without a Guard arrives at.
func realBy(s *Space, path string, a Access) (string, error) {
	p, err := openBy(s, path, a, nil)
	if err != nil {
		return "", err
	}
	defer p.Dir.Close()
	return s.asStored(p), nil
}

// Inside says whether path lies in a root, by spelling and by target.
func (s *Space) Inside(path string) bool {
	_, inside := s.Resolve(path)
	return inside
}

// Barred says whether something that is no directory stands on the way to path, so that nothing can be there.
func (s *Space) Barred(path string) bool {
	p, err := openBy(s, path, Write, nil)
	if err == nil {
		_ = p.Dir.Close() // it was only read
	}
	return errors.Is(err, syscall.ENOTDIR)
}

// Same says whether a and b name the same file: by identity where both exist, else by canonical path.
func (s *Space) Same(a, b string) bool {
	x, errX := s.look(a)
	y, errY := s.look(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y)
	}
	realA, _ := s.Resolve(a)
	realB, _ := s.Resolve(b)
	return realA == realB
}

// look returns what is at path, with links followed.
func (s *Space) look(path string) (os.FileInfo, error) {
	p, err := openBy(s, path, Read, nil)
	if err != nil {
		return nil, err
	}
	defer p.Dir.Close()
	return p.Dir.Lstat(p.Name)
}
