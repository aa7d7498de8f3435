package blackbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

const (
	atOnce = 20 // edits of one turn
	crowd  = 8  // sessions
)

// Edits of different lines that one turn sends together: all are made (SEC-15).
func TestSEC15OneTurn(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	s := p.start()
	lost := 0
	for round := range 10 {
		var old, want strings.Builder
		for i := range atOnce {
			fmt.Fprintf(&old, "line %d of round %d\n", i, round)
			fmt.Fprintf(&want, "edited %d of round %d\n", i, round)
		}
		p.lay("a.txt", old.String())
		p.must(s, "read_file", "file_path", "a.txt")
		for i := range atOnce {
			must(t, p.post(s, 1000+i, "edit_file", "file_path", "a.txt", "old_string", fmt.Sprintf("line %d of", i), "new_string", fmt.Sprintf("edited %d of", i)))
		}
		for range atOnce {
			l, err := s.Receive()
			must(t, err)
			if _, text, ok := reading(l); !ok {
				t.Fatalf("round %d: %s", round, text)
			}
		}
		if got := p.held("a.txt"); got != want.String() {
			lost++
			t.Errorf("round %d: the file holds\n%s", round, got)
		}
	}
	t.Logf("%d rounds of %d edits at once, all acknowledged; %d rounds lost one", 10, atOnce, lost)
}

// An editing is a session that edits shared files.
type editing struct {
	name string
	call func(name, args string) (text string, failed bool, err error)
}

// Eight sessions add lines to two files, each sees the others' edits as those of another program. Every acknowledged
// line is there, once, and nothing else: through one process over HTTP, and through three over standard input and
// output that share the workspace and the state directory (SEC-15).
func TestSEC15Ourselves(t *testing.T) {
	t.Parallel()
	edits := leaktest.Rounds(15, 1000)
	t.Run("one process", func(t *testing.T) {
		d := crowded(t)
		s := d.serve()
		via := over(t, d.address, nil)
		var hands []editing
		for i := range crowd {
			c := d.talk(s.url, via, wireKinds[i%2]) // both eras of HTTP
			handle := fmt.Sprintf(`,"codehand/session":"session-%d"`, i)
			hands = append(hands, editing{fmt.Sprintf("h%d", i), func(name, args string) (string, bool, error) {
				a, err := c.try(context.WithoutCancel(t.Context()), c.CallBody("1", name, args, handle))
				if err != nil {
					return "", false, err
				}
				return a.outcome()
			}})
		}
		ourselves(t, d.work, hands, edits, func(path, content string) { replaytest.WriteFile(t, path, []byte(content)) })
		d.auditHolds()
	})
	t.Run("three processes", func(t *testing.T) {
		first := newPlot(t)
		var all []*plot
		for range 3 {
			p := *first // each has a process of its own on them
			all = append(all, &p)
			p.start()
			t.Cleanup(func() { p.kill(p.now) })
		}
		var hands []editing
		var busy [3]sync.Mutex // a wire is one conversation
		for i := range crowd {
			p, mine := all[i%3], &busy[i%3]
			hands = append(hands, editing{fmt.Sprintf("s%d", i), func(name, args string) (string, bool, error) {
				mine.Lock()
				defer mine.Unlock()
				r, err := p.now.Request("tools/call", map[string]any{
					"name": name, "arguments": json.RawMessage(args), "_meta": map[string]any{"codehand/session": fmt.Sprintf("session-%d", i)},
				})
				if err != nil {
					return "", false, err
				}
				text, failed := replaytest.HTTPReply{Answer: `{"result":` + string(r.Result) + `}`}.Text()
				return text, failed, nil
			}})
		}
		ourselves(t, first.work, hands, edits, func(path, content string) { first.lay(filepath.Base(path), content) })
		if left := first.left(); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
		if n, want := len(first.entries()), len(hands)*edits; n != want {
			t.Errorf("%d changes are in the journal, want %d", n, want)
		}
	})
}

// ourselves has every session make its edits, and looks what is there.
func ourselves(t *testing.T, work string, hands []editing, edits int, lay func(path, content string)) {
	t.Helper()
	files := []string{filepath.Join(work, "left.txt"), filepath.Join(work, "right.txt")}
	for _, f := range files {
		lay(f, logHead)
	}
	var mu sync.Mutex
	refused := 0
	var running sync.WaitGroup
	for i, h := range hands {
		running.Go(func() {
			for _, f := range files {
				if text, failed, err := h.call("read_file", fmt.Sprintf(`{"file_path":%q}`, f)); err != nil || failed {
					t.Errorf("%s: %v, %s", h.name, err, text)
					return
				}
			}
			again := 0
			for n := 0; n < edits; {
				line := fmt.Sprintf("%s made %d.\n", h.name, n)
				text, failed, err := h.call("edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":%q,"new_string":%q}`, files[(i+n)%2], logHead, logHead+line))
				switch {
				case err != nil:
					t.Errorf("%s: %v", h.name, err)
					return
				case !failed:
					n++
				case strings.HasPrefix(text, "FILE_CHANGED: "), strings.HasPrefix(text, "BUSY: "): // and what changed counts as read
					if again++; strings.Contains(text, "Read it again") {
						_, _, _ = h.call("read_file", fmt.Sprintf(`{"file_path":%q,"limit":1}`, files[(i+n)%2])) // the edit says what is wrong
					}
				case strings.HasPrefix(text, "FILE_NOT_READ: "):
					again++
					_, _, _ = h.call("read_file", fmt.Sprintf(`{"file_path":%q,"limit":1}`, files[(i+n)%2])) // the edit says what is wrong
				default:
					t.Errorf("%s: %s", h.name, text)
					return
				}
			}
			mu.Lock()
			refused += again
			mu.Unlock()
		})
	}
	running.Wait()
	there := map[string]int{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		rest, ok := strings.CutPrefix(string(b), logHead)
		if !ok {
			t.Fatalf("%s begins with %.60q", f, b)
		}
		for line := range strings.Lines(rest) {
			there[line]++
		}
	}
	missing, twice := 0, 0
	for _, h := range hands {
		for n := range edits {
			switch line := fmt.Sprintf("%s made %d.\n", h.name, n); there[line] {
			case 0:
				missing++
			case 1:
			default:
				twice++
			}
		}
	}
	t.Logf("%d sessions made %d edits each, %d acknowledged, %d refused first; %d missing, %d twice, %d lines are there", len(hands), edits, len(hands)*edits, refused, missing, twice, len(there))
	if missing > 0 || twice > 0 || len(there) != len(hands)*edits {
		t.Error("acknowledged is not present")
	}
}
