package filestate_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
)

const outsidePace = 3 * time.Millisecond // between two saves of the other program

// childEditOutside is another program that saves a file again and again, by turns by a rename and in place. It says what
// it found just before each save, and what it saved. It ends when it is killed.
func childEditOutside(path string) error {
	for i := range time.Tick(outsidePace) {
		found, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		say(fmt.Sprintf("found %q", found)) // before it is gone
		version := fmt.Sprintf("outside %d", i.UnixNano())
		if i.UnixNano()%2 == 0 {
			err = os.WriteFile(path, []byte(version), 0o644)
		} else {
			err = os.WriteFile(path+"~", []byte(version), 0o644)
			if err == nil {
				err = os.Rename(path+"~", path)
			}
		}
		if err != nil {
			return err
		}
		say(fmt.Sprintf("saved %q", version))
	}
	return nil
}

// Another program saves a file while it is edited: each of its versions was found by itself at its next save, or is in the
// file, or in the journal.
func TestAgainstAnotherProgram(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	d := newKeptDesk(t, durable)
	d.write("a", "outside 0")
	cmd, lines := startChild(t, "edit outside", d.path("a"), t.TempDir(), "")
	made, refused, each := 0, 0, leaktest.Rounds(150, 500)
	for made < each && refused < 20*each {
		f := openFile(t, d.path("a"))
		_, err := d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: f, Unseen: true, Change: func(old []byte) ([]byte, error) {
			head, _, _ := strings.Cut(string(old), "\n")
			return fmt.Appendf(nil, "%s\nours %d", head, made), nil
		}})
		_ = f.Close()
		stale, isStale := errors.AsType[*filestate.StaleError](err)
		switch {
		case err == nil:
			made++
		case isStale:
			refused++
			if stale.Old == nil {
				t.Fatalf("a refusal cannot show what changed: %+v", stale)
			}
		case errors.Is(err, disk.ErrMoved):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{d.read("a"): true}
	var saved []string
	for lines.Scan() {
		var what, content string
		if _, err := fmt.Sscanf(lines.Text(), "%s %q", &what, &content); err != nil {
			continue // the last line may be cut
		}
		if what == "found" {
			there[content] = true
		} else {
			saved = append(saved, content)
		}
	}
	_ = cmd.Wait() // killed, and says so
	d = d.again()  // which looks at what came late
	maps.Copy(there, d.contents())
	lost := 0
	for i, version := range saved {
		if !there[version] {
			lost++
			t.Errorf("%q, number %d, is lost", version, i)
		}
	}
	t.Logf("%d edits made, %d refused, %d versions of the other program, %d lost", made, refused, len(saved), lost)
	if len(saved) < 20 || made < each {
		t.Errorf("only %d saves and %d edits", len(saved), made)
	}
	d.noTemps()
}
