package tools

import (
	"strings"
	"testing"

	"codehand/tools/tool"
)

// TestEditAfterCommand: a command of the session that changed one line made every edit of the file be refused. Now only
// edits of what it changed are. What it changed is shown with the first edit, and counts as read from then on.
func TestEditAfterCommand(t *testing.T) {
	t.Parallel()
	const before = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
	sed := quote("sed -i 's/five/FIVE/' f")
	for _, c := range []struct{ name, read, meanwhile, tool, args, want string }{
		{"an edit elsewhere", "", "", "edit_file", `"old_string":"one","new_string":"1"`,
			"Edited f:1 (+1 -1)\nAll that differs from what you read:\n@@ -1,8 +1,8 @@\n-one\n+1\n two\n three\n four\n-five\n+FIVE\n six\n seven\n eight"},
		{"an edit of the line beside", "", "", "edit_file", `"old_string":"six","new_string":"6"`, "Edited f:6 (+1 -1)\nAll that differs"},
		{"several edits around", "", "", "multi_edit", `"edits":[{"old_string":"one","new_string":"1"},{"old_string":"nine","new_string":"9"}]`, "Edited f:1,9 (+2 -2)\nAll that differs"},
		{"an edit of a file that was read in part", `,"limit":2`, "", "edit_file", `"old_string":"nine","new_string":"9"`, "Edited f:9 (+1 -1)\nAll that differs"},
		{"a second command", "", quote("sed -i 's/six/SIX/' f"), "edit_file", `"old_string":"one","new_string":"1"`, "Edited f:1 (+1 -1)\nAll that differs"},
		{"an edit of what changed", "", "", "edit_file", `"old_string":"FIVE","new_string":"5"`, "FILE_CHANGED: "},
		{"an edit of what was there", "", "", "edit_file", `"old_string":"five","new_string":"5"`, "FILE_CHANGED: "},
		{"several edits, one of what changed", "", "", "multi_edit", `"edits":[{"old_string":"one","new_string":"1"},{"old_string":"FIVE","new_string":"5"}]`, "FILE_CHANGED: "},
		{"an edit from before to behind it", "", "", "edit_file", `"old_string":"four\nFIVE\nsix","new_string":"4\nFIVE\n6"`, "Edited f:4 (+2 -2)\nAll that differs"},
		{"the whole file", "", "", "write_file", `"content":"new\n"`, "FILE_CHANGED: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("f", before)
			r.ok("read_file", `{"file_path":"f"`+c.read+`}`)
			if text := untipped(r.ok("run_shell", sed)); !strings.HasPrefix(text, "(no output)\n[changed on disk: M f:5; undo_change ") {
				t.Errorf("the command: %s", text)
			}
			if c.meanwhile != "" {
				r.ok("run_shell", c.meanwhile)
			}
			_, text := r.do(c.tool, `{"file_path":"f",`+c.args+`}`)
			if !strings.HasPrefix(text, c.want) || !strings.HasPrefix(c.want, "FILE_CHANGED") && !(strings.Contains(text, "\n-five\n") && strings.Contains(text, "\n+FIVE\n")) {
				t.Errorf("got:\n%s\nwant:\n%s", text, c.want)
			}
			if strings.HasPrefix(c.want, "Edited") && c.read == "" { // all of it is known now
				r.ok("write_file", `{"file_path":"f","content":"new\n"}`)
			}
		})
	}
}

// What another program changed, before or after a command of the session, does not count as the command's work.
func TestEditAfterOthers(t *testing.T) {
	t.Parallel()
	const edit = `{"file_path":"f","old_string":"one","new_string":"1"}`
	for name, do := range map[string]func(r *rig){
		"before a command": func(r *rig) {
			r.write("f", "one\ntwo\nTHREE\n")
			r.ok("run_shell", quote("touch made"))
		},
		"before a command that changes it, too": func(r *rig) {
			r.write("f", "one\ntwo\nTHREE\n")
			r.ok("run_shell", quote("sed -i s/two/TWO/ f"))
		},
		"after a command": func(r *rig) {
			r.ok("run_shell", quote("sed -i s/two/TWO/ f"))
			r.write("f", "one\nTWO\nTHREE\n")
		},
		"between two commands": func(r *rig) {
			r.ok("run_shell", quote("sed -i s/two/TWO/ f"))
			r.write("f", "one\nTWO\nTHREE\n")
			r.ok("run_shell", quote("sed -i s/TWO/2/ f"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("f", "one\ntwo\nthree\n")
			r.ok("read_file", `{"file_path":"f"}`)
			do(r)
			r.fails(tool.FileChanged, "edit_file", edit)
			r.ok("edit_file", edit)
		})
	}
}

// A command is told of once: the same files were named after every command that followed.
func TestChangedFilesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "one\ntwo\n")
	r.ok("read_file", `{"file_path":"f"}`)
	same(t, untipped(r.ok("run_shell", quote("sed -i s/two/TWO/ f"))), "(no output)\n[changed on disk: M f:2; undo_change call000000000002 takes it back]")
	same(t, r.ok("run_shell", quote("touch made")), "(no output)")
	same(t, r.ok("run_shell", quote("echo three >>f")), "(no output)\n[changed on disk: M f:2-3; undo_change call000000000004 takes it back]")
}

// A change by a command that is too long to show is not known: the answer says so, and the file is not replaced.
func TestEditAfterLargeCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "head\n"+strings.Repeat("a line of text\n", 2000)+"tail\n")
	r.ok("read_file", `{"file_path":"f","limit":3000}`)
	r.ok("run_shell", quote("sed -i 's/text/words/' f"))
	text := r.ok("edit_file", `{"file_path":"f","old_string":"head","new_string":"HEAD"}`)
	if !strings.HasPrefix(text, "Edited f:1 (+1 -1)\nAll that differs") || !strings.HasSuffix(text, "\n[not all that changed is shown; read again before editing: f]") {
		t.Errorf("got:\n%s", text)
	}
	r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"f","content":"new\n"}`)
}

// The version of what was read serves the edit beside a command's change, and that of the edit all that follows.
func TestEditAfterCommandVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.Modern = true
	r.write("f", "one\ntwo\nthree\n")
	version := func(text string) string {
		_, after, ok := strings.Cut(text, "[version ")
		if !ok {
			t.Fatalf("no version in:\n%s", text)
		}
		return strings.TrimSuffix(after, "]")
	}
	read := version(r.ok("read_file", `{"file_path":"f"}`))
	r.ok("run_shell", quote("sed -i s/three/3/ f"))
	edited := version(r.ok("edit_file", `{"file_path":"f","old_string":"one","new_string":"1","version":"`+read+`"}`))
	r.fails(tool.FileChanged, "edit_file", `{"file_path":"f","old_string":"two","new_string":"2","version":"000000000000"}`)
	// The version was given out before it was known whether the difference would be shown whole; what was shown counts.
	r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"f","content":"new\n","version":"`+edited+`"}`)
	r.ok("write_file", `{"file_path":"f","content":"new\n"}`)
}

// untipped is a result without the line that names a better tool.
func untipped(text string) string {
	before, rest, found := strings.Cut(text, "[next time use ")
	if !found {
		return text
	}
	_, after, _ := strings.Cut(rest, "]\n")
	return before + after
}
