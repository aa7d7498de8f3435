package disk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// A Digest is the SHA-256 of a whole content.
type Digest [sha256.Size]byte

// DigestOf is the digest of a content.
func DigestOf(content []byte) Digest { return sha256.Sum256(content) }

// Hex is the digest in hex.
func (d Digest) Hex() string { return hex.EncodeToString(d[:]) }

// MarshalText writes a digest as hex, for records.
func (d Digest) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, d[:]), nil
}

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(d) {
		return fmt.Errorf("digest of %d characters", len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// Text is the digest in hex, "" for none.
func (d *Digest) Text() string {
	if d == nil {
		return ""
	}
	return d.Hex()
}

// IsOf says whether content is what a digest is of; nil for both: there is no file.
func (d *Digest) IsOf(content []byte) bool {
	return (content == nil) == (d == nil) && (d == nil || DigestOf(content) == *d)
}

// Equal says whether both are of the same content, or both of none.
func (d *Digest) Equal(other *Digest) bool {
	return d == nil && other == nil || d != nil && other != nil && *d == *other
}

// StreamDigest hashes size bytes of a file without holding them. ErrMoved: it does not have that size.
func StreamDigest(ctx context.Context, f *os.File, size int64) (Digest, error) {
	h := sha256.New()
	buf := make([]byte, ChunkSize)
	var at int64
	for {
		if err := context.Cause(ctx); err != nil {
			return Digest{}, err
		}
		n, err := f.ReadAt(buf, at)
		h.Write(buf[:n])
		at += int64(n)
		if at > size {
			return Digest{}, ErrMoved
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Digest{}, err
		}
	}
	if at != size {
		return Digest{}, ErrMoved
	}
	return Digest(h.Sum(nil)), nil
}
