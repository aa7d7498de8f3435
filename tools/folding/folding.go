// Package folding leaves out of the output of known programs what says that all went well: tests that passed, packages
// that were fetched or compiled. What it does not know stays, and so does every line that could tell of a failure or a
// warning, whatever prints it. It recognizes programs by their lines, not by the command, since most of them are
// started by others (make test, npm test, a script).
//
// It is pure: it keeps nothing and knows no tool. The caller keeps the whole output and says where it is.
package folding

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// least is how many lines must go for it to be worth saying.
const least = 40

// A row is what a program prints when all goes well.
type row struct {
	what string         // of the lines, for the model
	dull *regexp.Regexp // one such line
}

// A table is what tells lines from each other.
type table struct {
	alarming *regexp.Regexp // matches what stays, in any line
	rows     []row          // lines of programs
	// what go test -v prints of one test: from when on lines are of which test, and how each ended
	goRuns, goEnded, goOver *regexp.Regexp
}

// known has lines of programs: go and cargo of 2026, node 22 as testdata has them; pytest as src/_pytest/terminal.py of
// version 8 writes them, which could not be recorded. They are compiled when an output is long: the helper of each
// command is a start of this program, too.
var known = sync.OnceValue(func() table {
	is := regexp.MustCompile
	return table{
		alarming: is(`(?i)error|fail|panic|fatal|warn|exception|traceback|denied|abort|assert|cannot|` +
			`can't|could not|not found|undefined|time[ds]? ?out|deprecat|vulnerab|leak|\brace\b|kill|segfault|dumped|` +
			`refused|missing|invalid|skip|xpass|✗|✘|✖|×`),
		rows: []row{
			{passing, is(`^ok  \t\S+\t(?:[\d.]+s|\(cached\))`)},                       // go test
			{passing, is(`^test \S.* \.\.\. ok$`)},                                    // cargo test
			{passing, is(`^\s*(?:✔|✓) .* \(?[\d.]+ ?m?s\)?$`)},                        // node --test, jest
			{passing, is(`^\S+\.py::\S.* PASSED +\[ *\d+%\]$`)},                       // pytest -v
			{passing, is(`^\S+\.py \.+ +\[ *\d+%\]$`)},                                // pytest
			{"packages without tests", is(`^\?   \t\S+\t\[no test files\]$`)},         // go test
			{"packages fetched or compiled", is(`^go: downloading \S+ \S+$`)},         // go
			{"packages fetched or compiled", is(`^   (?: Checking|Compiling) \S+ v`)}, // cargo
		},
		goRuns:  is(`^=== (?:RUN|PAUSE|CONT|NAME)\s+(\S+)$`),
		goEnded: is(`^\s*--- (PASS|FAIL|SKIP): (\S+)(?: \([\d.]+s\))?$`),
		goOver:  is(`^(?:PASS|FAIL|ok  \t.*|FAIL\t.*|coverage: .*|exit status \d+)$`),
	}
})

// passing is what the lines of tests say.
const passing = "tests that passed"

// A Folded is an output without its dull lines.
type Folded struct {
	Text  string // the other lines, in order
	Lines int    // of the whole
	Left  int    // lines that were left out
	What  string // what those say, with counts: `412 lines of tests that passed`
}

// Fold leaves out lines of text, which has been made safe to show. ok is false if fewer than 40 lines could go, or less
// than a third of the text: then it is better whole.
func Fold(text string) (f Folded, ok bool) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	passed, alarming := passedTests(lines), known().alarming
	counts, order := map[string]int{}, []string{}
	var b strings.Builder
	for i, line := range lines {
		what := ""
		if !alarming.MatchString(line) {
			what = dull(line)
			if passed[i] {
				what = passing
			}
		}
		if what == "" {
			b.WriteString(line + "\n")
			continue
		}
		if counts[what]++; counts[what] == 1 {
			order = append(order, what)
		}
		f.Left++
	}
	if f.Text = b.String(); f.Left < least || 3*len(f.Text) > 2*len(text) {
		return Folded{}, false
	}
	f.Lines = len(lines)
	var said []string
	for _, what := range order {
		said = append(said, fmt.Sprintf("%d lines of %s", counts[what], what))
	}
	f.What = strings.Join(said, ", ")
	return f, true
}

// dull says what a line tells that is good; "": it may tell anything.
func dull(line string) string {
	for _, r := range known().rows {
		if r.dull.MatchString(line) {
			return r.what
		}
	}
	return ""
}

// passedTests says of each line whether it is of a Go test that passed. Lines of tests that failed, were skipped or did
// not end are of none.
func passedTests(lines []string) []bool {
	of := make([]string, len(lines)) // the test that a line is of
	ended := map[string]string{}
	current, k := "", known()
	for i, line := range lines {
		of[i] = current
		if m := k.goRuns.FindStringSubmatch(line); m != nil {
			current = m[1]
			if ended[current] == "PASS" {
				delete(ended, current) // it runs again (-count)
			}
			of[i] = current
		} else if m := k.goEnded.FindStringSubmatch(line); m != nil {
			if of[i] = m[2]; ended[m[2]] != "FAIL" {
				ended[m[2]] = m[1]
			}
			current = "" // nothing of a test that passed follows
		} else if k.goOver.MatchString(line) {
			of[i], current = "", ""
		}
	}
	passed := make([]bool, len(lines))
	for i, name := range of {
		passed[i] = name != "" && ended[name] == "PASS"
	}
	return passed
}
