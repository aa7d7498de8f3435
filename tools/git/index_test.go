package git

import (
	"bytes"
	"encoding/binary"
	"strings"
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

// An index of version 4 names each file by what differs from the one before. Some megabytes of it made gigabytes of
// names.
func TestIndexNames(t *testing.T) {
	t.Parallel()
	index := func(count, length int) []byte {
		text := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x04"), uint32(count))
		entry := make([]byte, 62)
		binary.BigEndian.PutUint16(entry[60:], uint16(min(length, 0xfff)))
		for i := range count {
			text = append(text, entry...)
			if text = append(text, 0); i == 0 {
				text = append(text, strings.Repeat("x", length)...)
			}
			text = append(text, 0)
		}
		return append(text, make([]byte, 20)...)
	}
	for _, c := range []struct {
		count, length int
		ok            bool
	}{{1, 1, true}, {10_000, maxName - 1, true}, {1, maxName + 1, false}, {maxNames/(maxName-1) + 1, maxName - 1, false}} {
		read := 0
		err := ReadIndex(bytes.NewReader(index(c.count, c.length)), func(*Entry) bool { read++; return true })
		if (err == nil) != c.ok || c.ok && read != c.count {
			t.Errorf("%d names of %d bytes: %d read, %v", c.count, c.length, read, err)
		}
	}
}
