package textedit

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDiff(t *testing.T) {
	numbers := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "%d\n", i)
		}
		return b.String()
	}
	cases := []struct {
		name, old, new string
		max            int
		want           string
		whole          bool
	}{
		{"equal", "a\n", "a\n", 100, "", true},
		{"both empty", "", "", 100, "", true},
		{"a line", "a\nb\nc\n", "a\nB\nc\n", 100, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c", true},
		{"context", numbers(1, 9), numbers(1, 4) + "x\n" + numbers(6, 9), 100, "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8", true},
		{"inserted", numbers(1, 9), numbers(1, 5) + "x\n" + numbers(6, 9), 100, "@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+x\n 6\n 7\n 8", true},
		{"removed", numbers(1, 9), numbers(1, 4) + numbers(6, 9), 100, "@@ -2,7 +2,6 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8", true},
		{"close changes are one hunk", numbers(1, 9), "x\n" + numbers(2, 7) + "y\n9\n", 100,
			"@@ -1,9 +1,9 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n 9", true},
		{"far changes are two", numbers(1, 9), "x\n" + numbers(2, 8) + "y\n", 100,
			"@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y", true},
		{"new file", "", "a\nb\n", 100, "@@ -0,0 +1,2 @@\n+a\n+b", true},
		{"emptied", "a\n", "", 100, "@@ -1 +0,0 @@\n-a", true},
		{"line end added", "a", "a\n", 100, "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a", true},
		{"line end removed", "a\nb\n", "a\nb", 100, "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file", true},
		{"context without a line end", "a\nb", "x\nb", 100, "@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file", true},
		{"tabs unchanged, CR not shown", "\ta\r\nb\r\n", "\tx\r\nb\r\n", 100, "@@ -1,2 +1,2 @@\n-\ta\n+\tx\n b", true},
		{"line ends are no difference", "a\r\nb\r\nc\n", "a\nB\nc\r\n", 100, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c", true},
		{"only line ends", "a\r\nb\n", "a\nb\r\n", 100, "(only line ends, the byte order mark or bytes that are not UTF-8 differ)", true},
		{"only the mark", "\xef\xbb\xbfa", "a", 100, "(only line ends, the byte order mark or bytes that are not UTF-8 differ)", true},
		{"the mark is not shown", "\xef\xbb\xbfa\n", "\xef\xbb\xbfb\n", 100, "@@ -1 +1 @@\n-a\n+b", true},
		{"other bytes", "a\xff\nb\n", "a\xff\nc\n", 100, "@@ -1,2 +1,2 @@\n a\ufffd\n-b\n+c", true},
		{"one mark for each bad byte, as read_file has it", "a\xff\xfe\nb\n", "a\xff\nb\n", 100, "@@ -1,2 +1,2 @@\n-a\ufffd\ufffd\n+a\ufffd\n b", true},
		{"exactly fits", "a\n", "b\n", 17, "@@ -1 +1 @@\n-a\n+b", true},
		{"cut", "a\nb\nc\nd\neeeeeeeeeeeeeeeeeeee\n", "a\nb\nC\nd\neeeeeeeeeeeeeeeeeeee\n", 50,
			"@@ -1,5 +1,5 @@\n a\n b\n... (diff cut, 4 more lines)", false},
		{"cut before a long line", "a\n", strings.Repeat("b", 500) + "\n", 60, "@@ -1 +1 @@\n-a\n... (diff cut, 1 more lines)", false},
		{"room for the note only", "a\n", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n", 30, "... (diff cut, 3 more lines)", false},
		{"no room", "a\n", "b\n", 10, "", false},
		{"no room at all", "a\n", "b\n", 0, "", false},
		{"too much to compare", "x\n" + strings.Repeat("a\nb\n", 80_000), "x\n" + strings.Repeat("b\na\nc\n", 80_000) + "x", 200,
			"... (the changes are within lines 1-160001, now lines 1-240002; too much to be compared)", false},
		{"too much new", "", strings.Repeat("a\n", 400_000), 200,
			"... (the changes are within no lines, now lines 1-400000; too much to be compared)", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, whole := Diff([]byte(c.old), []byte(c.new), c.max)
			if got != c.want || whole != c.whole {
				t.Errorf("got %t\n%s\nwant %t\n%s", whole, got, c.whole, c.want)
			}
		})
	}
}

// A diff once showed nothing of a change that stood beside a line longer than all of it may be, nor of one in such a line.
func TestDiffLongLines(t *testing.T) {
	long := strings.Repeat("0123456789", 1000)
	wide := strings.Repeat("日", 5000)
	const kept = 500
	cases := []struct {
		name, old, new, want string
		whole                bool // only lines that did not change were clipped
	}{
		{"above", long + "\na\n", long + "\nb\n", "@@ -1,2 +1,2 @@\n " + long[:kept] + "... (truncated, 9500 more characters)\n-a\n+b", true},
		{"below", "a\n" + long, "b\n" + long, "@@ -1,2 +1,2 @@\n-a\n+b\n " + long[:kept] + "... (truncated, 9500 more characters)\n\\ No newline at end of file", true},
		{"characters stay whole", wide + "\na\n", wide + "\nb\n", "@@ -1,2 +1,2 @@\n " + wide[:kept/3*3] + "... (truncated, 4834 more characters)\n-a\n+b", true},
		{"within", long + "x" + long + "\n", long + "yy" + long + "\n", "@@ -1 +1 @@\n" +
			"-[... 9834 characters] " + long[9834:] + "x" + long[:kept-167] + "... (truncated, 9667 more characters)\n" +
			"+[... 9834 characters] " + long[9834:] + "yy" + long[:kept-168] + "... (truncated, 9668 more characters)", false},
		{"at the end", long + "x\n", long + "y\n", "@@ -1 +1 @@\n" +
			"-[... 9501 characters] " + long[9501:] + "x\n+[... 9501 characters] " + long[9501:] + "y", false},
		{"a long line goes", "a\n" + long + "\nb\n", "a\nb\n", "@@ -1,3 +1,2 @@\n a\n-" + long[:kept] + "... (truncated, 9500 more characters)\n b", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text, whole := Diff([]byte(c.old), []byte(c.new), 8192)
			if text != c.want || whole != c.whole {
				t.Errorf("got %t\n%s\nwant\n%s", whole, text, c.want)
			}
			if at, _ := DiffAt([]byte(c.old), []byte(c.new), nil, 8192); at != text {
				t.Errorf("at no place:\n%s", at)
			}
		})
	}
	lines := strings.Repeat(long+"\n", 3)
	text, _ := Diff([]byte(lines+"old\n"+lines), []byte(lines+"new\n"+lines), 8192/20) // the share of one of 20 files
	if !strings.Contains(text, "\n-old\n+new\n") || len(text) > 8192/20 {
		t.Errorf("%d bytes\n%s", len(text), text)
	}
}

