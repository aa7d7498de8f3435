package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "draw the picture of README.md")

const (
	page    = "../../README.md"
	picture = "../../docs/session.svg"
)

// TestPicture: docs/session.svg is the session of README.md, which TestReadmeSession holds against the program.
func TestPicture(t *testing.T) {
	if *update {
		if err := write(page, picture); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	session, err := shown(string(text))
	if err != nil {
		t.Fatal(err)
	}
	want := draw(session)
	if got, err := os.ReadFile(picture); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not the session of README.md (%v): go test ./packaging/picture -update", picture, err)
	}
	if !bytes.Contains(text, []byte("](docs/session.svg)")) {
		t.Error("README.md does not show the picture")
	}
	words := map[string]bool{}
	for d := xml.NewDecoder(bytes.NewReader(want)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
		if text, ok := token.(xml.CharData); ok {
			for _, w := range strings.Fields(string(text)) {
				words[w] = true
			}
		}
	}
	for _, w := range strings.Fields(session) {
		if utf8.RuneCountInString(w) < columns && !words[w] {
			t.Errorf("the picture lacks the word %s", w)
		}
	}
	if len(want) > 16<<10 {
		t.Errorf("the picture has %d bytes", len(want))
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*columns)
	for _, line := range []string{"", "short", "> " + long, strings.Repeat("word ", 80), "> a " + strings.Repeat("ä", 2*columns)} {
		parts := wrap(line)
		for _, p := range parts {
			if n := utf8.RuneCountInString(p); n > columns {
				t.Errorf("a part of %.20q has %d characters", line, n)
			}
		}
		strip := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if strip(strings.Join(parts, "")) != strip(line) {
			t.Errorf("wrap(%.20q) loses something: %q", line, parts)
		}
	}
}

func TestNoSession(t *testing.T) {
	t.Parallel()
	if _, err := shown("# A page without one"); err == nil {
		t.Error("no error")
	}
}
