// Command picture draws the session that README.md shows as text: an SVG in which the lines appear one after another.
// TestReadmeSession of cmd/codehand replays that session against the program, so the picture is of a real run, too.
// It is no part of the released binary.
//
//	go run ./packaging/picture README.md docs/session.svg
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: picture README SVG")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// write draws the session of a page into a file.
func write(page, file string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	session, err := shown(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(file, draw(session), 0o644)
}
