package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/splices"
)

// noteBytes are the file of a note.
func noteBytes(t testing.TB, e *Note) []byte {
	t.Helper()
	pieces, err := new(Journal).encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Join(pieces, nil)
}

// aNote is one of a change and of a new file, with a compressed and a raw content.
func aNote() *Note {
	e := &Note{Header: Header{ID: strings.Repeat("a", idDigits), Time: time.Unix(1, 0).UTC(), Kind: KindChange}}
	for _, c := range []Sides{{Before: []byte("one\ntwo\nthree\n"), After: []byte("one\n2\nthree\n")}, {After: []byte("new\n")}} {
		e.add(Part{Path: "/w/a", Old: c.Before, New: c.After, Before: disk.DigestOf(c.Before), After: disk.DigestOf(c.After)})
		f := &e.Files[len(e.Files)-1]
		f.Raw = c.Before == nil // as from rawSize on
		if c.Before != nil {
			sum := disk.DigestOf(c.Before)
			f.Before, e.Parts[len(e.Parts)-1].Before = &sum, c.Before
			f.Head, f.Tail = 4, 7
		}
	}
	e.add(Part{Path: "/w/large", Old: []byte{}, New: []byte{}, OldSize: MaxKept + 20, NewSize: MaxKept + 18, Splices: splices.List{
		{At: 3, Line: 1, Old: []byte("four"), New: []byte("4")}, {At: MaxKept, Line: 9, Old: []byte("a"), New: []byte("bb")}}})
	return e
}

// A damaged note is refused. Sizes that only add up by overflow, or that nothing backs, ended the process.
func TestDamagedNote(t *testing.T) {
	t.Parallel()
	whole := noteBytes(t, aNote())
	if err := readNote(whole); err != nil {
		t.Fatalf("a whole note: %v", err)
	}
	line, rest, _ := bytes.Cut(whole, []byte("\n"))
	for name, change := range map[string]func(h *Header){
		"no files":           func(h *Header) { h.Files = nil },
		"an empty list":      func(h *Header) { h.Files = []File{} },
		"an overflow":        func(h *Header) { big(h, 1<<62) },
		"a huge new size":    func(h *Header) { h.Files[0].NewSize = 1 << 62 },
		"no old size":        func(h *Header) { h.Files[0].OldSize = -1 },
		"no new size":        func(h *Header) { h.Files[1].NewSize = -1 },
		"head over tail":     func(h *Header) { h.Files[0].Head = 13 },
		"a huge head":        func(h *Header) { h.Files[0].Head = 1<<63 - 1 },
		"another new size":   func(h *Header) { h.Files[0].NewSize++ },
		"raw, not packed":    func(h *Header) { h.Files[0].Raw = true },
		"packed, not raw":    func(h *Header) { h.Files[1].Raw = false },
		"an id of no note":   func(h *Header) { h.ID = "../x" },
		"cuts that overlap":  func(h *Header) { h.Files[2].Cuts[1].At = 6 },
		"a cut behind it":    func(h *Header) { h.Files[2].Cuts[1].At = MaxKept + 20 },
		"a huge cut":         func(h *Header) { h.Files[2].Cuts[0].Old = 1<<63 - 1 },
		"cuts of more":       func(h *Header) { h.Files[2].Cuts[0].Old++; h.Files[2].NewSize-- },
		"cuts of less":       func(h *Header) { h.Files[2].Cuts[0].New--; h.Files[2].NewSize-- },
		"cuts of a new file": func(h *Header) { h.Files[2].Before = nil },
		"cuts and contents":  func(h *Header) { h.Files[2].Kept = true },
		"another old digest": func(h *Header) { h.Files[0].Before = &disk.Digest{} },
	} {
		var h Header
		if err := json.Unmarshal(line, &h); err != nil {
			t.Fatal(err)
		}
		change(&h)
		damaged, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := readNote(append(append(damaged, '\n'), rest...)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// big adds files whose sizes add up to nothing.
func big(h *Header, size int64) {
	for range 4 {
		h.Files = append(h.Files, File{Path: "/w/b", Before: &disk.Digest{}, Kept: true, Raw: true, OldSize: size,
			Extents: Extents{Packed: size}})
	}
}

// readNote reads the file of a note as noteName.read does.
func readNote(b []byte) error {
	r := bufio.NewReader(bytes.NewReader(b))
	line, err := r.ReadBytes('\n')
	if err != nil {
		return errDamaged
	}
	_, err = readParts(r, line, int64(len(b)))
	return err
}

// Whatever the file of a note holds: it is whole, or it is refused.
func FuzzNote(f *testing.F) {
	whole := noteBytes(f, aNote())
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte(`{"id":"aaaaaaaaaaaaaaaa","files":[]}` + "\n"))
	f.Add([]byte(`{"id":"aaaaaaaaaaaaaaaa","files":[{"kept":true,"raw":true,"before":"` + disk.Digest{}.Hex() + `","packed":4611686018427387904,"old_size":4611686018427387904}]}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		e, err := readParts(r, line, int64(len(b)))
		if err != nil {
			return
		}
		if len(e.Files) == 0 || len(e.Parts) != len(e.Files) {
			t.Fatalf("%d files and %d contents", len(e.Files), len(e.Parts))
		}
		for i, c := range e.Parts {
			if n := e.Files[i]; n.Kept && (n.Before != nil && disk.DigestOf(c.Before) != *n.Before || n.After != nil && disk.DigestOf(c.After) != *n.After) {
				t.Fatalf("file %d is not what its digest says", i)
			}
		}
		if _, err := io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	})
}
