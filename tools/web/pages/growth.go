package pages

import (
	"strings"

	"golang.org/x/net/html"
)

const (
	// maxRepeated is how many elements a page may have that it does not name: after the end of a block the parser opens
	// again all formatting that was not closed in it, so that a short page can make a large tree.
	maxRepeated = 200_000
	// freeFormats is how many open formatting elements are not counted: pages nest a few all the time, and close them.
	freeFormats = 2
)

// formatting are the elements that a parser opens again (HTML, 13.2.4.3, the list of active formatting elements).
var formatting = map[string]bool{
	"a": true, "b": true, "big": true, "code": true, "em": true, "font": true, "i": true, "nobr": true, "s": true,
	"small": true, "strike": true, "strong": true, "tt": true, "u": true,
}

// growing is the part of a page, from its beginning, whose tree is no larger than its text explains. It counts at most
// what the parser would repeat; where it counts less, as in tables that are written wrongly, the bounds of a feed hold.
func growing(text string) string {
	z := html.NewTokenizer(strings.NewReader(text))
	var f formats
	for at, repeated := 0, 0; ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			return text
		}
		at += len(z.Raw())
		if kind == html.StartTagToken || kind == html.EndTagToken {
			name, _ := z.TagName()
			f.count(string(name), kind == html.StartTagToken)
		}
		if repeated += max(0, f.open-freeFormats); repeated > maxRepeated {
			return text[:at]
		}
	}
}

// formats counts the formatting elements that are open.
type formats struct {
	open   int
	named  map[string]int // of which names
	around []formats      // what is open around each table; the parser repeats it in no cell
}

// count takes a start or an end tag.
func (f *formats) count(name string, starts bool) {
	switch {
	case formatting[name]:
		if f.named == nil {
			f.named = map[string]int{}
		}
		if starts {
			f.named[name]++
			f.open++
		} else if f.named[name] > 0 { // another one is ignored
			f.named[name]--
			f.open--
		}
	case name == "table" && starts:
		if len(f.around) < maxDepth {
			f.around = append(f.around, formats{open: f.open, named: f.named})
			f.open, f.named = 0, nil
		}
	case len(f.around) == 0:
	case name == "table":
		last := f.around[len(f.around)-1]
		f.around = f.around[:len(f.around)-1]
		f.open, f.named = last.open, last.named
	case name == "td" || name == "th" || name == "tr" || name == "caption": // what was opened in a cell ends with it
		f.open, f.named = 0, nil
	}
}