// Of a changed line that is clipped, a diff never says that it shows all: what it shows counts as read. At some lengths the
// notes of what was left out are just as long as that.
func TestDiffClippedIsNotWhole(t *testing.T) {
	t.Parallel()
	beside := strings.Repeat("0123456789", 1000)
	for size := maxClip; size <= 3*maxClip; size++ {
		old := strings.Repeat("a", size)
		now := old[:186] + "X" + old[187:size-5] + "OTHER"
		text, whole := Diff([]byte(beside+"\n"+old+"\n"), []byte(beside+"\n"+now+"\n"), 8192)
		if shown := strings.Contains(text, "-"+old+"\n") && strings.Contains(text, "+"+now); whole != shown {
			t.Fatalf("a line of %d bytes: whole is %t, and both lines are there: %t\n%s", size, whole, shown, text)
		}
	}
}

// A byte that is no character may become another one without a trace in a diff, which was whole all the same.
func TestDiffHides(t *testing.T) {
	t.Parallel()
	const only = "(only line ends, the byte order mark or bytes that are not UTF-8 differ)"
	for _, c := range []struct {
		name, old, new, want string
		hides                bool
	}{
		{"a letter", "MARK caf\xe9\nx\n", "MARK caf\xe8\nx\n", only, true},
		{"a letter and a line end", "caf\xe9\r\n", "caf\xe8\n", only, true},
		{"a line end beside one that stays", "caf\xe9\r\nx\n", "caf\xe9\nx\r\n", only, false},
		{"in front of what is shown", "caf\xe9\na\n", "caf\xe8\nb\n", "@@ -1,2 +1,2 @@\n caf\ufffd\n-a\n+b", true},
		{"behind what is shown", "a\nz\ncaf\xe9", "b\nb\nz\ncaf\xe8", "@@ -1,3 +1,4 @@\n-a\n+b\n+b\n z\n caf\ufffd\n\\ No newline at end of file", true},
		{"in a line that is shown", "caf\xe9 a\n", "caf\xe8 b\n", "@@ -1 +1 @@\n-caf\ufffd a\n+caf\ufffd b", false},
		{"a character became one that is none", "a\ufffd\n", "a\xff\n", only, true},
		{"the mark beside one that stays", "\xef\xbb\xbfcaf\xe9\n", "caf\xe9\n", only, false},
		{"half a pair of UTF-16", "\xff\xfe\x00\xd8a\x00", "\xff\xfe\x01\xd8a\x00", only, true},
	} {
		got, whole := Diff([]byte(c.old), []byte(c.new), 8192)
		if hides := Hides([]byte(c.old), []byte(c.new)); got != c.want || whole == c.hides || hides != c.hides {
			t.Errorf("%s: whole %t, hides %t\n%s", c.name, whole, hides, got)
		}
	}
}

