package filestate

import (
	"bytes"
	"testing"
)

func TestContentsStayWithinTheirBudget(t *testing.T) {
	t.Parallel()
	content := func(i byte) []byte { return bytes.Repeat([]byte{i}, 1000) }
	c := NewContents(3 * (1000 + heldCost))
	for i := range byte(3) {
		c.put(digestOf(content(i)), content(i))
	}
	c.get(digestOf(content(0)))
	c.put(digestOf(content(3)), content(3))
	for i, want := range []bool{true, false, true, true} {
		if got := c.get(digestOf(content(byte(i)))); (got != nil) != want {
			t.Errorf("content %d is held: %v, want %v", i, got != nil, want)
		}
	}
	c.put(digestOf(content(3)), content(3)) // once more costs nothing
	if c.used != c.budget || len(c.byID) != 3 || c.age.Len() != 3 {
		t.Errorf("%d of %d bytes are used for %d contents", c.used, c.budget, len(c.byID))
	}
	large := make([]byte, c.budget)
	c.put(digestOf(large), large)
	if c.get(digestOf(large)) != nil || c.get(digestOf(content(3))) == nil {
		t.Error("a content over the budget pushed others out")
	}
	empty := []byte{}
	c.put(digestOf(empty), empty)
	if c.get(digestOf(empty)) == nil {
		t.Error("an empty content counts as not held")
	}
}

func TestContentsDefault(t *testing.T) {
	t.Parallel()
	c := NewContents(0)
	for size, want := range map[int]bool{maxHeld: true, maxHeld + 1: false} {
		content := make([]byte, size)
		c.put(digestOf(content), content)
		if got := c.get(digestOf(content)) != nil; got != want {
			t.Errorf("a content of %d bytes is held: %v", size, got)
		}
	}
}
