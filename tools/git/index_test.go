package git

import (
	"bytes"
	"testing"
)

// The index is a file of the workspace: whatever stands in it ends in an answer.
func FuzzIndex(f *testing.F) {
	entry := make([]byte, 62)
	entry[61] = 1
	f.Add(append(append([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"), entry...), 'a', 0))
	f.Add(append(append([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"), entry...), 0, 'a', 0))
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00link\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		names := 0
		found, err := indexHas(bytes.NewReader(data), func(name string, _ bool) bool { names++; return name == "" })
		if found && err != nil || found || names > len(data) {
			t.Errorf("found %v, %v, %d names", found, err, names)
		}
	})
}
