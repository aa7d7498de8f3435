package sandbox

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
)

// A mark is how members of a tree are recognised after they left its process group and session and were adopted by
// init. There are two, because each has a gap that the other closes:
//
//   - the variable CODEHAND_TREE in the environment of the child. A program may start another one with an empty
//     environment (env -i).
//   - a resource limit without any effect: Linux has ignored RLIMIT_LOCKS since 2.4.25, but still keeps it, hands it to
//     every child through fork and exec, and shows it in /proc/<pid>/limits. Some systems that look like Linux do not.
//
// Both are there before the child's first instruction. A program that takes both away on purpose escapes at this level.
type mark struct {
	name   string
	number uint64 // below 2^62, so that it is never "unlimited"
}

func newMark() mark {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return mark{name: rand.Text(), number: binary.LittleEndian.Uint64(b[:]) >> 2}
}

// variable returns the entry of the environment.
func (m mark) variable() string { return markVariable + "=" + m.name }

// limit returns the limit as /proc/<pid>/limits shows it.
func (m mark) limit() string { return strconv.FormatUint(m.number, 10) }

const markVariable = "CODEHAND_TREE"
