package tools

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/tool"
)

// TestCommandViews: a command that does nothing but show lines of a file counts as a read of just these lines, if the model
// saw them as they are; no other command does, however like one it looks.
func TestCommandViews(t *testing.T) {
	t.Parallel()
	const all, part, none = "all", "part", "none"
	text := "one\ntwo\nthree\nfour\n"
	for _, c := range []struct{ command, content, seen string }{
		{"cat f", text, all},
		{" cat\t'f' ", text, all},
		{`cat "$DIR/f"`, text, none},
		{"cat ABS", text, all},
		{"cat 'a b'", text, all},
		{`cat "a b"`, text, all},
		{"cat ./sub/g", text, all},
		{"cat sub", text, none},
		{"head f", text, all},
		{"head -n 4 f", text, all},
		{"head -n 2 f", text, part},
		{"tail -n 4 f", text, all},
		{"tail -n 1 f", text, part},
		{"sed -n '1,4p' f", text, all},
		{"sed -n 2,3p f", text, part},
		{`sed -n "2,9p" f`, text, part},
		{"sed -n 9,10p f", text, none},
		{"sed -n 0,10p f", text, none},
		{"cat f f", text, none},
		{"cat -n f", text, none},
		{"cat -- f", text, none},
		{"cat f; true", text, none},
		{"cat f | cat", text, none},
		{"cat < f", text, none},
		{"cat f &", text, none},
		{"cat f*", text, none},
		{"cat {f,}", text, none},
		{`cat \f`, text, none},
		{"cat 'f'''", text, none},
		{"cat f\ncat f", text, none},
		{"echo one; echo two; echo three; echo four", text, none},
		{"cat f", "one\r\ntwo\r\n", none},        // the model sees no CR
		{"cat f", "one\ntwo", none},              // nor that there is no end
		{"cat f", "one\n\n\n", none},             // nor these lines
		{"cat f", "\n\none\n", none},             // nor these
		{"cat f", "a\x1b[31mred\x1b[0m\n", none}, // nor what Clean takes away
		{"cat f", "caf\xe9\n", none},
		{"cat f", "[exit code 1: no match]\n", none},              // shown with a \ before it
		{"cat f", strings.Repeat("a line of text\n", 5000), none}, // cut
		{"head -n 2 f", strings.Repeat("a line of text\n", 5000), part},
		{"sed -n 4000,4001p f", strings.Repeat("a line of text\n", 5000), part},
	} {
		t.Run(fmt.Sprintf("%.40s of %.8q", c.command, c.content), func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{"run_shell", "run_readonly"} {
				r := newRig(t)
				path := "f"
				if strings.Contains(c.command, "sub/g") {
					path = "sub/g"
				}
				if strings.Contains(c.command, "a b") {
					path = "a b"
				}
				r.write("sub/g", "")
				r.write(path, c.content)
				r.do(name, quote(strings.ReplaceAll(c.command, "ABS", "'"+filepath.Join(r.dir, "f")+"'")))
				next, _ := json.Marshal(map[string]string{"file_path": path, "content": "new\n"})
				res, _ := r.do("write_file", string(next))
				if want := map[string]tool.Code{all: "", part: tool.FilePartlyRead, none: tool.FileNotRead}[c.seen]; res.Failed != want {
					t.Errorf("%s: %q, want %q", name, res.Failed, want)
				}
			}
		})
	}
}

// What was shown in a directory is noted for the file there; a part serves edits, and read_file shows the file once more.
func TestCommandViewsMoveOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("sub/f", "one\ntwo\nthree\n")
	r.write("f", "one\ntwo\nthree\n")
	r.ok("run_shell", quote("cd sub"))
	r.ok("run_shell", quote("head -n 1 f"))
	r.ok("edit_file", `{"file_path":"$WORK/sub/f","old_string":"one","new_string":"1"}`)
	r.fails(tool.FileNotRead, "edit_file", `{"file_path":"$WORK/f","old_string":"one","new_string":"1"}`)
	r.ok("run_readonly", quote("cat f"))
	same(t, r.ok("read_file", `{"file_path":"$WORK/sub/f"}`), "1\t1\n2\ttwo\n3\tthree")
	if text := r.ok("read_file", `{"file_path":"$WORK/sub/f"}`); !strings.HasPrefix(text, "File unchanged since your last read") {
		t.Error(text)
	}
	r.ok("run_shell", quote("cat f"))
	r.write("sub/f", "another\n")
	r.fails(tool.FileChanged, "write_file", `{"file_path":"$WORK/sub/f","content":"x\n"}`)
}
