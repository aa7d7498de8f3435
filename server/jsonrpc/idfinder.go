package jsonrpc

import (
	"bytes"
	"encoding/json"
)

// An idFinder finds the id of a message that is too long to be kept, while its bytes go by. It holds
// at most maxFoundID bytes of it. It does not check the message: what it finds is only used to say
// that the message was refused. The zero idFinder is ready.
type idFinder struct {
	depth   int
	array   bool // the message is no object
	quoted  bool // inside a string
	escaped bool // the next byte belongs to a backslash
	value   bool // at depth 1: behind a colon
	isID    bool // the last key was "id"
	long    bool // what is being taken is longer than maxFoundID
	done    bool
	taken   []byte // the key or the value that is being read
	id      json.RawMessage
	kind    IDKind
}

// Write looks at the next bytes of the message. It never fails.
func (f *idFinder) Write(p []byte) (int, error) {
	for i := 0; i < len(p) && !f.done; {
		if f.quoted && !f.escaped {
			if end := plainEnd(p, i); end > i {
				f.take(p[i:end])
				i = end
				continue
			}
		}
		f.step(p[i])
		i++
	}
	return len(p), nil
}

// ID returns the id as it was sent, or nil if none that is valid was found so far.
func (f *idFinder) ID() json.RawMessage {
	id, _ := f.found()
	return id
}

func (f *idFinder) found() (json.RawMessage, IDKind) {
	if f.array {
		return nil, IDUnreadable
	}
	return f.id, f.kind
}

func (f *idFinder) step(c byte) {
	if f.quoted {
		f.take([]byte{c})
		switch {
		case f.escaped:
			f.escaped = false
		case c == '\\':
			f.escaped = true
		case c == '"':
			f.quoted = false
		}
		return
	}
	switch c {
	case ' ', '\t', '\n', '\r':
		if f.value {
			f.take([]byte{' '}) // two values must not become one
		}
	case '"':
		f.quoted = true
		f.take([]byte{c})
	case '{', '[':
		f.take([]byte{c})
		f.array = f.array || f.depth == 0 && c == '['
		f.done = f.array
		f.depth++
	case '}', ']':
		f.depth--
		if f.depth == 0 {
			f.endValue()
			f.done = true
		}
	case ':':
		if f.depth == 1 && !f.value {
			f.endKey()
		}
	case ',':
		if f.depth == 1 {
			f.endValue()
		}
	default:
		f.take([]byte{c})
	}
}

// take keeps bytes of a key or of the id at depth 1.
func (f *idFinder) take(p []byte) {
	if f.depth != 1 || f.value && !f.isID || f.long {
		return
	}
	if len(f.taken)+len(p) > maxFoundID {
		f.long = true
		return
	}
	f.taken = append(f.taken, p...)
}

func (f *idFinder) endKey() {
	k := f.taken
	f.isID = !f.long && len(k) >= 2 && k[0] == '"' && string(unescape(nil, k[1:len(k)-1])) == "id"
	f.value, f.long, f.taken = true, false, f.taken[:0]
}

func (f *idFinder) endValue() {
	if f.value && f.isID && f.kind == IDNone {
		f.kind = IDUnreadable
		raw := bytes.Trim(f.taken, " ")
		s := scan{source: source{msg: raw}}
		if !f.long && s.begin() && s.pos == len(raw) && s.depth == 0 {
			f.kind = kindOfID(raw)
		}
		if f.kind != IDUnreadable {
			f.id = bytes.Clone(raw)
		}
	}
	f.value, f.isID, f.long, f.taken = false, false, false, f.taken[:0]
}
