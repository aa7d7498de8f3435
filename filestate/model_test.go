package filestate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/leaktest"
)

// A modelFile is what the test knows of one file: what is on the disk, and what the session has seen.
// A content is a first line, which edits change, and a second one.
type modelFile struct {
	exists      bool
	disk        string
	known       bool
	seen        string // the content that was seen
	shown       bool   // anything of it was shown
	first, rest bool   // what of it was shown
	own         []filestate.Version
}

func (m *modelFile) whole() bool { return m.first && m.rest }

// want is what the guard must say; nil: go on.
func (m *modelFile) want(replace bool, v filestate.Version) error {
	switch serves := v != "" && (fits(v, m.disk) || m.known && m.seen == m.disk && slices.Contains(m.own, v)); {
	case !m.exists:
		return nil
	case v != "" && !serves:
		return errStale
	case v != "" && replace && strings.HasSuffix(string(v), "p"):
		return filestate.ErrPartRead
	case v != "":
		return nil
	case !m.known || !m.shown:
		return filestate.ErrNotRead
	case m.seen != m.disk:
		return errStale
	case replace && !m.whole():
		return filestate.ErrPartRead
	default:
		return nil
	}
}

// written notes a change of ours.
func (m *modelFile) written(content string, whole bool, v filestate.Version) {
	known := m.known && m.seen == m.disk
	m.shown = m.shown && known || whole || !m.exists || m.disk != content || v != "" && !strings.HasSuffix(string(v), "p")
	switch {
	case whole || !m.exists || v != "" && !strings.HasSuffix(string(v), "p"):
		m.first, m.rest = true, true
	case !known:
		m.first, m.rest = false, false
	}
	if m.exists && nothingLeft(m.disk, content) {
		m.first = true
	}
	switch {
	case !m.exists || !known && m.disk == content:
		m.own = nil
	case known && m.disk == content:
	case known:
		m.own = append(m.own, versionOf(m.disk), versionOf(m.disk)+"p")
	default:
		m.own = []filestate.Version{versionOf(m.disk), versionOf(m.disk) + "p"}
	}
	m.exists, m.known, m.disk, m.seen = true, true, content, content
}

// nothingLeft says whether the first lines share neither their first nor their last byte: then the ledger takes none of
// the new one for a part of the old one, which the session may not have seen.
func nothingLeft(old, new string) bool {
	old, _, _ = strings.Cut(old, "\n")
	new, _, _ = strings.Cut(new, "\n")
	return old != "" && new != "" && old[0] != new[0] && old[len(old)-1] != new[len(new)-1]
}

// TestRandomOperations does random things with some files and compares every answer with the model.
// What the ledger says must never depend on times, so they are set to all that times can be.
func TestRandomOperations(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	m := &machine{desk: newDesk(t), rng: rand.New(rand.NewPCG(s, 0)), files: map[string]*modelFile{}}
	for _, name := range []string{"a", "b", "dir/c"} {
		m.files[name] = &modelFile{}
	}
	for i := range 1500 {
		name := []string{"a", "b", "dir/c"}[m.rng.IntN(3)]
		m.step(i, name, m.files[name])
	}
}

// A machine is the ledger and its model, side by side.
type machine struct {
	desk
	rng   *rand.Rand
	files map[string]*modelFile
	count int
}

func (m *machine) step(i int, name string, f *modelFile) {
	switch op := m.rng.IntN(20); {
	case op < 4:
		m.look(name, f)
	case op < 9:
		m.replace(i, name, f, op < 6)
	case op < 17:
		m.outside(name, f, op)
	case op < 18:
		if err := filestate.Settle(m.Context(), m.l, m.path(name)); err != nil {
			m.Fatal(err)
		}
		tick(m, m.path("."))
		m.write("clock", "")
		tick(m, m.path("clock"))
	default:
		m.compare(i)
	}
}

