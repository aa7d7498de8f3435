package bash

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codehand/tools/bash/programs"
)

// match is R5 for the words behind the name of a program, by the column `proved` of its row. It returns what is wrong;
// "": nothing.
func (f *closedCall) match(r *reading) string {
	row, lead := r.row, ""
	if row.Has("own") { // all words are operands
		all := make([]int, len(r.args))
		for i := range all {
			all[i] = i
		}
		return f.operands(r, all)
	}
	ended := false
	for i := range r.args {
		w := &r.args[i]
		ended = ended || w.text == "--"
		if w.leads() && !ended && !row.Has("glob") {
			if lead == "" {
				lead = "glob " + snippet(w.text) + " may turn into an option"
			}
			if row.Has("expression") {
				return lead
			}
		}
	}
	for i := range r.Options {
		if why := f.option(r, &r.Options[i]); why != "" {
			return why
		}
	}
	if r.Command >= 0 {
		return "it runs " + snippet(r.args[r.Command].text)
	}
	if why := f.operands(r, r.Operands); why != "" {
		return why
	}
	return lead
}

func notListed(kind string, w *spelt) string {
	return kind + " " + snippet(w.text) + " is not on the list"
}

func isGit(row *programs.Program) bool { return strings.HasPrefix(row.Name, "git ") }

// option looks at one option and its value.
func (f *closedCall) option(r *reading, o *programs.Found) string {
	w, row := &r.args[o.At], r.row
	switch {
	case (o.Option == nil || !o.Safe || o.Shortened) && row.Has("expression"):
		return notListed("word", w)
	case o.Option == nil || !o.Safe || o.Shortened:
		return notListed("option", w)
	case len(r.Operands) > 0 && r.Operands[0] < o.At && row.Has("first"):
		return "option " + snippet(w.text) + " behind an operand"
	case o.Does&programs.Follows != 0:
		return "option " + snippet(w.text) + " follows links"
	case o.Impossible && o.At == len(r.args)-1 && isGit(row) &&
		isOneOf(o.Name, "--merged --no-merged --contains --no-contains"):
		return "" // git lists against HEAD then
	case o.Impossible && o.Value >= 0:
		return "option " + snippet(w.text) + " takes no value"
	case o.Impossible && o.From > 0 && o.From+1 < len(w.text):
		return notListed("option", w)
	case o.Impossible:
		return "option " + snippet(w.text) + " has no value"
	case o.Value < 0:
		return ""
	}
	if o.ValueFrom == 0 {
		for at := o.At + 1; at <= o.Value; at++ {
			if why := f.apart(r, o, &r.args[at]); why != "" {
				return why
			}
		}
	}
	v := r.value(o)
	switch {
	case o.Kind == programs.Reads:
		return f.path(&v)
	case o.Instead && row.Proved.First == "script":
		return sedFault(&v)
	case row.Name == "date" && strings.Contains(v.text, "TZ="):
		return "value " + snippet(v.text) + " names a file of a time zone"
	case isGit(row) && o.Name == "--sort" && strings.Contains(strings.ToLower(v.text), "signature"):
		return "value " + snippet(v.text) + " starts gpg"
	}
	return ""
}

// apart looks at a value that is a word of its own.
func (f *closedCall) apart(r *reading, o *programs.Found, v *spelt) string {
	dash := len(v.text) > 1 && v.text[0] == '-' && !isDigits(v.text[1:])
	expression := r.row.Has("expression")
	if expression {
		dash = dash && isAlpha(v.text[1]) && o.Name != "-perm"
	}
	switch {
	case dash:
		return "value " + snippet(v.text) + " of option " + snippet(r.args[o.At].text) + " looks like an option"
	case v.leads() && !r.row.Has("glob"), v.glob() && expression && strings.HasPrefix(v.text, "-"):
		return "glob " + snippet(v.text) + " may turn into an option"
	case v.glob() && (isGit(r.row) || r.row.Has("front") || !r.row.Proved.Several()):
		return "glob " + snippet(v.text) + " as a value"
	case v.glob(): // it may become several words, and all but the first are operands
		return f.path(v)
	}
	return ""
}

