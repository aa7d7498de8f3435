package blackbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"codehand/filestate/leaktest"
)

// ruleSwaps are the names that are exchanged all the time. Each first one leads to what may be read and changed, each
// second one to what a rule denies, or to the hooks of git.
var ruleSwaps = [][2]string{
	{"swap", "swap.trap"},   // two links to directories
	{"dir", "dir.trap"},     // a directory and a link
	{"one.txt", "one.trap"}, // a file and a link
	{"hard.txt", "hard.trap"},
	{"book.ipynb", "book.trap"},
	{"hooks", "hooks.trap"}, // two links, the second to .git/hooks
}

// newRuleRace makes a workspace in which the denied side has the mark in every file.
func newRuleRace(t *testing.T, work string) *race {
	t.Helper()
	r := &race{T: t, work: work, outside: filepath.Join(work, "denied"), seen: map[string]int{}}
	lay := func(name, content string) {
		must(t, os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
		must(t, os.WriteFile(r.path(name), []byte(content), 0o644))
	}
	for _, side := range [][2]string{{"open", "plain"}, {"dir", "plain"}, {"denied", outsideMark}} {
		lay(side[0]+"/f.txt", "head\n"+side[1]+"\n")
		lay(side[0]+"/sub/f.txt", "head\n"+side[1]+"\n")
		lay(side[0]+"/book.ipynb", strings.Replace(hereBook, "here", side[1], 1))
		lay(side[0]+"/SKILL.md", "---\nname: s\ndescription: It says what it is.\n---\n"+side[1]+"\n")
	}
	lay("denied/"+outsideMark+".txt", outsideMark)
	lay("one.txt", "head\nplain\n")
	lay("hard.txt", "head\nplain\n")
	lay("book.ipynb", strings.Replace(hereBook, "here", "plain", 1))
	lay(".git/hooks/pre-commit.sample", "exit 0\n")
	lay("out/f.txt", "plain\n")
	for from, to := range map[string]string{"swap": "open", "swap.trap": "denied", "dir.trap": "denied", "one.trap": "denied/f.txt",
		"book.trap": "denied/book.ipynb", "hooks": "out", "hooks.trap": ".git/hooks", ".claude/skills/s": "../../swap"} {
		must(t, os.MkdirAll(filepath.Dir(r.path(from)), 0o755))
		must(t, os.Symlink(to, r.path(from)))
	}
	must(t, os.Link(r.path("denied/f.txt"), r.path("hard.trap")))
	r.before = tree(t, r.outside) + tree(t, r.path(".git"))
	return r
}

// ruleCalls are the calls of each tool through what is exchanged. n tells them apart.
func (r *race) ruleCalls(n int) map[string][][]any {
	line := fmt.Sprintf("head\nedit %d\n", n)
	edit := func(path string) []any {
		return []any{"file_path", path, "old_string", "head\n", "new_string", line}
	}
	item := func(path string) map[string]any {
		return map[string]any{"file_path": path, "old_string": "head\n", "new_string": line}
	}
	name := fmt.Sprintf("new%d.txt", n)
	return map[string][][]any{
		"read_file": {
			{"file_path", "swap/f.txt"}, {"file_path", "dir/f.txt"}, {"file_path", "dir/sub/f.txt"}, {"file_path", "one.txt"},
			{"file_path", "hard.txt"}, {"file_path", "swap/book.ipynb"}, {"file_path", "book.ipynb"},
			{"file_path", r.path("swap/" + outsideMark[1:] + ".txt")},
		},
		"grep_search": {
			{"pattern", "head|MARK", "path", "swap", "output_mode", "content"},
			{"pattern", "head|MARK", "path", "dir", "output_mode", "content"},
			{"pattern", "head|MARK", "output_mode", "content"}, {"pattern", "MARK"},
			{"pattern", "head|MARK", "path", "hard.txt", "output_mode", "content"},
			{"pattern", "head|MARK", "path", "one.txt", "output_mode", "content"},
		},
		"list_files": {{"pattern", "**/*", "path", "swap"}, {"pattern", "**/*", "path", "dir"}, {"pattern", "**/*"}},
		"write_file": {
			{"file_path", "swap/" + name, "content", "x\n"}, {"file_path", "dir/" + name, "content", "x\n"},
			{"file_path", fmt.Sprintf("dir/new%d/f.txt", n), "content", "x\n"}, {"file_path", "hooks/" + name, "content", "x\n"},
			{"file_path", "swap/f.txt", "content", line}, {"file_path", "one.txt", "content", line},
			{"file_path", "hard.txt", "content", line},
		},
		"edit_file": {edit("swap/f.txt"), edit("dir/f.txt"), edit("one.txt"), edit("hard.txt")},
		"multi_edit": {
			{"edits", []any{item("swap/f.txt"), item("dir/f.txt")}}, {"edits", []any{item("one.txt"), item("hard.txt")}},
			{"dry_run", true, "edits", []any{item("swap/f.txt"), item("hard.txt")}},
		},
		"notebook_edit": {
			{"notebook_path", "swap/book.ipynb", "cell_id", "a", "new_source", line},
			{"notebook_path", "book.ipynb", "cell_id", "a", "new_source", line},
		},
		"undo_change":  {{"file_path", "dir/f.txt"}, {"file_path", "one.txt"}, {"file_path", "dir/f.txt", "dry_run", true}},
		"file_history": {{"file_path", "dir/f.txt"}, {"file_path", "swap"}, {"limit", 5}},
		"skill":        {{"skill", "s"}},
	}
}

// clearNew removes what a call has made, so that the tree stays small, and fails if it was made where a rule denies it.
func (r *race) clearNew(n int) {
	for _, name := range []string{fmt.Sprintf("new%d.txt", n), fmt.Sprintf("new%d", n)} {
		for _, dir := range []string{"denied", ".git/hooks"} {
			if _, err := os.Lstat(r.path(dir + "/" + name)); err == nil {
				r.Errorf("%s was made in %s", name, dir)
			}
		}
		for _, dir := range []string{"open", "out", "dir", "dir.trap"} {
			_ = os.RemoveAll(r.path(dir + "/" + name)) // of the last two one is a link
		}
	}
}

// runRules makes calls of every tool, racers at a time.
func (r *race) runRules(each int) {
	r.Helper()
	tools := slices.Sorted(maps.Keys(r.ruleCalls(0)))
	var next atomic.Int64
	var all sync.WaitGroup
	for range racers {
		all.Go(func() {
			for !r.Failed() {
				n := int(next.Add(1)) - 1
				tool := tools[n%len(tools)]
				if n /= len(tools); n >= each {
					return
				}
				calls := r.ruleCalls(n)[tool]
				r.did(tool, tool, calls[n%len(calls)]...)
				if tool == "write_file" {
					r.clearNew(n)
				}
			}
		})
	}
	all.Wait()
}

// Links and directories inside the root are exchanged, so that a path leads to what a rule denies, and to the hooks of
// git, at any moment of a call: none of it is shown, and nothing is changed or made there. The rule was asked before the
// file was opened, by its path, and 1 in 100 calls was about another file.
func TestRulesInRaces(t *testing.T) {
	t.Parallel()
	each := map[string]int{"stdio": leaktest.Rounds(60, 10_000), "http": leaktest.Rounds(30, 10_000)}
	for name, begin := range map[string]racedBy{"stdio": racedStdio, "http": racedHTTP} {
		t.Run(name, func(t *testing.T) {
			work, connect := begin(t, [2]string{"CODEHAND_PERMISSIONS_DENY", "Read(denied/**)"},
				[2]string{"CODEHAND_WRITE_DURABILITY", "fast"})
			r := newRuleRace(t, work)
			r.call = connect()
			for _, path := range []string{"open/f.txt", "dir/f.txt", "one.txt", "hard.txt", "open/book.ipynb", "book.ipynb"} {
				r.did("before", "read_file", "file_path", path)
			}
			r.stop = startSwapper(t, work, ruleSwaps...)
			r.runRules(each[name])
			swaps := r.stop()
			if after := tree(t, r.outside) + tree(t, r.path(".git")); after != r.before {
				t.Errorf("denied was\n%sis\n%s", r.before, after)
			}
			if !r.did("after", "read_file", "file_path", "open/sub/f.txt") {
				t.Error("the program works no more")
			}
			for _, kind := range slices.Sorted(maps.Keys(r.seen)) {
				t.Logf("%7d %s", r.seen[kind], kind)
			}
			for _, tool := range []string{"read_file", "write_file", "edit_file"} {
				done, denied := r.seen[tool+": done"], r.seen[tool+": PERMISSION_DENIED"]
				if done+denied >= 10*metOften && min(done, denied) == 0 {
					t.Errorf("%s met only one of the two sides", tool)
				}
			}
			t.Logf("%d calls of each of %d tools during %d exchanges: 0 shown, 0 written", each[name], len(r.ruleCalls(0)), swaps)
		})
	}
}
