package secrets

import (
	"strings"
	"unsafe"
)

// A Mask hides secrets in a text that comes in parts (security.md 7.3). The zero value is ready; the value is all its
// state, so a copy of it is where it was.
type Mask struct {
	key  bool // the last part ended within a private key
	body bool // a whole line of it was there

	header bool // in the line that goes on, which has a header
	line   int  // characters of its body in that line
	all    int  // bytes of the key so far
}

// keyEnd is where a private key ends.
const keyEnd = "-----END"

// keyBegin is more than the first line of a private key and what tells it from another text.
const keyBegin = 100

// MaxHeld is how many bytes Part leaves undone at most.
const MaxHeld = maxSecret

// Part hides in place, without a change of its length, what looks like a secret in part, which goes on where the last
// one was done. It returns how many bytes are done, and whether one of them was changed. With what follows the others,
// at most maxSecret, may be a secret. last says that nothing follows.
func (m *Mask) Part(part []byte, last bool) (done int, changed bool) {
	// Output comes by the gigabyte, and hardly any of it has secrets: it is not copied to see that.
	text := unsafe.String(unsafe.SliceData(part), len(part))
	if done = len(part); !last {
		done -= heldBack(text)
	}
	found := Find(text[:done])
	if len(found) == 0 && !m.key {
		return done, false
	}
	text = string(part) // which is about to change
	from := 0
	if m.key {
		from = m.inKey(part, text, 0, done)
	}
	for _, s := range found {
		switch {
		case s.From < from:
		case s.Kind == "private-key":
			line := s.From + strings.IndexByte(text[s.From:s.To]+"\n", '\n')
			label(part[s.From:line], s, text)
			*m = Mask{}
			from = m.inKey(part, text, line, done)
		default:
			label(part[s.From:s.To], s, text)
		}
	}
	return done, true
}

// Masked is Part for a text that is whole.
func Masked(text string) string {
	part := []byte(text)
	new(Mask).Part(part, true)
	return string(part)
}

const (
	// keyLine is the least length of a line of a private key that is not its last one.
	keyLine = 40
	// maxKey is more than any private key has.
	maxKey = 32 << 10
)

// inKey hides the private key that goes on at from, and returns where it ends: at its last line, at a short one, or
// where something else begins, since what only looks like a key may have no end. text is what part was.
func (m *Mask) inKey(part []byte, text string, from, done int) int {
	begin := from // of the line
	for i := from; i < done; i++ {
		m.all++
		switch b := part[i]; {
		case strings.HasPrefix(text[i:done], keyEnd), m.all > maxKey:
			*m = Mask{}
			return i
		case b == '\n' || b == '\\': // also in a string of JSON
			if m.line > 0 && m.line < keyLine && !m.header {
				*m = Mask{}
				return i
			}
			m.body, m.line, m.header, begin = m.body || m.line > 0 && !m.header, 0, false, i+1
		case m.header:
		case keyByte(b):
			part[i] = '*'
			m.line++
		case m.line == 0, m.line >= keyLine && strings.IndexByte("\r\t \"',$", b) >= 0:
			// what a program puts before each line, or behind it
		case !m.body && b == ':': // Proc-Type: 4,ENCRYPTED
			m.header = true
		case !m.body && b == '-':
		default:
			if m.line < keyLine {
				copy(part[begin:i], text[begin:i])
			}
			*m = Mask{}
			return i
		}
	}
	m.key = true
	return done
}

// keyByte says whether b may be a character of a private key's body, or stands where one was hidden.
func keyByte(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || b == '+' || b == '/' || b == '=' ||
		b == '*'
}

// label writes what stands for a secret, as long as it: [masked github-token ****a1b2], or stars if there is no room.
func label(secret []byte, s Secret, text string) {
	head, tail := "[masked "+s.Kind, s.Tail(text)+"]"
	if tail != "]" {
		tail = "..." + tail
	}
	if len(head)+1+len(tail) > len(secret) {
		head, tail = "", ""
	} else {
		head += " "
	}
	for i := range secret {
		switch {
		case secret[i] == '\n' || secret[i] == '\r': // lines stay lines
		case i < len(head):
			secret[i] = head[i]
		case i >= len(secret)-len(tail):
			secret[i] = tail[i-(len(secret)-len(tail))]
		default:
			secret[i] = '*'
		}
	}
}

// heldBack returns how many bytes at the end of text may be the beginning of a secret.
func heldBack(text string) int {
	tail := text[max(0, len(text)-maxSecret):]
	line := strings.LastIndexByte(tail, '\n') + 1
	first := len(tail)
	var whole [][2]int // secrets that end before tail does, with what must follow them
	for _, shape := range secretShapes() {
		from := line // all are on one line but the beginning of a private key
		if shape.kind == "private-key" {
			from = 0
		}
		spaced := shape.kind == "private-key" || shape.kind == "aws-secret-key"
		for _, literal := range shape.literals {
			first = min(first, from+begun(tail[from:], literal))
			i := from + strings.LastIndex(tail[from:], literal)
			if i < from {
				continue
			}
			if m := shape.re.FindStringSubmatchIndex(tail[i:]); m != nil && i+m[3] < len(tail) {
				whole = append(whole, [2]int{i, i + m[1]})
				continue
			}
			if spaced && len(tail)-i < keyBegin || !strings.ContainsAny(tail[i:], " \t\r\n") {
				first = min(first, i)
			}
		}
	}
	first = min(first, begun(tail, keyEnd))
	// No secret begins in the middle of a word: the whole word goes on, unless it is longer than any name.
	for at := first; at > 0 && first < len(tail) && wordByte(tail[at-1]) && first-at < 64; at-- {
		if at == 1 || !wordByte(tail[at-2]) {
			first = at - 1
			break
		}
	}
	for _, s := range whole {
		if first < s[1] {
			first = min(first, s[0])
		}
	}
	return len(tail) - first
}

// begun returns where literal begins, of which only a part stands at the end of text; len(text): nowhere.
func begun(text, literal string) int {
	for n := min(len(literal)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, literal[:n]) {
			return len(text) - n
		}
	}
	return len(text)
}
