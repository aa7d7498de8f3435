package bash

import (
	"regexp"
	"strings"
	"sync"
)

// A sedUse is what a sed command line does.
type sedUse struct {
	scripts []string
	words   []spelt // of scripts, as far as they are more than text
	files   []spelt
	inPlace bool
	suffix  string // of backups
	foreign bool   // a script file, or an option that is not known
}

// sedOf reads the arguments of sed; the zero sedUse: name is another program.
func sedOf(name string, args []spelt) sedUse {
	if name != "sed" && name != "gsed" {
		return sedUse{}
	}
	r := read(name, args)
	var use sedUse
	given := false
	for i := range r.Options {
		o := &r.Options[i]
		if use.foreign = use.foreign || o.Option == nil || o.Impossible || o.Shortened; o.Option == nil {
			continue
		}
		var value spelt
		if o.Value >= 0 {
			value = r.value(o)
		}
		switch o.Name {
		case "-e", "--expression":
			if given = true; o.Value >= 0 {
				use.scripts, use.words = append(use.scripts, value.text), append(use.words, value)
			}
		case "-f", "--file":
			use.foreign, given = true, true
		case "-i", "--in-place":
			use.inPlace, use.suffix = true, value.text
		}
	}
	use.files = r.operands()
	if !given && len(use.files) > 0 {
		use.script()
		if use.scripts[0] == "" && use.inPlace && len(use.files) > 0 { // BSD: sed -i '' script
			use.script()
		}
	}
	return use
}

// script takes the first operand for a script.
func (use *sedUse) script() {
	use.scripts, use.words = append(use.scripts, use.files[0].text), append(use.words, use.files[0])
	use.files = use.files[1:]
}

// sedPlain says whether a script prints and nothing else: addresses, and the commands p, P, d, D, q, = and s without
// its flags e and w, as GNU and BSD sed read them alike. Without one of the usual delimiters, or with one in brackets,
// nothing is known of a script.
var sedPlain = sync.OnceValue(func() *regexp.Regexp {
	address := `(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\n\[]|\\[^\n]|\[\^?\]?(?:[^/\]\[\n]|\[:[a-z]+:\])*\])*/)`
	var each []string
	for _, d := range "/|,#:@!" {
		q := regexp.QuoteMeta(string(d))
		body := `(?:[^` + q + `\\\n\[]|\\[^\n])*`
		regex := `(?:[^` + q + `\\\n\[]|\\[^\n]|\[\^?\]?(?:[^` + q + `\]\[\n]|\[:[a-z]+:\])*\])*`
		each = append(each, `s`+q+regex+q+strings.Replace(body, `\[`, ``, 1)+q+`[gpiI0-9]*`)
	}
	one := address + `?(?:,[ \t]*` + address + `)?[ \t]*!?[ \t]*(?:[pPdDq=]|` + strings.Join(each, "|") + `)[ \t]*`
	return regexp.MustCompile(`^[ \t]*` + one + `(?:;[ \t]*` + one + `)*$`)
})

// sedRuns finds the command e, and the flag e of s, in scripts that are not plain.
var sedRuns = regexpOnce(`(?m)(?:^|[;{}!$/0-9,])[ \t]*e(?:[ \t;}]|$)|[^\w\s][gpiImM0-9]*e[gpiImM0-9]*[ \t]*(?:$|[;}])`)

// plain says whether all that sed does is known: it shows its files, or changes them with -i.
func (use *sedUse) plain() bool {
	for i, script := range use.scripts {
		if use.words[i].shape&(computed|globbed) != 0 || !sedPlain().MatchString(script) {
			return false
		}
	}
	return !use.foreign
}

// named are texts in the scripts, among them all files that some letters name: r, R, w, W and the flag w, each up to
// the end of its line.
func (use *sedUse) named(letters string) (names []spelt) {
	for i, script := range use.scripts {
		if sedPlain().MatchString(script) {
			continue
		}
		for line := range strings.Lines(script) {
			line = strings.TrimSpace(line)
			for n := range line {
				name := strings.TrimLeft(line[n+1:], " \t")
				if strings.IndexByte(letters, line[n]) >= 0 && name != "" && len(names) < maxPerhaps {
					names = append(names, spelt{text: name, bare: name, shape: use.words[i].shape & computed})
				}
			}
		}
	}
	return names
}

// runsBySed says whether a script has the command or the flag e.
func runsBySed(name string, args []spelt) bool {
	for _, script := range sedOf(name, args).scripts {
		if !sedPlain().MatchString(script) && sedRuns().MatchString(script) {
			return true
		}
	}
	return false
}

// sedFault says why a script of sed does more than print, or might be read otherwise by another sed; "": neither.
func sedFault(w *spelt) string {
	switch {
	case w.glob():
		return "glob " + snippet(w.text) + " as the script"
	case w.text == "":
		return "there is no script"
	case !sedPlain().MatchString(w.text):
		return "script " + snippet(w.text) + " is not on the list"
	}
	return ""
}
