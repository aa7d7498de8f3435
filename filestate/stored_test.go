package filestate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"codehand/filestate"
)

// Records as a session has stored them, but for the path: of a file that was seen in parts and then changed, of a large one
// of which parts were shown, and of that one changed.
const (
	storedSpans = `{"path":"$PATH","hash":"e52af72a70fb8b6dc74ad0761c5a2e7674096e956e7dcc3cfe1309e939b1145a","size":19,` +
		`"spans":[{"From":0,"To":5},{"From":12,"To":19}],"stamp":{"Dev":65024,"Ino":10460620,"Nlink":1,"Size":19,` +
		`"Mtime":1795250039360467014,"Ctime":1795250039362860716,"Racy":true},"view":"-","again":0,` +
		`"own":["1309e5bc87339e14c9b557d8b500beb73b41a2469fcf00ceae184e0508b2e5c6"]}`
	storedParts = `{"path":"$PATH","hash":"0000000000000000000000000000000000000000000000000000000000000000",` +
		`"parts":[{"From":0,"To":7,"Hash":"447d3501df247856fbc3efc0199d501938990a67158fe6c32052cfe7ee8656fa"},` +
		`{"From":14,"To":21,"Hash":"2fcb4f0939f491ab8e57c72758f90688be1186c6a09a0943d939920d99a08cb5"}],"size":21,` +
		`"spans":[{"From":0,"To":7},{"From":14,"To":21}],"stamp":{"Dev":65024,"Ino":10460617,"Nlink":1,"Size":21,` +
		`"Mtime":1795250039364499047,"Ctime":1795250039364499047,"Racy":true},"view":"d92080f7400cb52a","again":1,"own":null}`
	storedRanges = `{"path":"$PATH","hash":"e52af72a70fb8b6dc74ad0761c5a2e7674096e956e7dcc3cfe1309e939b1145a","size":19,` +
		`"spans":[{"From":0,"To":5},{"From":12,"To":19}],"stamp":{"Dev":65024,"Ino":10460622,"Nlink":1,"Size":19,` +
		`"Mtime":1795250039367019643,"Ctime":1795250039367155455,"Racy":true},"view":"-","again":0,` +
		`"own":["1309e5bc87339e14c9b557d8b500beb73b41a2469fcf00ceae184e0508b2e5c6"],` +
		`"ranges":[{"Version":"r0d7f162fdff5:0-7","From":0,"To":5},{"Version":"r9ad576c59289:14-21","From":12,"To":19}]}`
)

// storedDesk is a desk on which a file has that content, and whose session has that record of it.
func storedDesk(t *testing.T, content, record string) desk {
	t.Helper()
	m := newMapMemory()
	d := largeDesk(t, func(o *filestate.Options) { o.Memory = m })
	d.write("a", content)
	path := d.path("a")
	sum := sha256.Sum256([]byte(path))
	if err := m.Set(t.Context(), "seen."+hex.EncodeToString(sum[:16]), []byte(strings.Replace(record, "$PATH", path, 1))); err != nil {
		t.Fatal(err)
	}
	return d
}

// What a session has stored, and the versions that it has given, hold in the next program, or users would have to read all
// of their files again after an update.
func TestStoredRecords(t *testing.T) {
	t.Parallel()
	const changed = "1...\ntwo...\nthree.\n"
	t.Run("of spans", func(t *testing.T) {
		t.Parallel()
		d := storedDesk(t, changed, storedSpans)
		_, err := d.put("a", "x")
		e, ok := errors.AsType[*filestate.PartReadError](err)
		if want := []filestate.Lines{{From: 1, To: 1}, {From: 3, To: 3}}; !ok || !slices.Equal(e.Seen, want) || e.Total != 3 {
			t.Errorf("got %v, want lines %v of 3", err, want)
		}
		d.must(d.edit("a", "1", "one", version("1309e5bc8733p")))
		d.must(d.edit("a", "one", "first"))
	})
	t.Run("of parts", func(t *testing.T) {
		t.Parallel()
		d := storedDesk(t, three, storedParts)
		if s := d.see("a", span{From: 14, To: 21}); s.Again != 2 || s.Version != "r9ad576c59289:14-21" {
			t.Errorf("the same view is %+v", s)
		}
		d.must(d.edit("a", "one", "1"))
		d = storedDesk(t, "ONE...\ntwo...\nthree.\n", storedParts)
		_, err := d.edit("a", "three", "3")
		if e := wantStale(t, err); e.Was != "r0d7f162fdff5:0-7" {
			t.Errorf("the version was %s", e.Was)
		}
	})
	t.Run("of ranges", func(t *testing.T) {
		t.Parallel()
		d := storedDesk(t, changed, storedRanges)
		_, err := d.edit("a", "two", "2", version("r0d7f162fdff5:0-7"))
		wantError(t, err, filestate.ErrPartRead)
		d.must(d.edit("a", "1", "one", version("r0d7f162fdff5:0-7")))
		d.must(d.edit("a", "three", "3", version("r9ad576c59289:14-21")))
	})
}
