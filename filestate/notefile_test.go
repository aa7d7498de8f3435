package filestate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
)

// noteBytes are the file of a note.
func noteBytes(t testing.TB, e *note) []byte {
	t.Helper()
	pieces, err := new(Journal).encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Join(pieces, nil)
}

// aNote is one of a change and of a new file, with a compressed and a raw content.
func aNote() *note {
	e := &note{header: header{ID: strings.Repeat("a", idDigits), Time: time.Unix(1, 0).UTC(), Kind: kindChange}}
	for _, c := range []contents{{[]byte("one\ntwo\nthree\n"), []byte("one\n2\nthree\n")}, {nil, []byte("new\n")}} {
		w := &work{path: "/w/a", old: c.before, next: c.after, base: digestOf(c.before), after: digestOf(c.after)}
		e.add(w)
		f := &e.Files[len(e.Files)-1]
		f.Raw = c.before == nil // as from rawSize on
		if c.before != nil {
			sum := digestOf(c.before)
			f.Before, e.parts[len(e.parts)-1].before = &sum, c.before
			f.Head, f.Tail = 4, 7
		}
	}
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
	for name, change := range map[string]func(h *header){
		"no files":           func(h *header) { h.Files = nil },
		"an empty list":      func(h *header) { h.Files = []noted{} },
		"an overflow":        func(h *header) { big(h, 1<<62) },
		"a huge new size":    func(h *header) { h.Files[0].NewSize = 1 << 62 },
		"no old size":        func(h *header) { h.Files[0].OldSize = -1 },
		"no new size":        func(h *header) { h.Files[1].NewSize = -1 },
		"head over tail":     func(h *header) { h.Files[0].Head = 13 },
		"a huge head":        func(h *header) { h.Files[0].Head = 1<<63 - 1 },
		"another new size":   func(h *header) { h.Files[0].NewSize++ },
		"raw, not packed":    func(h *header) { h.Files[0].Raw = true },
		"packed, not raw":    func(h *header) { h.Files[1].Raw = false },
		"an id of no note":   func(h *header) { h.ID = "../x" },
		"another old digest": func(h *header) { h.Files[0].Before = &digest{} },
	} {
		var h header
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
func big(h *header, size int64) {
	for range 4 {
		h.Files = append(h.Files, noted{Path: "/w/b", Before: &digest{}, Kept: true, Raw: true, OldSize: size, Packed: size})
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
	f.Add([]byte(`{"id":"aaaaaaaaaaaaaaaa","files":[{"kept":true,"raw":true,"before":"` + digest{}.sum() + `","packed":4611686018427387904,"old_size":4611686018427387904}]}` + "\n"))
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
		if len(e.Files) == 0 || len(e.parts) != len(e.Files) {
			t.Fatalf("%d files and %d contents", len(e.Files), len(e.parts))
		}
		for i, c := range e.parts {
			if n := e.Files[i]; n.Kept && (n.Before != nil && digestOf(c.before) != *n.Before || n.After != nil && digestOf(c.after) != *n.After) {
				t.Fatalf("file %d is not what its digest says", i)
			}
		}
		if _, err := io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	})
}

// Whatever a caller gives as a version: one that is valid says the same of itself when it is written again.
func FuzzVersion(f *testing.F) {
	p := part{Span{3, 9}, digestOf([]byte("part"))}
	for _, v := range []Version{"", "0123456789ab", "0123456789abp", "r0123456789ab:3-9", p.version(20), "r0123456789ab:9-3", "r:0-1", "r0123456789ab:+1-2", "r0123456789ab:1-99999999999999999999", "0123456789AB"} {
		f.Add(string(v))
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := Version(text)
		s, partial := v.span(), v.partial()
		if !v.valid() {
			return
		}
		switch {
		case len(v) > 64:
			t.Errorf("%q is long", v)
		case v.ranged() && (s.From < 0 || s.From >= s.To || !partial):
			t.Errorf("%q is of the bytes %+v", v, s)
		case strings.ContainsAny(text, " \n\x00"):
			t.Errorf("%q is no word", v)
		}
	})
}
