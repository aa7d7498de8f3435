package bash

import "strings"

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

// named are the files that scripts of sed name, to read and to change. Not all: there may be others.
func (use *sedUse) named() (reads, writes []spelt, all bool) {
	all = !use.foreign
	for i, script := range use.scripts {
		commands, ok := sedCommands(script)
		all = all && ok && use.words[i].shape&(computed|globbed) == 0
		for _, c := range commands {
			switch w := (spelt{text: c.file, bare: c.file, shape: use.words[i].shape & computed}); {
			case c.file == "", strings.HasPrefix(c.file, "/dev/std"):
			case c.name == 'r', c.name == 'R':
				reads = append(reads, w)
			default:
				writes = append(writes, w)
			}
		}
	}
	return reads, writes, all
}

// runsBySed says whether a script has the command or the flag e.
func runsBySed(name string, args []spelt) bool {
	for _, script := range sedOf(name, args).scripts {
		commands, ok := sedCommands(script)
		if commands.has("e") || !ok && looksRun(script) {
			return true
		}
	}
	return false
}

// sedWrites says whether a sed command line changes files: without -i, w and what is not understood, it only shows.
func sedWrites(name string, args []spelt) bool {
	use := sedOf(name, args)
	if use.inPlace || use.foreign {
		return true
	}
	for _, script := range use.scripts {
		if commands, ok := sedCommands(script); !ok || commands.has("wWe") {
			return true
		}
	}
	return false
}

// looksRun is for scripts that are not understood: an e where a command or the flags of s may end.
func looksRun(script string) bool {
	ends := func(c rune) bool { return c == ';' || c == '\n' || c == '{' || c == '}' }
	for line := range strings.FieldsFuncSeq(script, ends) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(strings.TrimLeft(line, "0123456789,$!~+ /"), "e ") || strings.HasSuffix(line, "/e") ||
			strings.HasSuffix(line, "/ge") {
			return true
		}
	}
	return false
}

// sedFault says why a script of sed does more than print, or might be read otherwise by another sed; "": neither. Only
// what GNU and BSD sed read alike is left: addresses, and the commands p, P, d, D, q, = and s without its flags e, w.
func sedFault(w word) string {
	if w.glob() {
		return "glob " + snippet(w.text) + " as the script"
	}
	commands, _ := sedCommands(w.text)
	if len(commands) == 0 {
		return "there is no script"
	}
	for _, c := range commands {
		if c.doubt || c.reaches != "" || strings.IndexByte("pPdDq=s", c.name) < 0 {
			return "script " + snippet(w.text) + ": not on the list from " + snippet(w.text[c.from:])
		}
	}
	return ""
}

// A sedCommand is one command of a script.
type sedCommand struct {
	name    byte
	from    int    // where it begins, with its addresses
	reaches string // flags of s that run or write: e, w
	file    string // what r, R, w, W and the flag w name
	doubt   bool   // it is not understood, or not every sed reads it like this
}

type sedList []sedCommand

// has says whether one of the commands, or of the flags of s, is in names.
func (l sedList) has(names string) bool {
	for _, c := range l {
		if strings.IndexByte(names, c.name) >= 0 || strings.ContainsAny(c.reaches, names) {
			return true
		}
	}
	return false
}

// sedCommands reads a script. Not ok: it is not understood from the last command on.
func sedCommands(script string) (commands sedList, ok bool) {
	p := sedReader{s: script}
	for first := true; ; first = false {
		gap := strings.Trim(p.take(" \t\n;{}"), " \t")
		odd := first && gap != "" || !first && gap != ";"
		p.c = sedCommand{from: p.i, doubt: odd}
		if p.i >= len(p.s) {
			if gap != "" && (odd || first) {
				commands = append(commands, p.c)
			}
			return commands, true
		}
		understood := p.address() && p.command()
		p.c.doubt = p.c.doubt || !understood
		if commands = append(commands, p.c); !understood {
			return commands, false
		}
	}
}

// A sedReader goes through a script.
type sedReader struct {
	s string
	i int
	c sedCommand
}

func (p *sedReader) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// take passes over bytes of a set.
func (p *sedReader) take(set string) string {
	p.i = min(p.i, len(p.s)) // behind a backslash at the end
	from := p.i
	for p.i < len(p.s) && strings.IndexByte(set, p.s[p.i]) >= 0 {
		p.i++
	}
	return p.s[from:p.i]
}

const digits = "0123456789"

