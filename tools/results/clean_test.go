package results

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// cleaned are sequences and what is left of them. Text beside them must stay.
var cleaned = map[string]string{
	// Colours, cursor, modes.
	"\x1b[31mred\x1b[0m":         "red",
	"\x1b[1;38;5;196mbold\x1b[m": "bold",
	"\x1b[38:2::1:2:3mrgb":       "rgb",
	"a\x1b[2Kb":                  "ab",
	"\x1b[10;20Hat":              "at",
	"\x1b[?25lhidden\x1b[?25h":   "hidden",
	"\x1b[?1049halt":             "alt",
	"\x1b[>4;2mkeys":             "keys",
	"\x1b[ qcursor":              "cursor",
	"\x1b[6nreport":              "report",
	"\x1bcreset":                 "reset",
	"\x1b7save\x1b8":             "save",
	"\x1b(Bcharset":              "charset",
	"\x1b#8align":                "align",
	"\x1b[200~paste\x1b[201~":    "paste",
	"\x1b[38;5;\x1b[31mtwice":    "38;5;twice",
	// Strings with an end.
	"\x1b]0;title\atext":                                  "text",
	"\x1b]0;title\x1b\\text":                              "text",
	"\x1b]0;Ü✓ title\x1b\\text":                           "text",
	"\x1b]0;title\u009ctext":                              "text",
	"\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\": "link",
	"\x1b]8;;https://example.com\alink\x1b]8;;\a!":        "link!",
	"\x1b]52;c;ZXZpbA==\atext":                            "text",
	"\x1b]133;A\atext":                                    "text",
	"\x1bP1$r0m\x1b\\text":                                "text",
	"\x1bPq#0;2;0;0;0\x1b\\text":                          "text",
	"\x1bXsos\x1b\\text":                                  "text",
	"\x1b^pm\x1b\\text":                                   "text",
	"\x1b_Gf=100;AAAA\x1b\\text":                          "text",
	// Strings without: the text stays.
	"\x1b]0;title\ntext":                        "0;title\ntext",
	"\x1b]text":                                 "text",
	"\x1bPtext\nmore":                           "text\nmore",
	"\x1bXtext\nmore\x1b\\":                     "text\nmore",
	"\x1b^text\nmore":                           "text\nmore",
	"\x1b_text\nmore":                           "text\nmore",
	"\x1b_text\amore\n":                         "textmore\n",
	"\x1b]0;a\x18text":                          "0;atext",
	"\x1b]0;a\x1atext":                          "0;atext",
	"\x1b]0;a\x1b[31mtext":                      "0;atext",
	"\x1b]" + strings.Repeat("x", 1<<20) + "\a": strings.Repeat("x", 1<<20),
	// Sequences without an end.
	"\x1b":              "",
	"text\x1b":          "text",
	"\x1b\nhello":       "\nhello",
	"\x1b[":             "",
	"\x1b[31":           "31",
	"\x1b[31\nhello":    "31\nhello",
	"\x1b[31ütext":      "31ütext",
	"\x1b[\x1b[31mtext": "text",
	"\x1b\x1b[m[31m":    "[31m",
	"\x1b(\ntext":       "(\ntext",
	"\x1büber":          "über",
	// Raw 8-bit controls: Windows-1252, Shift-JIS and GBK text must not vanish.
	"a\x9bb31mc":             "a\ufffdb31mc",
	"a\x90b\x9dc\x9fd":       "a\ufffdb\ufffdc\ufffdd",
	"it\x92s \x93quoted\x94": "it\ufffds \ufffdquoted\ufffd",
	"\x93\xfa\x96\x7b":       "\ufffd\ufffd\ufffd{",
	"\xc3\x28":               "\ufffd(",
	"\xed\xa0\x80":           "\ufffd\ufffd\ufffd",
	"\xf5\xff":               "\ufffd\ufffd",
	"\xe2\x9c":               "\ufffd\ufffd",
	// C1 controls in UTF-8 and other controls.
	"a\u009b31mb":                          "a31mb",
	"a\u009d0;b\u009c":                     "a0;b",
	"a\u0085b":                             "ab",
	"a\x00b\x07c\x0bd\x0ce\x7ff\x0eg\x1fh": "abcdefgh",
	// Overstrike and other backspaces.
	"b\bbo\bol\bld\bd":           "bold",
	"b\bb\bb":                    "b",
	"_\bu_\bn_\bd":               "und",
	"_\b_":                       "_",
	"_\bü\bü":                    "ü",
	"\x1b[1mb\x1b[0m\bb":         "b",
	"ab\bc":                      `ab\x08c`,
	"secret\b\b\b\b\b\bharmless": `secret\x08\x08\x08\x08\x08\x08harmless`,
	"\b":                         `\x08`,
	"a\b":                        `a\x08`,
	// Line ends and progress.
	"a\r\nb\r\n":                        "a\nb\n",
	"a\r\r\nb":                          "a\nb",
	"one\rtwo":                          "one\ntwo",
	"rm -rf /\rls":                      "rm -rf /\nls",
	"10%\r50%\r100%\ndone":              "[2 progress states overwritten] 100%\ndone",
	"10%\r50%\r100%\r\ndone":            "[2 progress states overwritten] 100%\ndone",
	"\r10%\r50%\r100%\r":                "[2 progress states overwritten] 100%",
	"\r\x1b[K10%\r\x1b[K20%\r\x1b[K30%": "[2 progress states overwritten] 30%",
	"a\rb\n1\r2\r3\r4\n":                "a\nb\n[3 progress states overwritten] 4\n",
	"\r":                                "\n",
	"a\r":                               "a\n",
	// Invisible characters.
	"a\u202eb":            `a\u202eb`,
	"a\u2066b\u2069":      `a\u2066b\u2069`,
	"a\u200bb":            `a\u200bb`,
	"\ufeffa":             `\ufeffa`,
	"a\u061cb":            `a\u061cb`,
	"a\u2028b":            `a\u2028b`,
	"a\U000e0041b":        `a\u{e0041}b`,
	"a\ufff9b":            `a\ufff9b`,
	"a\uffffb":            `a\uffffb`,
	"a\ufdd0b":            `a\ufdd0b`,
	"a\U0001fffeb":        `a\u{1fffe}b`,
	"so\u00adft":          "soft",
	"a\u200db":            `a\u200db`,
	"ü\u200d":             `ü\u200d`,
	"\u200cü":             `\u200cü`,
	"ü\u200d\u200dü":      `ü\u200d\u200dü`,
	"❤\ufe0f\ufe0e\ufe01": "❤\ufe0f" + `\ufe0e\ufe01`,
	"ü\u200d\u200bü":      `ü\u200d\u200bü`,
	"❤\ufe0f\x00\ufe0e":   "❤\ufe0f" + `\ufe0e`,
}

