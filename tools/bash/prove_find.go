package bash

import "strings"

// findFault looks at the words of find: starting points, then the expression.
func (p *prover) findFault(args []word) string {
	for len(args) > 0 && (args[0].text == "-H" || args[0].text == "-L" || args[0].text == "-P") {
		args = args[1:]
	}
	expression := false
	for i := 0; i < len(args); i++ {
		w := args[i]
		if w.leads() {
			return "glob " + snippet(w.text) + " may turn into an option"
		}
		if !expression && !startsExpression(w.text) {
			if why := p.path(w); why != "" {
				return why
			}
			continue
		}
		expression = true
		takes := findTest(w.text)
		if takes == notListed {
			return "word " + snippet(w.text) + " is not on the list"
		}
		if takes == noValue {
			continue
		}
		if i++; i == len(args) {
			return w.text + " has no value"
		}
		switch v := args[i]; {
		case v.leads(), v.glob() && strings.HasPrefix(v.text, "-"):
			return "glob " + snippet(v.text) + " may turn into an option"
		case len(v.text) > 1 && v.text[0] == '-' && isAlpha(v.text[1]) && w.text != "-perm":
			return "value " + snippet(v.text) + " of " + w.text + " looks like an option"
		case takes == pathValue:
			if why := p.path(v); why != "" {
				return why
			}
		}
	}
	return ""
}

// startsExpression says whether a word ends the starting points.
func startsExpression(s string) bool {
	switch s {
	case "!", "(", ")", ",":
		return true
	}
	return len(s) > 1 && s[0] == '-'
}

// findTest says what a word of an expression takes.
func findTest(s string) arity {
	switch s {
	case "!", "(", ")", ",", "-not", "-a", "-and", "-o", "-or", "-empty", "-depth", "-mount", "-xdev", "-daystart",
		"-nouser", "-nogroup", "-readable", "-writable", "-executable", "-true", "-false", "-prune", "-quit", "-print",
		"-print0", "-ls":
		return noValue
	case "-newer", "-anewer", "-cnewer", "-samefile":
		return pathValue
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-regextype", "-type", "-xtype",
		"-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-maxdepth", "-mindepth", "-perm", "-user",
		"-group", "-uid", "-gid", "-links", "-inum", "-lname", "-ilname", "-printf":
		return oneValue
	}
	if xy, ok := strings.CutPrefix(s, "-newer"); ok && len(xy) == 2 && strings.IndexByte("aBcm", xy[0]) >= 0 {
		switch xy[1] {
		case 'a', 'B', 'c', 'm':
			return pathValue
		case 't':
			return oneValue
		}
	}
	return notListed
}
