package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// chunkSize is how much of a file is read and looked at together, in bytes.
	chunkSize = 256 << 10
	// countedSize is the largest file whose lines are always counted to the end, in bytes. A page of the head of
	// a larger file costs what the head costs.
	countedSize = 16 << 20
	// hugeSize is the size in bytes above which reading stops after MaxTime, with what there is of the page.
	hugeSize = 1 << 30
)

// MaxTime is how long a page of a text over 1 GiB is looked for: to a line far behind, or through one that does not
// end, as a sparse file has it, all of the text would be read.
const MaxTime = 1500 * time.Millisecond

// A Query asks for Lines lines from First on (counted from 1).
type Query struct {
	First, Lines int // First below 1 is 1; Lines 0: none, only the total
	MaxLine      int // runes of one line; 0: no limit
	// of all texts; 0: no limit. The first line is cut to it, so that a page is never empty for its sake
	MaxBytes int64
	Encoding Encoding
	// where lines begin, as far as earlier pages of the same text found out; this one adds to it. nil, or an Encoding
	// whose units are longer than a byte: nothing is known, or kept
	Marks *Marks
}

// A Page is a run of lines of a text.
type Page struct {
	Lines []Line // the caller's
	Total int    // lines of the whole text
	Exact bool   // false: Total is a lower bound
	More  bool   // lines follow
}

// A Line is one line of a page.
type Line struct {
	Text     string // decoded, without its end; a CR before the LF is not part of it, nor is a mark
	From, To int64  // bytes in the file, with its end
	Cut      int    // runes left out because the line is too long
	End      int    // characters of its end: 2 is CRLF, 1 LF, 0 none
	Bad      int    // bytes or units that Encoding.Decode could not read, also of what is left out
}

// Read returns lines of a text of any size, in memory for the page and one chunk. The total is exact if the text was
// read to its end, now or by an earlier page with the same Marks; that is always so up to 16 MiB. A text over 1 GiB is
// read for MaxTime at most: then the page may lack lines or have none, and the last one may lack its end. Bytes beyond
// size are not read; 0: all are. Errors: of r, and of ctx, which is looked at for each chunk.
func Read(ctx context.Context, r io.ReaderAt, size int64, q Query) (Page, error) {
	p := pager{q: q, line: lineText{lineHead: lineHead{maxRunes: q.MaxLine}, decode: q.Encoding.Decode}, next: 1}
	p.q.First = max(q.First, 1)
	marks := q.Marks
	if q.Encoding.unit() > 1 {
		marks = nil
	}
	from, total := marks.before(p.q.First), marks.known()
	p.at, p.from, p.next = from.at, from.at, from.line
	buf := make([]byte, bufferFor(size))
	start := time.Now()
	for {
		if ctx.Err() != nil {
			return Page{}, ctx.Err()
		}
		chunk, last, err := readAt(r, buf, p.at, size)
		if err != nil {
			return Page{}, err
		}
		at := p.at
		p.feed(chunk)
		marks.add(chunk, at, p.next)
		if last {
			p.finish()
			marks.whole(p.page.Total)
			break
		}
		if p.full && total > 0 {
			p.finish()
			p.page.Total = total
			break
		}
		if p.full && size > countedSize {
			p.finish()
			return p.page, nil
		}
		if size > hugeSize && time.Since(start) > MaxTime {
			p.stop()
			return p.page, nil
		}
	}
	p.page.Exact = true
	return p.page, nil
}

// bufferFor is how large a buffer a text of size bytes is read with: most files are far smaller than a chunk.
func bufferFor(size int64) int64 {
	if size <= 0 {
		return chunkSize
	}
	return min(size, chunkSize)
}

