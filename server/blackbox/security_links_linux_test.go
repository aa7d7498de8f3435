package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// hereBook is a notebook with one cell, whose id is "a".
const hereBook = `{"cells":[{"cell_type":"code","execution_count":null,"id":"a","metadata":{},"outputs":[],"source":["here"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}` + "\n"

// A pathCall is a call of a tool with one path.
type pathCall struct {
	tool string
	args func(path string) []any
}

// fileCalls are calls that change the file at a path, which holds "here", or hereBook.
var fileCalls = []pathCall{
	{"write_file", func(path string) []any { return []any{"file_path", path, "content", "there\n"} }},
	{"edit_file", func(path string) []any { return []any{"file_path", path, "old_string", "here", "new_string", "there"} }},
	{"multi_edit", func(path string) []any {
		return []any{"file_path", path, "edits", []any{map[string]any{"old_string": "here", "new_string": "there"}}}
	}},
	{"notebook_edit", func(path string) []any { return []any{"notebook_path", path, "cell_id", "a", "new_source", "there"} }},
}

// makingCalls are calls that make the file at a path.
var makingCalls = []pathCall{
	fileCalls[0],
	{"edit_file", func(path string) []any { return []any{"file_path", path, "old_string", "", "new_string", "there\n"} }},
	{"multi_edit", func(path string) []any {
		return []any{"file_path", path, "edits", []any{map[string]any{"old_string": "", "new_string": "there\n"}}}
	}},
}

// suffix is what the name of a file ends with that the tool changes.
func (c pathCall) suffix() string {
	if c.tool == "notebook_edit" {
		return ".ipynb"
	}
	return ".txt"
}

// hereFor is what a file holds that the tool changes.
func (c pathCall) hereFor() string {
	if c.tool == "notebook_edit" {
		return hereBook
	}
	return "here\n"
}

// call calls a tool that may refuse.
func (u *undoer) call(c pathCall, path string) string {
	u.Helper()
	return u.say(c.tool, replaytest.AsJSON(u.T, c.args(path)...))
}

// lay writes a file at an absolute path, as another program would.
func (u *undoer) lay(path, content string) {
	u.Helper()
	must(u, os.MkdirAll(filepath.Dir(path), 0o755))
	must(u, os.WriteFile(path, []byte(content), 0o644))
}

// link makes a link at an absolute path.
func (u *undoer) link(target, path string) {
	u.Helper()
	must(u, os.MkdirAll(filepath.Dir(path), 0o755))
	must(u, os.Symlink(target, path))
}

// leadsTo fails unless path is a link to target.
func (u *undoer) leadsTo(path, target string) {
	u.Helper()
	if got, err := os.Readlink(path); err != nil || got != target {
		u.Errorf("%s leads to %q (%v), was a link to %s", path, got, err, target)
	}
}

