package notebook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// foreignDir has notebooks that other programs made, from packages of Debian; .ci/long fetches them.
const foreignDir = "../../.ci/notebooks"

// without skips a test for what is missing, but not in CI.
func without(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what + ": .ci/long gets it")
	}
	t.Skip(what)
}

// jupyter is a Python with nbformat.
func jupyter(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} { // a package of Debian is only for Debian's own
		if exec.Command(python, "-c", "import nbformat").Run() == nil {
			return python
		}
	}
	without(t, "no Python with nbformat (python3-nbformat)")
	return ""
}

// A foreignEdit is one edit, as nbformat is asked about it.
type foreignEdit struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
	Mode   string `json:"mode"`
	Index  int    `json:"index"`
	Type   string `json:"type"`
	Source string `json:"source"`
}

// Notebooks that other programs made are read, each is edited in every mode, and Jupyter's own library finds the result
// valid, the edited cell as it should be, and all others as they were. Byte by byte, nothing but the cell has changed.
func TestForeign(t *testing.T) {
	leaktest.OutsideGate(t, "reads notebooks of packages, which .ci/long fetches")
	t.Parallel()
	python := jupyter(t)
	if found, _ := filepath.Glob(foreignDir + "/*"); len(found) == 0 {
		without(t, "no notebooks of other programs in .ci/notebooks")
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "testdata/foreign.py", "make", foreignDir, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.ipynb"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d notebooks are too few (%v)", len(files), err)
	}
	var manifest bytes.Buffer
	formats, edits := map[string]int{}, 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := parseComplaint(content); text != "" {
			t.Errorf("%s: %s", file, text)
		}
		nb, err := Parse(content)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		formats[fmt.Sprintf("%d.%d", nb.Major, nb.Minor)]++
		for i, e := range foreignEdits(nb) {
			result, report, err := Apply(content, e)
			if err != nil {
				t.Errorf("%s: %+v: %v", file, e, err)
				continue
			}
			if text := applyComplaint(content, e); text != "" { // compares the bytes of all other cells
				t.Errorf("%s: %+v: %s", file, e, text)
			}
			after := fmt.Sprintf("%s.%d", file, i)
			if err := os.WriteFile(after, result, 0o600); err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(foreignEdit{
				Name: fmt.Sprintf("%s: %+v", filepath.Base(file), e), Before: file, After: after,
				Mode: []string{"replace", "insert", "delete"}[report.Mode], Index: report.Index, Type: report.Type, Source: e.Source,
			})
			if err != nil {
				t.Fatal(err)
			}
			manifest.Write(append(line, '\n'))
			edits++
		}
	}
	check := exec.Command(python, "testdata/foreign.py", "check")
	check.Stdin = &manifest
	out, err := check.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("nbformat says (%v):\n%s", err, out)
	}
	t.Logf("%d notebooks (by format: %v), %d edits", len(files), formats, edits)
}

// foreignEdits are edits in every mode, at the ends and in the middle.
func foreignEdits(nb Notebook) []CellEdit {
	const source = "# \u00e9 \"quoted\" \\ <b>\n\nlast"
	n := len(nb.Cells)
	edits := []CellEdit{
		{Mode: Insert, Type: "markdown", Source: source, Random: 7},
	}
	if n == 0 {
		return edits
	}
	middle, last := nb.Cells[n/2], nb.Cells[n-1]
	other := "code"
	if middle.Type == "code" {
		other = "markdown"
	}
	return append(edits,
		CellEdit{Mode: Replace, Cell: middle.ID, Source: source},
		CellEdit{Mode: Replace, Cell: middle.ID, Type: other, Source: strings.TrimSuffix(source, "last")},
		CellEdit{Mode: Insert, Cell: last.ID, Type: "code", Source: "1 + 1", Random: 8},
		CellEdit{Mode: Insert, Cell: middle.ID, Type: "markdown", Random: 9},
		CellEdit{Mode: Delete, Cell: nb.Cells[0].ID},
		CellEdit{Mode: Delete, Cell: last.ID},
	)
}
