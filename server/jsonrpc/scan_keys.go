package jsonrpc

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"unicode"
	"unicode/utf8"
)

// key reads a key with its colon, and compares it with the others of its object. Keys below the
// allowed depth are not compared: the message is refused for its depth.
func (s *scan) key() (jsonText, bool) {
	if s.peek() != '"' {
		return jsonText{}, false
	}
	text, ok := s.quoted()
	if !ok {
		return text, false
	}
	s.space()
	if s.peek() != ':' {
		return text, false
	}
	s.pos++
	if s.depth <= maxNest {
		s.addKey(text)
	}
	return text, true
}

// keySeed makes the hashes of keys unpredictable, so that no client can choose keys that collide.
var keySeed = maphash.MakeSeed()

// addKey compares a key with those of its object and remembers it. Small objects are searched from
// end to end, large ones by a map, so the time is linear in the message.
func (s *scan) addKey(text jsonText) {
	k := scannedKey{from: int32(text.from), to: int32(text.to), next: -1, escaped: text.escaped}
	k.hash = maphash.Bytes(keySeed, s.normal(text, 0))
	base := int(s.bases[s.depth])
	own := s.keys[base:]
	if len(own) < linearKeys {
		for i := range own {
			if own[i].hash == k.hash {
				s.sameHash(own[i], text)
			}
		}
		s.keys = append(s.keys, k)
		return
	}
	if s.index == nil {
		s.index = make([]map[uint64]int32, maxNest+1)
	}
	m := s.index[s.depth]
	if m == nil {
		m = make(map[uint64]int32, 2*linearKeys)
		for i := range own {
			if j, ok := m[own[i].hash]; ok {
				own[i].next = j
			}
			m[own[i].hash] = int32(base + i)
		}
		s.index[s.depth] = m
	}
	if j, ok := m[k.hash]; ok {
		k.next = j
		for ; j >= 0; j = s.keys[j].next {
			s.sameHash(s.keys[j], text)
			if s.outer.check != 0 || s.inner.check != 0 {
				break // one failure is enough, and equal keys must not make this loop long
			}
		}
	}
	m[k.hash] = int32(len(s.keys))
	s.keys = append(s.keys, k)
}

// sameHash compares two keys of an object that have the same hash.
func (s *scan) sameHash(k scannedKey, text jsonText) {
	old := jsonText{from: int(k.from), to: int(k.to), escaped: k.escaped}
	a, b := s.plain(old, 0), s.plain(text, 1)
	switch {
	case bytes.Equal(a, b):
		s.fail(checkDuplicate, "duplicate key %s", quoteKey(b))
	case !s.exact && bytes.Equal(s.normal(old, 0), s.normal(text, 1)):
		s.fail(checkAmbiguous, "ambiguous key %s", quoteKey(s.plain(text, 1)))
	}
}

// plain returns a string of the message unescaped, in one of the two buffers if it has escapes.
func (s *scan) plain(t jsonText, buf int) []byte {
	if !t.escaped {
		return s.msg[t.from:t.to]
	}
	return unescape(s.textBuf[buf][:0], s.msg[t.from:t.to])
}

// normal returns a key as it is compared at this place: unescaped, and folded where case must not
// decide.
func (s *scan) normal(t jsonText, buf int) []byte {
	if s.exact {
		return s.plain(t, buf)
	}
	if t.escaped {
		return fold(nil, s.plain(t, buf))
	}
	return fold(s.textBuf[buf][:0], s.msg[t.from:t.to])
}

// fold appends b with each letter replaced by one that stands for all its cases, so that two texts
// fold to the same bytes exactly if strings.EqualFold says that they are equal.
func fold(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, c) // a byte of an unpaired surrogate
			i++
			continue
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		dst = utf8.AppendRune(dst, unicode.ToLower(least))
		i += n
	}
	return dst
}

// quoteKey shows a client's key in an error, on one line.
func quoteKey(b []byte) string {
	text := string(bytes.ToValidUTF8(b, []byte("\ufffd")))
	if utf8.RuneCountInString(text) > maxKeyInError {
		text = string([]rune(text)[:maxKeyInError]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
