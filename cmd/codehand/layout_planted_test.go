package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// Each rule is a function from rooms to failures. Its test plants rooms that break it.

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
