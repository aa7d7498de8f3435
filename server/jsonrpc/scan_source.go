package jsonrpc

// A source is a message and how far it was read. Methods that read return false at a syntax error, with pos at the byte
// that cannot be.
type source struct {
	msg []byte
	pos int
}

// peek returns the byte at pos; 0, which can stand nowhere outside a string, at the end.
func (s *source) peek() byte {
	if s.pos < len(s.msg) {
		return s.msg[s.pos]
	}
	return 0
}

func (s *source) space() {
	for s.pos < len(s.msg) {
		switch s.msg[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *source) literal(word string) bool {
	for i := range len(word) {
		if s.peek() != word[i] {
			return false
		}
		s.pos++
	}
	return true
}

// number reads a number, and refuses what is no value at all.
func (s *source) number() bool {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return true
}

// digits reads at least one digit.
func (s *source) digits() bool {
	from := s.pos
	for s.pos < len(s.msg) && '0' <= s.msg[s.pos] && s.msg[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > from
}
