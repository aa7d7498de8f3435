package catalog

import (
	"strings"
	"unicode"
)

// parts splits a name or a word of a query where anything but a letter or a digit stands and where the case changes, and
// lowers it: mcp__github__getIssue and GetHTMLPage become github, get, issue and get, html, page.
func parts(name string) []string {
	if len(name) > len(mounted) && strings.EqualFold(name[:len(mounted)], mounted) {
		name = name[len(mounted):]
	}
	var all []string
	runes := []rune(name)
	start := 0
	cut := func(end int) {
		if end > start {
			all = append(all, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut(i)
			start = i + 1
		case i > start && unicode.IsUpper(r):
			ends := i+1 < len(runes) && unicode.IsLower(runes[i+1]) // the last capital of HTMLPage begins a word
			if !unicode.IsUpper(runes[i-1]) || ends {
				cut(i)
			}
		}
	}
	cut(len(runes))
	return all
}

// mounted begins the names of tools of other servers.
const mounted = "mcp__"

// singular is a word without the s of a plural.
func singular(w string) string {
	switch n := len(w); {
	case n < 4 || w[n-1] != 's':
		return w
	case strings.HasSuffix(w, "ies") && n > 4:
		return w[:n-3] + "y"
	case strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"):
		return w[:n-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	}
	return w[:len(w)-1]
}
