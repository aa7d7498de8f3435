package seen

import (
	"bytes"
	"testing"

	"codehand/filestate/disk"
)

func TestContentsStayWithinTheirBudget(t *testing.T) {
	t.Parallel()
	content := func(i byte) []byte { return bytes.Repeat([]byte{i}, 1000) }
	c := NewContents(3 * (1000 + heldCost))
	for i := range byte(3) {
		c.Put(disk.DigestOf(content(i)), content(i))
	}
	c.Get(disk.DigestOf(content(0)))
	c.Put(disk.DigestOf(content(3)), content(3))
	for i, want := range []bool{true, false, true, true} {
		if got := c.Get(disk.DigestOf(content(byte(i)))); (got != nil) != want {
			t.Errorf("content %d is held: %v, want %v", i, got != nil, want)
		}
	}
	c.Put(disk.DigestOf(content(3)), content(3)) // once more costs nothing
	if c.used != c.budget || len(c.byID) != 3 || c.age.Len() != 3 {
		t.Errorf("%d of %d bytes are used for %d contents", c.used, c.budget, len(c.byID))
	}
	large := make([]byte, c.budget)
	c.Put(disk.DigestOf(large), large)
	if c.Get(disk.DigestOf(large)) != nil || c.Get(disk.DigestOf(content(3))) == nil {
		t.Error("a content over the budget pushed others out")
	}
	empty := []byte{}
	c.Put(disk.DigestOf(empty), empty)
	if c.Get(disk.DigestOf(empty)) == nil {
		t.Error("an empty content counts as not held")
	}
}

func TestContentsDefault(t *testing.T) {
	t.Parallel()
	c := NewContents(0)
	for size, want := range map[int]bool{MaxHeld: true, MaxHeld + 1: false} {
		content := make([]byte, size)
		c.Put(disk.DigestOf(content), content)
		if got := c.Get(disk.DigestOf(content)) != nil; got != want {
			t.Errorf("a content of %d bytes is held: %v", size, got)
		}
	}
}
