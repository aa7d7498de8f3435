package git

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

const (
	maxName  = 4096      // bytes of a path in an index: no system opens a longer one
	maxNames = 128 << 20 // bytes of all paths together, which version 4 packs
)

var errIndex = errors.New("the index cannot be read")

// An Entry is one file as an index has it. Stat data is that of the work tree when the entry was written, cut to 32
// bits each.
type Entry struct {
	Name                string // relative to the top, with slashes
	Mode                uint32 // as git has it: 0100644, 0100755, 0120000; Submodule and Sparse tell the others
	Dev, Ino, UID, GID  uint32
	Size                uint32
	CtimeSec, CtimeNano uint32
	MtimeSec, MtimeNano uint32
	OID                 OID
	Stage               int // not 0: a side of a conflict
}

const kinds, gitLink, gitTree = 0o170000, 0o160000, 0o040000

// Submodule says that the entry is a commit of another repository.
func (e *Entry) Submodule() bool { return e.Mode&kinds == gitLink }

// An indexReader reads entries one after the other.
type indexReader struct {
	*bufio.Reader
	version uint32
	name    []byte // of the entry before
	names   int    // bytes of all
}

// indexHas says whether is says yes to a path in an index file, relative to the top of the repository (git,
// Documentation/gitformat-index); submodule: another repository stands there. The error is for an index that is not
// understood: of a later version, with other hashes than SHA-1, split, sparse, with endless names, or no index.
func indexHas(index io.Reader, is func(name string, submodule bool) bool) (bool, error) {
	found := false
	err := ReadIndex(index, func(e *Entry) bool {
		found = is(e.Name, e.Submodule())
		return !found
	})
	return found, err
}

// ReadIndex calls each with every entry of an index until it says no. Only without an error the entries were all. Each
// must not keep the entry. The error is that of indexHas, which can come after the entries.
func ReadIndex(index io.Reader, each func(*Entry) bool) error {
	in := bufio.NewReader(index)
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:4]) != "DIRC" {
		return errIndex
	}
	r := indexReader{Reader: in, version: binary.BigEndian.Uint32(head[4:])}
	if r.version < 2 || r.version > 4 {
		return errIndex
	}
	var e Entry
	for range binary.BigEndian.Uint32(head[8:]) {
		if err := r.entry(&e); err != nil {
			return errIndex
		}
		if !each(&e) {
			return nil
		}
	}
	for { // extensions, until the checksum
		next, err := in.Peek(8)
		if err != nil || next[0] < 'A' || next[0] > 'Z' && next[0] < 'a' || next[0] > 'z' {
			return nil //nolint:nilerr // the checksum's last bytes, or its first
		}
		if sig := string(next[:4]); sig == "link" || sig == "sdir" { // split or sparse: not all is here
			return errIndex
		}
		if _, err := in.Discard(8 + int(binary.BigEndian.Uint32(next[4:]))); err != nil {
			return nil //nolint:nilerr // it was the checksum
		}
	}
}

// entry reads one entry. Its length is checked, since a repository with other hashes has entries of another size.
func (r *indexReader) entry(e *Entry) error {
	const fixed = 62 // with SHA-1
	var stat [fixed]byte
	if _, err := io.ReadFull(r, stat[:]); err != nil {
		return err
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(stat[4*i:]) }
	flags, size := binary.BigEndian.Uint16(stat[60:]), fixed
	*e = Entry{
		CtimeSec: word(0), CtimeNano: word(1), MtimeSec: word(2), MtimeNano: word(3), Dev: word(4), Ino: word(5),
		Mode: word(6), UID: word(7), GID: word(8), Size: word(9), OID: OID(stat[40:60]), Stage: int(flags>>12) & 3,
	}
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
	if r.names += keep + len(rest); keep+len(rest) > maxName || r.names > maxNames {
		return errIndex
	}
	r.name = append(r.name[:keep], rest[:len(rest)-1]...)
	if n := int(flags & 0xfff); n < 0xfff && n != len(r.name) || len(r.name) == 0 {
		return errIndex
	}
	if e.Name = string(r.name); r.version < 4 {
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
