package bash

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestAlwaysAsked: a person is asked about what reaches beyond what the sandbox holds, also where it holds all.
func TestAlwaysAsked(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../testdata/everyday/asked.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(table)) {
		command, why, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		count++
		a := Analyze(command, inRoot)
		if a.Hold(); a.Class != Dangerous {
			t.Errorf("%q is no question (%s): %s, %s", command, why, a.Class, a.Why)
		}
	}
	t.Logf("%d commands", count)
}

// TestEverydayReachesNothing: what people type all day reaches nothing beyond what the sandbox holds, so that it is no
// question there; the rows that do are marked.
func TestEverydayReachesNothing(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../testdata/everyday/commands.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		row := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if row[0] == "stack" {
			continue
		}
		var command string
		if err := json.Unmarshal([]byte(row[2]), &command); err != nil {
			t.Fatal(err)
		}
		h := newScript(command).danger(inRoot)
		if (h.beyond != "") != (row[1] == "asked") {
			t.Errorf("%q is %s: %q", command, row[1], h.beyond)
		}
	}
}