// A far change at both ends of a large file is still two small hunks.
func TestDiffLarge(t *testing.T) {
	var lines []string
	for i := range 40_000 {
		lines = append(lines, fmt.Sprintf("line %d", i), "}")
	}
	old := strings.Join(lines, "\n") + "\n"
	for i := 100; i < len(lines); i += 20_000 {
		lines[i] = "changed"
	}
	text, whole := Diff([]byte(old), []byte(strings.Join(lines, "\n")+"\n"), 8192)
	if n := strings.Count(text, "\n+changed"); !whole || n != 4 || strings.Count(text, "@@ -") != 4 {
		t.Errorf("whole %t, %d of 4 changes:\n%s", whole, n, text)
	}
	if complaint := checkDiff(old, strings.Join(lines, "\n")+"\n", text); complaint != "" {
		t.Error(complaint)
	}
}

// Contents without unique lines, and without common ones, are the worst case of the comparison.
func TestDiffHostile(t *testing.T) {
	r := source(t)
	letters := func(n, kinds int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%d\n", r.IntN(kinds))
		}
		return b.String()
	}
	for _, c := range [][2]string{
		{letters(140_000, 3), letters(140_000, 3)},
		{letters(40_000, 1<<30), letters(40_000, 1<<30)},
		{letters(900, 2), letters(900, 2)},
		{letters(140_000, 100_000), letters(140_000, 100_000)},
		{strings.Repeat("a", 10<<20), strings.Repeat("a", 10<<20) + "b"},
	} {
		text, whole := Diff([]byte(c[0]), []byte(c[1]), 100<<20)
		if complaint := checkDiff(c[0], c[1], text); !whole || complaint != "" {
			t.Errorf("whole %t, %s", whole, complaint)
		}
	}
}

// checkDiff applies a whole diff to old, and compares with new as far as a diff shows it: as text, whatever it is in. Of a
// clipped line that has not changed it has to have the beginning.
func checkDiff(old, new, text string) string {
	before, _, _ := legible([]byte(old), []byte(new))
	after, _, _ := legible([]byte(new), []byte(old))
	have, want := shownLines(string(before)), shownLines(string(after))
	if strings.HasPrefix(text, "(") || text == "" {
		if strings.Join(have, "\n") != strings.Join(want, "\n") {
			return "the diff says that nothing is to be seen, but there is"
		}
		return ""
	}
	got, err := patch(have, strings.Split(text, "\n"))
	if err != "" {
		return err
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		return fmt.Sprintf("the hunks make %.200q, want %.200q", a, b)
	}
	return ""
}

// shownLines are the lines of a content as a diff shows them; one that does not end is followed by a note.
func shownLines(s string) []string {
	s = strings.TrimPrefix(s, "\xef\xbb\xbf")
	var lines []string
	for line := range strings.Lines(s) {
		body, ended := strings.CutSuffix(line, "\n")
		if ended {
			body = strings.TrimSuffix(body, "\r")
		}
		lines = append(lines, string([]rune(body)))
		if !ended {
			lines = append(lines, noEnd)
		}
	}
	return lines
}

const noEnd = `\ No newline at end of file`

// patch applies unified hunks. The note about a missing line end is a line here, which no content has: it would have to
// begin with its sign.
func patch(old, hunks []string) (out []string, complaint string) {
	at := 0
	var oldLeft, newLeft int
	sign := byte(0) // of the line before
	for _, line := range hunks {
		switch {
		case oldLeft == 0 && newLeft == 0 && strings.HasPrefix(line, "@@ "):
			var from, to int
			from, oldLeft, to, newLeft = header(line)
			if oldLeft > 0 {
				from--
			}
			if newLeft > 0 {
				to--
			}
			if from < at || from > len(old) {
				return nil, "hunks are not in order: " + line
			}
			out = append(out, old[at:from]...)
			if at = from; len(out) != to {
				return nil, fmt.Sprintf("the hunk %s begins at %d of the new lines", line, len(out)+1)
			}
		case line == noEnd:
			if sign != '+' {
				if at >= len(old) || old[at] != noEnd {
					return nil, fmt.Sprintf("line %d of the old lines has an end", at)
				}
				at++
			}
			if sign != '-' {
				out = append(out, noEnd)
			}
		default:
			body := line[1:]
			sign = line[0]
			if sign != '+' {
				if at >= len(old) || old[at] != body && !(sign == ' ' && clippedFrom(old[at], body)) {
					return nil, fmt.Sprintf("%.100q is not line %d of the old lines", line, at+1)
				}
				at++
				oldLeft--
			}
			if sign == ' ' {
				body = old[at-1]
			}
			if sign != '-' {
				out = append(out, body)
				newLeft--
			}
		}
	}
	if oldLeft != 0 || newLeft != 0 {
		return nil, "a hunk has fewer lines than its head says"
	}
	return append(out, old[at:]...), ""
}

