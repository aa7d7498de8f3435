package install

import (
	"bytes"
	"testing"
)

// FuzzNote: the note of a change takes it back to the byte.
func FuzzNote(f *testing.F) {
	for _, c := range [][2]string{{"", "{}\n"}, {"a: 1\n", "a: 1\nb: 2\n"}, {"aaa", "aa"}, {"abcabc", "abc"}, {"x", "x"}} {
		f.Add([]byte(c[0]), []byte(c[1]))
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		n := noteOf("x", append([]byte{}, before...), after) // not nil, which is no file
		if was, ok := n.undo(after); !ok || was == nil || !bytes.Equal(was, before) {
			t.Errorf("taken back it is\n%s\nand was\n%s", was, before)
		}
	})
}
