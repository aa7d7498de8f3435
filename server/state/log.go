package state

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The files of the embedded Store. All begin with a header; records follow. All numbers are little-endian.
//
//	header  magic 8 | format 4 | kind 4 | generation 8 | salt 8 | last revision 8 | checksum 4
//	record  magic 4 | length of the body 4 | synced 8 | checksum of these 4 | checksum of the body 4 | body
//	body    operation 1 | revision or position 8 | end 8 | length of the name 1 | name | value
//
// The checksums of a record also cover the salt of its file and its offset there, so that a value which contains the
// bytes of a record is never taken for one. synced is how many bytes of the log were certainly on the disk when the
// record was written. A torn record below it means damage; one above it was lost with the power, and never
// acknowledged.
const (
	fileMagic  = "codehand"
	fileFormat = 1
	headerSize = 44
	recordHead = 24
	bodyHead   = 18
	maxBody    = bodyHead + maxKey + maxValue

	kindLog      = 1
	kindSnapshot = 2

	opEnd byte = 9 // last record of a snapshot: the last revision, no name, no value
)

var recordMagic = []byte("\xc7rec")

// castagnoli is the table of checksums, which crc32 makes when it is first needed.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// errTorn says that there is no whole record where one was expected.
var errTorn = errors.New("no whole record")

// A DamagedError says that a file of the embedded Store is broken in its middle, where it was whole before. Nothing was
// changed. A person decides: restore the directory, or move it away and begin empty.
type DamagedError struct {
	File   string
	Offset int64 // bytes
	Reason string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s; restore the directory from a backup, or move it away to "+
		"begin empty",
		e.File, e.Offset, e.Reason)
}

type header struct {
	kind       uint32
	generation uint64
	salt       uint64
	last       uint64 // revision that was used last before the first record
}

func (h header) encode() []byte {
	b := append(make([]byte, 0, headerSize), fileMagic...)
	b = binary.LittleEndian.AppendUint32(b, fileFormat)
	b = binary.LittleEndian.AppendUint32(b, h.kind)
	b = binary.LittleEndian.AppendUint64(b, h.generation)
	b = binary.LittleEndian.AppendUint64(b, h.salt)
	b = binary.LittleEndian.AppendUint64(b, h.last)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// readHeader returns ErrNewer for a format that it does not know, and errTorn for what is no header.
func readHeader(f io.ReaderAt) (header, error) {
	var b [headerSize]byte
	if _, err := f.ReadAt(b[:], 0); errors.Is(err, io.EOF) {
		return header{}, errTorn
	} else if err != nil {
		return header{}, err
	}
	if string(b[:8]) != fileMagic || crc32.Checksum(b[:40], castagnoli()) != binary.LittleEndian.Uint32(b[40:]) {
		return header{}, errTorn
	}
	if format := binary.LittleEndian.Uint32(b[8:]); format != fileFormat {
		return header{}, fmt.Errorf("%w: format %d, this program knows %d", ErrNewer, format, fileFormat)
	}
	return header{
		kind:       binary.LittleEndian.Uint32(b[12:]),
		generation: binary.LittleEndian.Uint64(b[16:]),
		salt:       binary.LittleEndian.Uint64(b[24:]),
		last:       binary.LittleEndian.Uint64(b[32:]),
	}, nil
}

// A record is one line of a file.
type record struct {
	op    byte
	at    uint64
	end   int64
	name  string
	value []byte
}

// sum is the checksum of bytes that begin or belong to the record at offset.
func (h header) sum(offset int64, b []byte) uint32 {
	var where [16]byte
	binary.LittleEndian.PutUint64(where[:], h.salt)
	binary.LittleEndian.PutUint64(where[8:], uint64(offset))
	return crc32.Update(crc32.Checksum(where[:], castagnoli()), castagnoli(), b)
}

// add appends a record to b, whose first byte will be at the offset start.
func (h header) add(b []byte, start, synced int64, r record) []byte {
	from := len(b)
	offset := start + int64(from)
	b = append(b, recordMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(bodyHead+len(r.name)+len(r.value)))
	b = binary.LittleEndian.AppendUint64(b, uint64(synced))
	b = binary.LittleEndian.AppendUint32(b, h.sum(offset, b[from:]))
	b = append(b, 0, 0, 0, 0) // of the body, below
	b = append(b, r.op)
	b = binary.LittleEndian.AppendUint64(b, r.at)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.end))
	b = append(b, byte(len(r.name)))
	b = append(b, r.name...)
	b = append(b, r.value...)
	binary.LittleEndian.PutUint32(b[from+20:], h.sum(offset, b[from+recordHead:]))
	return b
}