// clippedFrom says whether shown is what clipping leaves of a line.
func clippedFrom(line, shown string) bool {
	head, note, found := strings.Cut(shown, "... (truncated, ")
	return found && strings.HasPrefix(line, head) && note == fmt.Sprintf("%d more characters)", utf8.RuneCountInString(line[len(head):]))
}

// header reads `@@ -a,b +c,d @@`.
func header(line string) (from, oldLines, to, newLines int) {
	parts := strings.Fields(line)
	read := func(s string) (at, n int) {
		if _, err := fmt.Sscanf(s[1:], "%d,%d", &at, &n); err != nil {
			n = 1
		}
		return at, n
	}
	from, oldLines = read(parts[1])
	to, newLines = read(parts[2])
	return from, oldLines, to, newLines
}

func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc", "a\nc\n", 8192)
	f.Add("a\r\nb\r\n", "a\nB\n", 40)
	f.Add("", "\xef\xbb\xbf\xff\n", 8192)
	f.Add("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n6\n7\n8\nx", 8192)
	f.Fuzz(func(t *testing.T, old, new string, max int) {
		if strings.Contains(old, noEnd[1:]) || strings.Contains(new, noEnd[1:]) {
			t.Skip("the text of the note")
		}
		text, whole := Diff([]byte(old), []byte(new), max)
		if len(text) > max && text != "" {
			t.Errorf("%d bytes, at most %d", len(text), max)
		}
		hides := Hides([]byte(old), []byte(new))
		if whole && hides || hides && utf8.ValidString(old) && utf8.ValidString(new) {
			t.Errorf("hides what is no character, whole %t\n%s", whole, text)
		}
		if whole {
			if complaint := checkDiff(old, new, text); complaint != "" {
				t.Errorf("%s\n%s", complaint, text)
			}
		} else if text != "" && !hides && !strings.HasSuffix(text, " more lines)") && !strings.HasSuffix(text, " compared)") &&
			!strings.Contains(text, " more characters)") && !strings.Contains(text, "[... ") {
			t.Errorf("cut without saying so:\n%s", text)
		}
		all, whole := Diff([]byte(old), []byte(new), 1<<30)
		if complaint := checkDiff(old, new, all); whole == hides || complaint != "" {
			t.Errorf("whole %t: %s\n%s", whole, complaint, all)
		}
	})
}

func TestDiffRandom(t *testing.T) {
	r := source(t)
	for range 5_000 {
		alphabet := alphabets[1+r.IntN(4)]
		old, new := randomText(r, alphabet, 60), randomText(r, alphabet, 60)
		if r.IntN(2) == 0 && old != "" {
			at := r.IntN(len(old))
			new = old[:at] + randomText(r, alphabet, 4) + old[at:]
		}
		text, whole := Diff([]byte(old), []byte(new), 1<<20)
		if complaint := checkDiff(old, new, text); !whole || complaint != "" {
			t.Fatalf("%q, %q: whole %t, %s\n%s", old, new, whole, complaint, text)
		}
	}
}

// A diff shows text, whatever it is in.
func TestDiffEncodings(t *testing.T) {
	wide := func(text string) string { return "\xff\xfe" + string(spell(utf16LE, text)) }
	cases := []struct{ name, old, new, want string }{
		{"UTF-16", wide("a\r\né\r\n"), wide("a\r\nê\r\n"), "@@ -1,2 +1,2 @@\n a\n-é\n+ê"},
		{"UTF-16 to UTF-8", wide("é\n"), "ê\n", "@@ -1 +1 @@\n-é\n+ê"},
		{"only the encoding", wide("é\n"), "é\n", "(only the encoding differs: UTF-16 LE, now UTF-8)"},
		{"Latin-1", "caf\xe9\nna\xefve\n", "caf\xe9\nna\xefvet\xe9\n", "@@ -1,2 +1,2 @@\n café\n-naïve\n+naïveté"},
		{"Latin-1, of which too little is left to tell", "caf\xe9\nna\xefve\n", "caf\xe9\n", "@@ -1,2 +1 @@\n café\n-naïve"},
		{"Latin-1, of which there was too little", "caf\xe9\n", "caf\xe9\nna\xefve\n", "@@ -1 +1,2 @@\n café\n+naïve"},
		{"a new file", "", wide("é"), "@@ -0,0 +1 @@\n+é\n\\ No newline at end of file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, whole := Diff([]byte(c.old), []byte(c.new), 8192); got != c.want || !whole {
				t.Errorf("got %q, %v\nwant %q", got, whole, c.want)
			}
		})
	}
}
