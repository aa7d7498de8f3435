package git

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

var errIndex = errors.New("the index cannot be read")

// An indexReader reads entries one after the other.
type indexReader struct {
	*bufio.Reader
	version uint32
	name    []byte // of the entry before
	link    bool   // it is a commit of another repository: a submodule
}

// indexHas says whether is says yes to a path in an index file, relative to the top of the repository (git,
// Documentation/gitformat-index); submodule: another repository stands there. The error is for an index that is not
// understood: of a later version, with other hashes than SHA-1, split, sparse, or no index.
func indexHas(index io.Reader, is func(name string, submodule bool) bool) (bool, error) {
	in := bufio.NewReader(index)
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:4]) != "DIRC" {
		return false, errIndex
	}
	r := indexReader{Reader: in, version: binary.BigEndian.Uint32(head[4:])}
	if r.version < 2 || r.version > 4 {
		return false, errIndex
	}
	for range binary.BigEndian.Uint32(head[8:]) {
		if err := r.entry(); err != nil {
			return false, errIndex
		}
		if is(string(r.name), r.link) {
			return true, nil
		}
	}
	for { // extensions, until the checksum
		next, err := in.Peek(8)
		if err != nil || next[0] < 'A' || next[0] > 'Z' && next[0] < 'a' || next[0] > 'z' {
			return false, nil //nolint:nilerr // the checksum's last bytes, or its first
		}
		if sig := string(next[:4]); sig == "link" || sig == "sdir" { // split or sparse: not all is here
			return false, errIndex
		}
		if _, err := in.Discard(8 + int(binary.BigEndian.Uint32(next[4:]))); err != nil {
			return false, nil //nolint:nilerr // it was the checksum
		}
	}
}

// entry reads one entry, of which only the name counts. Its length is checked, since a repository with other hashes has
// entries of another size.
func (r *indexReader) entry() error {
	const fixed = 62 // with SHA-1
	var stat [fixed]byte
	if _, err := io.ReadFull(r, stat[:]); err != nil {
		return err
	}
	const kinds, gitLink = 0o170000, 0o160000
	r.link = binary.BigEndian.Uint32(stat[24:])&kinds == gitLink
	flags, size := binary.BigEndian.Uint16(stat[60:]), fixed
	if flags&0x4000 != 0 {
		if _, err := r.Discard(2); err != nil {
			return err
		}
		size += 2
	}
	keep := 0
	if r.version == 4 {
		strip, err := r.offset()
		if err != nil || strip > len(r.name) {
			return errIndex
		}
		keep = len(r.name) - strip
	}
	rest, err := r.ReadBytes(0)
	if err != nil {
		return err
	}
	r.name = append(r.name[:keep], rest[:len(rest)-1]...)
	if n := int(flags & 0xfff); n < 0xfff && n != len(r.name) || len(r.name) == 0 {
		return errIndex
	}
	if r.version < 4 {
		size += len(rest)
		_, err = r.Discard((8 - size%8) % 8)
	}
	return err
}

// offset reads a number as packs write it (git, varint.c).
func (r *indexReader) offset() (int, error) {
	c, err := r.ReadByte()
	n := int(c & 0x7f)
	for err == nil && c&0x80 != 0 && n < 1<<24 {
		c, err = r.ReadByte()
		n = (n+1)<<7 | int(c&0x7f)
	}
	return n, err
}
