package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's name of an object, not a proof against people
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"codehand/filestate/disk"
)

// An OID is the name of an object: its SHA-1.
type OID [20]byte

// String is the name in hex.
func (o OID) String() string { return hex.EncodeToString(o[:]) }

// BlobOID is the name that git gives a content.
func BlobOID(content []byte) OID {
	h := sha1.New() //nolint:gosec // see above
	_, _ = fmt.Fprintf(h, "blob %d\x00", len(content))
	_, _ = h.Write(content)
	return OID(h.Sum(nil))
}

// ErrObject says that an object is not there, too large, or cannot be read.
var ErrObject = errors.New("git's object cannot be read")

const (
	maxAlternates = 16        // directories of objects that one repository may name
	maxDeltas     = 4095      // the longest chain that git makes
	maxPacks      = 256       // git gc leaves one, and is due with 50
	maxWork       = 512 << 20 // bytes that one Objects unpacks, so that no chain of deltas keeps it busy
	lookup        = 1 << 10   // of maxWork: a look into the index of a pack
)

// Objects reads objects of one repository, loose or packed, without git: nothing is fetched and no program starts. What
// lies outside of the repository's common directory is not read, through links or alternates neither. It is for one
// goroutine. Close closes what was opened.
type Objects struct {
	root  *os.Root // the common directory; nil: it cannot be opened
	dirs  []string // of objects, below root, with slashes
	packs []*pack
	known bool // packs are those of dirs
	left  int  // bytes of maxWork
}

// NewObjects reads the objects below a repository's common directory.
func NewObjects(common string) *Objects {
	o := &Objects{left: maxWork}
	root, err := os.OpenRoot(common)
	if err != nil {
		return o
	}
	o.root, o.dirs = root, []string{"objects"}
	for i := 0; i < len(o.dirs) && len(o.dirs) < maxAlternates; i++ {
		text, err := ReadSmallIn(root, path.Join(o.dirs[i], "info/alternates"), maxConfig)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' || line[0] == '"' {
				continue
			}
			dir, err := filepath.Rel(common, below(filepath.Join(common, o.dirs[i]), line))
			if err == nil && filepath.IsLocal(dir) {
				o.dirs = append(o.dirs, filepath.ToSlash(dir))
			}
		}
	}
	return o
}

// Close closes what was opened. Nothing can be read afterwards.
func (o *Objects) Close() {
	for _, p := range o.packs {
		_ = p.idx.Close() // only read
		if p.file != nil {
			_ = p.file.Close() // likewise
		}
	}
	o.packs, o.dirs = nil, nil
	if o.root != nil {
		_ = o.root.Close() // a directory handle holds no data
	}
}

// spend says whether that many bytes more may be unpacked.
func (o *Objects) spend(bytes int) bool {
	o.left -= bytes
	return o.left >= 0
}

// Blob returns the content of a blob of at most that many bytes, proved by its name. The error is ErrObject.
func (o *Objects) Blob(id OID, most int) ([]byte, error) {
	kind, content, err := o.read(id, most, maxDeltas)
	if err != nil || kind != kindBlob || BlobOID(content) != id {
		return nil, ErrObject
	}
	return content, nil
}

// The kinds of objects in a pack.
const (
	kindBlob     = 3
	kindOfsDelta = 6
	kindRefDelta = 7
)

func (o *Objects) read(id OID, most, deltas int) (kind int, content []byte, err error) {
	name := id.String()
	for _, dir := range o.dirs {
		if content, err := o.loose(path.Join(dir, name[:2], name[2:]), most); err == nil {
			return kindBlob, content, nil
		}
	}
	if !o.known {
		o.open()
	}
	for _, p := range o.packs {
		if !o.spend(lookup) {
			return 0, nil, ErrObject
		}
		if at, ok := p.find(id); ok {
			return o.packed(p, at, most, deltas)
		}
	}
	return 0, nil, ErrObject
}

