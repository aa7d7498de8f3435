package results

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// rows cuts a text into rows as a pager does.
func rows(text string) []Row {
	var all []Row
	at := int64(0)
	for line := range strings.Lines(text) {
		end := at + int64(len(line))
		text := line
		if bare, ok := strings.CutSuffix(line, "\n"); ok {
			text = strings.TrimSuffix(bare, "\r")
		}
		all = append(all, Row{Text: text, From: at, To: end, End: len(line) - len(text)})
		at = end
	}
	return all
}

func fill(v *View, text string) {
	all := rows(text)
	v.Total = len(all)
	for _, r := range all {
		if !v.Add(r) {
			return
		}
	}
}

func TestViewText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		view       View
		want       string
		remarks    []string
	}{
		{"plain", "a\nb\n", View{First: 1}, "1\ta\n2\tb", nil},
		{"pipe", "a\nb\n", View{First: 9, Pipe: true}, "   9 | a\n  10 | b", nil},
		{"place", "a\n", View{First: 3}, "3\ta", []string{"lines 3-3 of 1"}},
		{"crlf", "a\r\nb", View{First: 1}, "1\ta\n2\tb", []string{"CRLF line ends", "no newline at end"}},
		{"mixed", "a\r\nb\n", View{First: 1}, "1\ta\n2\tb", []string{"mixed line ends"}},
		{"bytes", "\xff\xfe\n", View{First: 1}, "1\t\ufffd\ufffd", []string{"2 bytes are not UTF-8 and shown as U+FFFD"}},
		{"a replacement character is no wrong byte", "\ufffd\n", View{First: 1}, "1\t\ufffd", nil},
		{"decoded", "é\ufffd\r\n", View{First: 1, Encoding: "UTF-16 LE", BOM: true, Wide: true}, "1\té\ufffd", []string{"UTF-16 LE", "BOM", "CRLF line ends"}},
		{"guessed", "é\n", View{First: 1, Encoding: "GBK", Guessed: true}, "1\té", []string{"GBK (guessed)"}},
		{"hidden", "\x1b\n", View{First: 1}, "1\t\\x1b", []string{"1 character is shown as an escape"}},
	} {
		v := c.view
		fill(&v, c.text)
		if got := v.String(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if got := v.Remarks(v.First == 3); !slices.Equal(got, c.remarks) {
			t.Errorf("%s: remarks %q, want %q", c.name, got, c.remarks)
		}
	}
}

func TestViewPartial(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789\n", 50)
	for _, c := range []struct {
		name string
		view View
		want string // the limit
	}{
		{"all", View{First: 1}, ""},
		{"runes", View{First: 1, Form: Form{Runes: 100}}, "100 characters"},
		{"bytes", View{First: 1, Form: Form{Bytes: 100}}, "100 bytes"},
		{"lines", View{First: 1, Form: Form{Lines: 3}}, "3 lines"},
		{"JSON", View{First: 1, Form: Form{JSON: 100}}, "100 characters of JSON"},
		{"tokens", View{First: 1, Tokens: 20}, "20 tokens"},
		{"asked and given", View{First: 1, Asked: 3, Form: Form{Lines: 3}}, ""},
	} {
		v := c.view
		fill(&v, text)
		got := v.Partial()
		if c.want == "" {
			if got != "" {
				t.Errorf("%s: %q", c.name, got)
			}
			continue
		}
		want := fmt.Sprintf("PARTIAL view: lines 1-%d of 50 (limit: %s). Continue with offset=%d, or use grep_search.\n", v.Lines, c.want, v.Lines+1)
		if got != want {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}
}

// Whatever the text and the limits: the view fits, is not empty, and covers what it shows.
func TestViewFits(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	alphabet := []string{"a", "é", "\u202e", "\xff", "😀", "\t", "long words of text "}
	for range 2000 {
		var text strings.Builder
		for range 1 + rng.IntN(20) {
			for range rng.IntN(30) {
				text.WriteString(alphabet[rng.IntN(len(alphabet))])
			}
			text.WriteString([]string{"\n", "\r\n"}[rng.IntN(2)])
		}
		form := Form{Runes: 60 + rng.IntN(400), Bytes: 240 + rng.IntN(900), JSON: 90 + rng.IntN(900)}
		v := View{First: 1, Form: form}
		fill(&v, text.String())
		got := v.String()
		if v.Lines == 0 || utf8.RuneCountInString(got) > form.Runes || len(got) > form.Bytes || lengthInJSON(got) > form.JSON || !utf8.ValidString(got) {
			t.Fatalf("seed %d: %d lines, %d characters and %d bytes in %+v", seed, v.Lines, utf8.RuneCountInString(got), len(got), form)
		}
		lines := strings.Split(got, "\n")
		if len(lines) != v.Lines {
			t.Fatalf("seed %d: %d lines shown, %d counted", seed, len(lines), v.Lines)
		}
		covered := int64(0)
		for _, r := range v.Shown {
			covered += r.To - r.From
		}
		want := int64(0)
		for i, r := range rows(text.String())[:v.Lines] {
			var cut int
			if _, mark, ok := strings.Cut(lines[i], "... (truncated, "); ok {
				fmt.Sscanf(mark, "%d", &cut)
			}
			if cut == 0 {
				want += r.To - r.From
				continue
			}
			want += int64(prefixLen(r.Text, utf8.RuneCountInString(r.Text)-cut))
		}
		if covered != want {
			t.Fatalf("seed %d: %d bytes covered, want %d", seed, covered, want)
		}
	}
}

// prefixLen is the length in bytes of the first runes of s.
func prefixLen(s string, runes int) int {
	at := 0
	for range runes {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

func TestNumbered(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "a\r\nb": "1\ta\n2\tb", "a\nb\nc\n": "1\ta\n2\tb\n3\tc"} {
		if got := Numbered(text); got != want {
			t.Errorf("Numbered(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 61204: "61,204", 1234567: "1,234,567", -1234: "-1,234"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0 s", 12_400 * time.Millisecond: "12.4 s", 34 * time.Second: "34 s", 90 * time.Minute: "5,400 s"} {
		if got := Seconds(d); got != want {
			t.Errorf("Seconds(%v) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KB", 5 << 20: "5.0 MB", 3 << 40: "3.0 TB"} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
}

// Of a decoded line that is cut nothing is covered, and of what it could not decode only what is shown counts.
func TestViewDecodedCut(t *testing.T) {
	t.Parallel()
	v := View{First: 1, Total: 2, Encoding: "GBK"}
	v.Add(Row{Text: "a\ufffd", From: 0, To: 100, Cut: 50, End: 1, Bad: 7})
	v.Add(Row{Text: "b\ufffd\ufffd", From: 100, To: 103, End: 1, Bad: 1}) // one of them is in the file
	if want := []Range{{100, 103}}; !slices.Equal(v.Shown, want) {
		t.Errorf("covered %v, want %v", v.Shown, want)
	}
	if want := []string{"GBK", "2 bytes are not GBK and shown as U+FFFD"}; !slices.Equal(v.Remarks(false), want) {
		t.Errorf("remarks %q, want %q", v.Remarks(false), want)
	}
}
