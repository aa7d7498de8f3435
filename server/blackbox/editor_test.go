package blackbox

import (
	"bufio"
	"fmt"
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
// hundred saves. It says what it found just before each save, and what it saved. With each byte of its standard input it
// takes twice as long between two saves, and it ends with it.
func runEditor(path string) int {
	ended := make(chan struct{})
	pace := time.NewTicker(editorPace)
	go func() {
		defer close(ended)
		for b, every := make([]byte, 1), editorPace; ; {
			if _, err := os.Stdin.Read(b); err != nil {
				return
			}
			every *= 2
			pace.Reset(every)
		}
	}()
	out := bufio.NewWriter(os.Stdout)
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
