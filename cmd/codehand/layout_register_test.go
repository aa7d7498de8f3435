package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of size demand a sentence, never a number. A large room may be right, and so may a type of many methods:
// a person says why, and a reviewer reads it. A hard limit would make people write worse code to stay below it.

// A register lists the things that need a reason, in testdata/layout/NAME.txt. A row is `NUMBER THING: REASON`. The
// number is how large the thing was when its reason was written. -update adds rows, deletes rows, and lowers the numbers
// of what became clearly smaller. It never writes a reason: where one is missing or has to be read again, it puts a
// question mark, which fails until a person writes a sentence in its place.
type register struct {
	name   string
	unit   string                 // of the numbers, as "lines"
	advice string                 // what to do about a thing other than to give a reason
	slack  func(recorded int) int // how far a thing may grow before its reason is read again; nil: not at all
}

// A row is what a register says of one thing.
type row struct {
	number int
	reason string
}

const asked = "?"

// check compares the things of the house that need a reason, with their numbers, with the rows of the register.
func (r register) check(t *testing.T, found map[string]int) {
	t.Helper()
	file := path.Join("testdata", "layout", r.name+".txt")
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	head, rows, err := readRows(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if *update {
		renewed := r.renewed(found, rows)
		if !maps.Equal(rows, renewed) {
			if err := os.WriteFile(file, writeRows(head, renewed), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		rows = renewed
	}
	for _, failure := range r.failures(found, rows) {
		t.Error(failure)
	}
}

// failures says what a person has to do.
func (r register) failures(found map[string]int, rows map[string]row) []string {
	file := path.Join("cmd/codehand/testdata/layout", r.name+".txt")
	var failures []string
	for _, thing := range slices.Sorted(maps.Keys(found)) {
		now := found[thing]
		was, known := rows[thing]
		switch promise := promises.FindString(was.reason); {
		case !known:
			failures = append(failures, fmt.Sprintf("%s: %d %s: %s; or say why it is right, in %s: %d %s: REASON",
				thing, now, r.unit, r.advice, file, now, thing))
		case r.grew(was.number, now):
			failures = append(failures, fmt.Sprintf("%s: %d -> %d %s: read its reason in %s; %s, or say why it is "+
				"right and set its number to %[3]d", thing, was.number, now, r.unit, file, r.advice))
		case strings.HasPrefix(was.reason, asked) || len(strings.Fields(was.reason)) < 3:
			failures = append(failures, fmt.Sprintf("%s: its row in %s has no reason: %s, or write a sentence in place "+
				"of the question mark", thing, file, r.advice))
		case promise != "":
			failures = append(failures, fmt.Sprintf("%s: its reason in %s has the word %q: a promise is no reason; "+
				"say why it is right as it is, or do what it promises", thing, file, promise))
		}
	}
	for _, thing := range slices.Sorted(maps.Keys(rows)) {
		if _, needed := found[thing]; !needed {
			failures = append(failures, fmt.Sprintf("%s: it is gone or needs no reason any more: delete its row in %s",
				thing, file))
		}
	}
	return failures
}

// renewed are the rows that -update writes. A number stays while the thing changes within the slack: many small steps
// count as the large one that they are, and a change of a line moves no file.
func (r register) renewed(found map[string]int, rows map[string]row) map[string]row {
	renewed := map[string]row{}
	for thing, now := range found {
		was, known := rows[thing]
		switch {
		case !known:
			was = row{now, asked}
		case r.grew(was.number, now):
			was = row{now, asked + " " + strings.TrimLeft(was.reason, asked+" ")}
		case r.grew(now, was.number):
			was.number = now
		}
		renewed[thing] = was
	}
	return renewed
}

func (r register) grew(was, now int) bool {
	slack := 0
	if r.slack != nil {
		slack = r.slack(was)
	}
	return now > was+slack
}

// promises are words of a reason that speaks of a future in place of what is.
var promises = regexp.MustCompile(`(?i)\b(being|will|shall|until|moved|soon|yet|planned|for now|going to|temporar\w+)\b`)

// readRows parses a file of rows. The head is the comment at its top.
func readRows(text []byte) (head string, rows map[string]row, err error) {
	rows = map[string]row{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") && len(rows) == 0 {
			head += line + "\n"
			continue
		}
		number, rest, _ := strings.Cut(line, " ")
		thing, reason, _ := strings.Cut(rest, ": ")
		n, err := strconv.Atoi(number)
		if _, twice := rows[thing]; err != nil || thing == "" || twice {
			return "", nil, fmt.Errorf("%q is no row, or there are two: write NUMBER THING: REASON", line)
		}
		rows[thing] = row{n, reason}
	}
	return head, rows, nil
}

func writeRows(head string, rows map[string]row) []byte {
	text := []byte(head)
	for _, thing := range slices.Sorted(maps.Keys(rows)) {
		text = fmt.Appendf(text, "%d %s: %s\n", rows[thing].number, thing, rows[thing].reason)
	}
	return text
}

func TestPlantedRows(t *testing.T) {
	t.Parallel()
	r := register{name: "x", unit: "lines", advice: "split it", slack: func(int) int { return 2 }}
	head, rows, err := readRows([]byte("# head\n12 fell: it is right so\n12 gone: it is right so\n12 grew: it is right so\n12 less: it is right so\n" +
		"12 promise: Until it is split\n12 short: no reason\n12 within: it is right: so\n"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{"fell": 8, "grew": 15, "less": 11, "new": 11, "promise": 12, "short": 12, "within": 14}
	const file = "cmd/codehand/testdata/layout/x.txt"
	wantFailures(t, r.failures(found, rows),
		"grew: 12 -> 15 lines: read its reason in "+file+"; split it, or say why it is right and set its number to 15",
		"new: 11 lines: split it; or say why it is right, in "+file+": 11 new: REASON",
		`promise: its reason in `+file+` has the word "Until": a promise is no reason`,
		"short: its row in "+file+" has no reason: split it, or write a sentence",
		"gone: it is gone or needs no reason any more: delete its row")

	renewed := r.renewed(found, rows)
	wantFailures(t, r.failures(found, renewed), "grew: its row", "new: its row", "promise: its reason", "short: its row")
	want := "# head\n8 fell: it is right so\n15 grew: ? it is right so\n12 less: it is right so\n11 new: ?\n12 promise: Until it is split\n" +
		"12 short: no reason\n12 within: it is right: so\n"
	if got := string(writeRows(head, renewed)); got != want {
		t.Errorf("-update writes\n%s\nwant\n%s", got, want)
	}
	if again := r.renewed(found, renewed); !maps.Equal(again, renewed) {
		t.Errorf("a second -update writes %v, want %v", again, renewed)
	}

	for thing := range renewed { // one sentence of a person
		renewed[thing] = row{renewed[thing].number, "one table that only grows in rows"}
	}
	wantFailures(t, r.failures(found, renewed))

	for _, bad := range []string{"x a: b\n", "12\n", "12 a: b\n12 a: c\n", "12 a: b\n# late\n"} {
		if _, _, err := readRows([]byte(bad)); err == nil {
			t.Errorf("readRows accepts %q", bad)
		}
	}
}