// loose reads a blob that has a file of its own.
func (o *Objects) loose(name string, most int) ([]byte, error) {
	f, _, err := disk.OpenRegular(o.root, name, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	z, err := zlib.NewReader(f)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(io.LimitReader(z, int64(min(most, o.left))+32)) // with its head
	if err != nil || !o.spend(len(all)) {
		return nil, ErrObject
	}
	head, content, found := bytes.Cut(all, []byte{0})
	text, isBlob := strings.CutPrefix(string(head), "blob ")
	size, err := strconv.Atoi(text)
	if err != nil || !found || !isBlob || size != len(content) || size > most {
		return nil, ErrObject
	}
	return content, nil
}

// A pack is a file of objects and the index that says where each begins (git, Documentation/gitformat-pack). The index
// is searched where it lies: it can have gigabytes.
type pack struct {
	idx   *os.File
	fan   [256]uint32 // how many names begin with that byte or a lower one
	count int         // of objects
	far   int64       // of idx: bytes of places beyond 2 GiB

	name string   // of the pack, below the root
	file *os.File // nil until an object is read
	size int64
}

// open opens the indexes of the packs of all directories.
func (o *Objects) open() {
	o.known = true
	for _, dir := range o.dirs {
		list, err := o.root.Open(path.Join(dir, "pack"))
		if err != nil {
			continue
		}
		names, _ := list.Readdirnames(8 * maxPacks) // a pack has up to five files
		_ = list.Close()                            // only read
		for _, name := range names {
			if len(o.packs) == maxPacks {
				return
			}
			if !strings.HasPrefix(name, "pack-") || !strings.HasSuffix(name, ".idx") {
				continue
			}
			if p, err := openPack(o.root, path.Join(dir, "pack", name)); err == nil {
				o.packs = append(o.packs, p)
			}
		}
	}
}

const (
	idxHead, idxFan = 8, 256 * 4
	idxEntry        = 28 // bytes for an object: its name, a checksum, its place
	idxFar          = 8  // bytes for a place beyond 2 GiB, which not every object has
	idxEnd          = 40 // two checksums
)

// openPack opens the index of a pack, whose size must fit the count of its objects.
func openPack(root *os.Root, name string) (p *pack, err error) {
	idx, stamp, err := disk.OpenRegular(root, name, name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = idx.Close() // only read
		}
	}()
	var head [idxHead + idxFan]byte
	if _, err := idx.ReadAt(head[:], 0); err != nil || string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return nil, ErrObject
	}
	p = &pack{idx: idx, name: strings.TrimSuffix(name, "idx") + "pack"}
	for i := range p.fan {
		p.fan[i] = binary.BigEndian.Uint32(head[idxHead+4*i:])
		if i > 0 && p.fan[i] < p.fan[i-1] {
			return nil, ErrObject
		}
	}
	n := int64(p.fan[255])
	p.count, p.far = int(n), stamp.Size-idxHead-idxFan-idxEnd-idxEntry*n
	if p.far < 0 || p.far > idxFar*n {
		return nil, ErrObject
	}
	return p, nil
}

// find says where an object begins.
func (p *pack) find(id OID) (at int64, ok bool) {
	const names = idxHead + idxFan
	from, to := 0, int(p.fan[id[0]])
	if id[0] > 0 {
		from = int(p.fan[id[0]-1])
	}
	for from < to {
		middle := (from + to) / 2
		var name OID
		if _, err := p.idx.ReadAt(name[:], names+20*int64(middle)); err != nil {
			return 0, false
		}
		switch c := bytes.Compare(name[:], id[:]); {
		case c == 0:
			return p.place(int64(middle))
		case c < 0:
			from = middle + 1
		default:
			to = middle
		}
	}
	return 0, false
}

// place says where the object with a number begins.
func (p *pack) place(i int64) (at int64, ok bool) {
	places := idxHead + idxFan + 24*int64(p.count)
	var near [4]byte
	if _, err := p.idx.ReadAt(near[:], places+4*i); err != nil {
		return 0, false
	}
	at = int64(binary.BigEndian.Uint32(near[:]))
	if at&(1<<31) == 0 {
		return at, true
	}
	var far [idxFar]byte
	if i = idxFar * (at &^ (1 << 31)); i+idxFar > p.far {
		return 0, false
	}
	if _, err := p.idx.ReadAt(far[:], places+4*int64(p.count)+i); err != nil {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(far[:])), true //nolint:gosec // packed refuses what is negative
}

