package lines

import (
	"bytes"
	"hash/maphash"
)

// Names gives each line a number, equal lines the same one. It keeps no copies: a line may be all of a large file, and
// the contents that it comes from must not change meanwhile. The zero Names is ready; it is for one goroutine.
type Names struct {
	seed   maphash.Seed
	latest map[uint64]int // the number given last to a line with this hash
	lines  []named
}

type named struct {
	line   []byte
	before int // number of the one before with the same hash; below 0: none
}

// of returns the number of a line.
func (n *Names) of(line []byte) int {
	if n.latest == nil {
		n.seed, n.latest = maphash.MakeSeed(), make(map[uint64]int)
	}
	hash := maphash.Bytes(n.seed, line)
	latest, ok := n.latest[hash]
	if !ok {
		latest = -1
	}
	for at := latest; at >= 0; at = n.lines[at].before {
		if bytes.Equal(n.lines[at].line, line) {
			return at
		}
	}
	n.lines = append(n.lines, named{line, latest})
	n.latest[hash] = len(n.lines) - 1
	return len(n.lines) - 1
}
