//go:build linux

package blackbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// An undoer is a client of the built program over one workspace, which can be started again with other settings.
type undoer struct {
	*testing.T
	work  string
	say   func(tool, args string) string // an isError answer begins with "! "
	other func(tool, args string) string // of another principal; nil: there is none
	again func(settings map[string]string)
}

// undoers are one over stdio and one over HTTP.
func undoers(t *testing.T) map[string]*undoer {
	t.Helper()
	p := newPlot(t)
	s := p.start()
	std := &undoer{T: t, work: p.work}
	std.say = func(tool, args string) string {
		std.Helper()
		text, err := s.Call(tool, json.RawMessage(args))
		must(std, err)
		return text
	}
	std.again = func(settings map[string]string) {
		p.kill(s)
		p.flags = nil
		for key, value := range settings {
			p.flags = append(p.flags, "--"+replaytest.FlagOf(key)+"="+value)
		}
		s = p.start()
	}

	d := deploy(t)
	d.token = d.mint("--quota", "calls_per_minute=0")
	stranger := d.issue("stranger", "--mode", "acceptEdits")
	web := &undoer{T: t, work: d.work}
	var daemon *daemon
	connect := func() {
		daemon = d.serve()
		http.DefaultClient.CloseIdleConnections() // to the server before, whose end may not have been seen
		for token, say := range map[string]*func(tool, args string) string{d.token: &web.say, stranger: &web.other} {
			c := (&replaytest.HTTPClient{T: t, URL: daemon.url + "/mcp", Token: token}).Hello()
			*say = func(tool, args string) string {
				web.Helper()
				c.T = web.T
				text, failed := c.Call("1", tool, args, "").Text()
				if failed {
					return "! " + text
				}
				return text
			}
		}
	}
	connect()
	web.again = func(settings map[string]string) {
		daemon.kill()
		set := d.set
		for key, value := range settings {
			d.set = append(d.set, "CODEHAND_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))+"="+value)
		}
		connect()
		d.set = set
	}
	return map[string]*undoer{"stdio": std, "http": web}
}

func (u *undoer) path(name string) string { return filepath.Join(u.work, name) }

// did calls a tool that must do what it is asked.
func (u *undoer) did(tool string, args ...any) string {
	u.Helper()
	text := u.say(tool, replaytest.AsJSON(u.T, args...))
	if strings.HasPrefix(text, "! ") {
		u.Fatalf("%s %v: %s", tool, args, text)
	}
	return text
}

// refused calls undo_change, which must refuse with a code and change nothing.
func (u *undoer) refused(code string, args ...any) {
	u.Helper()
	before := tree(u.T, u.work)
	if text := u.say("undo_change", replaytest.AsJSON(u.T, args...)); !strings.HasPrefix(text, "! "+code+": ") {
		u.Errorf("undo_change %v: %s, want %s", args, text, code)
	}
	if after := tree(u.T, u.work); after != before {
		u.Errorf("a refused undo changed\n%s\nto\n%s", before, after)
	}
}

// last is the id of the newest change of a file.
func (u *undoer) last(name string) string {
	u.Helper()
	id, _, _ := strings.Cut(u.did("file_history", "file_path", u.path(name), "limit", 1), " ")
	if !regexp.MustCompile(`^[a-z0-9]{16}$`).MatchString(id) {
		u.Fatalf("%s has no change: %s", name, id)
	}
	return id
}

// edited lays a file as a person would, and changes it by a tool.
func (u *undoer) edited(name, content string) {
	u.Helper()
	must(u, os.MkdirAll(filepath.Dir(u.path(name)), 0o755))
	must(u, os.WriteFile(u.path(name), []byte(content), 0o644))
	u.did("read_file", "file_path", u.path(name))
	u.did("edit_file", "file_path", u.path(name), "old_string", "here", "new_string", "there")
}

// TestSEC18Undo: an undo gives back every byte and the mode, also after the server was killed, or refuses with the right
// code and changes nothing.
func TestSEC18Undo(t *testing.T) {
	t.Parallel()
	for name, u := range undoers(t) {
		t.Run(name, func(t *testing.T) {
			u.T = t
			u.testExact()
			refusals := u.testInTheWay() + u.testRights()
			t.Logf("byte-identical after undo, redo and restart; %d undos refused with the right code, nothing changed", refusals)
		})
	}
}

// testExact undoes and redoes changes of files of all kinds.
func (u *undoer) testExact() {
	u.Helper()
	contents := map[string]string{
		"plain.txt": "one\nhere\n", "crlf.txt": "one\r\nhere\r\n\n", "bom.txt": "\xef\xbb\xbfhere\n", "bytes.txt": "here \xff\xfe\x80\n", "no-end.txt": "here",
		"utf16.txt": "\xff\xfeh\x00e\x00r\x00e\x00\n\x00", "run.sh": "#!/bin/sh\n# here\n",
	}
	for name, content := range contents {
		must(u, os.WriteFile(u.path(name), []byte(content), 0o644))
	}
	must(u, os.Chmod(u.path("run.sh"), 0o750))
	before := tree(u.T, u.work)
	for name := range contents {
		u.did("read_file", "file_path", u.path(name))
		u.did("edit_file", "file_path", u.path(name), "old_string", "here", "new_string", "there")
	}
	u.did("multi_edit", "edits", []any{
		map[string]any{"file_path": u.path("plain.txt"), "old_string": "one", "new_string": "1"},
		map[string]any{"file_path": u.path("new/made.txt"), "old_string": "", "new_string": "made\n"},
	})
	changed := tree(u.T, u.work)
	both := u.last("new/made.txt")
	u.did("undo_change", "change_id", both)
	must(u, os.Remove(u.path("new"))) // a directory that the change had made is made again
	redo := u.last("plain.txt")
	u.again(nil)
	u.did("undo_change", "change_id", redo)
	if now := tree(u.T, u.work); now != changed {
		u.Errorf("after undo and redo:\n%s\nwant:\n%s", now, changed)
	}
	u.did("undo_change", "change_id", u.last("plain.txt"))
	must(u, os.Remove(u.path("new")))
	for name := range contents {
		u.did("undo_change", "file_path", u.path(name))
	}
	if now := tree(u.T, u.work); now != before {
		u.Errorf("after all undos:\n%s\nwant:\n%s", now, before)
	}
}

// testInTheWay undoes changes whose files are not what they were, and returns how many were refused.
func (u *undoer) testInTheWay() int {
	u.Helper()
	outside := u.TempDir()
	must(u, os.WriteFile(filepath.Join(outside, "f"), []byte("there\n"), 0o600))
	cases := map[string]func(path string) error{
		"changed":   func(path string) error { return os.WriteFile(path, []byte("by a person\n"), 0o600) },
		"removed":   os.Remove,
		"directory": func(path string) error { return inPlaceOf(path, func() error { return os.Mkdir(path, 0o700) }) },
		"link": func(path string) error {
			return inPlaceOf(path, func() error { return os.Symlink("victim", path) })
		},
		"link out": func(path string) error {
			return inPlaceOf(path, func() error { return os.Symlink(filepath.Join(outside, "f"), path) })
		},
		"dangling": func(path string) error {
			return inPlaceOf(path, func() error { return os.Symlink(filepath.Join(outside, "none"), path) })
		},
		"hard link": func(path string) error { return os.Link(path, path+".too") },
		"fifo":      func(path string) error { return inPlaceOf(path, func() error { return replaytest.Mkfifo(path) }) },
		"parent is a link": func(path string) error {
			return inPlaceOf(filepath.Dir(path), func() error { return os.Symlink(outside, filepath.Dir(path)) })
		},
		"parent is a file": func(path string) error {
			return inPlaceOf(filepath.Dir(path), func() error { return os.WriteFile(filepath.Dir(path), nil, 0o600) })
		},
	}
	refused := 0
	for what, spoil := range cases {
		dir := strings.ReplaceAll(what, " ", "-")
		name := dir + "/f"
		u.edited(name, "here\n")
		must(u, os.WriteFile(u.path(dir+"/victim"), []byte("there\n"), 0o600))
		id := u.last(name)
		must(u, spoil(u.path(name)))
		u.refused("UNDO_CONFLICT", "change_id", id)
		u.refused("UNDO_CONFLICT", "change_id", id, "dry_run", true)
		refused += 2
	}
	if got, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(got) != "there\n" {
		u.Errorf("outside the roots is %q, %v", got, err)
	}
	u.refused("CHANGE_UNKNOWN", "change_id", "aaaaaaaaaaaaaaaa")
	u.refused("CHANGE_UNKNOWN", "file_path", u.path("changed/victim"))
	u.refused("OUTSIDE_ROOTS", "file_path", filepath.Join(outside, "f"))
	return refused + 3
}

// inPlaceOf removes what is at path and puts something else there.
func inPlaceOf(path string, put func() error) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return put()
}

