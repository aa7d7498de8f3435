package results

import (
	"cmp"
	"fmt"
)

// utf8Name is how the encoding is called that needs no decoding.
const utf8Name = "UTF-8"

// more says that lines follow.
func (v *View) more() bool { return v.limit != "" || v.AtLeast || v.Last() < v.Total }

// Partial is what stands before the lines if fewer are shown than were asked for; else "".
func (v *View) Partial() string {
	if !v.more() || v.Asked > 0 && v.Lines >= v.Asked {
		return ""
	}
	limit := v.limit
	switch {
	case limit != "":
	case v.Asked == 0 && v.Lines >= v.Page:
		limit = Count(v.Page) + " lines"
	default: // the lines were fetched with a limit that stands for this one
		limit = Count(v.Tokens) + " tokens"
	}
	return fmt.Sprintf("PARTIAL view: lines %d-%d of %s (limit: %s). Continue with offset=%d, or use grep_search.\n",
		v.First, v.Last(), v.total(), limit, v.Last()+1)
}

// Remarks says what the lines cannot show of themselves; with place also where they stand, unless Partial says so.
func (v *View) Remarks(place bool) []string {
	var all []string
	add := func(n int, one, many string) {
		if n == 1 {
			all = append(all, "1 "+one)
		} else if n > 1 {
			all = append(all, Count(n)+" "+many)
		}
	}
	if place && v.Partial() == "" {
		all = append(all, fmt.Sprintf("lines %d-%d of %s", v.First, v.Last(), v.total()))
	}
	switch {
	case v.Guessed:
		all = append(all, v.Encoding+" (guessed)")
	case v.Encoding != "":
		all = append(all, v.Encoding)
	}
	if v.BOM {
		all = append(all, "BOM")
	}
	one, many := "byte", "bytes"
	if v.Wide {
		one, many = "unit", "units"
	}
	name := cmp.Or(v.Encoding, utf8Name)
	add(v.invalid, one+" is not "+name+" and shown as U+FFFD", many+" are not "+name+" and shown as U+FFFD")
	add(v.hidden, "character is shown as an escape", "characters are shown as escapes")
	if eol := v.eol(); eol == "CRLF" || eol == "mixed" {
		all = append(all, eol+" line ends")
	}
	if v.bare > 0 {
		all = append(all, "no newline at end")
	}
	return all
}

func (v *View) total() string {
	if v.AtLeast {
		return "at least " + Count(v.Total)
	}
	return Count(v.Total)
}

// Facts are what a View knows for programs.
type Facts struct {
	Lines      int    `json:"lines"`
	TotalLines int    `json:"totalLines"`
	StartLine  int    `json:"startLine"`
	Truncated  bool   `json:"truncated"` // lines follow
	Encoding   string `json:"encoding"`
	EOL        string `json:"eol"` // of the lines shown: LF, CRLF, mixed; "": there is none
}

// Facts returns them as of now.
func (v *View) Facts() Facts {
	f := Facts{Lines: v.Lines, TotalLines: v.Total, StartLine: v.First, Truncated: v.more(),
		Encoding: cmp.Or(v.Encoding, utf8Name), EOL: v.eol()}
	if v.BOM {
		f.Encoding += " BOM"
	}
	return f
}

// eol names the line ends of what is shown; "": it has none.
func (v *View) eol() string {
	switch {
	case v.lf > 0 && v.crlf > 0:
		return "mixed"
	case v.crlf > 0:
		return "CRLF"
	case v.lf > 0:
		return "LF"
	}
	return ""
}
