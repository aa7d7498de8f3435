package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Everything here works on messages that passed the scan, and edits their bytes: what is encoded anew loses digits of
// numbers, the order of keys, and the client's own escapes.

// member returns where the value of a member begins in the object whose brace is at msg[at]; -1: it has no such member.
func member(msg []byte, at int, name string) int {
	s := scan{source: source{msg: msg, pos: at}}
	s.keys, s.objects = s.keyBuf[:0], s.objectBuf[:0]
	s.open(true)
	s.pos++
	s.space()
	for s.peek() != '}' {
		text, ok := s.key()
		if !ok {
			return -1
		}
		s.space()
		if string(s.plain(text, 0)) == name {
			return s.pos
		}
		if !s.value() {
			return -1
		}
		s.space()
		if s.peek() == ',' {
			s.pos++
			s.space()
		}
	}
	return -1
}

// withMember returns msg with one more member, at the front of the object whose brace is at msg[at].
func withMember(msg []byte, at int, text string) []byte {
	rest := msg[at+1:]
	if next := bytes.TrimLeft(rest, " \t\r\n"); len(next) > 0 && next[0] != '}' {
		text += ","
	}
	out := make([]byte, 0, len(msg)+len(text))
	out = append(out, msg[:at+1]...)
	out = append(out, text...)
	return append(out, rest...)
}

// WithCall returns msg with `_meta["codehand/call"]` in its params. ok is false for a message whose params or _meta are
// no objects: the server must refuse it.
func WithCall(msg []byte, call string) (_ []byte, ok bool) {
	top := bytes.IndexByte(msg, '{')
	pair := strconv.Quote(metaCall) + ":" + strconv.Quote(call)
	params := member(msg, top, "params")
	if params < 0 {
		return withMember(msg, top, `"params":{"_meta":{`+pair+`}}`), true
	}
	if msg[params] != '{' {
		return msg, false
	}
	meta := member(msg, params, "_meta")
	if meta < 0 {
		return withMember(msg, params, `"_meta":{`+pair+`}`), true
	}
	if msg[meta] != '{' {
		return msg, false
	}
	return withMember(msg, meta, pair), true
}

// WithID returns an answer with the id that the client gave, instead of what the endpoint made of it.
func WithID(answer []byte, id json.RawMessage) []byte {
	top := bytes.IndexByte(answer, '{')
	at := member(answer, top, "id")
	if at < 0 {
		return withMember(answer, top, `"id":`+string(id))
	}
	s := scan{source: source{msg: answer, pos: at}}
	s.keys, s.objects = s.keyBuf[:0], s.objectBuf[:0]
	s.value() // it passed the scan
	out := make([]byte, 0, len(answer)+len(id))
	out = append(out, answer[:at]...)
	out = append(out, id...)
	return append(out, answer[s.pos:]...)
}

// SameID says whether got, the id of an answer, may be what an endpoint made of sent: some decode integers to floating
// point, write strings anew, or know no id in the answer to a message that they could not read.
func SameID(sent, got json.RawMessage) bool {
	if got == nil || bytes.Equal(sent, got) {
		return true
	}
	if sent[0] == '"' || got[0] == '"' {
		return sent[0] == got[0] && bytes.Equal(unescape(nil, sent[1:len(sent)-1]), unescape(nil, got[1:len(got)-1]))
	}
	a, errA := strconv.ParseFloat(string(sent), 64)
	b, errB := strconv.ParseFloat(string(got), 64)
	return errA == nil && errB == nil && a == b
}
