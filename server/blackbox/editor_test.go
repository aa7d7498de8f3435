package blackbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"
)

// editorMark makes the test binary an editor of the file that it names; see TestMain.
const editorMark = "CODEHAND_TEST_EDITOR"

const (
	editorPace = 3 * time.Millisecond // between two saves
	editorKeep = "ours\n"             // what every version ends with, for edits of ours
)

// runEditor is another program that saves a file again and again: by a rename first, then in place, and so on after every
// hundred saves. It says what it found just before each save, and what it saved. It ends with its standard input.
func runEditor(path string) int {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	out := bufio.NewWriter(os.Stdout)
	pace := time.NewTicker(editorPace)
	for n := 0; ; n++ {
		select {
		case <-ended:
			if out.Flush() != nil {
				return 1
			}
			return 0
		case <-pace.C:
		}
		found, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Fprintf(out, "found %q\n", found)
		version := fmt.Sprintf("version %d\n%s", n, editorKeep)
		if n/100%2 == 0 {
			if err = os.WriteFile(path+"~", []byte(version), 0o644); err == nil {
				err = os.Rename(path+"~", path)
			}
		} else {
			err = os.WriteFile(path, []byte(version), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Fprintf(out, "saved %q\n", version)
	}
}
