package results

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// A Page is a range of lines of a text.
type Page struct {
	Text  string // clean, and with the line ends that the lines have
	First int    // number of the first line, counted from 1
	Lines int    // in Text
	Total int    // lines of the whole
	Cut   bool   // the one line in Text is longer than fits, so its end is missing
}

// More says that lines follow.
func (p Page) More() bool { return p.First+p.Lines-1 < p.Total }

// ReadPage reads the text of r to its end and returns at most lines lines from line first on, in at most bytes bytes.
// Lines are made clean one by one, as they are in a whole. A first line that is too long is cut, so that a page of a
// text that has this line is never empty. It holds no more of the text than that in memory.
func ReadPage(r io.Reader, first, lines, bytes int) (Page, error) {
	p := pager{Page: Page{First: first}, lines: lines, bytes: bytes}
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		part, err := in.ReadSlice('\n')
		if len(part) > 0 {
			p.take(part, err == nil)
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			p.end()
			p.Text = p.text.String()
			return p.Page, nil
		default:
			return Page{}, err
		}
	}
}

// A pager is a Page that is being read.
type pager struct {
	Page
	lines, bytes int
	text         strings.Builder
	line         strings.Builder // the raw line that is being read, if it is wanted
	open         bool            // it has begun, and has no end yet
	full         bool            // nothing more is wanted
}

// take takes a part of a line, which ends with it or not.
func (p *pager) take(part []byte, ends bool) {
	if !p.open {
		p.Total++
		p.open = true
	}
	if wanted := !p.full && p.Total >= p.First && p.Lines < p.lines; wanted && p.line.Len() <= p.bytes {
		p.line.Write(part)
	}
	if ends {
		p.end()
	}
}

// end ends the line.
func (p *pager) end() {
	raw := p.line.String()
	p.line.Reset()
	p.open = false
	if raw == "" {
		return
	}
	room := p.bytes - p.text.Len()
	line := raw
	if len(raw) <= p.bytes {
		line = Clean(raw)
	}
	switch {
	case len(raw) <= p.bytes && len(line) <= room:
	case p.Lines > 0:
		p.full = true
		return
	default:
		line = Clean(raw[:Form{Bytes: p.bytes}.prefix(raw)])
		line = line[:Form{Bytes: p.bytes}.prefix(line)]
		p.Cut, p.full = true, true
	}
	p.text.WriteString(line)
	p.Lines++
}