// testRights undoes what it may not: a name that became protected, a file of several that rules deny, what another
// principal did.
func (u *undoer) testRights() int {
	u.Helper()
	u.edited("guarded.txt", "here\n")
	u.did("multi_edit", "edits", []any{
		map[string]any{"file_path": u.path("open.txt"), "old_string": "", "new_string": "open\n"},
		map[string]any{"file_path": u.path("closed/secret.txt"), "old_string": "", "new_string": "a secret\n"},
	})
	guarded, both, refused := u.last("guarded.txt"), u.last("open.txt"), 2
	if u.other != nil {
		for _, c := range [][2]string{
			{"undo_change", replaytest.AsJSON(u.T, "change_id", guarded)}, {"undo_change", replaytest.AsJSON(u.T, "file_path", u.path("guarded.txt"))}, {"file_history", replaytest.AsJSON(u.T, "change_id", guarded)},
		} {
			if text := u.other(c[0], c[1]); !strings.HasPrefix(text, "! CHANGE_UNKNOWN: ") {
				u.Errorf("another principal's %s %s: %s", c[0], c[1], text)
			}
			refused++
		}
		if text := u.other("file_history", `{}`); !strings.HasPrefix(text, "No changes by these tools") {
			u.Errorf("another principal's history: %s", text)
		}
	}
	u.again(map[string]string{"permissions.protect": "guarded.txt", "permissions.deny": "Edit(closed/**)", "permissions.mode": "acceptEdits"})
	u.refused("ASK_UNAVAILABLE", "change_id", guarded)
	u.refused("PERMISSION_DENIED", "change_id", both)
	u.again(map[string]string{"permissions.deny": "Read(closed/**)"})
	u.refused("PERMISSION_DENIED", "change_id", both)
	u.refused("PERMISSION_DENIED", "file_path", u.path("closed/secret.txt"))
	if text := u.say("undo_change", replaytest.AsJSON(u.T, "file_path", u.path("open.txt"), "dry_run", true)); strings.Contains(text, "secret") {
		u.Errorf("the undo of one file tells of another that is closed: %s", text)
	}
	u.did("undo_change", "file_path", u.path("open.txt")) // it touches nothing that is closed
	if text := fmt.Sprint(u.did("file_history"), u.did("file_history", "change_id", both)); strings.Contains(text, "secret") {
		u.Errorf("the history shows what may not be read:\n%s", text)
	}
	return refused + 2
}
