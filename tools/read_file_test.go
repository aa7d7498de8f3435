package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/tool"
)

func TestReadFileText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, content, args, want string }{
		{"plain", "a\nb\n", ``, "1\ta\n2\tb"},
		{"no newline at end", "a\nb", ``, "1\ta\n2\tb\n[no newline at end]"},
		{"crlf", "a\r\nb\r\n", ``, "1\ta\n2\tb\n[CRLF line ends]"},
		{"mixed", "a\r\nb\n", ``, "1\ta\n2\tb\n[mixed line ends]"},
		{"mark", "\xef\xbb\xbfa\n", ``, "1\ta\n[BOM]"},
		{"mark and crlf", "\xef\xbb\xbfa\r\n", ``, "1\ta\n[BOM · CRLF line ends]"},
		{"mark alone", "\xef\xbb\xbf", ``, "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"},
		{"not utf-8", "caf\xe9 \xff\n", ``, "1\tcaf\ufffd \ufffd\n[2 bytes are not UTF-8 and shown as U+FFFD]"},
		{"one byte", "caf\xe9\n", ``, "1\tcaf\ufffd\n[1 byte is not UTF-8 and shown as U+FFFD]"},
		{"hidden", "a\x1b[31mb\u202ec\n", ``, "1\ta\\x1b[31mb\\u202ec\n[2 characters are shown as escapes]"},
		{"range", "a\nb\nc\n", `,"offset":2,"limit":1`, "2\tb\n[lines 2-2 of 3]"},
		{"rest", "a\nb\nc\n", `,"offset":2`, "2\tb\n3\tc\n[lines 2-3 of 3]"},
		{"more than there is", "a\nb\n", `,"limit":10`, "1\ta\n2\tb\n[lines 1-2 of 2]"},
		{"empty", "", ``, "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"},
		{"past the end", "a\n", `,"offset":9`,
			"<system-reminder>Warning: the file exists but is shorter than the provided offset (9). The file has 1 lines.</system-reminder>"},
		{"blank lines", "\n\n", ``, "1\t\n2\t"},
		{"long line", strings.Repeat("x", 2005) + "\nb\n", ``, "1\t" + strings.Repeat("x", 2000) + "... (truncated, 5 more characters)\n2\tb"},
		{"JSON of no notebook", "{\"cells\":[]}\n", ``, "1\t{\"cells\":[]}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("f", c.content)
			same(t, r.ok("read_file", `{"file_path":"$WORK/f"`+c.args+`}`), c.want)
		})
	}
}

func TestReadFilePages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var all strings.Builder
	for i := range 61_204 {
		fmt.Fprintf(&all, "this is line %d of them\n", i+1)
	}
	r.write("big", all.String())
	first, _, _ := strings.Cut(r.ok("read_file", `{"file_path":"big"}`), "\n")
	same(t, first, "PARTIAL view: lines 1-1668 of 61,204 (limit: 49,500 characters). Continue with offset=1669, or use grep_search.")
	r.Client.MaxRunes = 400_000
	first, rest, _ := strings.Cut(r.ok("read_file", `{"file_path":"big"}`), "\n")
	same(t, first, "PARTIAL view: lines 1-2000 of 61,204 (limit: 2,000 lines). Continue with offset=2001, or use grep_search.")
	if n := strings.Count(rest, "\n") + 1; n != 2000 {
		t.Errorf("%d lines are shown, want 2000", n)
	}
	// Every page stays within the limit and the next one goes on where it ended, to the last line.
	r.Client.MaxRunes = 5000
	for offset, pages := 60_000, 0; ; pages++ {
		text := r.ok("read_file", fmt.Sprintf(`{"file_path":"big","offset":%d}`, offset))
		if n := len([]rune(text)); n > 5000 {
			t.Fatalf("a page has %d characters, more than the client takes", n)
		}
		if !strings.HasPrefix(text, "PARTIAL view: ") {
			if pages == 0 || !strings.Contains(text, "61204\tthis is line 61204 of them\n[lines ") {
				t.Errorf("the last page is wrong:\n%s", text)
			}
			break
		}
		var to, next int
		var total, limit string
		if _, err := fmt.Sscanf(text, "PARTIAL view: lines %d-%d of %s (limit: %s characters). Continue with offset=%d", &offset, &to, &total, &limit, &next); err != nil {
			t.Fatalf("%v in %q", err, text[:100])
		}
		if next != to+1 {
			t.Fatalf("the page ends at %d and goes on at %d", to, next)
		}
		offset = next
	}
}

func TestReadFileTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.MaxRunes = 400_000
	r.Prefs.ReadMaxTokens = 100
	r.write("f", strings.Repeat(strings.Repeat("é", 40)+"\n", 10)) // 40 tokens a line, and a little for the number
	first, _, _ := strings.Cut(r.ok("read_file", `{"file_path":"f"}`), "\n")
	same(t, first, "PARTIAL view: lines 1-2 of 10 (limit: 100 tokens). Continue with offset=3, or use grep_search.")
	text := r.ok("read_file", `{"file_path":"f","allow_large":true}`)
	if strings.HasPrefix(text, "PARTIAL") {
		t.Errorf("allow_large does not help: %s", text)
	}
}

// A line that is larger than the client's limit is cut, so that the page is not empty and reading goes on.
func TestReadFileHugeLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Prefs.ReadMaxLine = 0
	r.Client.MaxRunes = 2000
	r.write("f", strings.Repeat("x", 50_000)+"\nb\n")
	text := r.ok("read_file", `{"file_path":"f"}`)
	if len(text) > 2000 || !strings.Contains(text, "x... (truncated, ") || !strings.HasSuffix(text, "more characters)\n2\tb") {
		t.Errorf("%d characters: %.300s", len(text), text)
	}
	// What was cut was not seen, so it cannot be replaced, but what was shown can be edited.
	r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"f","content":"x"}`)
	r.ok("edit_file", `{"file_path":"f","old_string":"x\nb","new_string":"x\nc"}`)
}

func TestReadFileRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("main.go", "x\n")
	r.write("bin", "a\x00b")
	r.write("in/f", "x")
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(r.dir, "out")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code tool.Code
		args string
		want string // part of the text
	}{
		{tool.InputInvalid, `{"filepath":"main.go"}`, `did you mean "file_path"?`},
		{tool.InputInvalid, `{"file_path":"main.go","offset":0}`, `"offset"`},
		{tool.InputInvalid, `{"file_path":"main.go","pages":"1-21"}`, `"pages"`},
		{tool.InputInvalid, `{"file_path":"main.go","pages":"5-2"}`, `"pages"`},
		{tool.InputInvalid, `{"file_path":"main.go","pages":"0"}`, `"pages"`},
		{tool.InputInvalid, `{"file_path":"main.go","pages":"1"}`, `is not a PDF`},
		{tool.PathRefused, `{"file_path":"\\\\host\\share"}`, `network or device path`},
		{tool.OutsideRoots, `{"file_path":"/etc/hostname"}`, `/etc/hostname is outside the allowed directories: $WORK. Ask the user to add`},
		{tool.OutsideRoots, `{"file_path":"../x"}`, `is outside`},
		{tool.OutsideRoots, `{"file_path":"out/x"}`, `is outside`},
		{tool.FileNotFound, `{"file_path":"mian.go"}`, `File does not exist: $WORK/mian.go. Current directory: $WORK. Did you mean $WORK/main.go?`},
		{tool.IsDirectory, `{"file_path":"in"}`, `$WORK/in is a directory. Use list_files.`},
		{tool.BinaryFile, `{"file_path":"bin"}`, `This tool cannot read binary files: $WORK/bin. Use run_shell with file, xxd or strings.`},
	} {
		if text := r.fails(c.code, "read_file", c.args); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s\nhas no %q", c.args, text, c.want)
		}
	}
}

// A repeated read costs the model nothing the second time, and gives the content again the third time.
func TestReadFileAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a\nb\n")
	read := func() string { t.Helper(); return r.ok("read_file", `{"file_path":"f"}`) }
	stub := "File unchanged since your last read (lines 1-2). Use that content; call read_file again to get it anyway."
	same(t, read(), "1\ta\n2\tb")
	same(t, read(), stub)
	same(t, read(), "1\ta\n2\tb")
	same(t, read(), stub)
	r.write("f", "a\nc\n")
	same(t, read(), "1\ta\n2\tc")
	r.Shared = true
	same(t, read(), "1\ta\n2\tc")
	r.Shared, r.Prefs.ReadDedup = false, false
	same(t, read(), "1\ta\n2\tc")
}

func TestReadFileVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.Modern = true
	r.write("f", "a\nb\n")
	same(t, r.ok("read_file", `{"file_path":"f","limit":1}`), "1\ta\n[lines 1-1 of 2 · version 911169ddaaf1p]")
	res, text := r.do("read_file", `{"file_path":"f"}`)
	same(t, text, "1\ta\n2\tb\n[version 911169ddaaf1]")
	same(t, res.Meta.Version, "911169ddaaf1")
	same(t, string(res.Meta.Data), `{"lines":2,"totalLines":2,"startLine":1,"truncated":false,"encoding":"UTF-8","eol":"LF",`+
		`"hash":"911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2"}`)
}
