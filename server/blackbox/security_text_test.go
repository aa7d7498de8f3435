package blackbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// hostileTexts are bytes that a terminal, or a reader, would take for something else than they are. Each is put between
// two words, which must both be in the answer.
func hostileTexts() []string {
	texts := []string{
		// Colours, cursor, modes, reports.
		"\x1b[31mred\x1b[0m", "\x1b[38;5;196mx\x1b[m", "\x1b[38:2::1:2:3mx", "\x1b[2K", "\x1b[2J", "\x1b[10;20H", "\x1b[1A\x1b[1D", "\x1b[?25l", "\x1b[?1049h",
		"\x1b[>4;2m", "\x1b[6n", "\x1bc", "\x1b7\x1b8", "\x1b(B", "\x1b#8", "\x1b[200~paste\x1b[201~", "\x1b[38;5;\x1b[31m",
		// Strings with an end: titles, links, the clipboard, graphics.
		"\x1b]0;title\a", "\x1b]2;title\x1b\\", "\x1b]0;title\u009c", "\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\", "\x1b]52;c;ZXZpbA==\a", "\x1b]133;A\a",
		"\x1bP1$r0m\x1b\\", "\x1bPq#0;2;0;0;0\x1b\\", "\x1bXsos\x1b\\", "\x1b^pm\x1b\\", "\x1b_Gf=100;AAAA\x1b\\",
		// Sequences and strings that never end.
		"\x1b]0;t\n", "\x1b]52;c;ZXZpbA==\n", "\x1bPq\n", "\x1bX\n", "\x1b^\n", "\x1b_G\n", "\x1b\n", "\x1b[\n", "\x1b[31\n", "\x1b]0;a\x18", "\x1b]0;a\x1a",
		// Raw 8-bit controls, C1 in UTF-8, what is no UTF-8.
		"\x9b31m", "\x9d0;t\x9c", "\x90q\x9c", "\x92s \x93q\x94", "\xc3\x28", "\xed\xa0\x80", "\xed\xb0\x80", "\xf5\xff", "\xe2\x9c", "\u009b31m", "\u009d0;t\u009c", "\u0085", "\u0090",
		// Overwriting.
		"secret\b\b\b\b\b\b", "b\bbo\bo", "\n10%\r50%\r100%\n", "rm -rf /\rls", "\x7f", "\x00", "\a", "\v", "\f",
		// Invisible characters, and those that turn the order round.
		"\u202eevil\u202c", "\u2066x\u2069", "\u200f", "\u061c", "\u200b", "\u2060", "\ufeff", "\u180e", "\u2028", "\u2029", "\u206a", "\ufff9x\ufffb", "\uffff", "\ufdd0", "\U0001fffe",
		"\U000e0041\U000e0042", "🏴\U000e0067\U000e007f", "a\u200db", "a\u200cb", "❤\ufe0f\ufe0e\ufe01",
	}
	for r := rune(1); r < ' '; r++ { // each control by itself; with what follows, an ESC would be a sequence
		if r != '\t' && r != '\n' && r != '\x1b' {
			texts = append(texts, string(r))
		}
	}
	return texts
}

// harmlessWords must arrive as they are.
var harmlessWords = []string{
	"plain", "tab\tand", "Ünïcödé ß ñ", "日本語テキスト", "русский", "العربية", "עברית", "हिन्दी क्\u200dष", "فارسی می\u200cخواهم", "👩\u200d💻", "❤\ufe0f\u200d🔥", "🏳\ufe0f\u200d🌈",
	"🇩🇪", "e\u0301", "½ € ™", "“quoted” – —", "\u00a0nbsp", "\u3000ideographic", "\ue0b0 powerline", "\ufffd", "┌─┐│└┘", "∀x∈ℝ", "ﬁ ligature", "[31m not a sequence", `\x1b \u202e`,
}

// forbidden says why a character may stand in nothing that we send; "": it may. It is written from the requirement, not
// from the code that cleans. Joiners and variation selectors depend on what is beside them and are left to that room.
func forbidden(r rune) string {
	switch {
	case r < ' ' && r != '\t' && r != '\n', r == 0x7f:
		return "a control"
	case 0x80 <= r && r <= 0x9f:
		return "a C1 control"
	case slices.Contains([]rune{0xad, 0x61c, 0x180e, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff}, r),
		0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f, 0xfff9 <= r && r <= 0xfffb, 0xe0000 <= r && r <= 0xe007f:
		return "invisible"
	case r&0xfffe == 0xfffe, 0xfdd0 <= r && r <= 0xfdef:
		return "no character"
	}
	return ""
}

// eachString calls f with every string and every name of a field in v.
func eachString(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, x := range v {
			eachString(x, f)
		}
	case map[string]any:
		for name, x := range v {
			f(name)
			eachString(x, f)
		}
	}
}

