package bash

import "strings"

func isAwk(name string) bool {
	switch name {
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		return true
	}
	return false
}

// awk looks for programs that run or write something.
func (k *check) awk(name string, args []spelt) {
	program := false
	for i := 0; i < len(args); i++ {
		t := args[i].bare
		switch {
		case t == "--":
			if i+1 < len(args) && !program {
				k.awkProgram(name, args[i+1].text)
			}
			return
		case len(t) > 1 && t[0] == '-':
			if optionOf(args[i:i+1], "fiElDo", "Fve", "--file", "--include", "--exec", "--load", "--debug") != "" {
				k.found("D3", name, t+" loads a program from elsewhere")
				return
			}
			value := ""
			switch {
			case t == "-F" || t == "-v" || t == "--assign" || t == "--field-separator":
				i++
			case t == "-e" || t == "--source":
				if i++; i < len(args) {
					value, program = args[i].text, true
				}
			case strings.HasPrefix(t, "-e"):
				value, program = args[i].text[2:], true
			case strings.HasPrefix(t, "--source="):
				value, program = args[i].text[len("--source="):], true
			}
			k.awkProgram(name, value)
		case !program:
			k.awkProgram(name, args[i].text)
			return
		default:
			return
		}
	}
}

func (k *check) awkProgram(name, program string) {
	code := awkCode(program)
	switch {
	case calls(code, "system"):
		k.found("D3", name, "system( runs a program")
	case strings.Contains(code, "getline"):
		k.found("D3", name, "getline reads from programs and files")
	case strings.Contains(strings.ReplaceAll(code, "||", ""), "|"):
		k.found("D3", name, "| runs a program")
	case strings.Contains(code, "@"):
		k.found("D3", name, "@ loads code or calls what a text names")
	case redirects(code):
		k.found("D3", name, "> writes a file")
	}
}

// calls says whether code calls a function; awk allows blanks before the parenthesis of its own functions.
func calls(code, function string) bool {
	for {
		_, rest, ok := strings.Cut(code, function)
		if !ok {
			return false
		}
		if strings.HasPrefix(strings.TrimLeft(rest, " \t\\\r\n"), "(") {
			return true
		}
		code = rest
	}
}

// awkCode returns a program without what is between quotes, and between slashes where a pattern stands. Where it is not
// clear whether a slash divides, the program stays as it is, so that nothing that runs is ever taken away.
func awkCode(program string) string {
	var b strings.Builder
	for i := 0; i < len(program); i++ {
		c := program[i]
		end := i
		switch {
		case c == '"':
			end = closing(program, i, '"')
		case c == '/':
			pattern, clear := awkPattern(b.String())
			if !clear {
				return program
			}
			if pattern {
				end = closing(program, i, '/')
			}
		}
		if end > i {
			b.WriteString("0") // an operand, as it was
			i = end
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// awkPattern says whether a slash behind code begins a pattern. Not clear: it depends on the grammar.
func awkPattern(code string) (pattern, clear bool) {
	code = strings.TrimRight(code, " \t")
	if code == "" {
		return true, true
	}
	last := code[len(code)-1]
	switch {
	case strings.IndexByte("(,{};!~&|=\n", last) >= 0:
		return true, true
	case last == ']', '0' <= last && last <= '9':
		return false, true
	}
	word := code[strings.LastIndexFunc(code, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
	})+1:]
	switch word {
	case "", "print", "printf", "return", "else", "do", "in", "getline", "case", "BEGIN", "END":
		return false, false
	}
	return false, true
}

// closing returns where what begins at i ends; i if it does not.
func closing(s string, i int, quote byte) int {
	for n := i + 1; n < len(s) && s[n] != '\n'; n++ {
		switch s[n] {
		case '\\':
			n++
		case quote:
			return n
		}
	}
	return i
}

// redirects says whether a `>` outside parentheses follows a print in the same statement.
func redirects(code string) bool {
	for {
		i := strings.Index(code, "print")
		if i < 0 {
			return false
		}
		code = code[i+len("print"):]
		depth := 0
	statement:
		for n := range len(code) {
			switch code[n] {
			case '(':
				depth++
			case ')':
				depth--
			case ';', '}', '\n':
				break statement
			case '>':
				if depth <= 0 {
					return true
				}
			}
		}
	}
}
