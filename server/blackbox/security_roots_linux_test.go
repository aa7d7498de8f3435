package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A root that is deleted and made again, or moved away and another put in its place, is the new one from the next call on.
// One that became a link out, a file, a FIFO or nothing is refused, and works again when it is back (SEC-06).
func TestSEC06ReplacedRoot(t *testing.T) {
	onBoth(t, func(u *undoer) {
		u.lay(u.path("a.txt"), "first word\n")
		u.sees("first")

		must(u, os.RemoveAll(u.work))
		u.lay(u.path("a.txt"), "second word\n")
		if text := u.say("edit_file", replaytest.AsJSON(u.T, "file_path", "a.txt", "old_string", "word", "new_string", "x")); !strings.HasPrefix(text, "! FILE_CHANGED: ") {
			u.Errorf("edit of a file that was read before the root was made again: %s", text)
		}
		u.sees("second")

		away := filepath.Join(leaktest.Dir(u.T), "away")
		must(u, os.Rename(u.work, away))
		u.lay(u.path("a.txt"), "third word\n")
		before := stamps(u.T, away)
		u.sees("third")
		if after := stamps(u.T, away); after != before {
			u.Errorf("where the root was before: was\n%sis\n%s", before, after)
		}

		outside := leaktest.Dir(u.T)
		u.lay(filepath.Join(outside, "a.txt"), "outside word\n")
		before = stamps(u.T, outside)
		must(u, os.RemoveAll(u.work))
		must(u, os.Symlink(outside, u.work))
		calls := u.refuses("OUTSIDE_ROOTS", u.work+" -> "+outside)
		must(u, os.Remove(u.work))
		calls += u.refuses("FILE_NOT_FOUND", u.work)
		must(u, os.WriteFile(u.work, []byte("a file\n"), 0o644))
		calls += u.refuses("NOT_DIRECTORY", u.work)
		u.holds(u.work, "a file\n")
		must(u, os.Remove(u.work))
		must(u, replaytest.Mkfifo(u.work))
		calls += u.refuses("NOT_DIRECTORY", u.work)
		if after := stamps(u.T, outside); after != before {
			u.Errorf("outside was\n%sis\n%s", before, after)
		}

		must(u, os.Remove(u.work))
		u.lay(u.path("a.txt"), "fourth word\n")
		u.sees("fourth")
		u.Logf("4 roots, 3 of them in the place of another, seen at the next call; %d calls refused while it was a link out, missing, a file, or a FIFO", calls)
	})
}

// rootCalls are calls of all that looks and changes, each about a root with the file a.txt, in the order in which they work.
func (u *undoer) rootCalls() [][2]string {
	return [][2]string{
		{"read_file", replaytest.AsJSON(u.T, "file_path", "a.txt")},
		{"grep_search", replaytest.AsJSON(u.T, "pattern", "word", "output_mode", "content")},
		{"run_shell", replaytest.AsJSON(u.T, "command", "pwd -P; cat a.txt")},
		{"run_readonly", replaytest.AsJSON(u.T, "command", "cat a.txt")},
		{"edit_file", replaytest.AsJSON(u.T, "file_path", "a.txt", "old_string", "word", "new_string", "words")},
		{"list_files", replaytest.AsJSON(u.T, "pattern", "*")},
		{"multi_edit", replaytest.AsJSON(u.T, "file_path", u.path("a.txt"), "edits", []any{map[string]any{"old_string": "words", "new_string": "word"}})},
		{"write_file", replaytest.AsJSON(u.T, "file_path", "new.txt", "content", "new word\n")},
		{"write_file", replaytest.AsJSON(u.T, "file_path", u.path("in/new.txt"), "content", "new word\n")},
	}
}

// sees looks at a.txt, which holds word, and changes what is there.
func (u *undoer) sees(word string) {
	u.Helper()
	for i, c := range u.rootCalls() {
		text := u.say(c[0], c[1])
		shows := word
		if i > 3 {
			shows = "" // what changes does not show it
		}
		if strings.HasPrefix(text, "! ") || !strings.Contains(text, shows) {
			u.Errorf("%s %s: %s, want %s", c[0], c[1], text, shows)
		}
	}
	u.holds(u.path("a.txt"), word+" word\n")
	u.holds(u.path("new.txt"), "new word\n")
	u.holds(u.path("in/new.txt"), "new word\n")
}

// refuses makes all calls, which must refuse with a code and name what is wrong, and returns how many that are.
func (u *undoer) refuses(code, names string) int {
	u.Helper()
	calls := u.rootCalls()
	for _, c := range calls {
		if text := u.say(c[0], c[1]); !strings.HasPrefix(text, fmt.Sprintf("! %s: ", code)) || !strings.Contains(text, names) || strings.Contains(text, "outside word") {
			u.Errorf("%s %s: %s, want %s", c[0], c[1], text, code)
		}
	}
	return len(calls)
}
