package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lastRequirement is the number of the last requirement of the security design: SEC-01 to SEC-50.
const lastRequirement = 50

var (
	testFunc    = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	requirement = regexp.MustCompile(`SEC-(\d\d)`)
	testedRule  = regexp.MustCompile(`^TestSEC(\d\d)`)
)

// TestSecurityTable is SEC-50: docs/evidence.md names a test and a figure for each requirement, or says that it is not
// held yet; the tests that it names are there, and none that bears a requirement's number is left out.
func TestSecurityTable(t *testing.T) {
	b, err := os.ReadFile("../../docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	named := make(map[string][]string) // test -> requirements of its rows
	told := make(map[string]bool)      // requirements
	_, table, _ := strings.Cut(string(b), "\n| requirement | test | figure |\n|---|---|---|\n")
	table, rest, found := strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("docs/evidence.md has no table: requirement, test, figure")
	}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "|\n"), " | ")
		if len(cells) != 3 || strings.TrimSpace(cells[2]) == "" {
			t.Errorf("a row is not requirement, test and figure: %s", row)
			continue
		}
		ids := numbers(cells[0])
		for _, id := range ids {
			told[id] = true
		}
		names := namedTest.FindAllStringSubmatch(cells[1], -1)
		if len(names) == 0 {
			t.Errorf("a row names no test: %s", row)
		}
		for _, name := range names {
			named[name[1]] = append(named[name[1]], ids...)
			if !slices.Contains(tests, name[1]) {
				t.Errorf("there is no %s: %s", name[1], row)
			}
		}
	}
	for _, name := range tests {
		if m := testedRule.FindStringSubmatch(name); m != nil && !slices.Contains(named[name], m[1]) {
			t.Errorf("no row of SEC-%s names %s", m[1], name)
		}
	}
	for _, id := range numbers(rest) { // what follows says what is missing
		told[id] = true
	}
	for n := 1; n <= lastRequirement; n++ {
		if id := fmt.Sprintf("%02d", n); !told[id] {
			t.Errorf("docs/evidence.md does not speak of SEC-%s", id)
		}
	}
}

// numbers are the requirements that a text names.
func numbers(text string) []string {
	var out []string
	for _, m := range requirement.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// testNames are all tests and fuzz targets of the module, whatever system they are for.
func testNames(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(d.Name(), "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(b, -1) {
			names = append(names, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