// No line that is sent holds what a terminal would act on or a reader would not see: not from commands, files, names,
// searches, edits, errors or progress (SEC-33).
func TestSEC33CleanText(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	if n := len(hostileTexts()); n < 60 || len(harmlessWords) < 20 {
		t.Fatalf("%d sequences and %d harmless texts are too few", n, len(harmlessWords))
	}
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprint("modern: ", modern), func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			p := replaytest.Spawn(t, path, work, "claude-code", modern, map[string]string{"permissions.allow": "Bash(cat *)"})
			lines, strs := 0, 0
			p.Tap = func(l []byte) {
				lines++
				var v any
				if err := json.Unmarshal(l, &v); err != nil || !utf8.Valid(l) {
					t.Errorf("no JSON in UTF-8: %q", l)
				}
				eachString(v, func(s string) {
					strs++
					for _, r := range s {
						if why := forbidden(r); why != "" {
							t.Errorf("U+%04X, %s, is in %.200q", r, why, s)
							return
						}
					}
				})
			}
			for i, text := range leaktest.Some(24, hostileTexts()) {
				sendHostile(t, p, work, i, text)
			}
			for i, word := range leaktest.Some(5, harmlessWords) {
				name := fmt.Sprintf("harmless%d.txt", i)
				must(t, os.WriteFile(filepath.Join(work, name), []byte("a "+word+" z\n"), 0o600))
				for _, got := range []string{p.Tool(t, "read_file", map[string]any{"file_path": name}), p.Tool(t, "run_shell", map[string]any{"command": "cat " + name})} {
					if !strings.Contains(got, "a "+word+" z") {
						t.Errorf("%q became %q", word, got)
					}
				}
			}
			t.Logf("%d lines with %d strings, no forbidden character", lines, strs)
		})
	}
}

// sendHostile lets text number i come out of everything that shows text.
func sendHostile(t *testing.T, p *replaytest.Spawned, work string, i int, text string) {
	t.Helper()
	body := "before " + text + " after\nnext line\n"
	file := fmt.Sprintf("hostile%d.txt", i)
	must(t, os.WriteFile(filepath.Join(work, file), []byte(body), 0o600))
	both := func(what, got string) {
		if !strings.Contains(got, "before") || !strings.Contains(got, "after") || !strings.Contains(got, "next line") {
			t.Errorf("%s of %q hides text: %q", what, text, got)
		}
	}
	both("the output", p.Tool(t, "run_shell", map[string]any{"command": "cat " + file}))
	both("the errors", p.Tool(t, "run_shell", map[string]any{"command": "cat " + file + " >&2; false"}))
	if !strings.Contains(text, "\x00") { // a binary file
		both("read_file", p.Tool(t, "read_file", map[string]any{"file_path": file}))
		both("grep_search", p.Tool(t, "grep_search", map[string]any{"pattern": "before|after|next", "path": file, "output_mode": "content"}))
	}
	// As text of the model: in files, paths, patterns, commands and names that do not exist.
	said := strings.ToValidUTF8(body, "\ufffd")
	made := fmt.Sprintf("made%d.txt", i)
	p.Tool(t, "write_file", map[string]any{"file_path": made, "content": said})
	if !strings.Contains(text, "\x00") { // a difference is shown of a file that changed
		must(t, os.WriteFile(filepath.Join(work, made), []byte(said+said), 0o600))
		both("the difference", p.Tool(t, "edit_file", map[string]any{"file_path": made, "old_string": "not there", "new_string": "x"}))
		p.Tool(t, "write_file", map[string]any{"file_path": made, "content": said})
	}
	p.Tool(t, "edit_file", map[string]any{"file_path": made, "old_string": "not there " + said, "new_string": "x"})
	p.Tool(t, "edit_file", map[string]any{"file_path": made, "old_string": "next line", "new_string": said})
	name := strings.NewReplacer("/", "_", "\x00", "_").Replace(text)
	for tool, args := range map[string]map[string]any{
		"read_file":   {"file_path": "missing " + name},
		"list_files":  {"pattern": "*" + said + "*"},
		"grep_search": {"pattern": "(" + said, "path": "."},
		"run_shell":   {"command": "cat missing" + said, "description": said},
		"job_output":  {"job_id": said},
		"skill":       {"skill": said},
		"tool_search": {"query": said},
		"call_tool":   {"name": said, "arguments": map[string]any{said: said}},
		said:          {"x": said},
	} {
		p.Tool(t, tool, args)
	}
	if err := os.WriteFile(filepath.Join(work, "name before "+name+" after"), []byte("needle\n"), 0o600); err != nil {
		return // no name here
	}
	p.Tool(t, "list_files", map[string]any{"pattern": "name*"})
	p.Tool(t, "grep_search", map[string]any{"pattern": "needle", "path": "."})
	p.Tool(t, "read_file", map[string]any{"file_path": strings.ToValidUTF8("name before "+name+" after", "\ufffd")})
	must(t, os.Remove(filepath.Join(work, "name before "+name+" after")))
}
