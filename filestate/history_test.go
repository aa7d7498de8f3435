package filestate_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"codehand/filestate"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
)

// A keptDesk is a desk whose changes go to a journal.
type keptDesk struct {
	desk
	j    *journal.Journal
	gate *gate
	kept string // directory of the journal
}

func newKeptDesk(t *testing.T, change ...func(*filestate.Options)) keptDesk {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "journal")
	j, g := openGated(t, kept)
	d := newDesk(t, append([]func(*filestate.Options){func(o *filestate.Options) { o.Journal = j }}, change...)...)
	return keptDesk{d, j, g, kept}
}

// A gate is asked before each step in a journal, and asks what it was given last.
type gate struct {
	mu  sync.Mutex
	do  func(step string) error
	log bytes.Buffer // of the journal
}

// Write takes a line of the log.
func (g *gate) Write(line []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.Write(line)
}

// logged is the log so far.
func (g *gate) logged() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.String()
}

func (g *gate) ask(at fault.Step) error {
	g.mu.Lock()
	do := g.do
	g.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(string(at))
}

// beforeSteps has do asked before each step of l's changes, and of those in its journal.
func (g *gate) beforeSteps(l *filestate.Ledger, do func(step string) error) {
	filestate.BeforeSteps(l, do)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.do = do
}

func openJournal(t testing.TB, dir string) *journal.Journal {
	t.Helper()
	j, _ := openGated(t, dir)
	return j
}

func openGated(t testing.TB, dir string) (*journal.Journal, *gate) {
	t.Helper()
	g := new(gate)
	j, err := journal.Open(dir, journal.Options{Check: g.ask, Log: slog.New(slog.NewTextHandler(g, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, g
}

func (d keptDesk) beforeSteps(do func(step string) error) { d.gate.beforeSteps(d.l, do) }

// again is the desk as a new process finds it.
func (d keptDesk) again() keptDesk {
	d.Helper()
	d.j, d.gate = openGated(d.T, d.kept)
	d.l = filestate.New(filestate.Options{Dir: d.TempDir(), Fast: true, Journal: d.j})
	return d
}

func (d keptDesk) history(q journal.Query) []journal.Entry {
	d.Helper()
	entries, err := d.j.History(d.Context(), q)
	if err != nil {
		d.Fatal(err)
	}
	return entries
}

// steps are the steps that take back a change: one for each of its files.
func (d keptDesk) steps(id string) []filestate.Step {
	d.Helper()
	var steps []filestate.Step
	for _, e := range d.history(journal.Query{ID: id}) {
		for _, f := range e.Files {
			steps = append(steps, filestate.Step{ID: id, File: d.file(strings.TrimPrefix(f.Path, d.dir+"/"))})
		}
	}
	return steps
}

func (d keptDesk) undo(id string) ([]filestate.Change, error) {
	d.Helper()
	changes, err := d.l.Undo(d.Context(), journal.By{Tool: "undo_change"}, d.steps(id)...)
	d.noTemps()
	return changes, err
}

func (d keptDesk) mustUndo(id string) filestate.Change {
	d.Helper()
	changes, err := d.undo(id)
	if err != nil {
		d.Fatal(err)
	}
	return changes[0]
}

// keepsContent says whether the journal has a content that another program gave a file, or any change found or left.
func (d keptDesk) keepsContent(want string) bool {
	d.Helper()
	return d.contents()[want]
}

// contents are all contents that the journal has.
func (d keptDesk) contents() map[string]bool {
	d.Helper()
	all := map[string]bool{}
	for _, e := range d.history(journal.Query{Kept: true}) {
		for _, f := range e.Files {
			before, after, err := d.j.Contents(d.Context(), e.ID, f.Path)
			if err != nil {
				d.Fatal(err)
			}
			all[string(before)], all[string(after)] = true, true
		}
	}
	return all
}

// gone fails the test if there is such a file.
func (d keptDesk) gone(name string) {
	d.Helper()
	if _, err := os.Lstat(d.path(name)); err == nil {
		d.Fatalf("%s is there", name)
	}
}

// leaveOpen makes the note of a change one that a process left open which has died, in this start of the machine.
func (d keptDesk) leaveOpen(id string) {
	d.Helper()
	d.leaveOpenAt(id, "")
}

// leaveOpenAt does so for another start of the machine; "": this one.
func (d keptDesk) leaveOpenAt(id, boot string) {
	d.Helper()
	d.leaveOpenBy(id, func(header map[string]any) {
		if boot != "" {
			header["host"].(map[string]any)["boot"] = boot
		}
	})
}

// leaveOpenBy does so with what else change says of the process.
func (d keptDesk) leaveOpenBy(id string, change func(header map[string]any)) {
	d.Helper()
	path := d.notePath(id)
	b, err := os.ReadFile(path)
	if err != nil {
		d.Fatal(err)
	}
	header, contents := d.parse(b)
	header["pid"], header["started"] = 1<<22+1, 1 // no such process: beyond the largest id that Linux gives
	change(header)
	line, err := json.Marshal(header)
	if err != nil {
		d.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		d.Fatal(err)
	}
	open := strings.TrimSuffix(path, filepath.Ext(path)) + ".open"
	if err := os.WriteFile(open, slices.Concat(line, []byte("\n"), contents), 0o600); err != nil {
		d.Fatal(err)
	}
}

// notePath is where the note of a change is.
func (d keptDesk) notePath(id string) string {
	d.Helper()
	found, err := filepath.Glob(filepath.Join(d.kept, "*", "*-"+id+".*"))
	if err != nil || len(found) != 1 {
		d.Fatalf("the notes of %s are %v, %v", id, found, err)
	}
	return found[0]
}

// parse takes a note apart.
func (d keptDesk) parse(note []byte) (header map[string]any, contents []byte) {
	d.Helper()
	line, contents, _ := bytes.Cut(note, []byte("\n"))
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&header); err != nil {
		d.Fatal(err)
	}
	return header, contents
}

// tempOf is the name of the temporary file of a change of one file.
func (d keptDesk) tempOf(id string) string {
	d.Helper()
	b, err := os.ReadFile(d.notePath(id))
	if err != nil {
		d.Fatal(err)
	}
	header, _ := d.parse(b)
	return header["files"].([]any)[0].(map[string]any)["temp"].(string)
}
