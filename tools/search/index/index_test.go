package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// A summary never denies a string that is in the content, wherever it lies and whatever its case is.
func TestSummaryMissesNothing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var s Summarizer
	for range 40 {
		content := make([]byte, r.IntN(4*blockSize))
		letters := 1 + r.IntN(255)
		for i := range content {
			content[i] = byte(r.IntN(letters))
		}
		summary := s.Append(nil, content)
		for range 200 {
			n := gram + r.IntN(maxNeedle-gram+1)
			if n > len(content) {
				continue
			}
			at := r.IntN(len(content) - n + 1)
			if edge := at / blockSize * blockSize; r.IntN(2) == 0 && edge > n && edge+n < len(content) {
				at = edge - r.IntN(n) // across the border of two blocks
			}
			needle := bytes.ToUpper(content[at : at+n])
			if len(needle) != n {
				needle = content[at : at+n]
			}
			if !Ask([][]byte{[]byte("nowhere, and so"), needle}).May(summary) {
				t.Fatalf("%d bytes at %d of %d are denied", n, at, len(content))
			}
		}
	}
}

func TestSummaryDenies(t *testing.T) {
	t.Parallel()
	var s Summarizer
	text := strings.Repeat("func (c *conn) serve() { return c.server.err }\n", 200)
	summary := s.Append(nil, []byte(text))
	if len(summary) > len(text)/8+32 {
		t.Errorf("the summary of %d bytes has %d", len(text), len(summary))
	}
	denied := 0
	for i := range 1000 {
		if !Ask([][]byte{fmt.Appendf(nil, "xyzzy_%d_plugh", i)}).May(summary) {
			denied++
		}
	}
	if denied < 990 {
		t.Errorf("%d of 1000 strings that are not there are denied, want nearly all", denied)
	}
	if Ask([][]byte{[]byte("absent")}).May(nil) {
		t.Error("an empty content may have something")
	}
}

func TestAskNeedsStringsOfItsLength(t *testing.T) {
	t.Parallel()
	for _, needles := range [][][]byte{nil, {[]byte("abc")}, {[]byte("abcdef"), []byte("ab")}, {bytes.Repeat([]byte("a"), maxNeedle+1)}} {
		if Ask(needles) != nil {
			t.Errorf("%q is a question", needles)
		}
	}
}

func dirOf(ino uint64, names ...string) *Dir {
	d := &Dir{Stamp: Stamp{ID: ID{1, ino}, Mtime: 5, Ctime: 5}}
	for _, n := range names {
		d.Entries = append(d.Entries, Listed{Name: n})
	}
	return d
}

func TestTableGoesByStamps(t *testing.T) {
	t.Parallel()
	table := NewTable(1 << 20)
	d := dirOf(1, "a", "b")
	table.Put(d, true)
	stamp := Stamp{ID: ID{1, 9}, Size: 3, Mtime: 4, Ctime: 4}
	table.Learn(d, []Lesson{{Number: 1, Stamp: stamp, Kind: Text, Summary: []byte{8, 1}}})
	if table.Find(d.Stamp) != d {
		t.Fatal("the listing is not found")
	}
	if was, content, summary := d.Known(1); was != stamp || content != Text || len(summary) != 2 {
		t.Errorf("known: %v %v %v", was, content, summary)
	}
	for what, change := range map[string]func(s *Stamp){
		"size": func(s *Stamp) { s.Size++ }, "mtime": func(s *Stamp) { s.Mtime-- }, "ctime": func(s *Stamp) { s.Ctime++ },
		"inode": func(s *Stamp) { s.Ino++ }, "device": func(s *Stamp) { s.Dev++ },
	} {
		now := d.Stamp
		change(&now)
		if table.Find(now) != nil {
			t.Errorf("another %s: the listing counts as known", what)
		}
	}
	next := dirOf(1, "0", "b")
	next.Stamp.Mtime++
	table.Put(next, false)
	if table.Find(next.Stamp) != nil || next.Kept() {
		t.Error("a listing that does not last was kept")
	}
	if was, content, _ := next.Known(1); was != stamp || content != Text {
		t.Error("a new listing forgot the file that was known")
	}
	if _, content, _ := next.Known(0); content != Unknown {
		t.Error("a new name is known")
	}
}

func TestTableIsBounded(t *testing.T) {
	t.Parallel()
	table := NewTable(64 << 10)
	for round := range 4 {
		table.Begin()
		for i := range 1000 {
			d := dirOf(uint64(round*1000+i), "name")
			table.Put(d, true)
			table.Learn(d, []Lesson{{Stamp: Stamp{}, Kind: Text, Summary: make([]byte, 100)}})
			if s := table.Stats(); s.Bytes > 64<<10 {
				t.Fatalf("round %d: %d bytes, want at most %d", round, s.Bytes, 64<<10)
			}
		}
		if first := dirOf(uint64(round * 1000)); table.Find(first.Stamp) == nil {
			t.Errorf("round %d: what the round itself began with was dropped", round)
		}
	}
	if !table.Full() {
		t.Error("a table that is full of what is in use says that it has room")
	}
	table.Begin()
	if table.Full() {
		t.Error("a table full of old things says that it has no room")
	}
	d := dirOf(9000, "a")
	table.Put(d, true)
	if table.Find(d.Stamp) != d {
		t.Fatal("a listing that was put into a table with room is not there")
	}
	before := table.Stats().Bytes
	table.Drop(d)
	table.Drop(d)
	if table.Find(d.Stamp) != nil || table.Stats().Bytes != before-d.cost {
		t.Error("a dropped listing is there, or its bytes are")
	}
	table.Clear()
	if s := table.Stats(); s != (Stats{}) {
		t.Errorf("after Clear: %+v", s)
	}
	none := NewTable(0)
	none.Put(dirOf(1, "a"), true)
	if s := none.Stats(); s.Dirs != 0 {
		t.Error("a table without room holds something")
	}
}

// A listing may be forgotten to make room for what is learned of it: its bytes are not counted then.
func TestTableForgetsWhatItLearns(t *testing.T) {
	t.Parallel()
	table := NewTable(64 << 10)
	var all []*Dir
	for i := range 100 {
		d := dirOf(uint64(i), "name")
		table.Put(d, true)
		all = append(all, d)
	}
	table.Begin() // now all are old
	for _, d := range all {
		table.Learn(d, []Lesson{{Kind: Text, Summary: make([]byte, 60<<10)}})
	}
	var want int64
	for _, d := range all {
		if table.Find(d.Stamp) != nil {
			want += d.size()
		}
	}
	if got := table.Stats().Bytes; got != want {
		t.Errorf("%d bytes are counted, %d are remembered", got, want)
	}
}

func TestTableIsShared(t *testing.T) {
	t.Parallel()
	table := NewTable(1 << 20)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 500 {
				table.Begin()
				d := dirOf(uint64(i%7), "a", "b")
				table.Put(d, true)
				table.Learn(d, []Lesson{{Number: i % 2, Stamp: d.Stamp, Kind: Text, Summary: []byte{8, 1}}})
				if f := table.Find(d.Stamp); f != nil {
					f.Known(i % 2)
				}
				table.Stats()
			}
		})
	}
	all.Wait()
}