// address reads what stands before a command: a number, `$`, `N~M` or `/regex/`, perhaps a second behind a comma,
// perhaps a `!`. Anything else is a doubt.
func (p *sedReader) address() bool {
	addresses, wanted, negated := 0, true, false
	doubt := func(is bool) { p.c.doubt = p.c.doubt || is }
	for {
		c := p.peek()
		switch {
		case c == '/', c == '\\':
			if c == '\\' {
				p.i++
				doubt(true)
			}
			if !p.regex(p.peek()) {
				return false
			}
			doubt(p.take("IM") != "")
		case c == '$':
			p.i++
		case strings.IndexByte(digits, c) >= 0 && c != 0:
			p.take(digits)
			if p.peek() == '~' {
				p.i++
				doubt(p.take(digits) == "")
			}
		case c == ',':
			p.i++
			doubt(wanted || addresses > 1 || negated || strings.IndexByte(" \t", p.s[p.i-2]) >= 0)
			p.take(" \t")
			wanted = true
			continue
		case c == '!':
			p.i++
			doubt(negated || wanted && addresses > 0)
			negated = true
			continue
		case c == ' ', c == '\t':
			p.i++
			continue
		case c == '~', c == '+':
			p.i++
			doubt(true)
			continue
		default:
			doubt(wanted && addresses > 0)
			return true
		}
		doubt(!wanted || negated)
		addresses, wanted = addresses+1, false
	}
}

// regex goes from one delimiter behind the next that is not escaped. GNU sed ends it in a bracket expression, too, BSD
// sed behind it, so that what follows may hide a flag: a doubt.
func (p *sedReader) regex(delimiter byte) bool {
	from := p.i + 1
	if delimiter == 0 || !p.until(delimiter) {
		return false
	}
	body := p.s[from : p.i-1]
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '\n':
			p.c.doubt = true
		case '\\':
			i++
		case '[':
			n := bracket(body[i+1:])
			if n < 0 || strings.IndexByte(body[i+1:i+1+n], delimiter) >= 0 {
				p.c.doubt = true
				return true
			}
			i += n
		}
	}
	return true
}

// bracket returns how long a bracket expression is from behind its `[`, with its `]`; -1: it has no end.
func bracket(s string) int {
	i := 0
	if strings.HasPrefix(s, "^") {
		i++
	}
	if strings.HasPrefix(s[i:], "]") {
		i++
	}
	for i < len(s) {
		switch {
		case s[i] == ']':
			return i + 1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			n := strings.Index(s[i+2:], s[i+1:i+2]+"]")
			if n < 0 {
				return -1
			}
			i += n + 4
		default:
			i++
		}
	}
	return -1
}

// until goes from one delimiter behind the next that is not escaped.
func (p *sedReader) until(delimiter byte) bool {
	p.i++
	for ; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case '\\':
			p.i++
		case delimiter:
			p.i++
			return true
		}
	}
	return false
}

func (p *sedReader) command() bool {
	c := p.peek()
	p.i++
	p.c.name = c
	switch c {
	case 0:
		return false
	case 's':
		return p.substitute()
	case 'y':
		delimiter := p.peek()
		if delimiter == 0 || !p.until(delimiter) {
			return false
		}
		p.i--
		return p.until(delimiter)
	case 'r', 'R', 'w', 'W':
		p.file()
	case 'a', 'i', 'c', 'e', '#':
		p.line()
	case ':', 'b', 't', 'T':
		for p.i < len(p.s) && strings.IndexByte(";\n}", p.s[p.i]) < 0 {
			p.i++
		}
	case 'q', 'Q', 'l', 'L':
		p.c.doubt = p.c.doubt || strings.Trim(p.take(" \t"+digits), " \t") != ""
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F', 'v':
	default:
		return false
	}
	return true
}

// substitute reads what follows the s.
func (p *sedReader) substitute() bool {
	delimiter := p.peek()
	p.c.doubt = p.c.doubt || delimiter == 0 || strings.IndexByte("/|,#:@!", delimiter) < 0
	if !p.regex(delimiter) {
		return false
	}
	p.i--
	from := p.i
	if !p.until(delimiter) {
		return false
	}
	p.c.doubt = p.c.doubt || strings.Contains(p.s[from:p.i], "\n")
	for {
		p.take("gpiImM" + digits)
		switch c := p.peek(); c {
		case 'e', 'w':
			p.c.reaches += string(c)
			if p.i++; c == 'w' {
				p.file()
				return true
			}
		default:
			return true
		}
	}
}

// file reads the name of a file: all to the end of the line, with or without blanks before it.
func (p *sedReader) file() {
	p.take(" \t")
	from := p.i
	for p.i < len(p.s) && p.s[p.i] != '\n' {
		p.i++
	}
	p.c.file = p.s[from:p.i]
}

// line goes to the end of the line; one that ends in a backslash goes on.
func (p *sedReader) line() {
	for ; p.i < len(p.s) && p.s[p.i] != '\n'; p.i++ {
		if p.s[p.i] == '\\' {
			p.i++
		}
	}
}