// operands is R5 (f).
func (f *closedCall) operands(r *reading, rest []int) string {
	row, o := r.row, r.row.Proved
	if o.First != "" && !r.instead() {
		if len(rest) == 0 {
			if o.First != "pattern" && o.First != "filter" {
				return "there is no " + o.First
			}
		} else if why := f.operand(o.First, &r.args[rest[0]]); why != "" {
			return why
		} else {
			rest = rest[1:]
		}
	}
	switch {
	case o.Kind == "list" && len(rest) > 0 && !lists(r):
		return "operand " + snippet(r.args[rest[0]].text) + " without --list before it"
	case len(rest) > 0 && o.Kind == "":
		return notListed("operand", &r.args[rest[0]])
	case len(rest) > o.Max:
		return "operand " + snippet(r.args[rest[o.Max]].text) + " is one too many"
	case len(rest) < o.Min:
		return "it has " + strconv.Itoa(len(rest)) + " operands, at least " + strconv.Itoa(o.Min)
	}
	for _, at := range rest {
		w := &r.args[at]
		switch {
		case !o.Several() && w.glob():
			return "glob " + snippet(w.text) + " may turn into several operands"
		case row.Has("old") && strings.HasPrefix(w.text, "+"),
			row.Has("front") && !row.Has("own") && strings.HasPrefix(w.text, "-"):
			return notListed("option", w)
		}
		if why := f.operand(o.Kind, w); why != "" {
			return why
		}
	}
	return ""
}

// lists says whether -l or --list stands before any operand.
func lists(r *reading) bool {
	return slices.ContainsFunc(r.Options, func(o programs.Found) bool {
		return (o.Name == "-l" || o.Name == "--list") && o.At < r.Operands[0]
	})
}

// operand looks at an operand of a kind, which is a word of the table.
func (f *closedCall) operand(kind string, w *spelt) string {
	t, ok := w.text, true
	switch kind {
	case "pattern":
		if w.glob() { // the shell makes paths of it, and all but the first are operands
			return f.path(w)
		}
	case "script":
		return sedFault(w)
	case "filter":
		if w.glob() || jqReaches().MatchString(t) {
			return "filter " + snippet(t) + " is a glob, or reaches beyond its input"
		}
	case "dir":
		if t != "-" { // where the shell was before
			return f.path(w)
		}
		ok = false
	case "path":
		if t != "-" {
			return f.path(w)
		}
	case "rev":
		if !strings.HasPrefix(t, ":") {
			return f.path(w)
		}
	case "name": // with a slash it is looked for there, else in PATH
		if ok = !strings.HasPrefix(t, "-") && !w.leads(); ok && strings.Contains(t, "/") {
			return f.path(w)
		}
	case "number":
		ok = isNumber(t)
	case "seconds":
		seconds, err := strconv.ParseFloat(t, 64)
		ok = err == nil && isNumber(t) && seconds >= 0 && seconds <= maxSleep
	case "format":
		ok = strings.HasPrefix(t, "+")
	case "setting":
		ok = !w.glob() && strings.Contains(t, ".") && !strings.HasPrefix(t, "-") && !gitSecrets().MatchString(t)
	case "printed": // %n assigns to a name, and a[$(id)] is one that runs id
		ok = !w.glob() && !strings.HasPrefix(t, "-") && !printfAssigns().MatchString(strings.ReplaceAll(t, "%%", ""))
	case "condition": // [ evaluates some words, and a[$(id)] runs id there
		ok = t != "-v" && t != "-R" && !strings.ContainsAny(t, "$`[") && !(w.glob() && strings.Trim(t, "*?-vR") == "")
	case "asks":
		ok = t == "-v" || t == "-V"
	case "text", "list":
	default:
		ok = false
	}
	if !ok {
		return notListed("operand", w)
	}
	return ""
}

// jqReaches, gitSecrets and printfAssigns find what a filter of jq reads besides its input, keys of git that hold
// secrets, and verbs of printf that assign.
var (
	jqReaches = regexpOnce(`(?:^|[^A-Za-z0-9_])` +
		`(?:env|ENV|import|include|input_filename|modulemeta|get_search_list)(?:[^A-Za-z0-9_]|$)`)
	gitSecrets    = regexpOnce(`(?i)extraheader$|password|token|^credential\.`)
	printfAssigns = regexpOnce(`%[-+ #0'0-9.*hlLqjzt]*n`)
)

func regexpOnce(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// maxSleep is how long a ReadOnly command sleeps, in seconds.
const maxSleep = 60

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isNumber knows words of digits, `-` and `.` only, with a digit.
func isNumber(s string) bool {
	return strings.Trim(s, "-.0123456789") == "" && strings.ContainsAny(s, "0123456789")
}
