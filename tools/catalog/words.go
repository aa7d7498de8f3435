package catalog

import (
	"slices"
	"strings"
	"unicode"
)

// parts splits a name or a word of a query where anything but a letter or a digit stands and where the case changes,
// and lowers it: mcp__github__getIssue and GetHTMLPage become github, get, issue and get, html, page.
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

// stem is a word in lower case without its ending, so that task and tasks, change and changed, plan and planning, or
// dependency and dependencies are one. The word begins with it, and what stays has 3 letters or more.
func stem(w string) string {
	w = singular(w)
	for _, ending := range []string{"ing", "ed"} {
		short, ok := strings.CutSuffix(w, ending)
		n := len(short)
		if !ok || n <= leastStem {
			continue
		}
		if w = short; w[n-1] == w[n-2] && w[n-1] != 's' && w[n-1] != 'l' {
			w = w[:n-1] // plann of planning
		}
		break
	}
	if n := len(w) - 1; n > leastStem && (w[n] == 'e' || w[n] == 'y') {
		return w[:n]
	}
	return w
}

// leastStem is how many letters of a word stay at least.
const leastStem = 3

// singular is a word without the s of a plural.
func singular(w string) string {
	n := len(w)
	switch last := func(endings ...string) bool {
		return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(w, e) })
	}; {
	case n <= leastStem, !last("s"), last("ss", "us", "is"):
		return w
	case last("ches", "shes", "sses", "xes"):
		return w[:n-2]
	case last("ies") && n > leastStem+3:
		return w[:n-3] + "y"
	}
	return w[:n-1]
}
