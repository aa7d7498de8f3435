package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// roomLines is how many lines a room may have without its tests: what one person can hold in mind.
const roomLines = 3000

// largeRooms are the rooms that are larger, each with the reason. No row has a number: a sum of lines would forbid the
// next tool or setting, and not the next tangle.
var largeRooms = map[string]string{
	"cmd/codehand":     "one file per command, and what it says to people",
	"filestate":        "one state machine of a change: what is noted, made, put back and undone shares its steps",
	"server":           "it is being taken apart: each transport, the audit and the metrics become rooms of their own",
	"server/auth":      "what a token is worth: read, found, narrowed, limited",
	"server/config":    "one table of all settings; what is in it grows with the settings and not with the rules",
	"server/pipeline":  "ten stages that share one call; the files are named by stage",
	"tools":            "one file per tool, and each file has a limit of its own",
	"tools/bash":       "one grammar of bash and one table of programs, which proofs, dangers and lists of files share",
	"tools/permission": "rules and the decision use 41 and 34 names of each other: no seam",
	"tools/sandbox":    "one life of a process tree on three systems: proven, started, watched, ended",
	"tools/search":     "patterns and pages are being moved to rooms of their own",
}

func TestRoomsAreSmall(t *testing.T) {
	for _, text := range largeFailures(readHouse(t), largeRooms) {
		t.Error(text)
	}
}

// largeFailures says which rooms are too large without a reason, and which reasons are not needed.
func largeFailures(house []*room, reasons map[string]string) []string {
	var failures []string
	stale := maps.Clone(reasons)
	for _, r := range house {
		lines := 0
		for _, f := range r.files {
			if !f.test {
				lines += bytes.Count(f.source, []byte("\n"))
			}
		}
		switch reason, known := reasons[r.name]; {
		case lines > roomLines && reason != "":
			delete(stale, r.name)
		case lines > roomLines:
			failures = append(failures,
				fmt.Sprintf("%s has %d lines without tests, at most %d: find a seam and move what is on "+
					"one side of it into a room of its own, or give the reason in largeRooms", r.name, lines,
					roomLines))
			delete(stale, r.name)
		case known:
			failures = append(failures,
				fmt.Sprintf("%s has %d lines without tests, which needs no reason: delete its row in "+
					"largeRooms", r.name, lines))
			delete(stale, r.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stale)) {
		failures = append(failures, name+" is no room: delete its row in largeRooms")
	}
	return failures
}

func TestRuleRoomsAreSmall(t *testing.T) {
	t.Parallel()
	filled := func(name string, lines int) *room {
		return &room{name: name, files: []*file{
			{name: "a.go", source: bytes.Repeat([]byte("\n"), lines)},
			{name: "a_test.go", test: true, source: bytes.Repeat([]byte("\n"), roomLines)},
		}}
	}
	house := []*room{filled("large", roomLines+1), filled("small", roomLines), filled("known", roomLines+1)}
	wantFailures(t, largeFailures(house, map[string]string{"known": "a reason"}), "large has 3001 lines")
	wantFailures(t, largeFailures(house, map[string]string{"known": "", "large": "a reason"}), "known has 3001 lines")
	wantFailures(t, largeFailures(house[1:], map[string]string{"known": "a", "small": "b", "gone": "c"}),
		"small has 3000 lines", "gone is no room")
}
