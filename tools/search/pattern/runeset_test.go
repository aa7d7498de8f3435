package pattern

import (
	"slices"
	"testing"
	"unicode"
)

// A large set is folded as its runes are one by one.
func TestFoldOfLargeSets(t *testing.T) {
	t.Parallel()
	for _, s := range []runeSet{ofTables(unicode.Lu), ofTables(unicode.Greek, unicode.Cyrillic), words(), anyRune, {'A', 0x2000}, {0x130, 0x3000}} {
		pairs := slices.Clone(s)
		for i := 0; i < len(s); i += 2 {
			for r := s[i]; r <= s[i+1]; r++ {
				for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
					pairs = append(pairs, o, o)
				}
			}
		}
		if got, want := s.fold(), newRuneSet(pairs...); !slices.Equal(got, want) {
			t.Errorf("set that begins with %x: folded to %x, want %x", s[:2], got, want)
		}
	}
}
