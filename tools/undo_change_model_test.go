package tools

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/tool"
)

var undoSeed = flag.Uint64("undo.seed", 0, "seed of TestRandomUndos; 0: a new one")

// An undoModel is what the test knows: the files, and every change with what it found and left.
type undoModel struct {
	*rig
	rng      *rand.Rand
	files    map[string]string // "": there is none
	changes  []undoModelChange
	versions map[string]bool // that a change of ours replaced
	count    int
}

type undoModelChange struct {
	id            string
	before, after map[string]string
}

// In random sequences of edits, changes by others, restarts and undos, all by the tools, an undo gives back exactly what was
// there, or refuses and changes nothing; and no version that a change of ours replaced is lost.
func TestRandomUndos(t *testing.T) {
	t.Parallel()
	s := *undoSeed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -undo.seed %d", s)
	sequences := leaktest.Rounds(25, 1000)
	rng := rand.New(rand.NewPCG(s, 0))
	undone, refused := 0, 0
	for i := range sequences {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := &undoModel{rig: newRig(t), rng: rng, files: map[string]string{}, versions: map[string]bool{}}
			for range 12 {
				switch op := rng.IntN(12); {
				case op < 5:
					m.change()
				case op < 7:
					m.outside()
				case op < 8:
					m.Restart()
				case m.undo():
					undone++
				default:
					refused++
				}
				m.compare()
			}
			m.findVersions()
		})
	}
	t.Logf("%d sequences: %d undos gave back what was there, %d were refused and changed nothing", sequences, undone, refused)
	if undone < sequences/4 || refused < sequences/4 {
		t.Error("too few undos of one kind: the test shows nothing")
	}
}

var undoModelNames = []string{"a", "b", "dir/c"}

func (m *undoModel) text() string {
	m.count++
	return strings.Repeat("same\n", m.rng.IntN(3)) + fmt.Sprintf("version %d\n", m.count) + strings.Repeat("end\r\n", m.rng.IntN(2))
}

// change changes one file or several by a tool.
func (m *undoModel) change() {
	m.t.Helper()
	now := maps.Clone(m.files)
	names := slices.Clone(undoModelNames)
	m.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+m.rng.IntN(len(names))]
	var res tool.Result
	var text string
	if len(names) == 1 && m.rng.IntN(2) == 0 {
		name := names[0]
		if m.files[name] != "" {
			m.rig.do("read_file", fmt.Sprintf(`{"file_path":%q}`, name))
		}
		now[name] = m.text()
		res, text = m.rig.do("write_file", fmt.Sprintf(`{"file_path":%q,"content":%q}`, name, now[name]))
	} else {
		type edit struct {
			File string `json:"file_path"`
			Old  string `json:"old_string"`
			New  string `json:"new_string"`
		}
		var edits []edit
		for _, name := range names {
			if m.files[name] == "" {
				now[name] = m.text()
				edits = append(edits, edit{name, "", now[name]})
				continue
			}
			m.rig.do("read_file", fmt.Sprintf(`{"file_path":%q}`, name))
			m.count++
			line := fmt.Sprintf("version %d", m.count)
			old := versionLine(m.files[name])
			now[name] = strings.Replace(m.files[name], old, line, 1)
			edits = append(edits, edit{name, old, line})
		}
		raw, err := json.Marshal(map[string]any{"edits": edits})
		if err != nil {
			m.t.Fatal(err)
		}
		res, text = m.rig.do("multi_edit", string(raw))
	}
	if res.Failed != "" {
		m.t.Fatalf("a change was refused:\n%s", text)
	}
	m.note(res, now)
}

// versionLine is the line of a content that is in no other.
func versionLine(content string) string {
	at := strings.Index(content, "version ")
	line, _, _ := strings.Cut(content[at:], "\n")
	return line
}

// note remembers a change of ours.
func (m *undoModel) note(res tool.Result, now map[string]string) {
	m.t.Helper()
	var meta struct{ Change string }
	if err := json.Unmarshal(res.Meta.Data, &meta); err != nil || meta.Change == "" {
		m.t.Fatalf("the change has no id: %s %v", res.Meta.Data, err)
	}
	c := undoModelChange{id: meta.Change, before: map[string]string{}, after: map[string]string{}}
	for _, name := range undoModelNames {
		if m.files[name] != now[name] {
			c.before[name], c.after[name] = m.files[name], now[name]
			m.versions[m.files[name]] = true
		}
	}
	m.files, m.changes = now, append(m.changes, c)
}

// outside changes or removes a file behind the server's back.
func (m *undoModel) outside() {
	m.t.Helper()
	name := undoModelNames[m.rng.IntN(len(undoModelNames))]
	if m.files[name] != "" && m.rng.IntN(3) == 0 {
		m.remove(name)
		m.files[name] = ""
		return
	}
	m.files[name] = m.text()
	m.write(name, m.files[name])
}

// undo takes back any change, also one that is taken back already, and says whether that was done.
func (m *undoModel) undo() bool {
	m.t.Helper()
	if len(m.changes) == 0 {
		return false
	}
	c := m.changes[m.rng.IntN(len(m.changes))]
	if m.rng.IntN(2) == 0 {
		c = m.changes[len(m.changes)-1]
	}
	now, fits := maps.Clone(m.files), true
	for name, after := range c.after {
		fits = fits && m.files[name] == after
		now[name] = c.before[name]
	}
	res, text := m.rig.do("undo_change", fmt.Sprintf(`{"change_id":%q}`, c.id))
	if fits != (res.Failed == "") || !fits && res.Failed != tool.UndoConflict {
		m.t.Fatalf("an undo that should be done: %v, says\n%s", fits, text)
	}
	if fits {
		m.note(res, now)
	}
	return fits
}

// compare fails if a file is not what the model says.
func (m *undoModel) compare() {
	m.t.Helper()
	for _, name := range undoModelNames {
		content, err := os.ReadFile(filepath.Join(m.dir, name))
		if (err == nil) != (m.files[name] != "") || string(content) != m.files[name] {
			m.t.Fatalf("%s holds %q, %v; want %q", name, content, err, m.files[name])
		}
	}
}

// findVersions fails if a version that a change of ours replaced is in no change of the history.
func (m *undoModel) findVersions() {
	m.t.Helper()
	kept := map[string]bool{"": true}
	for _, c := range m.changes {
		for name := range c.before {
			before, _, err := m.Files.Contents(m.t.Context(), c.id, filepath.Join(m.dir, name))
			if err != nil {
				m.t.Fatal(err)
			}
			kept[string(before)] = true
		}
	}
	for version := range m.versions {
		if !kept[version] {
			m.t.Fatalf("%q is lost", version)
		}
	}
}
