package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	floorHeading = regexp.MustCompile(`(?m)^### ([0-9])\. `)
	roomSentence = regexp.MustCompile("(?m)^- `([\\w/]+)`: (\\S.*\\.)$")
)

// upward are the imports that lead to a floor above, each with its reason.
var upward = map[string]string{
	"tools/tooltest server/state": "a session of tests has a real Store",
}

// A newcomer looks for the place of something in ARCHITECTURE.md, so each room has a sentence on its floor there, and
// imports lead down.
func TestRuleFloors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	floors, failures := readFloors(string(text), rooms)
	for _, f := range append(failures, upwardImports(floors, rooms)...) {
		t.Error(f)
	}
}

// readFloors returns the floor of each room by its sentence in ARCHITECTURE.md, and what is missing or of no room.
func readFloors(text string, rooms map[string][]string) (map[string]int, []string) {
	floors := map[string]int{}
	var failures []string
	headings := floorHeading.FindAllStringSubmatchIndex(text, -1)
	for i, h := range headings {
		end := len(text)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		} else if n := strings.Index(text[h[0]:], "\n## "); n >= 0 {
			end = h[0] + n
		}
		for _, m := range roomSentence.FindAllStringSubmatch(text[h[0]:end], -1) {
			name := roomOf(m[1], rooms)
			switch {
			case name == "":
				failures = append(failures, "ARCHITECTURE.md has a sentence on "+m[1]+", which is no room: remove it")
			case floors[name] != 0:
				failures = append(failures, "ARCHITECTURE.md has two sentences on "+name+": keep one")
			default:
				floors[name] = int(text[h[2]] - '0')
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		if floors[name] == 0 {
			failures = append(failures, fmt.Sprintf("ARCHITECTURE.md has no sentence on %s: write \"- `%s`: what it owns.\" on its floor",
				name, name[strings.Index(name, "/")+1:]))
		}
	}
	return floors, failures
}

// roomOf is the room that a name of ARCHITECTURE.md means: whole, or below server, tools or filestate.
func roomOf(name string, rooms map[string][]string) string {
	for _, prefix := range []string{"", "server/", "tools/", "filestate/"} {
		if _, ok := rooms[prefix+name]; ok {
			return prefix + name
		}
	}
	return ""
}

// upwardImports says which rooms may import a room of a floor above theirs.
func upwardImports(floors map[string]int, rooms map[string][]string) []string {
	var failures []string
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		for _, other := range rooms[name] {
			if floors[name] != 0 && floors[other] != 0 && floors[other] < floors[name] && upward[name+" "+other] == "" {
				failures = append(failures, fmt.Sprintf("%s (floor %d) may import %s (floor %d), which is above it: move what it needs down",
					name, floors[name], other, floors[other]))
			}
		}
	}
	return failures
}

func TestPlantedFloors(t *testing.T) {
	t.Parallel()
	rooms := map[string][]string{"server": {"server/a"}, "server/a": nil, "tools/b": {"server/a"}, "tools/c": nil}
	floors, failures := readFloors("### 1. `server`\n\n- `server`: it serves.\n- `a`: one.\n\n### 2. `tools`\n\n- `b`: two.\n- `a`: again.\n- `gone`: it was.\n\n## More\n\n- `c`: no floor.\n", rooms)
	wantFailures(t, failures, "ARCHITECTURE.md has two sentences on server/a", "ARCHITECTURE.md has a sentence on gone",
		"ARCHITECTURE.md has no sentence on tools/c")
	wantFailures(t, upwardImports(floors, rooms), "tools/b (floor 2) may import server/a (floor 1)")
}
