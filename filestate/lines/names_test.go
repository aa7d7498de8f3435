package lines

import (
	"hash/maphash"
	"runtime"
	"testing"
)

// Lines that share a hash are told apart.
func TestNamesWithOneHash(t *testing.T) {
	t.Parallel()
	var n Names
	if a, b := n.of([]byte("a\n")), n.of([]byte("b\n")); a != 0 || b != 1 {
		t.Fatalf("%d, %d", a, b)
	}
	n.latest[maphash.Bytes(n.seed, []byte("c\n"))] = 1 // as if it were that of b
	if c := n.of([]byte("c\n")); c != 2 {
		t.Errorf("another line with the hash of b is %d", c)
	}
	n.latest[maphash.Bytes(n.seed, []byte("b\n"))] = 2
	for line, want := range map[string]int{"a\n": 0, "b\n": 1, "c\n": 2} {
		if got := n.of([]byte(line)); got != want {
			t.Errorf("%q is %d, want %d", line, got, want)
		}
	}
}

// Numbering copies no lines.
func TestNamesOfLongLines(t *testing.T) { // not parallel: it counts what the process allocates
	line := make([]byte, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	new(Names).of(line)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
		t.Errorf("%d bytes for a line of a MiB", n)
	}
}
