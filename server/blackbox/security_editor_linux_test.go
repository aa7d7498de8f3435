package blackbox

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// readBack is how many contents of a journal are read besides comparing their sums: to find one takes a look at all names.
const readBack = 500

// Another program saves a file every 3 ms, by rename and in place, while the program edits it: each of its versions was
// found by itself at its next save, or is in the file, or has a copy in the journal; and every edit that is refused shows
// what changed (SEC-14).
func TestSEC14Editor(t *testing.T) {
	t.Parallel()
	lasts := time.Duration(leaktest.Rounds(1, 60)) * time.Second
	p := newPlot(t)
	p.lay("a.txt", "version -1\n"+editorKeep)
	s := p.start()
	p.must(s, "read_file", "file_path", "a.txt")

	self, err := os.Executable()
	must(t, err)
	editor := exec.Command(self)
	editor.Env = append(os.Environ(), editorMark+"="+p.path("a.txt"))
	editor.Stderr = t.Output()
	in, err := editor.StdinPipe()
	must(t, err)
	out, err := editor.StdoutPipe()
	must(t, err)
	must(t, editor.Start())
	t.Cleanup(func() { _ = in.Close() })
	found, saved := map[string]bool{}, []string(nil)
	var saves atomic.Int64 // read so far
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var what, content string
			if _, err := fmt.Sscanf(lines.Text(), "%s %q", &what, &content); err != nil {
				t.Errorf("the editor says %q", lines.Text())
			} else if what == "found" {
				found[content] = true
			} else {
				saved = append(saved, content)
				saves.Add(1)
			}
		}
	}()

	made, refused, other := 0, 0, 0
	met := func() bool { return saves.Load() >= 100 && made >= 3 && refused >= 10 }
	began, slower := time.Now(), lasts
	for took := time.Duration(0); took < lasts || !met() && took < hang; took = time.Since(began) { // a busy machine takes longer
		if took > slower { // and can make no edit between two saves
			_, err := in.Write([]byte("\n"))
			must(t, err)
			slower = 2 * took
		}
		text, err := s.Call("edit_file", []byte(replaytest.AsJSON(t, "file_path", "a.txt", "old_string", "ours", "new_string", fmt.Sprintf("edit %d, ours", made))))
		must(t, err)
		switch {
		case !strings.HasPrefix(text, "!"):
			made++
		case strings.HasPrefix(text, "! FILE_CHANGED: ") && strings.Contains(text, "\n! @@ ") && (strings.Contains(text, "\n! +") || strings.Contains(text, "\n! -")):
			refused++
		case strings.HasPrefix(text, "! BUSY: "), strings.HasPrefix(text, "! STRING_NOT_FOUND: "):
			other++ // it changed at each of three looks, or is empty for a moment while it is saved in place
		default:
			t.Fatalf("refused without what changed: %s", text)
		}
	}
	must(t, in.Close())
	<-read
	must(t, editor.Wait())
	must(t, s.In.Close()) // a gentle end: what the editor writes to a file that was just replaced is looked at until then
	for range s.Lines {
	}
	must(t, s.Cmd.Wait())

	found[p.held("a.txt")] = true
	sums, kept := p.copies()
	lost := 0
	for n, version := range saved {
		if sum := sha256.Sum256([]byte(version)); !found[version] && !sums[hex.EncodeToString(sum[:])] {
			lost++
			t.Errorf("%q, save %d, is lost", version, n)
		}
	}
	t.Logf("%v: %d saves by rename and in place, %d edits made, %d refused with the diff, %d since the file was moving or empty; %d copies in the journal; %d versions lost",
		time.Since(began).Round(time.Second), len(saved), made, refused, other, kept, lost)
	if !met() {
		t.Error("they hardly met")
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// copies are the sums of all contents that the journal has, and how many are of others. Some are read back.
func (p *plot) copies() (sums map[string]bool, others int) {
	p.Helper()
	j := p.journal()
	defer func() { must(p, j.Close()) }()
	entries, err := j.History(p.Context(), journal.Query{Kept: true})
	must(p, err)
	sums = map[string]bool{}
	for i, e := range entries {
		if e.Kept != "" {
			others++
		}
		for _, f := range e.Files {
			sums[f.Before], sums[f.After] = true, true
			if i%(1+len(entries)/readBack) != 0 && e.Kept == "" {
				continue
			}
			before, _, err := j.Contents(p.Context(), e.ID, f.Path)
			if sum := sha256.Sum256(before); err != nil || hex.EncodeToString(sum[:]) != f.Before {
				p.Errorf("change %s: %q is not what it says to have found, %v", e.ID, before, err)
			}
		}
	}
	return sums, others
}