// holds fails unless the file at an absolute path has this content.
func (u *undoer) holds(path, want string) {
	u.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		u.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

// onBoth runs a test over stdio and over HTTP.
func onBoth(t *testing.T, test func(u *undoer)) {
	t.Helper()
	t.Parallel()
	for name, u := range undoers(t) {
		t.Run(name, func(t *testing.T) {
			u.T = t
			test(u)
		})
	}
}

// Nothing is written through a link whose target is missing and would lie outside, the link is not replaced either, and
// the answer names both. What is missing inside is made, and the link stays (SEC-03).
func TestSEC03DanglingLinks(t *testing.T) {
	onBoth(t, func(u *undoer) {
		outside := leaktest.Dir(u.T)
		u.lay(filepath.Join(outside, "victim"), "outside\n")
		before := tree(u.T, outside)
		refused := u.danglingOut(outside) + u.danglingUndo(outside)
		if after := tree(u.T, outside); after != before {
			u.Errorf("outside was\n%sis\n%s", before, after)
		}
		if _, err := os.Lstat(u.work + "-evil"); err == nil {
			u.Error("a directory beside the root was made")
		}
		made := u.danglingInside()
		u.Logf("%d writes through links to nothing outside refused with link and target, 0 made; %d inside made, all links kept", refused, made)
	})
}

// danglingOut writes through links to nothing outside.
func (u *undoer) danglingOut(outside string) (refused int) {
	u.Helper()
	up, err := filepath.Rel(u.work, outside)
	must(u, err)
	for _, suffix := range []string{".txt", ".ipynb"} { // the tool for notebooks takes no other names
		u.link("second"+suffix, u.path("first"+suffix))
		// The link that leads out, where to, and the path that is asked for.
		for _, c := range []struct{ link, target, path string }{
			{"absolute*", outside + "/new*", "absolute*"}, {"relative*", up + "/new*", "relative*"}, {"beside*", u.work + "-evil/new*", "beside*"},
			{"dir*", outside + "/newdir", "dir*/sub/f*"}, {"there*", outside, "there*/new*"}, {"a/b/deep*", "../../" + up + "/new*", "a/b/deep*"},
			{"second*", outside + "/new*", "first*"},
		} {
			link, target, path := u.path(strings.ReplaceAll(c.link, "*", suffix)), strings.ReplaceAll(c.target, "*", suffix), u.path(strings.ReplaceAll(c.path, "*", suffix))
			u.link(target, link)
			named := target
			if !filepath.IsAbs(target) {
				named = filepath.Join(filepath.Dir(link), target)
			}
			for _, call := range slices.Concat(fileCalls, makingCalls) {
				if call.suffix() != suffix {
					continue
				}
				if text := u.call(call, path); !strings.HasPrefix(text, "! OUTSIDE_ROOTS: ") || !strings.Contains(text, link+" -> "+named) {
					u.Errorf("%s %s: %s", call.tool, path, text)
				}
				u.leadsTo(link, target)
				refused++
			}
		}
	}
	return refused
}

// danglingUndo undoes changes whose undo makes a file again where a link to nothing outside is now.
func (u *undoer) danglingUndo(outside string) (refused int) {
	u.Helper()
	up, err := filepath.Rel(u.work, outside)
	must(u, err)
	for name, target := range map[string]string{"undone": outside + "/new", "undone-up": up + "/new"} {
		path := u.path(name + ".txt")
		u.did("write_file", "file_path", path, "content", "made\n")
		u.did("undo_change", "file_path", path) // it is gone
		again := u.last(name + ".txt")
		u.link(target, path)
		text := u.say("undo_change", replaytest.AsJSON(u.T, "change_id", again))
		if !strings.HasPrefix(text, "! UNDO_CONFLICT: "+path) || !strings.Contains(text, path+" -> "+filepath.Join(outside, "new")) {
			u.Errorf("undo_change %s: %s", again, text)
		}
		if text := u.say("undo_change", replaytest.AsJSON(u.T, "file_path", path)); !strings.HasPrefix(text, "! CHANGE_UNKNOWN: ") { // the one that made it is taken back
			u.Errorf("undo_change %s: %s", path, text)
		}
		refused += 2
		u.leadsTo(path, target)
	}
	return refused
}

// danglingInside makes files through links to nothing inside.
func (u *undoer) danglingInside() (made int) {
	u.Helper()
	for i, call := range makingCalls {
		for j, target := range []string{"made", u.path("in/made"), "in/../in/new/made", "one"} {
			dir := fmt.Sprintf("inside-%d-%d", i, j)
			must(u, os.MkdirAll(u.path(dir+"/in"), 0o755))
			if target == "one" {
				u.link("made", u.path(dir+"/one"))
			}
			if filepath.IsAbs(target) {
				target = u.path(dir + "/in/made")
			}
			link := u.path(dir + "/link")
			u.link(target, link)
			if text := u.call(call, link); strings.HasPrefix(text, "!") {
				u.Errorf("%s through %s -> %s: %s", call.tool, link, target, text)
				continue
			}
			u.leadsTo(link, target)
			u.holds(link, "there\n")
			made++
		}
	}
	return made
}

// Links inside work as they do elsewhere: absolute ones into the same root and into another, relative ones, and up to 40
// in a row, for everything that takes a path. Those that lead out are refused by name, and so are 41 (SEC-04).
func TestSEC04LinksInside(t *testing.T) {
	onBoth(t, func(u *undoer) {
		second, outside := leaktest.Dir(u.T), leaktest.Dir(u.T)
		u.again(map[string]string{"permissions.additional_dirs": second, "permissions.mode": "acceptEdits"})
		u.lay(filepath.Join(outside, "f.txt"), "outside needle\n")
		u.lay(filepath.Join(outside, "f.ipynb"), hereBook)
		before := tree(u.T, outside)
		across, err := filepath.Rel(filepath.Join(u.work, "links"), second)
		must(u, err)
		up, err := filepath.Rel(filepath.Join(u.work, "links"), outside)
		must(u, err)
		u.link(outside, filepath.Join(second, "out"))
		done, refused := 0, 0
		for name, target := range map[string]string{
			"absolute": u.path("real"), "absolute second": filepath.Join(second, "real"), "relative": "../real", "relative second": across + "/real",
			"round about": "../links/../real/./../real", "chain of 40": "chain-1-39",
		} {
			if name == "chain of 40" {
				u.chain("chain-1", 39, "../real")
			}
			done += u.goodLink(second, u.path("links/"+strings.ReplaceAll(name, " ", "-")), target)
		}
		u.chain("chain-2", 40, "../real")
		for name, c := range map[string]struct{ target, code string }{
			"out absolute": {outside, "OUTSIDE_ROOTS"}, "out relative": {up, "OUTSIDE_ROOTS"},
			"out of the second": {filepath.Join(second, "out"), "OUTSIDE_ROOTS"}, "chain of 41": {"chain-2-40", "FILE_NOT_FOUND"}, "loop": {"loop", "FILE_NOT_FOUND"},
		} {
			refused += u.badLink(outside, u.path("links/"+strings.ReplaceAll(name, " ", "-")), c.target, c.code)
		}
		if after := tree(u.T, outside); after != before {
			u.Errorf("outside was\n%sis\n%s", before, after)
		}
		u.Logf("%d calls through links inside done, %d through those that lead out or never end refused", done, refused)
	})
}

// chain makes a row of links: the first leads to target, and the last of n to all of them.
func (u *undoer) chain(name string, n int, target string) {
	u.Helper()
	for i := range n {
		u.link(target, u.path(fmt.Sprintf("links/%s-%d", name, i+1)))
		target = fmt.Sprintf("%s-%d", name, i+1)
	}
}

// goodLink uses a new link to a directory inside, and one to a file in it, for everything, and returns how many calls it
// made.
func (u *undoer) goodLink(second, link, target string) (calls int) {
	u.Helper()
	u.link(target, link)
	for _, suffix := range []string{".txt", ".ipynb"} {
		u.link(target+"/f"+suffix, link+suffix)
	}
	for _, c := range fileCalls {
		for _, path := range []string{link + "/f" + c.suffix(), link + c.suffix()} {
			for _, root := range []string{u.work, second} {
				u.lay(filepath.Join(root, "real/f"+c.suffix()), c.hereFor())
			}
			if text := u.did("read_file", "file_path", path); !strings.Contains(text, "here") {
				u.Errorf("read_file %s: %s", path, text)
			}
			if text := u.did("grep_search", "pattern", "here", "path", path, "output_mode", "content"); !strings.Contains(text, "here") {
				u.Errorf("grep_search %s: %s", path, text)
			}
			if text := u.call(c, path); strings.HasPrefix(text, "!") {
				u.Errorf("%s %s: %s", c.tool, path, text)
			}
			// Linux follows a path a second time if a file is renamed meanwhile, and counts its links on top of those of
			// the first: more than 20 are then over the limit of 40. EvalSymlinks follows them itself.
			file, err := filepath.EvalSymlinks(path)
			must(u, err)
			if got, err := os.ReadFile(file); err != nil || !strings.Contains(string(got), "there") {
				u.Errorf("%s %s left %q, %v", c.tool, path, got, err)
			}
			calls += 3
		}
	}
	u.leadsTo(link, target)
	u.leadsTo(link+".txt", target+"/f.txt")
	u.leadsTo(link+".ipynb", target+"/f.ipynb")
	if text := u.did("list_files", "pattern", "*", "path", link); !strings.Contains(text, "f.txt") || !strings.Contains(text, "f.ipynb") {
		u.Errorf("list_files %s: %s", link, text)
	}
	if text := u.did("grep_search", "pattern", "there", "path", link); !strings.Contains(text, "f.txt") {
		u.Errorf("grep_search %s: %s", link, text)
	}
	u.did("run_shell", "command", "cd '"+link+"'")
	if text := u.did("read_file", "file_path", "f.txt"); !strings.Contains(text, "there") {
		u.Errorf("after cd %s: %s", link, text)
	}
	if text := u.did("run_shell", "command", "pwd -P; cd '"+u.work+"'"); !strings.HasSuffix(strings.SplitN(text, "\n", 2)[0], "/real") {
		u.Errorf("after cd %s: pwd is %s", link, text)
	}
	return calls + 5
}

// badLink uses a new link, which must lead nowhere, for everything, and returns how many calls were refused.
func (u *undoer) badLink(outside, link, target, code string) (calls int) {
	u.Helper()
	u.link(target, link)
	for _, suffix := range []string{".txt", ".ipynb"} {
		u.link(target+"/f"+suffix, link+suffix)
	}
	refused := func(tool string, args ...any) {
		u.Helper()
		text := u.say(tool, replaytest.AsJSON(u.T, args...))
		named := code != "OUTSIDE_ROOTS" || strings.Contains(text, " -> "+outside) || strings.Contains(text, " -> "+filepath.Join(u.work, "links", target))
		if !strings.HasPrefix(text, "! "+code+": ") || !named || strings.Contains(text, "needle") {
			u.Errorf("%s %v: %s", tool, args, text)
		}
		calls++
	}
	for _, c := range slices.Concat(fileCalls, makingCalls) {
		for _, path := range []string{link + "/f" + c.suffix(), link + c.suffix()} {
			refused("read_file", "file_path", path)
			refused("grep_search", "pattern", "needle", "path", path)
			refused(c.tool, c.args(path)...)
		}
	}
	refused("list_files", "pattern", "*", "path", link)
	refused("grep_search", "pattern", "needle", "path", link)
	u.say("run_shell", replaytest.AsJSON(u.T, "command", "cd '"+link+"'")) // whether or not the command may look there
	if text := u.did("run_shell", "command", "pwd -P"); strings.SplitN(text, "\n", 2)[0] != u.work {
		u.Errorf("after cd %s: pwd is %s", link, text)
	}
	return calls + 1
}
