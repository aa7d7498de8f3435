package bash

import "strings"

// printfFault looks at the words of printf. bash's %n and -v assign to a name, and -v 'a[$(id)]' runs id. The format
// must not be a glob, either: files may be named `-v` and `a[$(id)]`.
func printfFault(args []word) string {
	if len(args) == 0 {
		return "there is no format"
	}
	format := args[0]
	switch {
	case strings.HasPrefix(format.text, "-"):
		return "option " + snippet(format.text) + " is not on the list"
	case format.glob():
		return "glob " + snippet(format.text) + " as the format"
	}
	for s := format.text; ; {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return ""
		}
		s = s[i+1:]
		verb := strings.TrimLeft(s, "-+ #0'123456789.*hlLqjzt")
		if strings.HasPrefix(verb, "n") {
			return "format " + snippet(format.text) + " has %n"
		}
		s = strings.TrimPrefix(s, "%")
	}
}

// testFault looks at the words of test and [.
func testFault(name string, args []word) string {
	if name == "[" {
		if len(args) == 0 || args[len(args)-1].text != "]" {
			return "there is no ]"
		}
		args = args[:len(args)-1]
	}
	for _, w := range args {
		switch {
		case w.text == "-v" || w.text == "-R":
			return "operator " + w.text + " is not on the list"
		case strings.ContainsAny(w.text, "$`["):
			return "word " + snippet(w.text) + " might be read as an expression"
		case w.glob() && strings.Trim(w.text, "*?-vR") == "":
			return "glob " + snippet(w.text) + " may turn into -v"
		}
	}
	return ""
}

func (p *prover) commandFault(args []word) string {
	switch {
	case len(args) == 0:
		return "there is no word"
	case args[0].text != "-v" && args[0].text != "-V":
		return "it runs " + snippet(args[0].text)
	case len(args) == 1:
		return "there is no name"
	}
	for _, w := range args[1:] {
		switch {
		case strings.HasPrefix(w.text, "-") || w.leads():
			return "name " + snippet(w.text)
		case strings.Contains(w.text, "/"):
			if why := p.path(w); why != "" {
				return why
			}
		}
	}
	return ""
}

// filterFault looks at a filter of jq. A glob in it is only taken where it can be nothing but an index: `.a[0]`.
func filterFault(w word) string {
	if strings.ContainsAny(w.shape, "*?") {
		return "glob " + snippet(w.text) + " as the filter"
	}
	for s := w.shape; ; {
		i := strings.IndexByte(s, '[')
		if i < 0 {
			break
		}
		s = strings.TrimLeft(s[i+1:], "0123456789:-")
		if s != "" && s[0] != ']' {
			return "glob " + snippet(w.text) + " as the filter"
		}
	}
	for s := w.text; s != ""; {
		n := 0
		for n < len(s) && (isAlpha(s[n]) || isDigit(s[n]) || s[n] == '_') {
			n++
		}
		switch s[:n] {
		case "env", "ENV", "import", "include", "input_filename", "modulemeta", "get_search_list":
			return "filter with " + s[:n]
		}
		s = s[max(n, 1):]
	}
	return ""
}