// frame checks the head of the record at offset and returns the length of its body and what was synced.
func (h header) frame(offset int64, head []byte) (body int, synced int64, ok bool) {
	length := binary.LittleEndian.Uint32(head[4:])
	ok = bytes.HasPrefix(head, recordMagic) && length >= bodyHead && length <= maxBody &&
		h.sum(offset, head[:16]) == binary.LittleEndian.Uint32(head[16:])
	return int(length), int64(binary.LittleEndian.Uint64(head[8:])), ok
}

// read returns the body of the record at offset: errTorn if there is none, or the file's own error.
func (h header) read(in io.Reader, offset int64) ([]byte, error) {
	var head [recordHead]byte
	if err := readFull(in, head[:]); err != nil {
		return nil, err
	}
	length, _, ok := h.frame(offset, head[:])
	if !ok {
		return nil, errTorn
	}
	body := make([]byte, length)
	if err := readFull(in, body); err != nil {
		return nil, err
	}
	if h.sum(offset, body) != binary.LittleEndian.Uint32(head[20:]) {
		return nil, errTorn
	}
	return body, nil
}

// readFull is io.ReadFull, with errTorn for whatever ends too early.
func readFull(in io.Reader, b []byte) error {
	_, err := io.ReadFull(in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}

// parse reads a body whose checksum is right. What it does not understand was not written by this program, and is no
// torn end.
func parse(body []byte) (record, error) {
	long := int(body[bodyHead-1])
	if bodyHead+long > len(body) {
		return record{}, errors.New("a name is longer than its record")
	}
	value := body[bodyHead+long:]
	r := record{
		op: body[0], at: binary.LittleEndian.Uint64(body[1:]), end: int64(binary.LittleEndian.Uint64(body[9:])),
		name: string(body[bodyHead : bodyHead+long]), value: value,
	}
	var err error
	switch r.op {
	case opSet:
		err = checkValue(value, maxValue)
	case opAppend:
		err = checkValue(value, maxStreamValue)
	case opDelete, opEnd:
		if len(value) > 0 {
			err = errors.New("a record of no value has one")
		}
	default:
		err = fmt.Errorf("operation %d is not known", r.op)
	}
	if err == nil && r.op != opEnd {
		err = checkKey(r.name)
	}
	return r, err
}

// readLog calls each for the records of a file in their order, and returns how many bytes of it are whole. What follows
// them is a torn end. Anything else that is wrong is a *DamagedError; an error of each ends the reading. It needs the
// memory of one record.
func readLog(f io.ReaderAt, name string, size int64, each func(record) error) (h header, whole int64, err error) {
	h, err = readHeader(f)
	if errors.Is(err, errTorn) {
		return h, 0, &DamagedError{name, 0, "no header"}
	} else if err != nil {
		return h, 0, fmt.Errorf("%s: %w", name, err)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, headerSize, size-headerSize), int(min(size, 256<<10)))
	for whole = headerSize; whole < size; {
		body, err := h.read(in, whole)
		if errors.Is(err, errTorn) {
			return h, whole, h.judge(f, name, whole, size)
		} else if err != nil {
			return h, whole, fmt.Errorf("%s: %w", name, err)
		}
		r, err := parse(body)
		if err != nil {
			return h, whole, &DamagedError{name, whole, err.Error()}
		}
		if err := each(r); err != nil {
			return h, whole, err
		}
		whole += int64(recordHead + len(body))
	}
	return h, whole, nil
}

// judge says whether what is torn at an offset was once on the disk: then a record that was written later says so.
func (h header) judge(f io.ReaderAt, name string, torn, size int64) error {
	const window = 1 << 20
	buf := make([]byte, min(window, size-torn))
	for at := torn; at < size; {
		n, err := f.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if n < recordHead {
			return nil
		}
		next := at + int64(n-recordHead+1) // a head may begin in this window and end in the next
		for i := 0; i <= n-recordHead; {
			skip := bytes.Index(buf[i:n], recordMagic)
			if skip < 0 || i+skip > n-recordHead {
				break
			}
			i += skip
			if synced, found := h.at(f, at+int64(i), buf[i:i+recordHead], size); found && synced > torn {
				return &DamagedError{name, torn,
					fmt.Sprintf("the checksum is wrong, and a later record is whole at byte %d", at+int64(i))}
			}
			i++
		}
		at = next
	}
	return nil
}

// at looks for a whole record at an offset and returns what was synced when it was written.
func (h header) at(f io.ReaderAt, offset int64, head []byte, size int64) (int64, bool) {
	length, synced, ok := h.frame(offset, head)
	if !ok || offset+recordHead+int64(length) > size {
		return 0, false
	}
	_, err := h.read(io.NewSectionReader(f, offset, recordHead+int64(length)), offset)
	return synced, err == nil
}
