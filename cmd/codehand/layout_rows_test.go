package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// This file has what the rules share: rows of what is over a limit today, which may only shrink, and planted rooms.

// A limit is a rule about a number. What was over it when the rule was made stands in testdata/layout/NAME.txt, one row
// each: the number, and what has it. Rows are lowered and deleted, never added or raised.
type limit struct {
	name   string
	most   int
	advice string // what to do about something that is over, with %s for what it is and %d for its number and the limit
}

// check compares what the house has with the rows of the limit. With -update it lowers and deletes rows.
func (l limit) check(t *testing.T, found map[string]int) {
	t.Helper()
	name := filepath.Join("testdata", "layout", l.name+".txt")
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	head, rows, err := readRows(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if *update {
		shrunk := l.shrink(found, rows)
		if !maps.Equal(rows, shrunk) {
			if err := os.WriteFile(name, writeRows(head, shrunk), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		rows = shrunk
	}
	for _, failure := range l.failures(found, rows) {
		t.Error(failure)
	}
}

// failures says what is over the limit and has no row, what grew, and which rows must be lowered or deleted.
func (l limit) failures(found, rows map[string]int) []string {
	var failures []string
	for _, key := range slices.Sorted(maps.Keys(found)) {
		has, row := found[key], rows[key]
		switch {
		case has > max(l.most, row):
			failures = append(failures, fmt.Sprintf(l.advice, key, has, max(l.most, row)))
		case has > l.most && has < row:
			failures = append(failures,
				fmt.Sprintf("%s has only %d now: lower its row in testdata/layout/%s.txt from %d "+
					"(go test ./cmd/codehand -run Rules -update does it)", key, has, l.name, row))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if found[key] <= l.most {
			failures = append(failures,
				fmt.Sprintf("%s is within the limit of %d: delete its row in testdata/layout/%s.txt "+
					"(go test ./cmd/codehand -run Rules -update does it)", key, l.most, l.name))
		}
	}
	return failures
}

// shrink returns the rows with what is over the limit still, none of them higher than before.
func (l limit) shrink(found, rows map[string]int) map[string]int {
	shrunk := map[string]int{}
	for key, row := range rows {
		if has := min(found[key], row); has > l.most {
			shrunk[key] = has
		}
	}
	return shrunk
}

// readRows parses a file of rows. The head is the comment at its top.
func readRows(text []byte) (head string, rows map[string]int, err error) {
	rows = map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") && len(rows) == 0 {
			head += line + "\n"
			continue
		}
		number, key, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		if _, twice := rows[key]; err != nil || key == "" || twice {
			return "", nil, fmt.Errorf("%q is no row, or there are two: write NUMBER WHAT", line)
		}
		rows[key] = n
	}
	return head, rows, nil
}

func writeRows(head string, rows map[string]int) []byte {
	text := []byte(head)
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		text = fmt.Appendf(text, "%d %s\n", rows[key], key)
	}
	return text
}

func TestRuleRowsShrink(t *testing.T) {
	t.Parallel()
	l := limit{name: "x", most: 10, advice: "%s has %d, at most %d"}
	head, rows, err := readRows([]byte("# head\n12 same\n12 grew\n12 less\n12 within\n12 gone\n"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{"same": 12, "grew": 13, "less": 11, "within": 10, "added": 11, "small": 1}
	wantFailures(t, l.failures(found, rows), "added has 11, at most 10", "grew has 13, at most 12",
		"less has only 11 now", "gone is within", "within is within")
	shrunk := l.shrink(found, rows)
	wantFailures(t, l.failures(found, shrunk), "added has 11", "grew has 13")
	if got, want := string(writeRows(head, shrunk)), "# head\n12 grew\n11 less\n12 same\n"; got != want {
		t.Errorf("rows are written as %q, want %q", got, want)
	}
	for _, bad := range []string{"x same\n", "12\n", "12 a\n12 a\n", "12 a\n# late\n"} {
		if _, _, err := readRows([]byte(bad)); err == nil {
			t.Errorf("readRows takes %q", bad)
		}
	}
}

// wantFailures fails unless there is exactly one failure for each text, in order, that begins with it.
func wantFailures(t *testing.T, failures []string, begins ...string) {
	t.Helper()
	match := len(failures) == len(begins)
	for i := range min(len(failures), len(begins)) {
		match = match && strings.HasPrefix(failures[i], begins[i])
	}
	if !match {
		t.Errorf("the rule fails with\n\t%s\nwant\n\t%s", strings.Join(failures, "\n\t"), strings.Join(begins, "\n\t"))
	}
}

// planted makes rooms of a txtar archive with files ROOM/NAME.go.
func planted(t *testing.T, archive string) []*room {
	t.Helper()
	var house []*room
	for _, section := range txtar.Parse([]byte(archive)).Files {
		f, err := parseFile(section.Name, section.Data)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.ToSlash(filepath.Dir(section.Name))
		i := slices.IndexFunc(house, func(r *room) bool { return r.name == name })
		if i < 0 {
			i, house = len(house), append(house, &room{name: name})
		}
		house[i].files = append(house[i].files, f)
	}
	return house
}
