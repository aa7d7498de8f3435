package typing

import (
	"slices"
	"strconv"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/screen"
	"codehand/tools/terminal"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// keysOf are texts, and keys by their names in brackets.
func keysOf(all ...string) []Key {
	var keys []Key
	for _, k := range all {
		if k[0] == '[' {
			keys = append(keys, Key{Name: k[1 : len(k)-1]})
		} else {
			keys = append(keys, Key{Text: k})
		}
	}
	return keys
}

// The line that a shell will read is what was typed since its last whole command, in however many calls.
func TestFollow(t *testing.T) {
	t.Parallel()
	sh := terminal.Typing{Shell: true}
	line := func(t terminal.Typing, text string, unsure bool) terminal.Typing {
		t.Line, t.Unsure = text, unsure
		return t
	}
	for name, c := range map[string]struct {
		was  terminal.Typing
		keys []Key
		want terminal.Typing
		read string
	}{
		"a part":             {sh, keysOf("rm "), line(sh, "rm ", false), "rm "},
		"the rest":           {line(sh, "rm ", false), keysOf("-rf x", "[Enter]"), sh, "rm -rf x\n"},
		"a line with CR":     {sh, keysOf("ls\r\npwd\r"), sh, "ls\npwd\n"},
		"keys that print":    {sh, keysOf("ls", "[Space]", "x", "[ctrl+j]"), sh, "ls x\n"},
		"a backslash":        {sh, keysOf("rm -rf \\\n"), line(sh, "rm -rf \\\n", false), "rm -rf \\\n"},
		"behind a backslash": {line(sh, "rm -rf \\\n", false), keysOf("/etc\n"), sh, "rm -rf \\\n/etc\n"},
		"a quote":            {sh, keysOf("echo 'a\n"), line(sh, "echo 'a\n", false), "echo 'a\n"},
		"a loop":             {sh, keysOf("for i in 1; do\n", "ls\n"), line(sh, "for i in 1; do\nls\n", false), "for i in 1; do\nls\n"},
		"given up":           {line(sh, "rm x", true), keysOf("[Ctrl-C]", "ls"), line(sh, "ls", false), "rm xls"},
		"recalled":           {sh, keysOf("[Up]"), line(sh, "", true), ""},
		"recalled and sent":  {line(sh, "", true), keysOf("[Enter]"), sh, "\n"},
		"given up as text":   {line(sh, "rm x", true), keysOf("\x03ls"), line(sh, "ls", false), "rm x\x03ls"},
		"not given up":       {line(sh, "rm x", false), keysOf("[Ctrl-D]"), line(sh, "rm x\x04", true), "rm x"},
		"a code":             {sh, keysOf("a\tb"), line(sh, "a\tb", true), "a\tb"},
		"into a program":     {terminal.Typing{}, keysOf("it's\nso"), line(terminal.Typing{}, "so", false), "it's\nso"},
		"secretly":           {terminal.Typing{Secret: true}, keysOf("phrase", "[Tab]"), terminal.Typing{Secret: true}, "phrase"},
	} {
		if got := follow(c.was, c.keys); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if got := followed(c.was, c.keys); got != c.read {
			t.Errorf("%s: reads %q", name, got)
		}
	}
	if pressesOther(keysOf("a", "[Enter]", "[Ctrl-C]")) || !pressesOther(keysOf("a", "[Tab]", "[Enter]")) {
		t.Error("keys that change a line")
	}
}

// A line that keys may have changed counts as unknown once a shell gets it.
func TestRunsUnknown(t *testing.T) {
	t.Parallel()
	sh := terminal.Typing{Shell: true}
	for name, c := range map[string]struct {
		keys []Key
		want bool
	}{
		"text":                     {keysOf("ls\n", "pwd", "[Enter]"), false},
		"given up":                 {keysOf("[Up]", "[Ctrl-C]", "ls\n"), false},
		"not sent":                 {keysOf("git p", "[Tab]"), false},
		"at the beginning":         {keysOf("it push", "\x01g\n"), true},
		"the key for that":         {keysOf("it push", "[Ctrl-A]", "g", "[Enter]"), true},
		"recalled":                 {keysOf("[Up]", "[Enter]"), true},
		"last argument":            {keysOf("git \x1b. origin main\n"), true},
		"completed and sent on":    {keysOf("git pu\t", "[Ctrl-O]"), true},
		"no end of input":          {keysOf("git push", "[Ctrl-D]", "[Enter]"), true},
		"a macro":                  {keysOf("[Ctrl-X]", "e"), true},
		"another key erases":       {keysOf("stty erase %\n", "git puxyz%%%sh\n"), true},
		"another way of editing":   {keysOf("set -o vi\n", "ls\n"), true},
		"options of no key":        {keysOf("set -o pipefail\n", "mount --rbind a b\n", "ls\n"), false},
		"an end of line in a text": {keysOf("a\x01b\nls\n"), true},
	} {
		if got := runsUnknown(sh, c.keys); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Lines that the session has seen where they stand are left out, and no others.
func TestSeenBefore(t *testing.T) {
	t.Parallel()
	lines := []string{"a", "b", "c", "d"}
	display := func(before, gone, rows []string) terminal.Display {
		return terminal.Display{Shown: screen.Shown{Rows: rows, Gone: gone}, Before: before}
	}
	alternate := display(lines, nil, lines)
	alternate.Alternate = true
	missed := display(lines, nil, lines)
	missed.Missed = 1
	for name, c := range map[string]struct {
		d    terminal.Display
		want int
	}{
		"never seen":     {display(nil, nil, lines), 0},
		"the same":       {display(lines, nil, lines), 4},
		"more":           {display(lines, nil, append(slices.Clone(lines), "e")), 4},
		"the last other": {display(lines, nil, []string{"a", "b", "c", "x"}), 3},
		"the first":      {display(lines, nil, []string{"x", "b", "c", "d"}), 0},
		"too few":        {display(lines, nil, []string{"a", "b", "x"}), 0},
		"scrolled":       {display(lines, lines[:2], lines[2:]), 4},
		"all left":       {display(lines, append(slices.Clone(lines), "e"), nil), 4},
		"fewer":          {display(lines, nil, lines[:3]), 3},
		"full screen":    {alternate, 0},
		"missed":         {missed, 0},
	} {
		if got := seenBefore(c.d); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// TestFewer: of many lines that left the screen the middle is left out, and the note says where it is.
func TestFewer(t *testing.T) {
	t.Parallel()
	var gone []string
	for i := range firstGone + lastGone + 7 {
		gone = append(gone, strconv.Itoa(i))
	}
	const note = "[7 lines that left the screen are not shown; the whole output is in /log]"
	want := slices.Concat(gone[:firstGone], []string{note}, gone[firstGone+7:])
	if got := fewer(gone, "/log"); !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d: %s", len(got), len(want), got[firstGone])
	}
	if all := gone[:firstGone+lastGone]; !slices.Equal(fewer(all, "/log"), all) {
		t.Error("lines that are no more than that are left out")
	}
}

// A character is text, so that it is judged as a part of a line, and chords have the names that are judged.
func TestNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Key{
		"q": {Text: "q"}, "ü": {Text: "ü"}, "\x03": {Text: "\x03"}, "-": {Text: "-"}, "C-d": {Name: "Ctrl-d"},
		"c+D": {Name: "Ctrl-D"}, "C-[": {Name: "Ctrl-["}, "M-x": {Name: "Alt-x"}, "M-Enter": {Name: "Alt-Enter"},
		"Enter":  {Name: "Enter"},
		"Ctrl-X": {Name: "Ctrl-X"},
	} {
		if got, ok := Named(name); got != want || !ok {
			t.Errorf("%q: %+v, %t", name, got, ok)
		}
	}
	for _, name := range []string{"", "C-", "C-1", "M-", "M-xyz", "S-a", "cw", "C-Enter"} {
		if got, ok := Named(name); ok {
			t.Errorf("%q: %+v", name, got)
		}
	}
}