// harmlessTexts are left as they are by both.
var harmlessTexts = []string{
	"", "plain", "tab\tand\nline\n", "Ünïcödé ß ñ", "日本語テキスト", "русский", "العربية", "עברית", "हिन्दी क्\u200dष", "فارسی می\u200cخواهم",
	"👩\u200d💻 ❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈", "🇩🇪", "é", "½ € ™ “quoted” – —", "\u00a0nbsp\u3000ideographic", "\ue0b0 powerline \uf121",
	"\ufffd", "┌─┐│└┘", "∀x∈ℝ", "ﬁ ligature", "\U000f0001", "[31m not a sequence", `\x1b \u202e \u{e0041}`, "a_b __init__", "100% [2 progress states overwritten]",
}

func TestClean(t *testing.T) {
	t.Parallel()
	if len(cleaned) < 60 || len(harmlessTexts) < 20 {
		t.Errorf("%d sequences and %d harmless texts are too few", len(cleaned), len(harmlessTexts))
	}
	for text, want := range cleaned {
		if got := Clean(text); got != want {
			t.Errorf("Clean(%.40q) = %.60q, want %.60q", text, got, want)
		}
	}
	for _, text := range harmlessTexts {
		if got := Clean(text); got != text {
			t.Errorf("Clean(%q) = %q", text, got)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\x1b[31mred\x1b[0m": `\x1b[31mred\x1b[0m`,
		"a\x00\x7f\u009bb":   `a\x00\x7f\x9bb`,
		"a\rb":               `a\x0db`,
		"a\bb":               `a\x08b`,
		"so\u00adft":         `so\u00adft`,
		"a\u202eb\u2066":     `a\u202eb\u2066`,
		"a\U000e0041b":       `a\u{e0041}b`,
		"\ufeffa\ufeff":      `\ufeffa\ufeff`,
		"a\u200db":           `a\u200db`,
		"ü\u200d\x00":        `ü\u200d\x00`,
		"a\xffb":             "a\ufffdb",
		"\t\n":               "\t\n",
	} {
		got, n := Show(text)
		if got != want || n != strings.Count(want, `\`) {
			t.Errorf("Show(%q) = %q, %d, want %q", text, got, n, want)
		}
	}
	for _, text := range harmlessTexts {
		if got, n := Show(text); got != text || n != 0 {
			t.Errorf("Show(%q) = %q, %d", text, got, n)
		}
	}
}

// forbidden names the first character of a text that may not be sent; "": there is none. It says so in another way than
// the tables of the package.
func forbidden(text string) string {
	if !utf8.ValidString(text) {
		return "invalid UTF-8"
	}
	for _, r := range text {
		switch {
		case r == '\t', r == '\n', r == joiner, r == nonJoiner, unicode.Is(unicode.Variation_Selector, r):
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return string(r)
		case r >= 0xe0000 && r <= 0xe007f, r == 0xfeff, r == 0x200b, r == 0x180e, r&0xfffe == 0xfffe, r >= 0xfdd0 && r <= 0xfdef:
			return string(r)
		case r == softHyphen, r >= 0x2060 && r <= 0x206f, r >= 0xfff9 && r <= 0xfffb:
			return string(r)
		}
	}
	return ""
}

func seedTexts(f *testing.F) {
	for text := range cleaned {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	for _, text := range harmlessTexts {
		f.Add(text)
	}
	f.Add("\x1b]\x1b]\x1b]\x1bP\x1b[[[\x1b[;;;\x1b(((")
	f.Add("❤\u200d\ufe0f\u200d\u00ad\u200d\ufe0f\ufe0f\u200b\b_\b\b\rx\r\r\ny\rz")
}

func FuzzClean(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		got := Clean(text)
		if bad := forbidden(got); bad != "" {
			t.Errorf("Clean(%q) = %q has %q", text, got, bad)
		}
		if again := Clean(got); again != got {
			t.Errorf("Clean(%q) = %q, and again %q", text, got, again)
		}
		if shown, n := Show(got); shown != got || n != 0 {
			t.Errorf("Show finds %d in the cleaned text %q: %q", n, got, shown)
		}
		if lost := lettersLost(text, got); lost != "" {
			t.Errorf("Clean(%q) = %q lost %q", text, got, lost)
		}
	})
}

// lettersLost checks that nothing is swallowed where no escape sequence, overstrike or progress is: letters stay.
func lettersLost(text, got string) string {
	if strings.ContainsAny(text, "\x1b\r\b") {
		return ""
	}
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return r
			}
			return -1
		}, s)
	}
	if want := letters(text); !strings.Contains(got, `\`) && letters(got) != want {
		return want
	}
	return ""
}

func FuzzShow(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		got, n := Show(text)
		if bad := forbidden(got); bad != "" {
			t.Errorf("Show(%q) = %q has %q", text, got, bad)
		}
		if again, m := Show(got); again != got || m != 0 {
			t.Errorf("Show(%q) = %q, and again %q with %d", text, got, again, m)
		}
		if n == 0 && got != text && utf8.ValidString(text) {
			t.Errorf("Show(%q) = %q without an escape", text, got)
		}
	})
}

// A text made to be slow is not.
func TestCleanIsLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"\x1b]", "\x1b[", "\x1b[1;", "\x1bP\x1b", "\x1b(", "\r", "\b", "a\b", "_\b", "\u200d", "\ufe0f", "\x9b", "\x1b]\u009d"} {
		text := strings.Repeat(piece, 1<<20/len(piece))
		if got := Clean(text); forbidden(got) != "" {
			t.Errorf("a megabyte of %q", piece)
		}
	}
}

func BenchmarkClean(b *testing.B) {
	for name, line := range map[string]string{
		"ascii":   "internal/server/session.go:41: a line of plain output\n",
		"colours": "\x1b[32mok\x1b[0m  \tcodehand/tools\t\x1b[1m0.41s\x1b[0m\n",
		"unicode": "größer als üblich → ✓ 日本語\n",
	} {
		text := strings.Repeat(line, 1<<20/len(line))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Clean(text)
			}
		})
	}
}

// The cheap question never says no where the tables say yes.
func TestSuspect(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		shown := alwaysShown(r) || r == joiner || r == nonJoiner || unicode.Is(unicode.Variation_Selector, r)
		if shown && !suspect(r) {
			t.Errorf("%U is not suspect", r)
		}
	}
}

func TestShowDiff(t *testing.T) {
	t.Parallel()
	for diff, want := range map[string]struct {
		shown string
		exact bool
	}{
		"@@ -1 +1 @@\n-a\n+b\n":          {"@@ -1 +1 @@\n-a\n+b\n", true},
		"-a\x1bb\n+a\x1bc\n":             {"-a\\x1bb\n+a\\x1bc\n", true},
		"-\\x1b\n+b\n":                   {"-\\x1b\n+b\n", true},
		" \x1b\n-a\x1b\n+a\x1b\n":        {" \\x1b\n-a\\x1b\n+a\\x1b\n", true}, // which is no change, but no lie
		"-a\\x1bb\n+a\x1bb\n":            {"-a\\x1bb\n+a\\x1bb\n", false},
		"-\u202e\n x\n+\\u202e":          {"-\\u202e\n x\n+\\u202e", false},
		"(only line ends \u202e differ)": {"(only line ends \\u202e differ)", true},
	} {
		if shown, exact := ShowDiff(diff); shown != want.shown || exact != want.exact {
			t.Errorf("%q: %q, %v", diff, shown, exact)
		}
	}
}
