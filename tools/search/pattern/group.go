package pattern

import (
	"regexp/syntax"
	"strings"
)

// group reads what begins with "(".
func (d *dialect) group() (*syntax.Regexp, *Error) {
	start := d.pos
	d.pos++
	outer := d.flags
	if d.eat("?") {
		for _, look := range []string{"=", "!", "<=", "<!"} {
			if d.looking(look) {
				return nil, d.wrongAt(start, "look-around", "look-around (?%s is not supported", look)
			}
		}
		if d.eat("P<") || d.eat("<") {
			end := strings.IndexByte(d.src[d.pos:], '>')
			if end <= 0 {
				return nil, d.wrongAt(start, "syntax", "group name that is not closed or empty")
			}
			d.pos += end + 1
		} else if open, err := d.setFlags(start); err != nil || !open {
			return nil, err
		}
	}
	re, err := d.alternation()
	if err == nil && !d.eat(")") {
		err = d.wrongAt(start, "syntax", "unclosed group")
	}
	d.flags = outer
	if err != nil {
		return nil, err
	}
	return re, nil
}

// setFlags reads "flags)" or "flags:"; open says that a group follows.
func (d *dialect) setFlags(start int) (open bool, err *Error) {
	f, on := d.flags, true
	for d.more() {
		c := d.src[d.pos]
		d.pos++
		switch c {
		case 'i':
			f.fold = on
		case 's':
			f.dotAll = on || d.multiline
		case 'U':
			f.swap = on
		case 'x':
			f.blanks = on
		case 'u':
			f.ascii = !on
		case 'm', 'R': // lines are what is searched, and a CR at their end is seen to, anyway
		case '-':
			if !on {
				return false, d.wrongAt(start, "syntax", "flags with a second -")
			}
			on = false
		case ':', ')':
			d.flags = f
			if start == 0 && c == ')' {
				d.asciiWord = f.ascii
			}
			return c == ':', nil
		default:
			return false, d.wrongAt(start, "syntax", "unknown group flag %q", string(rune(c)))
		}
	}
	return false, d.wrongAt(start, "syntax", "unclosed group")
}
