package tool

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"codehand/tools/catalog"
)

// maxProblems is how many problems one refusal names. A model mends ten at a time; more would only push
// the tool's schema out of its view.
const maxProblems = 10

// maxQuoted is how many characters of a wrong value or name a problem repeats.
const maxQuoted = 40

// Invalid returns the refusal INPUT_INVALID in the one form that all tools use. Each problem is half a
// sentence that begins with the quoted parameter: `"pages" must be like 3 or 1-5, not "x"`. Only the
// first ten are shown, with the number of the others.
func Invalid(tool string, problems ...string) error {
	var b strings.Builder
	b.WriteString("Input validation failed for " + tool + ":")
	for i, p := range problems {
		if i == maxProblems {
			fmt.Fprintf(&b, "\n(%d more problems)", len(problems)-i)
			break
		}
		b.WriteString("\n- " + p)
	}
	return &Refusal{Code: InputInvalid, Text: b.String()}
}

// problems collects what is wrong with one input. Beyond the tenth it only counts, so that a hostile input
// of a million mistakes costs no more than a wrong one.
type problems []string

func (p *problems) add(format string, args ...any) {
	if len(*p) < maxProblems {
		*p = append(*p, fmt.Sprintf(format, args...))
		return
	}
	*p = append(*p, "")
}

// A place is where in an input a value stands. It is put into words only when there is a problem.
type place struct {
	up    *place
	name  string // of the parameter; "": an item
	index int    // of the item, from 0
}

func (p *place) String() string {
	switch {
	case p.up == nil:
		return p.name
	case p.name == "":
		return p.up.String() + "[" + strconv.Itoa(p.index) + "]"
	case p.up.up == nil && p.up.name == "":
		return p.name
	}
	return p.up.String() + "." + p.name
}

// describe names a JSON value in a few words.
func describe(raw []byte) string {
	switch raw[0] {
	case '"':
		return quote(unquote(raw))
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return cut(string(raw[:min(len(raw), 4*maxQuoted)]))
}

func quote(s string) string { return strconv.Quote(cut(s)) }

func quoted(list []string) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = quote(s)
	}
	return strings.Join(words, ", ")
}

// cut shortens s to maxQuoted characters.
func cut(s string) string {
	count := 0
	for i := range s {
		if count++; count > maxQuoted {
			return s[:i] + "…"
		}
	}
	return s
}

// nearest returns the parameter that key is probably meant to be, "" if none is near: one that it is with
// other case or separators, one that contains it or is contained, or one at a small edit distance.
func (s *shape) nearest(key string) string {
	if len(key) > 64 { // no name is longer, and the distance costs the product of both
		return ""
	}
	best, score := "", 1+max(1, len(key)/3)
	try := func(name, real string) {
		if d := farness(plain(key), plain(name)); d < score {
			best, score = real, d
		}
	}
	for _, f := range s.fields {
		if !f.hidden {
			try(f.name, f.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.accept)) {
		try(name, s.accept[name])
	}
	return best
}

// plain drops case and separators: filePath, file-path and file_path are one name to a model.
func plain(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}

// farness is the edit distance, or 1 if one name contains the other.
func farness(a, b string) int {
	if a != b && min(len(a), len(b)) >= 3 && (strings.Contains(a, b) || strings.Contains(b, a)) {
		return 1
	}
	return catalog.Distance(a, b)
}