// packed reads the object that begins at a place of a pack.
func (o *Objects) packed(p *pack, at int64, most, deltas int) (kind int, content []byte, err error) {
	if p.file == nil {
		f, stamp, err := disk.OpenRegular(o.root, p.name, p.name)
		if err != nil {
			return 0, nil, err
		}
		p.file, p.size = f, stamp.Size
	}
	if at < 0 || at >= p.size {
		return 0, nil, ErrObject
	}
	var head [64]byte // kind and size, then where the base is
	n, err := p.file.ReadAt(head[:], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, err
	}
	in := bytes.NewReader(head[:n])
	c, err := in.ReadByte()
	if err != nil {
		return 0, nil, err
	}
	kind = int(c>>4) & 7
	size := int(c & 15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = in.ReadByte(); err != nil || shift > 40 {
			return 0, nil, ErrObject
		}
		size |= int(c&0x7f) << shift
	}
	if size < 0 || size > most || !o.spend(size) {
		return 0, nil, ErrObject
	}
	var base []byte
	switch kind {
	case kindOfsDelta:
		back, offErr := farOffset(in)
		if offErr != nil || back <= 0 || back > at || deltas == 0 {
			return 0, nil, ErrObject
		}
		kind, base, err = o.packed(p, at-back, most, deltas-1)
	case kindRefDelta:
		var id OID
		if _, readErr := io.ReadFull(in, id[:]); readErr != nil || deltas == 0 {
			return 0, nil, ErrObject
		}
		kind, base, err = o.read(id, most, deltas-1)
	default:
		content, err = inflate(p.file, at+int64(n-in.Len()), size)
		return kind, content, err
	}
	if err != nil {
		return 0, nil, err
	}
	delta, err := inflate(p.file, at+int64(n-in.Len()), size)
	if err != nil {
		return 0, nil, err
	}
	if content, err = applyDelta(base, delta, most); err != nil || !o.spend(len(content)) {
		return 0, nil, ErrObject
	}
	return kind, content, nil
}

// inflate unpacks size bytes that begin at a place of a file.
func inflate(f *os.File, at int64, size int) ([]byte, error) {
	z, err := zlib.NewReader(io.NewSectionReader(f, at, 1<<40))
	if err != nil {
		return nil, err
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(z, content); err != nil {
		return nil, err
	}
	return content, nil
}

// farOffset reads how far in front of a delta its base is (git, Documentation/gitformat-pack).
func farOffset(in io.ByteReader) (int64, error) {
	c, err := in.ReadByte()
	n := int64(c & 0x7f)
	for err == nil && c&0x80 != 0 && n < 1<<48 {
		c, err = in.ReadByte()
		n = (n+1)<<7 | int64(c&0x7f)
	}
	return n, err
}

// applyDelta makes a content from its base.
func applyDelta(base, delta []byte, most int) ([]byte, error) {
	number := func() (n int) {
		for shift := 0; len(delta) > 0 && shift < 42; shift += 7 {
			c := delta[0]
			delta = delta[1:]
			if n |= int(c&0x7f) << shift; c&0x80 == 0 {
				return n
			}
		}
		return -1
	}
	from, to := number(), number()
	if from != len(base) || to < 0 || to > most {
		return nil, ErrObject
	}
	out := make([]byte, 0, to)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		var part []byte
		if op&0x80 == 0 { // the next bytes
			if op == 0 || int(op) > len(delta) {
				return nil, ErrObject
			}
			part, delta = delta[:op], delta[op:]
		} else { // bytes of the base
			var args [7]int
			for i := range args {
				if op>>i&1 == 0 {
					continue
				}
				if len(delta) == 0 {
					return nil, ErrObject
				}
				args[i], delta = int(delta[0]), delta[1:]
			}
			at := args[0] | args[1]<<8 | args[2]<<16 | args[3]<<24
			size := args[4] | args[5]<<8 | args[6]<<16
			if size == 0 {
				size = 0x10000
			}
			if at+size > len(base) {
				return nil, ErrObject
			}
			part = base[at : at+size]
		}
		if len(out)+len(part) > to {
			return nil, ErrObject
		}
		out = append(out, part...)
	}
	if len(out) != to {
		return nil, ErrObject
	}
	return out, nil
}
