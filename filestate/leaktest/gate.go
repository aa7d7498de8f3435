package leaktest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
)

// chanceFile, below the root of the module, names the tests that failed by chance. .ci/test says when one belongs there.
const chanceFile = "testdata/chance.txt"

// gateFile, in the directory of a package, names the tests that run in the gate; a package without one runs all.
const gateFile = "testdata/gate.txt"

// chooseTests leaves out what does not run in `go test ./...`: the tests that failed by chance, and in a package that
// names those of the gate all others. Everything runs if All says so, or if the command line chooses tests itself.
func chooseTests() error {
	if !flag.Parsed() {
		flag.Parse()
	}
	run, skip := flag.Lookup("test.run").Value, flag.Lookup("test.skip").Value
	if run.String() != "" {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(filepath.Join(dir, gateFile)); err == nil && !All() {
		if err := run.Set(named(gated(string(text)))); err != nil {
			return err
		}
	}
	root := moduleRoot(dir)
	text, err := os.ReadFile(filepath.Join(root, chanceFile))
	if root == "" || os.IsNotExist(err) {
		return nil // a test binary that runs outside of the module
	} else if err != nil {
		return err
	}
	room, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	names := chances(string(text), filepath.ToSlash(room))
	if len(names) == 0 {
		return nil
	}
	pattern := named(names)
	if was := skip.String(); was != "" {
		pattern = was + "|" + pattern
	}
	return skip.Set(pattern)
}

// named is the pattern of these tests, for the flags of go test.
func named(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

// moduleRoot is the directory at or above dir that holds the module; "": there is none.
func moduleRoot(dir string) string {
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// gated are the tests that a file of the gate names, one a line. Lines that begin with # are comments.
func gated(text string) (names []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			names = append(names, line)
		}
	}
	return names
}

// chances are the tests of a room that a file of chances names. Its lines hold a room, a test with a colon, and a
// sentence; those that begin with # are comments.
func chances(text, room string) (names []string) {
	for line := range strings.Lines(text) {
		if field := strings.Fields(line); len(field) > 2 && field[0] == room {
			names = append(names, strings.TrimSuffix(field[1], ":"))
		}
	}
	return names
}
