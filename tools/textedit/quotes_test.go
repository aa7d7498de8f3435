package textedit

import (
	"strings"
	"testing"
)

func TestRestyle(t *testing.T) {
	cases := []struct {
		name, found, old, add, want string
		prose                       bool
	}{
		{"as many: the k-th takes the k-th", "“a” ‘b’", `"a" 'b'`, `'x' "y"`, "‘x’ “y”", false},
		{"as many: each kind by itself", "‘a” “b’", `'a" "b'`, `"a' 'b"`, "”a‘ ’b“", false},
		{"as many: straight ones stay", `“a" 'b’`, `"a" 'b'`, `"x" 'y'`, `“x" 'y’`, false},
		{"as many: curly ones as sent become the file's", `"a"`, "“a”", "“b”", `"b"`, false},
		{"as many: primes", "5′ 3″", `5' 3"`, `6' 4"`, "6′ 4″", false},
		{"no quotes in new text", "“a”", `"a"`, "a", "a", false},
		{"more: the beginning comes before the end", "“a”", `"a"`, `"a" + "b"`, `“a” + "b"`, false},
		{"more: only the beginning", "“a”.", `"a".`, `"a", "b"!`, `“a”, "b"!`, false},
		{"more: only the end", ".“a”", `."a"`, `!"b" "a"`, `!"b" “a”`, false},
		{"more: neither", ".“a”.", `."a".`, `!"b" "c" 'd'!`, `!"b" "c" 'd'!`, false},
		{"fewer", "“a” “b”", `"a" "b"`, `"a b"`, "“a b”", false},
		{"others stay as sent", "“a” x", `"a" x`, `"a" ″b„ 'c'`, "“a” ″b„ 'c'", false},
		{"the beginning and the end do not overlap", "““", `""`, `"""`, `““"`, false},
		{"other sent spelling is no common beginning", "“a”.", `"a".`, "“a”, \"b\"!", "“a”, \"b\"!", false},

		{"prose: opening and closing", "“a”.", `"a".`, `"x" and ("y") ["z"] {"q"}-"r"–"s"—"t"!`,
			"“x” and (“y”) [“z”] {“q”}-“r”–“s”—“t”!", true},
		{"prose: after a line end", "“a”.", `"a".`, "one\n\"two\"\t\"three\"!", "one\n“two”\t“three”!", true},
		{"prose: apostrophe", "‘a’.", `'a'.`, `it's 'x'!`, "it’s ‘x’!", true},
		{"prose: apostrophe of the plural", "‘a’.", `'a'.`, `the cats' 'x' it!`, "the cats’ ‘x’ it!", true},
		{"prose: only the kind that is curly", "“a”.", `"a".`, `it's "x" 'y'!`, "it's “x” 'y'!", true},
		{"prose: a prime is not curly", "5″.", `5".`, `"x" "y"!`, `"x" "y"!`, true},
		{"prose: what the file has straight stays", "“a” \"b\".", `"a" "b".`, `"a" "b" "c"!`, "“a” \"b\" “c”!", true},
		{"code: new quotes stay straight", "“a”.", `"a".`, `_"x" and ("y") it's!`, `_"x" and ("y") it's!`, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := restyle(c.found, c.old, c.add, c.prose); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Only quotes change, and only in their spelling.
func TestRestyleKeepsTheRest(t *testing.T) {
	r := source(t)
	quotes := []string{"a", " ", "'", "’", "‘", "′", `"`, "“", "”", "″", "\xff", "\n"}
	fold := func(s string) string { return shown(elements(s, true)) }
	for range 20_000 {
		found, add := randomText(r, quotes, 8), randomText(r, quotes, 12)
		old := fold(found)
		if r.IntN(2) == 0 {
			cut := r.IntN(len(old) + 1)
			add = old[:cut] + add + old[cut:]
		}
		got := restyle(found, old, add, r.IntN(2) == 0)
		if fold(got) != fold(add) {
			t.Fatalf("restyle(%q, %q, %q) is %q, which is another text", found, old, add, got)
		}
		if whole := restyle(found, old, old, true); whole != found {
			t.Fatalf("restyle(%q, %q, same) is %q: text that stays must keep its spelling", found, old, whole)
		}
	}
}

// An edit of a text with very many quotes took minutes, in which no other call could change the file: it searched all
// old quotes for each quote of the new text.
func TestRestyleMany(t *testing.T) {
	const n = 400_000
	got := restyle(strings.Repeat("“", n), strings.Repeat(`"`, n), strings.Repeat(` "a`, n-1)+"!", true)
	if want := strings.Repeat(" “a", n-1) + "!"; got != want {
		t.Errorf("got %.40q, want %.40q", got, want)
	}
}

func TestDecodeEscapes(t *testing.T) {
	cases := []struct{ name, in, want, known string }{
		{"none", `a\n\t\\`, `a\n\t\\`, ""},
		{"four digits", `\u00e9\u00E8`, "éè", `\u00E8 \u00e9`},
		{"two digits", `\x41\xe9`, "Aé", `\x41 \xe9`},
		{"in braces", `\u{e9}\u{1F600}\u{10ffff}`, "é\U0001f600\U0010ffff", `\u{10ffff} \u{1F600} \u{e9}`},
		{"a surrogate pair", `\ud83d\ude00`, "\U0001f600", `\ud83d\ude00`},
		{"half a pair", `\ud83d x \ude00`, `\ud83d x \ude00`, ""},
		{"half a pair before a character", `\ud83d\u0041`, `\ud83dA`, `\u0041`},
		{"a surrogate in braces", `\u{d83d}`, `\u{d83d}`, ""},
		{"too large", `\u{110000}\u{fffffff}\u{fffffffffff}`, `\u{110000}\u{fffffff}\u{fffffffffff}`, ""},
		{"too short", `\u00e \x4 \u{} \u{ \x \u`, `\u00e \x4 \u{} \u{ \x \u`, ""},
		{"no digits", `\uzzzz \xzz \u{zz} \u+0e9 \x-1`, `\uzzzz \xzz \u{zz} \u+0e9 \x-1`, ""},
		{"an escaped backslash", `\\u00e9 \\\u00e9`, `\\u00e9 \\é`, `\u00e9`},
		{"a backslash at the end", `\u00e9\`, `é\`, `\u00e9`},
		{"other bytes stay", "\xff\\xe9\\\xff", "\xffé\\\xff", `\xe9`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, known := decodeEscapes(c.in, nil)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(known) != len(strings.Fields(c.known)) {
				t.Errorf("known %v, want %s", known, c.known)
			}
			for _, k := range strings.Fields(c.known) {
				if !known[k] {
					t.Errorf("known %v, want %s", known, c.known)
				}
			}
		})
	}
	if got, _ := decodeEscapes(`\u00e9 \u00e8 \ud83d\ude00`, map[string]bool{`\u00e8`: true}); got != `\u00e9 è \ud83d\ude00` {
		t.Errorf("only one escape: got %q", got)
	}
}
