package secrets

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// inParts sends text through a Mask in parts that end at the given places.
func inParts(text string, ends ...int) string {
	var m Mask
	var out strings.Builder
	from := 0
	for _, to := range append(ends, len(text)) {
		part := []byte(text[from:max(from, to)])
		done, _ := m.Part(part, to == len(text))
		out.Write(part[:done])
		from += done
	}
	return out.String()
}

// All kinds, whole and cut anywhere: no more of a secret than its last 4 bytes is left, and everything else stays where
// it was.
func TestMask(t *testing.T) {
	t.Parallel()
	for kind, examples := range planted() {
		for _, secret := range examples {
			text := "before " + secret + strings.Repeat("body", 16) + "\nKEY+body/of=it\n-----END X-----\nafter\n"
			if kind != "private-key" {
				text = "before " + secret + "\nafter\n"
			}
			want := inParts(text)
			if len(want) != len(text) || strings.Count(want, "\n") != strings.Count(text, "\n") ||
				!strings.HasPrefix(want, "before ") || !strings.HasSuffix(want, "\nafter\n") {
				t.Errorf("%s: %q became %q", kind, text, want)
			}
			for _, s := range Find(text) {
				if strings.Contains(want, text[s.From:s.To-4]) || strings.Contains(want, "body") {
					t.Errorf("%s: %q is in %q", kind, text[s.From:s.To], want)
				}
				if s.To-s.From > 45 && !strings.Contains(want, "[masked "+kind) {
					t.Errorf("%s: no word about it in %q", kind, want)
				}
			}
			for cut := range len(text) {
				if got := inParts(text, cut); got != want {
					t.Errorf("%s, cut at %d: %q, want %q", kind, cut, got, want)
				}
			}
			var ends []int
			for range 5 {
				ends = append(ends, rand.IntN(len(text)))
			}
			slices.Sort(ends)
			if got := inParts(text, ends...); got != want {
				t.Errorf("%s, cut at %d: %q, want %q", kind, ends, got, want)
			}
		}
	}
}

// A key that has no end, or that only looks like one, hides no more than its own lines.
func TestMaskOfKeyEnds(t *testing.T) {
	t.Parallel()
	begin, line := "-----BEG"+"IN RSA PRIVATE KEY-----\n", strings.Repeat("aB1+", 16)
	for text, shown := range map[string]string{
		begin + line + "\nreal result 42\n1\n":                                                      "\nreal result 42\n1\n",
		begin + line + "\n" + line + "\nshort=\n-----END RSA PRIVATE KEY-----\nafter\n":             "\n-----END RSA PRIVATE KEY-----\nafter\n",
		begin + "MIIabc\nall tests passed\n":                                                        "\nall tests passed\n",
		begin + "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,ABC\n\n" + line + "\nab=\nok fine\n": "\nok fine\n",
		strings.ReplaceAll("> "+begin+line+"\n"+line+"\n", "\n", "\n> ") + "done here\n":            "\n> done here\n",
		strings.ReplaceAll(begin+line+"\n"+line+"\n", "\n", `\n`) + "\", \"next\": 1}\n":            "\", \"next\": 1}\n",
	} {
		if got := Masked(text); !strings.HasSuffix(got, shown) || strings.Contains(got, "aB1+") {
			t.Errorf("%q became %q", text, got)
		}
		for cut := range len(text) {
			if got := inParts(text, cut); strings.Contains(got, "aB1+") || len(got) != len(text) {
				t.Errorf("%q, cut at %d, became %q", text, cut, got)
			}
		}
	}
}

// What a program prints and goes on is seen at once.
func TestMaskHoldsLittleBack(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"Password: ": 0, "50%": 0, "ok\n": 0, "": 0, "https://localhost:3000 ": 0, "a line\n": 0,
		"Username for 'https://github.com': ": 0, "gh": 2, "my_ghp_abc": 10, "a -----EN": 7,
		"-----BEGIN PRIVATE KEY-----\n": 28, "-----BEGIN PRIVATE KEY-----\nMI\n-----END X-----\nend\n": 0,
		"-----BEGIN PRIVATE KEY----- is how it begins, as a line of a text that goes on and on, and on, and then ends\n": 0, strings.Repeat("a", 10_000): 1,
	} {
		part := []byte(text)
		if done, _ := new(Mask).Part(part, false); len(text)-done != want {
			got := len(text) - done
			t.Errorf("%.99q: %d bytes are held back, not %d", text, got, want)
		}
		if done, _ := new(Mask).Part(part, true); done != len(text) {
			got := len(text) - done
			t.Errorf("%.99q: %d bytes are held back at the end", text, got)
		}
	}
}

func BenchmarkMask(b *testing.B) {
	part := []byte(strings.Repeat("ok  	codehand/tools/results	0.041s  coverage: 91.2% of statements\n", 4000))
	b.SetBytes(int64(len(part)))
	for b.Loop() {
		new(Mask).Part(part, false)
	}
}
