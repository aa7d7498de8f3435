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
type Version string

const (
	versionDigits = 12  // 48 bits: enough to tell contents of one path apart, short enough for a model to copy
	partialMark   = "p" // ends the version of a partial view; such a version serves edits, not replacements
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
	return len(digits) == versionDigits && !strings.ContainsFunc(digits, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'f')
	})
}

// partial says whether v is the version of a partial view.
func (v Version) partial() bool { return strings.HasSuffix(string(v), partialMark) }

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
