package pattern

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

const (
	maxNeedles  = 64  // strings of a set
	maxNeedle   = 256 // bytes of a string
	maxClass    = 8   // runes of a class that is taken for literals
	needleScore = 40  // a set that is worth less does not narrow a search
)

// literals is what a part of a pattern tells about the texts that it matches.
type literals struct {
	exact []string // the part matches precisely these; nil: unknown
	need  []string // each match contains one of these; nil: nothing is known
	fold  bool     // exact is to be compared without ASCII case
	both  bool     // need, the same
	plain bool     // exact is all that there is to say: no condition must hold besides
}

// needlesOf finds the strings one of which is in each match of a pattern.
func needlesOf(re *syntax.Regexp) needles {
	l := literalsOf(re)
	if l.exact != nil && score(l.exact) >= needleScore {
		return newNeedles(l.exact, l.fold, l.plain)
	}
	if l.need != nil && score(l.need) >= needleScore {
		return newNeedles(l.need, l.both, false)
	}
	return needles{}
}

func literalsOf(re *syntax.Regexp) literals {
	switch re.Op {
	case syntax.OpLiteral:
		return concat(literalRuns(re.Rune, re.Flags&syntax.FoldCase != 0))
	case syntax.OpCharClass:
		if runes, ok := runeSet(re.Rune).runes(maxClass); ok && !slices.Contains(runes, '\n') {
			l := literals{plain: true}
			for _, r := range runes {
				l.exact = append(l.exact, string(r))
			}
			return l
		}
	case syntax.OpEmptyMatch:
		return literals{exact: []string{""}, plain: true}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary,
		syntax.OpNoWordBoundary:
		return literals{exact: []string{""}}
	case syntax.OpConcat:
		var parts []literals
		for _, sub := range re.Sub {
			parts = append(parts, literalsOf(sub))
		}
		return concat(parts)
	case syntax.OpAlternate:
		return alternate(re.Sub)
	case syntax.OpPlus:
		return required(literalsOf(re.Sub[0]))
	case syntax.OpRepeat:
		if re.Min == 1 && re.Max == 1 {
			return literalsOf(re.Sub[0])
		}
		if re.Min > 0 {
			return required(literalsOf(re.Sub[0]))
		}
	case syntax.OpQuest:
		if l := literalsOf(re.Sub[0]); l.exact != nil && len(l.exact) < maxClass {
			l.exact, l.need = append([]string{""}, l.exact...), nil
			return l
		}
	}
	return literals{}
}

// literalRuns parts a literal where its case is more than ASCII: "k" and "s" have a third form, of other length.
func literalRuns(runes []rune, fold bool) []literals {
	if !fold {
		return []literals{{exact: []string{string(runes)}, plain: true}}
	}
	var out []literals
	var run []rune
	for _, r := range runes {
		lower := unicode.ToLower(r)
		if r > unicode.MaxASCII || lower == 'k' || lower == 's' {
			out = append(out, literals{exact: []string{string(run)}, fold: true}, literals{})
			run = nil
			continue
		}
		run = append(run, lower)
	}
	return append(out, literals{exact: []string{string(run)}, fold: true, plain: true})
}

// required keeps of l that its strings occur somewhere.
func required(l literals) literals {
	if l.exact != nil {
		return literals{need: l.exact, both: l.fold}
	}
	return literals{need: l.need, both: l.both}
}

// concat joins parts that follow each other: as long as their exact strings can be multiplied they are one run; of all
// runs and needs the best is required.
func concat(parts []literals) literals {
	run := literals{exact: []string{""}, plain: true}
	var best literals
	better := func(l literals) {
		if l = required(l); l.need != nil && (best.need == nil || score(l.need) > score(best.need)) {
			best = l
		}
	}
	whole := true
	for _, l := range parts {
		if next, ok := multiply(run, l); ok {
			run = next
			continue
		}
		whole = false
		better(run)
		better(l)
		run = literals{exact: []string{""}}
		if l.exact != nil {
			run = l
		}
	}
	if whole {
		return run
	}
	better(run)
	return literals{need: best.need, both: best.both}
}

// multiply gives each string of a followed by each of b, if that stays within bounds.
func multiply(a, b literals) (literals, bool) {
	if a.exact == nil || b.exact == nil || len(a.exact)*len(b.exact) > maxNeedles {
		return literals{}, false
	}
	out := literals{fold: a.fold || b.fold, plain: a.plain && b.plain && (a.fold == b.fold || empty(a) || empty(b))}
	for _, x := range a.exact {
		for _, y := range b.exact {
			if len(x)+len(y) > maxNeedle {
				return literals{}, false
			}
			out.exact = append(out.exact, x+y)
		}
	}
	return out, true
}

// empty says that a set is only the empty string, which has no case.
func empty(l literals) bool { return len(l.exact) == 1 && l.exact[0] == "" }

func alternate(branches []*syntax.Regexp) literals {
	exact := literals{plain: true}
	var need literals
	exactly, needed := true, true
	for i, sub := range branches {
		l := literalsOf(sub)
		exactly = exactly && l.exact != nil && len(exact.exact)+len(l.exact) <= maxNeedles
		if exactly {
			exact.plain = exact.plain && l.plain && (i == 0 || exact.fold == l.fold)
			exact.exact = append(exact.exact, l.exact...)
			exact.fold = exact.fold || l.fold
		}
		r := required(l)
		needed = needed && r.need != nil && len(need.need)+len(r.need) <= maxNeedles
		if needed {
			need.need = append(need.need, r.need...)
			need.both = need.both || r.both
		}
	}
	switch {
	case exactly:
		return exact
	case needed:
		return need
	}
	return literals{}
}

// common lists the bytes of source code, the most common first; bytes that are not in it are rare.
const common = " etainrsol\ndcu_pfm\tgh,(.)b-y/0;*=:\"v1>w{x}k2T&ES3C'AIRN4[]8O56LDP#z|7FM9<Bq!+UGj\\`HVWX$K?@%YQJZ^~"

// rank says how common a byte is: 255 the most, 0 for bytes that are hardly there.
func rank(c byte) int {
	if i := strings.IndexByte(common, c); i >= 0 {
		return 255 - 2*i
	}
	return 0
}

// score says how well a set of strings narrows a search.
func score(set []string) int {
	lowest := -1
	for _, s := range set {
		n := 0
		for i := range len(s) {
			n += 256 - rank(s[i])
		}
		if len(s) == 1 {
			n /= 4
		}
		if lowest < 0 || n < lowest {
			lowest = n
		}
	}
	return max(lowest, 0) / (1 + len(set)/4)
}
