package filestate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
)

// An undoModel is what the test knows: the files, every change with what it found and left, and every version that a
// change of ours replaced.
type undoModel struct {
	keptDesk
	rng      *rand.Rand
	files    map[string]string // "" : there is none
	changes  []modelChange
	replaced map[string]bool
	count    int
}

type modelChange struct {
	id            string
	before, after map[string]string
}

var modelNames = []string{"a", "b", "dir/c"}

// In random sequences of edits, changes by others and undos, an undo gives back exactly what was there, or refuses and
// changes nothing; and the journal has every version that a change of ours replaced.
func TestRandomUndos(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	rng := rand.New(rand.NewPCG(s, 0))
	undone, refused := 0, 0
	base := newKeptDesk(t)
	for i := range leaktest.Rounds(40, 1000) {
		m := &undoModel{keptDesk: base, rng: rng, files: map[string]string{}, replaced: map[string]bool{}}
		m.dir = fmt.Sprintf("%s/%d", base.dir, i)
		var err error
		if m.j, err = journal.Open(fmt.Sprintf("%s/%d", base.kept, i), journal.Options{Fast: true}); err != nil {
			t.Fatal(err)
		}
		m.l = filestate.New(filestate.Options{Fast: true, Journal: m.j})
		if err := os.Mkdir(m.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			switch op := rng.IntN(10); {
			case op < 4:
				m.edit()
			case op < 6:
				m.outside()
			default:
				if m.takeBack() {
					undone++
				} else {
					refused++
				}
			}
			m.check()
		}
		kept := m.contents()
		for version := range m.replaced {
			if !kept[version] {
				t.Fatalf("sequence %d: %q is lost", i, version)
			}
		}
		_ = m.j.Close()
	}
	t.Logf("%d undos done, %d refused", undone, refused)
}

// next is a content like no other, that has something in common with the old one; now and then one that was there before.
func (m *undoModel) next(old string) string {
	m.count++
	if len(m.changes) > 0 && m.rng.IntN(4) == 0 {
		for _, content := range m.changes[m.rng.IntN(len(m.changes))].before {
			if content != "" {
				return content
			}
		}
	}
	lines := strings.SplitAfter(old, "\n")
	lines[m.rng.IntN(len(lines))] = fmt.Sprintf("%d %s\r\n\xff", m.count, strings.Repeat("x", m.rng.IntN(50)))
	return strings.Join(lines, "")
}

// edit changes one to three files in one update.
func (m *undoModel) edit() {
	c := modelChange{before: map[string]string{}, after: map[string]string{}}
	var edits []filestate.Edit
	for _, i := range m.rng.Perm(len(modelNames))[:1+m.rng.IntN(len(modelNames))] {
		name := modelNames[i]
		next := m.next(m.files[name])
		if next == m.files[name] {
			continue
		}
		c.before[name], c.after[name] = m.files[name], next
		edits = append(edits, filestate.Edit{File: m.file(name), Unseen: true, Change: makes(next)})
	}
	if len(edits) == 0 {
		return
	}
	changes, err := m.l.Update(m.Context(), journal.By{}, edits...)
	if err != nil {
		m.Fatal(err)
	}
	c.id = changes[0].ID
	m.apply(c)
}

func (m *undoModel) apply(c modelChange) {
	for name, after := range c.after {
		if c.before[name] != "" {
			m.replaced[c.before[name]] = true
		}
		m.files[name] = after
	}
	m.changes = append(m.changes, c)
}

// outside changes or removes a file behind the ledger's back.
func (m *undoModel) outside() {
	name := modelNames[m.rng.IntN(len(modelNames))]
	if m.files[name] != "" && m.rng.IntN(4) == 0 {
		m.files[name] = ""
		if err := os.Remove(m.path(name)); err != nil {
			m.Fatal(err)
		}
		return
	}
	m.files[name] = m.next(m.files[name])
	m.write(name, m.files[name])
}

// takeBack undoes some change, of this process or an earlier one, and says whether it was possible.
func (m *undoModel) takeBack() bool {
	if len(m.changes) == 0 {
		return false
	}
	if m.rng.IntN(4) == 0 { // a new process
		m.l = filestate.New(filestate.Options{Fast: true, Journal: m.j})
	}
	c := m.changes[max(0, len(m.changes)-1-m.rng.IntN(2))]
	undo := m.l.Undo
	if m.rng.IntN(3) == 0 && len(c.after) > 1 {
		part := modelChange{id: c.id, before: map[string]string{}, after: map[string]string{}}
		for name := range c.after {
			if len(part.after) == 0 || m.rng.IntN(2) == 0 {
				part.before[name], part.after[name] = c.before[name], c.after[name]
			}
		}
		c, undo = part, m.l.UndoFiles
	}
	possible := true
	var steps []filestate.Step
	for name, after := range c.after {
		possible = possible && m.files[name] == after
		steps = append(steps, filestate.Step{ID: c.id, File: m.file(name)})
	}
	tried, tryErr := m.l.TryUndo(m.Context(), steps...)
	changes, err := undo(m.Context(), journal.By{}, steps...)
	if (tryErr == nil) != (err == nil) || len(tried) != len(changes) {
		m.Fatalf("the dry run says %v, the undo %v", tryErr, err)
	}
	if !possible {
		if _, ok := errors.AsType[*filestate.ConflictError](err); !ok {
			m.Fatalf("undo of %+v with %q: got %v, want a ConflictError", c, m.files, err)
		}
		return false
	}
	if err != nil {
		m.Fatalf("undo of %+v with %q: %v", c, m.files, err)
	}
	m.apply(modelChange{id: changes[0].ID, before: c.after, after: c.before})
	return true
}

// check compares the files with the model.
func (m *undoModel) check() {
	m.Helper()
	for _, name := range modelNames {
		got, err := os.ReadFile(m.path(name))
		if err != nil && !errors.Is(err, os.ErrNotExist) || string(got) != m.files[name] {
			m.Fatalf("%s holds %q, %v, want %q", name, got, err, m.files[name])
		}
	}
	m.noTemps()
}
