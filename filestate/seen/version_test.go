package seen

import (
	"strings"
	"testing"

	"codehand/filestate/disk"
)

// Whatever a caller gives as a version: one that is valid says the same of itself when it is written again.
func FuzzVersion(f *testing.F) {
	p := part{Span{3, 9}, disk.DigestOf([]byte("part"))}
	for _, v := range []Version{"", "0123456789ab", "0123456789abp", "r0123456789ab:3-9", p.version(20), "r0123456789ab:9-3", "r:0-1", "r0123456789ab:+1-2", "r0123456789ab:1-99999999999999999999", "0123456789AB"} {
		f.Add(string(v))
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := Version(text)
		s, partial := v.span(), v.Partial()
		if !v.Valid() {
			return
		}
		if p := v.AsPartial(); !p.Valid() || !p.Partial() || p.AsPartial() != p || !strings.HasPrefix(string(p), text) {
			t.Errorf("%q of a part is %q", v, p)
		}
		switch {
		case len(v) > 64:
			t.Errorf("%q is long", v)
		case v.ranged() && (s.From < 0 || s.From >= s.To || !partial):
			t.Errorf("%q is of the bytes %+v", v, s)
		case strings.ContainsAny(text, " \n\x00"):
			t.Errorf("%q is no word", v)
		}
	})
}
