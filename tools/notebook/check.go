package notebook

import (
	"bytes"
	"strings"
)

// maxDepth is how deep lists and objects may be nested: as deep as encoding/json reads them. Notebooks have some 10.
const maxDepth = 10_000

// check says where data, from offset at on, is not one JSON value. NaN and Infinity are accepted besides, since the
// json module of Python writes them, and with it every Jupyter; so is text that is not UTF-8 within strings.
func check(data []byte, at int) *InvalidError {
	c := &checker{data: data, at: at}
	if !c.document() {
		return invalid(data, c.at, c.reason)
	}
	return nil
}

// A checker goes over the bytes once. Its methods return false when they have set the reason, and at is then the place.
type checker struct {
	data   []byte
	at     int
	reason string
	open   []byte // the brackets that are open
}

func (c *checker) fail(at int, reason string) bool {
	c.at, c.reason = at, reason
	return false
}

// missing fails at the next byte, or at the end of the file.
func (c *checker) missing(what string) bool {
	if c.at >= len(c.data) {
		return c.fail(c.at, "the file ends where "+what+" must be")
	}
	return c.fail(c.at, what+" must be here")
}

// peek returns the next byte that is not white space, or 0, which JSON never has outside of a value.
func (c *checker) peek() byte {
	c.at = doc(c.data).blank(c.at)
	if c.at >= len(c.data) {
		return 0
	}
	return c.data[c.at]
}

// document is a loop and not a recursion: the depth of the nesting is the file's choice.
func (c *checker) document() bool {
	for {
		closed, ok := c.value()
		if !ok {
			return false
		}
		for closed {
			if len(c.open) == 0 {
				if c.peek() != 0 || c.at < len(c.data) {
					return c.fail(c.at, "the end of the file must be here")
				}
				return true
			}
			if closed, ok = c.after(); !ok {
				return false
			}
		}
	}
}

// value reads a value, or the beginning of one: closed is false after a bracket that has something in it.
func (c *checker) value() (closed, ok bool) {
	b := c.peek()
	switch b {
	case '{', '[':
		if len(c.open) == maxDepth {
			return false, c.fail(c.at, "nested deeper than 10,000 levels")
		}
		c.at++
		if c.peek() == b+2 { // } and ] are two after { and [
			c.at++
			return true, true
		}
		c.open = append(c.open, b)
		return false, b == '[' || c.key()
	case '"':
		return true, c.text()
	case 't':
		return true, c.word("true")
	case 'f':
		return true, c.word("false")
	case 'n':
		return true, c.word("null")
	case 'N':
		return true, c.word("NaN")
	case 'I':
		return true, c.word("Infinity")
	}
	return true, c.number()
}

// after reads what follows a value within brackets: a comma, or their end.
func (c *checker) after() (closed, ok bool) {
	bracket := c.open[len(c.open)-1]
	switch c.peek() {
	case ',':
		c.at++
		return false, bracket == '[' || c.key()
	case bracket + 2:
		c.at++
		c.open = c.open[:len(c.open)-1]
		return true, true
	}
	return false, c.missing("a comma or " + string(bracket+2))
}

func (c *checker) key() bool {
	if c.peek() != '"' {
		return c.missing("a key in double quotes")
	}
	if !c.text() {
		return false
	}
	if c.peek() != ':' {
		return c.missing("a colon")
	}
	c.at++
	return true
}

func (c *checker) text() bool {
	begin := c.at
	for i := begin + 1; i < len(c.data); i++ {
		switch b := c.data[i]; {
		case b == '"':
			c.at = i + 1
			return true
		case b < ' ':
			return c.fail(i, "a control character must be escaped in a string")
		case b == '\\':
			n := escape(c.data[i:])
			if n == 0 {
				return c.fail(i, "JSON has no such escape")
			}
			i += n - 1
		}
	}
	return c.fail(begin, "a string begins here and does not end")
}

// escape is the length of the escape at the beginning of data, or 0 if there is no such escape.
func escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	if strings.IndexByte(`"\/bfnrt`, data[1]) >= 0 {
		return 2
	}
	if _, ok := hex4(data); ok {
		return 6
	}
	return 0
}

func (c *checker) word(word string) bool {
	if !bytes.HasPrefix(c.data[c.at:], []byte(word)) {
		return c.missing("a value")
	}
	c.at += len(word)
	return true
}

func (c *checker) number() bool {
	begin := c.at
	c.skip('-')
	if c.at > begin && c.at < len(c.data) && c.data[c.at] == 'I' {
		return c.word("Infinity")
	}
	whole := c.at
	if c.digits() == 0 {
		c.at = begin
		return c.missing("a value")
	}
	if c.data[whole] == '0' && c.at > whole+1 {
		return c.fail(begin, "a number must not begin with 0")
	}
	if c.skip('.') && c.digits() == 0 {
		return c.missing("a digit")
	}
	if c.skip('e') || c.skip('E') {
		_ = c.skip('+') || c.skip('-')
		if c.digits() == 0 {
			return c.missing("a digit")
		}
	}
	return true
}

// skip goes over the byte b if it is next.
func (c *checker) skip(b byte) bool {
	if c.at < len(c.data) && c.data[c.at] == b {
		c.at++
		return true
	}
	return false
}

// digits goes over decimal digits and returns how many.
func (c *checker) digits() int {
	begin := c.at
	for c.at < len(c.data) && '0' <= c.data[c.at] && c.data[c.at] <= '9' {
		c.at++
	}
	return c.at - begin
}
