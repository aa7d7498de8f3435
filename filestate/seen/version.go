package seen

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"codehand/filestate/disk"
)

// A Version identifies a file's whole content, and says whether all of it was shown: the first 12 hex
// digits of its SHA-256, and a "p" if only a part was shown.
//
// That of a part of a file over 16 MiB, which is not hashed whole, is an "r", 12 hex digits, and ":FROM-TO", the bytes.
// It identifies the size and those bytes, and serves only edits that leave all others as they are.
type Version string

const (
	versionDigits = 12  // 48 bits: enough to tell contents of one path apart, short enough for a model to copy
	partialMark   = "p" // ends the version of a partial view; such a version serves edits, not replacements
	rangedMark    = "r" // begins the version of a part
	ownVersions   = 16  // how many replaced versions of its own a session may still name
)

// VersionOf is the short form of a content's digest; whole says that all of it was shown.
func VersionOf(d disk.Digest, whole bool) Version {
	v := Version(hex.EncodeToString(d[:versionDigits/2]))
	if !whole {
		v += partialMark
	}
	return v
}

// version returns the short form for a content of that size; "" if the part is empty.
func (p part) version(size int64) Version {
	if p.From >= p.To {
		return ""
	}
	sum := disk.DigestOf(fmt.Appendf(nil, "%d %d-%d %x", size, p.From, p.To, p.Hash))
	return Version(fmt.Sprintf("%s%s:%d-%d", rangedMark, VersionOf(sum, true), p.From, p.To))
}

// Valid says whether v has the form of a version.
func (v Version) Valid() bool {
	digits := strings.TrimSuffix(string(v), partialMark)
	if v.ranged() {
		digits, _, _ = strings.Cut(string(v[len(rangedMark):]), ":")
		if s := v.span(); v != Version(fmt.Sprintf("%s%s:%d-%d", rangedMark, digits, s.From, s.To)) || s.From >= s.To {
			return false
		}
	}
	return len(digits) == versionDigits && !strings.ContainsFunc(digits, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'f')
	})
}

// Partial says whether v is the version of a partial view, or of a part.
func (v Version) Partial() bool { return v.ranged() || strings.HasSuffix(string(v), partialMark) }

// AsPartial is the version of the same content where only a part of it was shown.
func (v Version) AsPartial() Version {
	if v == "" || v.Partial() {
		return v
	}
	return v + partialMark
}

// ranged says whether v is the version of a part.
func (v Version) ranged() bool { return strings.HasPrefix(string(v), rangedMark) }

// span returns the bytes of the version of a part, an empty Span if it is malformed.
func (v Version) span() Span {
	var s Span
	_, place, _ := strings.Cut(string(v), ":")
	if n, err := fmt.Sscanf(place, "%d-%d", &s.From, &s.To); n != 2 || err != nil || s.From < 0 {
		return Span{}
	}
	return s
}

// names says whether v is a version of the content with digest d, shown whole or not. That of a part names no digest.
func (v Version) names(d disk.Digest) bool {
	return strings.TrimSuffix(string(v), partialMark) == string(VersionOf(d, true))
}

// namesOne returns the digest among ds that v is a version of.
func (v Version) namesOne(ds []disk.Digest) (disk.Digest, bool) {
	i := slices.IndexFunc(ds, v.names)
	if i < 0 {
		return disk.Digest{}, false
	}
	return ds[i], true
}
