package guarded

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// fold appends name (one component of a path) to dst as the most careless file system would compare it: NFC, without
// letter case, without what HFS+ and case-folding ext4 ignore, without a stream, without dots and blanks at the end.
// It returns dst unchanged for a component that such a system would not see at all. A checkout moves between systems,
// so every system compares like this.
func fold(dst []byte, name string) []byte {
	start := len(dst)
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= utf8.RuneSelf {
			return foldUnicode(dst[:start], name)
		}
		if c == ':' { // `x::$DATA` and `x:stream` are in x
			break
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	end := len(dst)
	for end > start && (dst[end-1] == '.' || dst[end-1] == ' ') {
		end--
	}
	return dst[:end]
}

// foldUnicode is fold for a name that is not plain ASCII. Some of its runes mean ASCII letters (U+017F, U+212A).
func foldUnicode(dst []byte, name string) []byte {
	seen := strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, name)
	seen, _, _ = strings.Cut(norm.NFC.String(seen), ":")
	start := len(dst)
	for _, r := range seen {
		dst = utf8.AppendRune(dst, FoldRune(r))
	}
	end := len(dst)
	for end > start && (dst[end-1] == '.' || dst[end-1] == ' ') {
		end--
	}
	return dst[:end]
}

// ignorable says whether some file system leaves r out when it compares names. HFS+ has the list of security.md; ext4
// with casefold leaves out all code points that Unicode calls default ignorable.
func ignorable(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// FoldRune returns one and the same rune for all that differ by case only; for ASCII letters the small one.
func FoldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}

// A shortName is what FAT and NTFS may call a file besides its long name, up to the number: `GIT~1` for `.git`,
// `PRE-CO~1.YAM`. The zero shortName is of a name that has none.
type shortName struct {
	base string // in lower case, not cut; without dots at its beginning
	open bool   // anything may follow base: the long name has a `*`
	ext  string // at most 3 bytes; `*` for any
}

// shorten makes the shortName of a pattern for one component, which is folded.
func shorten(pattern string) shortName {
	name := strings.TrimLeft(pattern, ". ")
	base, ext := name, ""
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		base, ext = name[:i], name[i+1:]
	}
	s := shortName{ext: ext}
	base, _, s.open = strings.Cut(base, "*")
	s.base = strings.Map(func(r rune) rune {
		switch r {
		case '.', ' ':
			return -1
		case '+', ',', ';', '=', '[', ']':
			return '_'
		}
		return r
	}, base)
	switch {
	case strings.Contains(ext, "*"): // the star may hold a dot, too: `.pnp.*` is PNP~1.CJS and PNPLOA~1.MJS
		s.open, s.ext = true, "*"
	case s.open && ext == "":
		s.ext = "*"
	case len(ext) > 3:
		s.ext = ext[:3]
	}
	own := pattern == base+"."+ext || pattern == base // it has no other characters than a short name may have
	if own && !s.open && len(base) <= 8 && len(ext) <= 3 || s.base == "" {
		return shortName{} // it is its own short name; or there is nothing to recognise it by
	}
	return s
}

// is says whether name (folded) is a short name of what s was made of. After the fifth name of a kind NTFS takes the
// first two letters and four hexadecimal digits of a sum, any of which is taken for it.
func (s shortName) is(name []byte) bool {
	if s.base == "" {
		return false
	}
	text, ext := string(name), ""
	if i := strings.IndexByte(text, '.'); i >= 0 {
		text, ext = text[:i], text[i+1:]
	}
	letters, number, ok := strings.Cut(text, "~")
	if !ok || number == "" || len(text) > 8 || strings.Trim(number, "0123456789") != "" {
		return false
	}
	if s.ext != "*" && ext != s.ext {
		return false
	}
	if sum := len(letters) - 4; sum > 0 && sum <= 2 && strings.Trim(letters[sum:], "0123456789abcdef") == "" &&
		strings.HasPrefix(s.base, letters[:sum]) {
		return true
	}
	shown := s.base[:min(len(s.base), 7-len(number))]
	return letters == shown || s.open && strings.HasPrefix(letters, shown)
}
