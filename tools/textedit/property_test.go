package textedit

import (
	"flag"
	"hash/crc64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var seed = flag.Uint64("seed", 0, "repeat the random tests with this seed")

// source is random, and prints how to have the same again.
func source(t *testing.T) *rand.Rand {
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("-seed %d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// alphabets are small, so that texts repeat themselves and matches overlap.
var alphabets = [][]string{
	{"a", "b"},
	{"a", "b", "\n"},
	{"a", "\n", "\r\n"},
	{"a", "\n", "\r\n", "\r", " "},
	{"a", "'", "’", "‘", `"`, "“", "”", "″", " ", "\n", "\r\n"},
	{"a", "é", "日", "\xff", "\xe9", "\xe2\x80", "\ufffd", "’", "\r\n"},
	{"é", "a", `\u00e9`, `\xe9`, `\u{e9}`, `\`, "\n"},
}

func randomText(r *rand.Rand, alphabet []string, max int) string {
	var b strings.Builder
	for range r.IntN(max + 1) {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

// randomEdit takes its old text from the content more often than not, sometimes spelled in another way.
func randomEdit(r *rand.Rand, content string, alphabet []string) Edit {
	e := Edit{
		Old:   randomText(r, alphabet, 3),
		New:   randomText(r, alphabet, 6),
		All:   r.IntN(2) == 0,
		Prose: r.IntN(2) == 0,
	}
	if r.IntN(4) == 0 {
		e.Expect = r.IntN(4)
	}
	if r.IntN(3) > 0 && content != "" {
		from := r.IntN(len(content))
		e.Old = content[from : from+1+r.IntN(min(8, len(content)-from))]
		if r.IntN(2) == 0 {
			e.Old = foldEnds(e.Old)
		}
		if r.IntN(3) == 0 {
			e.Old = shown(elements(e.Old, true))
		}
	}
	if r.IntN(5) == 0 {
		e.New = ""
	}
	return e
}

func TestApplyAgainstOracle(t *testing.T) {
	r := source(t)
	for range 30_000 {
		alphabet := alphabets[r.IntN(len(alphabets))]
		content := randomText(r, alphabet, 24)
		if r.IntN(4) == 0 {
			content = "\xef\xbb\xbf" + content
		}
		e := randomEdit(r, content, alphabet)
		if text := complaint([]byte(content), e); text != "" {
			t.Fatalf("%q, %#v: %s", content, e, text)
		}
	}
}

// Every combination of line end, mark and other bytes: what is around the match stays, and the pair within it is spelled
// as it was.
func TestApplyKeepsOtherBytes(t *testing.T) {
	others := []string{"", "plain", "é日\n", "caf\xe9 \xff\x80\r\n", "a\rb", "“q” 'r'\r\n\n", "\\u0041"}
	for _, bom := range []string{"", "\xef\xbb\xbf"} {
		for _, before := range others {
			for _, after := range others {
				for _, end := range []string{"\n", "\r\n"} {
					for _, sent := range []string{"\n", "\r\n"} {
						content := bom + before + "(one)" + end + "(two)" + after
						got, _, err := Apply([]byte(content), []Edit{{Old: "(one)" + sent + "(two)", New: "[1]" + sent + "[2]"}})
						if want := bom + before + "[1]" + end + "[2]" + after; err != nil || string(got) != want {
							t.Errorf("%q: got %q, %v; want %q", content, got, err, want)
						}
					}
				}
			}
		}
	}
}

// Several edits are one after the other, and their lines are where their text is in the end.
func TestApplySeveralIsOneByOne(t *testing.T) {
	r := source(t)
	for range 10_000 {
		alphabet := alphabets[r.IntN(4)]
		content := randomText(r, alphabet, 30)
		var edits []Edit
		for i := range 1 + r.IntN(4) {
			e := randomEdit(r, content, alphabet)
			e.New = string(rune('0'+i)) + strings.Repeat("\n", r.IntN(3))
			edits = append(edits, e)
		}
		got, report, err := Apply([]byte(content), edits)
		want, wantErr := []byte(content), error(nil)
		for _, e := range edits {
			if wantErr == nil {
				want, _, wantErr = Apply(want, []Edit{e})
			}
		}
		if kind(err) == ErrCascade.Error() {
			continue
		}
		if kind(err) != kind(wantErr) || string(got) != string(want) && err == nil {
			t.Fatalf("%q, %#v: got %q, %v; one by one %q, %v", content, edits, got, err, want, wantErr)
		}
		if err != nil {
			continue
		}
		for i, done := range report.Edits {
			var lines []int
			for n, line := range strings.Split(string(got), "\n") {
				for range strings.Count(line, string(rune('0'+i))) {
					lines = append(lines, n+1)
				}
			}
			// A later edit may have taken the text away again, but then Lines has more.
			if len(lines) == len(done.Lines) && !slices.Equal(lines, done.Lines) {
				t.Fatalf("%q, %#v: edit %d is on lines %v of %q, and says %v", content, edits, i, lines, got, done.Lines)
			}
		}
	}
}

// FuzzApply looks for the text that it is given and, since that is rarely there, for a piece of the content, too.
func FuzzApply(f *testing.F) {
	f.Add([]byte("a\r\nb\nc"), "a\nb", "x\ny\nz", false, uint8(0), false)
	f.Add([]byte("\xef\xbb\xbf“a” 'b' ″c″"), `"a"`, `"it's"`, true, uint8(0), true)
	f.Add([]byte("caf\xe9 \xff\r\r\n"), "\r\n", "é", false, uint8(1), false)
	f.Add([]byte("aaaa"), "aa", "", true, uint8(2), false)
	f.Add([]byte("é\n"), `\u00e9`, `\u00e9\ud83d\ude00`, false, uint8(0), false)
	f.Add([]byte(" \n"), "", "a\r\n", false, uint8(0), false)
	f.Fuzz(func(t *testing.T, content []byte, old, add string, all bool, expect uint8, prose bool) {
		if len(content) > 500 || len(old) > 100 || len(add) > 100 {
			t.Skip("the oracle takes the square of the length")
		}
		e := Edit{Old: old, New: add, All: all, Expect: int(expect), Prose: prose}
		if text := complaint(content, e); text != "" {
			t.Errorf("%q, %#v: %s", content, e, text)
		}
		there := pieceEdit(content, string(content), e)
		if text := complaint(content, there); text != "" {
			t.Errorf("a piece: %q, %#v: %s", content, there, text)
		}
	})
}

// pieceEdit is e with an old text that may be in text, always the same for the same content.
func pieceEdit(content []byte, text string, e Edit) Edit {
	r := rand.New(rand.NewPCG(crc64.Checksum(content, crc64.MakeTable(crc64.ECMA)), uint64(e.Expect)))
	there := randomEdit(r, text, alphabets[r.IntN(len(alphabets))])
	there.New, there.All, there.Prose = e.New, e.All, e.Prose
	return there
}
