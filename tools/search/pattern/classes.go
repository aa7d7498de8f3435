package pattern

import (
	"strings"
	"sync"
	"unicode"
)

// perlClass returns the set of \d, \s or \w, by its lower letter.
func perlClass(letter byte, ascii bool) runeSet {
	switch {
	case letter == 'd' && ascii:
		return runeSet{'0', '9'}
	case letter == 'd':
		return digits()
	case letter == 's' && ascii:
		return runeSet{'\t', '\r', ' ', ' '}
	case letter == 's':
		return blanks()
	case ascii:
		return runeSet{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	}
	return words()
}

// The sets that most patterns need are made once.
var (
	digits = sync.OnceValue(func() runeSet { return ofTables(unicode.Nd) })
	blanks = sync.OnceValue(func() runeSet { return ofTables(unicode.White_Space) })
	words  = sync.OnceValue(func() runeSet {
		return ofTables(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc,
			unicode.Join_Control)
	})
)

// posixClass returns the set of [:name:]; these are ASCII always.
func posixClass(name string) (runeSet, bool) {
	pairs, ok := map[string]string{
		"alnum": "09AZaz", "alpha": "AZaz", "ascii": "\x00\x7f", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f",
		"digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ",
		"upper": "AZ", "word": "09AZ__az", "xdigit": "09AFaf",
	}[name]
	return newRuneSet([]rune(pairs)...), ok
}

// propertyClass returns the set of \p{name}: Go's categories, scripts and properties, and some that it lacks. As in
// ripgrep, case, blanks, "_" and "-" of a name do not count.
func propertyClass(name string) (runeSet, bool) {
	kind, value, both := strings.Cut(strings.ReplaceAll(name, ":", "="), "=")
	if !both {
		kind, value = "", kind
	}
	key := looseName(value)
	switch looseName(kind) {
	case "":
	case "gc", "generalcategory":
		return find(key, categories())
	case "sc", "script":
		return find(key, scripts())
	default:
		return nil, false
	}
	if s, ok := namedClass(key); ok {
		return s, ok
	}
	if s, ok := find(key, categories()); ok {
		return s, ok
	}
	if s, ok := find(key, scripts()); ok {
		return s, ok
	}
	return find(key, properties())
}

// namedClass returns sets that are no table of Go's.
func namedClass(key string) (runeSet, bool) {
	switch key {
	case "any":
		return anyRune, true
	case "ascii":
		return runeSet{0, unicode.MaxASCII}, true
	case "assigned":
		return assigned(), true
	case "cn", "unassigned":
		return assigned().negate(), true
	case "alphabetic", "alpha":
		return ofTables(unicode.L, unicode.Nl, unicode.Other_Alphabetic), true
	case "lowercase":
		return ofTables(unicode.Ll, unicode.Other_Lowercase), true
	case "uppercase":
		return ofTables(unicode.Lu, unicode.Other_Uppercase), true
	case "lc", "casedletter":
		return ofTables(unicode.Lu, unicode.Ll, unicode.Lt), true
	}
	return nil, false
}

func assigned() runeSet {
	return ofTables(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf,
		unicode.Co, unicode.Cs)
}

// categoryNames are the long names of the general categories.
var categoryNames = map[string]string{
	"letter": "L", "uppercaseletter": "Lu", "lowercaseletter": "Ll", "titlecaseletter": "Lt", "modifierletter": "Lm",
	"otherletter": "Lo", "mark": "M", "nonspacingmark": "Mn", "spacingmark": "Mc", "enclosingmark": "Me", "number": "N",
	"decimalnumber": "Nd", "letternumber": "Nl", "othernumber": "No", "punctuation": "P", "punct": "P",
	"connectorpunctuation": "Pc", "dashpunctuation": "Pd", "openpunctuation": "Ps", "closepunctuation": "Pe",
	"initialpunctuation": "Pi", "finalpunctuation": "Pf", "otherpunctuation": "Po", "symbol": "S", "mathsymbol": "Sm",
	"currencysymbol": "Sc", "modifiersymbol": "Sk", "othersymbol": "So", "separator": "Z", "spaceseparator": "Zs",
	"lineseparator": "Zl", "paragraphseparator": "Zp", "other": "C", "control": "Cc", "format": "Cf", "surrogate": "Cs",
	"privateuse": "Co", "digit": "Nd", "cntrl": "Cc",
}

// Go's tables by their loose names.
var (
	categories = sync.OnceValue(func() map[string]*unicode.RangeTable {
		out := loose(unicode.Categories)
		for long, short := range categoryNames {
			out[long] = unicode.Categories[short]
		}
		return out
	})
	scripts    = sync.OnceValue(func() map[string]*unicode.RangeTable { return loose(unicode.Scripts) })
	properties = sync.OnceValue(func() map[string]*unicode.RangeTable { return loose(unicode.Properties) })
)

func loose(tables map[string]*unicode.RangeTable) map[string]*unicode.RangeTable {
	out := map[string]*unicode.RangeTable{}
	for name, table := range tables {
		out[looseName(name)] = table
	}
	return out
}

// find looks a name up in a map of tables.
func find(key string, tables map[string]*unicode.RangeTable) (runeSet, bool) {
	if table, ok := tables[key]; ok {
		return ofTables(table), true
	}
	return nil, false
}

func looseName(s string) string { return strings.ToLower(noise.Replace(s)) }

var noise = strings.NewReplacer(" ", "", "_", "", "-", "")
