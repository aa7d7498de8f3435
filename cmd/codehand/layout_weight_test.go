package main

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// heavyRooms are the rooms of more than 1,500 lines without tests: what a person reads in an afternoon.
var heavyRooms = register{
	name: "weight", unit: "lines",
	advice: "find a seam and move what is on one side of it into a room of its own",
	slack:  func(lines int) int { return max(lines/5, 300) - 1 },
}

// sharedPrefixes are the first words of names that more than 8 files of a room begin with.
var sharedPrefixes = register{
	name: "prefixes", unit: "files",
	advice: "a first word that many files share is the name of a room: move them into it",
	slack:  func(files int) int { return files / 5 },
}

// untestedRooms are those that ship and of which tests beside them are less than a fifth. The number is how many of a
// hundred of their lines are no tests.
var untestedRooms = register{
	name: "untested", unit: "of 100 lines are no tests",
	advice: "test the room where it stands",
	slack:  func(int) int { return 5 },
}

func TestRuleWeight(t *testing.T)   { heavyRooms.check(t, weights(readHouse(t))) }
func TestRulePrefixes(t *testing.T) { sharedPrefixes.check(t, prefixes(readHouse(t))) }
func TestRuleTested(t *testing.T)   { untestedRooms.check(t, untested(readHouse(t))) }

// lines counts the lines of a room: of its product, and of its tests.
func (r *room) lines() (product, tests int) {
	for _, f := range r.files {
		n := bytes.Count(f.source, []byte("\n"))
		if f.test {
			tests += n
		} else {
			product += n
		}
	}
	return product, tests
}

func weights(house []*room) map[string]int {
	found := map[string]int{}
	for _, r := range house {
		if product, _ := r.lines(); product > 1500 {
			found[r.name] = product
		}
	}
	return found
}

// prefixes counts product files by the first word of their name.
func prefixes(house []*room) map[string]int {
	found := map[string]int{}
	for _, r := range house {
		for _, f := range r.files {
			if !f.test {
				first, _, _ := strings.Cut(strings.TrimSuffix(f.name, ".go"), "_")
				found[path.Join(r.name, first)]++
			}
		}
	}
	for prefix, files := range found {
		if files <= 8 {
			delete(found, prefix)
		}
	}
	return found
}

func untested(house []*room) map[string]int {
	found := map[string]int{}
	for _, r := range house {
		product, tests := r.lines()
		ships := r.name != "cmd/conformance" && !slices.Contains(testRooms, r.name)
		if ships && tests*5 < product+tests {
			found[r.name] = 100 * product / (product + tests)
		}
	}
	return found
}

func TestPlantedWeight(t *testing.T) {
	t.Parallel()
	filled := func(name string, product, tests int) *room {
		return &room{name: name, files: []*file{
			{name: "a.go", source: bytes.Repeat([]byte("\n"), product)},
			{name: "a_test.go", test: true, source: bytes.Repeat([]byte("\n"), tests)},
		}}
	}
	house := []*room{filled("large", 1501, 376), filled("small", 1500, 374), filled("server/blackbox", 10, 0)}
	wantFailures(t, heavyRooms.failures(weights(house), nil), "large: 1501 lines: find a seam")
	wantFailures(t, heavyRooms.failures(weights(house), map[string]row{"large": {1501, "one table of all settings"}}))
	wantFailures(t, untestedRooms.failures(untested(house), nil), "small: 80 of 100 lines are no tests: test the room")
	wantFailures(t, untestedRooms.failures(untested(house),
		map[string]row{"small": {80, "the sessions of testdata run all of it"}}))

	// A large room grows by a fifth and 300 lines before its reason is read again.
	rows := map[string]row{"large": {1501, "one table of all settings"}, "huge": {10_000, "one table of all programs"}}
	grown := []*room{filled("large", 1800, 0), filled("huge", 11_999, 0)}
	wantFailures(t, heavyRooms.failures(weights(grown), rows))
	grown = []*room{filled("large", 1801, 0), filled("huge", 12_000, 0)}
	wantFailures(t, heavyRooms.failures(weights(grown), rows), "huge: 10000 -> 12000 lines: read its reason",
		"large: 1501 -> 1801 lines: read its reason")
}

func TestPlantedPrefixes(t *testing.T) {
	t.Parallel()
	r := &room{name: "a"}
	for i := range 8 {
		r.files = append(r.files, &file{name: fmt.Sprintf("part_%d.go", i)}, &file{name: fmt.Sprintf("parts%d.go", i)},
			&file{name: fmt.Sprintf("part_%d_test.go", i), test: true})
	}
	wantFailures(t, sharedPrefixes.failures(prefixes([]*room{r}), nil))
	r.files = append(r.files, &file{name: "part.go"})
	wantFailures(t, sharedPrefixes.failures(prefixes([]*room{r}), nil), "a/part: 9 files: a first word that many files share")
	wantFailures(t, sharedPrefixes.failures(prefixes([]*room{r}), map[string]row{"a/part": {9, "one grammar in nine files"}}))
}
