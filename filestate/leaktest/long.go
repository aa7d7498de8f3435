package leaktest

import (
	"maps"
	"os"
	"slices"
	"testing"
)

// Long says whether tests run whole, with floods and figures of time: CODEHAND_LONG=1. Otherwise each behaviour is
// tested with as little work as shows it.
func Long() bool { return os.Getenv("CODEHAND_LONG") == "1" }

// OnlyLong skips a test unless tests run whole. why completes the sentence "it …", as in "measures times".
func OnlyLong(t testing.TB, why string) {
	t.Helper()
	if !Long() {
		t.Skipf("it %s; CODEHAND_LONG=1 runs it", why)
	}
}

// Rounds is how often a test does something: short, or whole if tests run whole.
func Rounds(short, whole int) int {
	if Long() {
		return whole
	}
	return short
}

// Elsewhere skips a test whose work happens in other processes, with -short. The gate runs rooms with the race detector
// so: it sees nothing of other processes, and the same tests run without it right after.
func Elsewhere(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("its work happens in other processes, which the race detector does not see")
	}
}

// Sequential skips a test whose time goes into what one goroutine does, with -short: the race detector has nothing to see
// there and takes ten times as long.
func Sequential(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine does the work, which takes long with the race detector")
	}
}

// OutsideGate leaves a test out of `go test ./...`, the gate, which has a few minutes for all of them: CODEHAND_TESTS=all
// runs it, as .ci/long does, and so does CODEHAND_LONG=1. why completes the sentence "it …", as in "starts ten servers";
// another test of the same promise stays in the gate.
func OutsideGate(t testing.TB, why string) {
	t.Helper()
	if !All() {
		t.Skipf("it %s; CODEHAND_TESTS=all runs it", why)
	}
}

// Picked says whether case number i of a table runs in `go test ./...`: each n-th does, and all if All says so.
func Picked(i, n int) bool { return All() || i%n == 0 }

// Some are each n-th of the cases of a table, and all if All says so.
func Some[T any](n int, cases []T) (picked []T) {
	for i, c := range cases {
		if Picked(i, n) {
			picked = append(picked, c)
		}
	}
	return picked
}

// SomeOf are those of a table by name, in the order of the names.
func SomeOf[T any](n int, cases map[string]T) map[string]T {
	picked := map[string]T{}
	for _, name := range Some(n, slices.Sorted(maps.Keys(cases))) {
		picked[name] = cases[name]
	}
	return picked
}

// All says whether tests outside of the gate run, too.
func All() bool { return Long() || os.Getenv("CODEHAND_TESTS") == "all" }