// look reads all, the first line, or the rest.
func (m *machine) look(name string, f *modelFile) {
	line := int64(strings.IndexByte(f.disk, '\n') + 1)
	views := [][]filestate.Span{nil, {{From: 0, To: line}}, {{From: line, To: 1 << 20}}}
	what := m.rng.IntN(3)
	sight, err := m.trySee(name, views[what]...)
	if !f.exists {
		wantError(m, err, os.ErrNotExist)
		return
	}
	if err != nil {
		m.Fatal(err)
	}
	if !f.known || f.seen != f.disk {
		f.first, f.rest, f.own = false, false, nil
	}
	f.known, f.seen, f.shown = true, f.disk, true
	f.first, f.rest = f.first || what != 2, f.rest || what != 1
	if v := versionOf(f.disk); sight.Whole != f.whole() || sight.Version != v && sight.Version != v+"p" {
		m.Fatalf("read %s: got %+v, want version %s, whole: %v", name, sight, v, f.whole())
	}
}

// replace changes the first line, or the whole file, with or without a version.
func (m *machine) replace(i int, name string, f *modelFile, whole bool) {
	var v filestate.Version
	switch m.rng.IntN(6) {
	case 0:
		v = versionOf(f.disk)
	case 1:
		v = versionOf(f.disk) + "p"
	case 2:
		if len(f.own) > 0 {
			v = f.own[len(f.own)-1-m.rng.IntN(min(len(f.own), 4))]
		}
	case 3:
		v = versionOf("never")
	}
	next := m.next(f.disk)
	if m.rng.IntN(8) == 0 && f.exists {
		next = f.disk
	}
	want := f.want(whole, v)
	if !f.exists && !whole {
		next = "n=1\nnew\n"
	}
	c, err := m.change(name, func([]byte) ([]byte, error) { return []byte(next), nil },
		func(e *filestate.Edit) { e.Version, e.Whole = v, whole })
	switch {
	case want == nil && err == nil:
		f.written(next, whole, v)
		if got := m.read(name); got != next || c.After != versionOf(next) && c.After != versionOf(next)+"p" {
			m.Fatalf("step %d: %s holds %q and the change is %+v, want %q", i, name, got, c, next)
		}
	case want == errStale:
		if e := wantStale(m, err); string(e.New) != f.disk {
			m.Fatalf("step %d: the stale error shows %q, want %q", i, e.New, f.disk)
		}
	default:
		if !errors.Is(err, want) {
			m.Fatalf("step %d: change %s (whole: %v, version %q): got %v, want %v; %+v", i, name, whole, v, err, want, f)
		}
	}
}

// next is a content like the old one with another number in its first line.
func (m *machine) next(old string) string {
	m.count++
	_, rest, ok := strings.Cut(old, "\n")
	if !ok {
		rest = "the rest\n"
	}
	return fmt.Sprintf("n=%06d\n%s", m.count, rest)
}

// outside changes a file behind the ledger's back.
func (m *machine) outside(name string, f *modelFile, op int) {
	next := m.next(f.disk)
	if !f.exists {
		m.write(name, next)
		f.exists, f.disk = true, next
		return
	}
	switch op {
	case 9:
		m.write(name, next)
	case 10:
		next = strings.ToUpper(f.disk[:1]) + f.disk[1:]
		m.writeUnnoticed(name, next)
	case 11:
		m.write(name, next)
		m.age(name, 24*time.Hour)
	case 12:
		m.write("other", next)
		m.rename("other", name)
	case 13: // the same bytes
		next = f.disk
		m.write("other", next)
		m.age("other", time.Hour)
		m.rename("other", name)
	case 14:
		next = f.disk
		m.age(name, time.Duration(m.rng.IntN(3)-1)*time.Hour)
	case 15:
		next = f.disk
		m.write(name, next)
	default:
		if err := os.Remove(m.path(name)); err != nil {
			m.Fatal(err)
		}
		f.exists, next = false, ""
	}
	f.disk = next
}

// compare asks which files changed.
func (m *machine) compare(i int) {
	got, err := m.l.Changed(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	var paths, want []string
	for _, e := range got {
		paths = append(paths, e.Path)
	}
	for name, f := range m.files {
		if f.known && (!f.exists || f.disk != f.seen) {
			want = append(want, m.path(name))
		}
	}
	slices.Sort(want)
	if !slices.Equal(paths, want) {
		m.Fatalf("step %d: changed are %v, want %v", i, paths, want)
	}
}