// readAt reads the chunk at an offset. last: nothing follows it. size 0 means to read to the end.
func readAt(r io.ReaderAt, buf []byte, at, size int64) (chunk []byte, last bool, err error) {
	if size > 0 && size-at <= int64(len(buf)) {
		buf, last = buf[:max(size-at, 0)], true
	}
	n, err := r.ReadAt(buf, at)
	switch {
	case errors.Is(err, io.EOF):
		return buf[:n], true, nil
	case err != nil:
		return nil, false, fmt.Errorf("read at %d: %w", at, err)
	}
	return buf[:n], last, nil
}

// A pager cuts lines out of chunks.
type pager struct {
	q    Query
	page Page
	at   int64    // of the next byte
	from int64    // of the line in hand
	next int      // number of the line in hand, from 1
	open bool     // the line in hand has bytes
	full bool     // no further line is taken
	used int64    // bytes of the texts taken
	line lineText // of the line in hand, if it is in the page
}

// feed takes the next bytes of the text.
func (p *pager) feed(chunk []byte) {
	if mark := p.q.Encoding.mark(chunk); p.at == 0 && mark > 0 {
		p.at, p.open = int64(mark), true
		chunk = chunk[mark:]
	}
	unit := p.q.Encoding.unit()
	for len(chunk) > 0 {
		if !p.wanted() {
			chunk = p.skip(chunk)
			continue
		}
		n := p.q.Encoding.lineEnd(chunk)
		piece := chunk
		if n >= 0 {
			piece = chunk[:n]
		}
		p.line.add(piece)
		p.at += int64(len(piece))
		p.open = true
		chunk = chunk[len(piece):]
		if n >= 0 {
			p.at += int64(unit)
			chunk = chunk[unit:]
			p.endLine(true)
		}
	}
}

// wanted reports whether the line in hand may be in the page, and makes ready for it if it begins here.
func (p *pager) wanted() bool {
	if p.full || p.next < p.q.First {
		return false
	}
	if len(p.page.Lines) >= p.q.Lines {
		p.full, p.page.More = true, p.q.Lines > 0
		return false
	}
	p.line.maxBytes = p.q.MaxBytes
	return true
}

// skip counts the lines of a chunk up to the first line of the page. What it leaves begins with that line.
func (p *pager) skip(chunk []byte) []byte {
	as, unit := p.q.Encoding, p.q.Encoding.unit()
	rest := chunk[len(chunk):]
	if lf := as.lineEnds(chunk); p.full || p.next+lf < p.q.First {
		p.next += lf
	} else {
		rest = chunk
		for p.next < p.q.First {
			rest = rest[as.lineEnd(rest)+unit:]
			p.next++
		}
	}
	read := chunk[:len(chunk)-len(rest)]
	p.at += int64(len(read))
	p.open = len(read)%unit != 0 || as.lineEnd(read[len(read)-unit:]) < 0
	p.from = p.at // right where it matters: a line of the page begins here
	return rest
}

// endLine takes the line in hand, which ended with an LF or with the text.
func (p *pager) endLine(lf bool) {
	l := Line{From: p.from, To: p.at}
	l.Text, l.Cut, l.Bad, l.End = p.line.end(lf)
	first := len(p.page.Lines) == 0
	switch {
	case p.full:
	case !first && p.q.MaxBytes > 0 && (p.used+int64(len(l.Text)) > p.q.MaxBytes || p.line.lacked):
		p.full, p.page.More = true, true
	default:
		p.page.Lines = append(p.page.Lines, l)
		p.used += int64(len(l.Text))
	}
	p.next++
	p.from, p.open = p.at, false
}

// stop ends the page in the middle of the text. Whether the line in hand has an end is not known; nothing is said of
// it.
func (p *pager) stop() {
	lines := len(p.page.Lines)
	p.finish()
	if len(p.page.Lines) > lines {
		p.page.Lines[lines].End = 1
	}
	p.page.More = true
}

// finish ends the text: a last line without an LF counts, too.
func (p *pager) finish() {
	if p.open {
		if p.wanted() {
			p.endLine(false)
		} else {
			p.next++
		}
	}
	p.page.Total = p.next - 1
}
