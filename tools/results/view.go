package results

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Row is one line of a file: Text without its end, and the bytes [From, To) that it takes in the file with its end.
// Cut is how many characters Text lacks at its end. End is how many characters the end of the line has: 2 is CRLF, 1
// LF, 0 none. Bad is how many bytes or units became U+FFFD when Text was decoded. page.Line has the same fields
// and converts.
type Row struct {
	Text     string
	From, To int64
	Cut      int
	End      int
	Bad      int
}

// A Range is a range of bytes of a file, [From, To).
type Range struct{ From, To int64 }

// A View shows lines of a file, numbered unless it is Bare, and safe to read, until a limit is reached. The zero View
// has no limits, and First must be set. It belongs to one goroutine.
type View struct {
	First  int  // number of the first line
	Asked  int  // lines that the caller wants; 0: all that there are
	Page   int  // lines that are shown at most if Asked is 0
	Form   Form // limits of the text
	Tokens int  // likewise, estimated as ASCII bytes / 4 + 1 per other character; 0: no limit
	Pipe   bool // `%4d | line` instead of number, tab, line
	Bare   bool // lines without numbers; see Mistaken

	// Encoding is what the text was decoded from, for people; "": it is UTF-8 as it is in the file.
	Encoding string
	Guessed  bool // nothing in the file says so
	Wide     bool // its units are not bytes, so what is wrong is counted in units

	BOM     bool    // the file starts with a mark, which Text does not hold
	Total   int     // lines of the file
	AtLeast bool    // Total is a lower bound
	Lines   int     // shown
	Shown   []Range // bytes of the file that are shown, in order; ranges do not touch

	text            strings.Builder
	weight          weight // without bytes and lines
	lf, crlf, bare  int    // line ends; bare: the last line has none
	invalid, hidden int    // bytes that are not UTF-8, characters shown as escapes
	limit           string // what one more line would have exceeded; "": every line was taken
}

// Add shows the next line, or says that it would exceed a limit. A first line that does not fit is shortened, so that
// a view is never empty.
func (v *View) Add(r Row) bool {
	row, hidden := v.row(r)
	if v.limit = v.exceeded(row); v.limit != "" {
		if v.Lines > 0 {
			return false
		}
		r, row, hidden = v.shorten(r)
	}
	if v.Lines > 0 {
		v.text.WriteByte('\n')
	}
	v.text.WriteString(row)
	runes, quarters := weigh(row)
	v.weight.runes, v.weight.quarters = v.weight.runes+runes+1, v.weight.quarters+quarters+1
	if v.Form.JSON > 0 {
		v.weight.units += unitsOf(row) + units('\n')
	}
	v.Lines++
	v.hidden += hidden
	v.invalid += v.unread(r)
	v.limit = ""
	v.cover(r)
	return true
}

// String returns the lines, joined by line ends.
func (v *View) String() string { return v.text.String() }

// Mistaken says that a reader could take a line of a Bare view for one of ours, such as a note on what it shows. Where
// lines have numbers none can be.
func (v *View) Mistaken() bool {
	text := v.String()
	if Disown(text) != text {
		return true
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return strings.HasPrefix(text, "PARTIAL view: ") || strings.HasPrefix(last, "[") || strings.Contains(text, reminder)
}

// reminder begins what this server, and some clients, tell a model beside a text.
const reminder = "<system-reminder"

// Last is the number of the last line shown.
func (v *View) Last() int { return v.First + v.Lines - 1 }

// unread counts the bytes of a shown line that are not text.
func (v *View) unread(r Row) int {
	switch {
	case v.Encoding == "":
		return invalid(r.Text)
	case r.Cut == 0:
		return r.Bad
	}
	return min(r.Bad, strings.Count(r.Text, "\ufffd")) // some of them may be in what is cut
}

// cover notes the bytes that are shown of a line, and how it ends. The rest of a line that is cut is not shown, so a
// file with such a line is never covered as a whole. Of a decoded line that is cut nothing counts: which bytes are
// shown of it is not known.
func (v *View) cover(r Row) {
	to := r.To
	switch {
	case r.Cut > 0 && v.Encoding != "":
		to = r.From
	case r.Cut > 0:
		to = r.From + int64(len(r.Text))
		if v.BOM && r.From == 0 {
			to += int64(len("\ufeff"))
		}
	}
	if n := len(v.Shown); n > 0 && v.Shown[n-1].To == r.From {
		v.Shown[n-1].To = to
	} else if to > r.From {
		v.Shown = append(v.Shown, Range{r.From, to})
	}
	switch r.End {
	case 0:
		v.bare++
	case 1:
		v.lf++
	case 2:
		v.crlf++
	}
}

func (v *View) row(r Row) (string, int) {
	shown, hidden := Show(r.Text)
	if r.Cut > 0 {
		shown += fmt.Sprintf("... (truncated, %d more characters)", r.Cut)
	}
	if n := v.First + v.Lines; v.Bare {
		return shown, hidden
	} else if v.Pipe {
		shown = fmt.Sprintf("%4d | %s", n, shown)
	} else {
		shown = strconv.Itoa(n) + "\t" + shown
	}
	return shown, hidden
}

// exceeded names the limit that the view with one more row would be over; "": none.
func (v *View) exceeded(row string) string {
	runes, quarters := weigh(row)
	over := func(limit, n int) bool { return limit > 0 && n > limit }
	switch {
	case over(v.Form.Lines, v.Lines+1):
		return Count(v.Form.Lines) + " lines"
	case over(4*v.Tokens, v.weight.quarters+quarters):
		return Count(v.Tokens) + " tokens"
	case over(v.Form.Runes, v.weight.runes+runes):
		return Count(v.Form.Runes) + " characters"
	case over(v.Form.Bytes, v.text.Len()+1+len(row)):
		return Count(v.Form.Bytes) + " bytes"
	case v.Form.JSON > 0 && v.weight.units+unitsOf(row) > v.Form.JSON:
		return Count(v.Form.JSON) + " characters of JSON"
	}
	return ""
}

// shorten leaves out the end of a line until its row fits, or until one character is left.
func (v *View) shorten(r Row) (Row, string, int) {
	for {
		runes := utf8.RuneCountInString(r.Text)
		at := 0
		for range max(1, runes*7/8) {
			_, size := utf8.DecodeRuneInString(r.Text[at:])
			at += size
		}
		r.Cut += utf8.RuneCountInString(r.Text[at:])
		r.Text = r.Text[:at]
		if row, hidden := v.row(r); runes <= 1 || v.exceeded(row) == "" {
			return r, row, hidden
		}
	}
}

// Numbered returns text as a View shows its lines, counted from 1.
func Numbered(text string) string {
	v := View{First: 1}
	for line := range strings.Lines(text) {
		v.Add(Row{Text: strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")})
	}
	return v.String()
}

// Tokens estimates how many tokens a text takes: a quarter for each ASCII character, one for each other.
func Tokens(text string) int {
	_, quarters := weigh(text)
	return (quarters + 3) / 4
}

// weigh counts characters and quarters of a token.
func weigh(s string) (runes, quarters int) {
	for _, r := range s {
		runes++
		if r < utf8.RuneSelf {
			quarters++
		} else {
			quarters += 4
		}
	}
	return runes, quarters
}

// invalid counts the bytes of s that are not UTF-8.
func invalid(s string) int {
	n := 0
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				n++
			}
		}
	}
	return n
}
