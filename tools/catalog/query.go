package catalog

import (
	"slices"
	"strings"
	"unicode"
)

// A request is a query by words, all in lower case, each once.
type request struct {
	must  []string // the name must contain each, but for its ending
	words []string // what is ranked by, the parts of must among them
	pairs []string // two words that stand side by side, as one: "to do", "work tree"
}

// selectForm begins a query that names tools.
const selectForm = "select:"

// selected are the names of a query that names tools. Blanks part names as commas do, since no name has one, and marks
// of quotation are no part of them.
func selected(query string) (names []string, ok bool) {
	if len(query) < len(selectForm) || !strings.EqualFold(query[:len(selectForm)], selectForm) {
		return nil, false
	}
	for name := range strings.FieldsFuncSeq(query[len(selectForm):],
		func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if name = strings.Trim(name, "\"'`+"); name != "" {
			names = append(names, name)
		}
	}
	return names, true
}

// parse reads a query by words. A plus sign that stands alone belongs to the word after it.
func parse(query string) request {
	var r request
	plus, last := false, ""
	for field := range strings.FieldsSeq(query) {
		word, marked := strings.CutPrefix(strings.TrimLeft(field, "\"'`("), "+")
		found := parts(word)
		if len(found) == 0 {
			plus = marked
			continue
		}
		for _, w := range found {
			if last != "" {
				r.pairs = add(r.pairs, last+w)
			}
			last = w
			if marked || plus {
				r.must = add(r.must, w)
			} else if stops(w) || len(w) == 1 {
				continue
			}
			r.words = add(r.words, w)
		}
		plus = false
	}
	return r
}

func add(words []string, w string) []string {
	if slices.Contains(words, w) {
		return words
	}
	return append(words, w)
}

// stopWords say nothing about a tool; after + they count. Each stands between blanks.
const stopWords = " a about all an and any are as at be by can could do does for from have how i if in into is it " +
	"its let me my need of on " +
	"or please should so some that the their them there these this to tool tools use used using want was what when " +
	"where which who will " +
	"with would you your "

func stops(w string) bool { return strings.Contains(stopWords, " "+w+" ") }
