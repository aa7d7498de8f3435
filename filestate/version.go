package filestate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// A Version identifies a file's whole content, and says whether all of it was shown: the first 12 hex
// digits of its SHA-256, and a "p" if only a part was shown.
//
// That of a part of a file over 16 MiB, which is not hashed whole, is an "r", 12 hex digits, and ":FROM-TO", the bytes. It
// identifies the size and those bytes, and serves only edits that leave all others as they are.
type Version string

const (
	versionDigits = 12  // 48 bits: enough to tell contents of one path apart, short enough for a model to copy
	partialMark   = "p" // ends the version of a partial view; such a version serves edits, not replacements
	rangedMark    = "r" // begins the version of a part
	ownVersions   = 16  // how many replaced versions of its own a session may still name
)

// A digest is the SHA-256 of a whole content.
type digest [sha256.Size]byte

func digestOf(content []byte) digest { return sha256.Sum256(content) }

// Sums are the SHA-256 of a file's whole content before and after, in hex; "": there was no file, or it is not known.
type Sums struct{ Before, After string }

func (d digest) sum() string { return hex.EncodeToString(d[:]) }

// version returns the short form.
func (d digest) version(whole bool) Version {
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
	sum := digestOf(fmt.Appendf(nil, "%d %d-%d %x", size, p.From, p.To, p.Hash))
	return Version(fmt.Sprintf("%s%s:%d-%d", rangedMark, sum.version(true), p.From, p.To))
}

// MarshalText and UnmarshalText write a digest as hex, for records.
func (d digest) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, d[:]), nil
}

func (d *digest) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(d) {
		return fmt.Errorf("digest of %d characters", len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// valid says whether v has the form of a version.
func (v Version) valid() bool {
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

// partial says whether v is the version of a partial view.
func (v Version) partial() bool { return v.ranged() || strings.HasSuffix(string(v), partialMark) }

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

// names says whether v is a version of d, whole or not.
func (v Version) names(d digest) bool {
	return strings.TrimSuffix(string(v), partialMark) == string(d.version(true))
}

// namesOne returns the digest among ds that v is a version of.
func (v Version) namesOne(ds []digest) (digest, bool) {
	i := slices.IndexFunc(ds, v.names)
	if i < 0 {
		return digest{}, false
	}
	return ds[i], true
}
