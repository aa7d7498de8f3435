package workspace

import "math"

// NamesByID returns the names, inside the roots, of the file with these numbers of its device and inode, canonical and
// in no order: those that the last walk for hard links saw, which is some seconds old at most. whole is false if a name
// may be missing. It is for searches, which know no more of a file that has several names. The slice is shared: only
// read.
func (s *Space) NamesByID(dev, ino uint64) (names []string, whole bool) {
	x := s.links
	x.mu.Lock()
	defer x.mu.Unlock()
	id := fileID{dev, ino}
	e := x.found[id]
	if x.stale(e) {
		e = x.again(linked{id: id, links: math.MaxUint64}, s.walkLinks)
	}
	return x.known(e)
}
