package jsonrpc

// value reads one value of any kind. It does not recurse: the message decides how deep it nests, and
// it must be read to its end even if that is too deep.
func (s *scan) value() bool {
	floor := s.depth
	for {
		if !s.begin() {
			return false
		}
		for {
			if s.depth == floor {
				return true
			}
			again, ok := s.next()
			if !ok {
				return false
			}
			if again {
				break
			}
		}
	}
}

// begin reads a scalar or an empty container, or enters containers until a scalar or an empty one has
// been read.
func (s *scan) begin() bool {
	for {
		s.space()
		switch c := s.peek(); c {
		case '"':
			_, ok := s.quoted()
			return ok
		case '{', '[':
			s.open(c == '{')
			s.pos++
			s.space()
			if s.peek() == c+2 { // in ASCII both closing brackets follow their opening ones by two
				s.pos++
				s.close()
				return true
			}
			if c == '{' {
				if _, ok := s.key(); !ok {
					return false
				}
			}
		case 't':
			return s.literal("true")
		case 'f':
			return s.literal("false")
		case 'n':
			return s.literal("null")
		default:
			return s.number()
		}
	}
}

// next reads what follows a value in the innermost container: the container's end, or (again) the way
// to its next value.
func (s *scan) next() (again, ok bool) {
	object := s.inObject()
	s.space()
	switch c := s.peek(); {
	case c == ',':
		s.pos++
		if !object {
			return true, true
		}
		s.space()
		_, ok := s.key()
		return true, ok
	case c == '}' && object, c == ']' && !object:
		s.pos++
		s.close()
		return false, true
	}
	return false, false
}

// open enters a container.
func (s *scan) open(object bool) {
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	if word == len(s.objects) {
		s.objects = append(s.objects, 0)
	}
	s.objects[word] &^= bit
	if object {
		s.objects[word] |= bit
	}
	s.depth++
	if s.depth > maxNest {
		if s.depth == maxNest+1 {
			s.fail(checkNest, "nested deeper than %d", maxNest)
		}
		return
	}
	s.bases[s.depth] = int32(len(s.keys))
	if s.index != nil {
		s.index[s.depth] = nil
	}
}

// close leaves the innermost container and forgets its keys.
func (s *scan) close() {
	if s.depth <= maxNest {
		s.keys = s.keys[:s.bases[s.depth]]
	}
	s.depth--
}

func (s *scan) inObject() bool {
	i := s.depth - 1
	return s.objects[i/64]>>(i%64)&1 == 1
}
