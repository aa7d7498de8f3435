package bash

import "strings"

// A sedUse is what a sed command line does.
type sedUse struct {
	scripts []string
	files   []spelt
	inPlace bool
	foreign bool // a script file, or an option that is not known
}

// sedOf reads the arguments of sed. GNU sed takes options anywhere.
func sedOf(args []spelt) sedUse {
	var use sedUse
	given := false
	var operands []spelt
	for i := 0; i < len(args); i++ {
		t := args[i].bare
		switch {
		case t == "--":
			operands = append(operands, args[i+1:]...)
			i = len(args)
		case len(t) < 2 || t[0] != '-':
			operands = append(operands, args[i])
		case t[1] == '-':
			name, value, glued := strings.Cut(t, "=")
			switch {
			case abbreviates(name, "--expression"), abbreviates(name, "--file"), abbreviates(name, "--line-length"):
				if !glued && i+1 < len(args) {
					i++
					value = args[i].text
				}
				if name[2] == 'e' {
					use.scripts, given = append(use.scripts, value), true
				} else if name[2] == 'f' {
					use.foreign, given = true, true
				}
			case abbreviates(name, "--in-place"):
				use.inPlace = true
			}
		default:
			i += use.cluster(args, i, &given)
		}
	}
	if !given && len(operands) > 0 {
		use.scripts = append(use.scripts, operands[0].text)
		operands = operands[1:]
		if use.scripts[0] == "" && use.inPlace && len(operands) > 0 { // BSD: sed -i '' script
			use.scripts = append(use.scripts, operands[0].text)
			operands = operands[1:]
		}
	}
	use.files = operands
	return use
}

// cluster reads the short options of args[i] and returns how many further words they take.
func (use *sedUse) cluster(args []spelt, i int, given *bool) int {
	t := args[i].text
	for n := 1; n < len(t); n++ {
		switch t[n] {
		case 'i':
			use.inPlace = true
			return 0 // the rest is a suffix
		case 'e', 'f', 'l':
			value, taken := t[n+1:], 0
			if value == "" && i+1 < len(args) {
				value, taken = args[i+1].text, 1
			}
			if t[n] == 'e' {
				use.scripts, *given = append(use.scripts, value), true
			} else if t[n] == 'f' {
				use.foreign, *given = true, true
			}
			return taken
		case 'n', 'E', 'r', 's', 'u', 'z', 'a', 'b':
		default:
			use.foreign = true
			return 0
		}
	}
	return 0
}

// runsBySed says whether a script has the command or the flag e.
func runsBySed(args []spelt) bool {
	for _, script := range sedOf(args).scripts {
		commands, ok := sedCommands(script)
		if strings.Contains(commands, "e") || !ok && looksRun(script) {
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

// sedCommands returns the letters of the commands in a script, and those flags of s that reach out (e, w). not ok: the
// script is not understood from there on.
func sedCommands(script string) (letters string, ok bool) {
	p := sedReader{s: script}
	for {
		p.blanks(" \t\n;{}")
		if p.i >= len(p.s) {
			return string(p.found), true
		}
		if !p.address() || !p.command() {
			return string(p.found), false
		}
	}
}

// A sedReader goes through a script.
type sedReader struct {
	s     string
	i     int
	found []byte
}

func (p *sedReader) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *sedReader) blanks(set string) {
	for p.i < len(p.s) && strings.IndexByte(set, p.s[p.i]) >= 0 {
		p.i++
	}
}

// address skips the addresses before a command.
func (p *sedReader) address() bool {
	for {
		switch c := p.peek(); {
		case c == '/':
			if !p.until('/') {
				return false
			}
			p.blanks("IM")
		case c == '\\':
			p.i++
			if !p.until(p.peek()) {
				return false
			}
			p.blanks("IM")
		case c != 0 && strings.IndexByte("0123456789$,~+! \t", c) >= 0:
			p.i++
		default:
			return true
		}
	}
}

// until goes from one delimiter behind the next that is not escaped and not in a bracket expression.
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
	p.found = append(p.found, c)
	switch c {
	case 0:
		return false
	case 's':
		delimiter := p.peek()
		if delimiter == 0 || !p.until(delimiter) {
			return false
		}
		if p.i--; !p.until(delimiter) {
			return false
		}
		p.flags()
	case 'y':
		delimiter := p.peek()
		if delimiter == 0 || !p.until(delimiter) {
			return false
		}
		p.i--
		return p.until(delimiter)
	case 'a', 'i', 'c', 'r', 'R', 'w', 'W', 'e':
		p.line()
	case ':', 'b', 't', 'T':
		for p.i < len(p.s) && strings.IndexByte(";\n}", p.s[p.i]) < 0 {
			p.i++
		}
	case 'q', 'Q', 'l', 'L':
		p.blanks(" \t0123456789")
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F', 'v':
	case '#':
		p.line()
	default:
		return false
	}
	return true
}

// line goes to the end of the line; one that ends in a backslash goes on.
func (p *sedReader) line() {
	for ; p.i < len(p.s) && p.s[p.i] != '\n'; p.i++ {
		if p.s[p.i] == '\\' {
			p.i++
		}
	}
}

// flags reads what stands behind s.
func (p *sedReader) flags() {
	for {
		switch c := p.peek(); {
		case c == 'e', c == 'w':
			p.found = append(p.found, c)
			if p.i++; c == 'w' {
				p.line()
				return
			}
		case c != 0 && strings.IndexByte("gpiImM0123456789", c) >= 0:
			p.i++
		default:
			return
		}
	}
}
