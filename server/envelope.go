package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of one message.
const (
	maxMessage      = 32 << 20 // bytes, without the newline
	maxEnvelopeNest = 64       // open objects and arrays, the message itself included
	maxFoundID      = 4096     // bytes of an id that is looked for in a message too long to be kept
	linearKeys      = 64       // up to so many keys of one object are compared one by one: cheaper than a map
	maxKeyInError   = 60       // runes of a client's key that an error repeats
)

// The JSON-RPC codes that a scan can end with.
const (
	codeParseError     = -32700
	codeInvalidRequest = -32600
)

// An idKind says what is known about a message's id.
type idKind int

const (
	idNone       idKind = iota // there is none: the message is a notification, and nothing answers it
	idString                   // usable
	idInteger                  // usable
	idUnreadable               // invalid, or the message is no object: answered with the id null
)

// An envelope is what the layer needs to know of a message before anything else parses it. The raw
// fields are slices of the scanned message. A has flag says that the key is there; the text beside it
// stays empty if the value is not a string.
type envelope struct {
	id     json.RawMessage // as sent; nil: no usable one
	idKind idKind
	method string

	hasResult, hasError bool

	name, uri     string          // of params
	arguments     json.RawMessage // of a tools/call; nil: absent
	argumentsAt   int             // where arguments begins in the message
	progressToken json.RawMessage // string or integer; nil: none
	requestID     json.RawMessage // params.requestId, string or integer; nil: none
	reason        string

	// Of params._meta.
	version, session, call, threadID, logLevel                string
	hasVersion, hasSession, hasCall, hasThreadID, hasLogLevel bool
}

// An envelopeError is the answer to a message that fails a check. InArguments says that the model
// wrote what is wrong and can repair it: a tool result with isError, not a JSON-RPC error.
type envelopeError struct {
	Code        int
	Message     string
	InArguments bool
}

// tooLong is the answer to a message of more than maxMessage bytes.
func tooLong() *envelopeError {
	return &envelopeError{Code: codeInvalidRequest, Message: fmt.Sprintf("message exceeds %d bytes", maxMessage)}
}

// scanEnvelope checks one message and returns what it says about itself. It keeps and copies nothing
// but short strings. With an error the envelope still holds what was found, id and method above all;
// after a parse error it holds nothing, since nothing of a broken message can be trusted.
//
// The answer is the first failure in the order of the checks, wherever it stands in the message. A
// failure inside the arguments of a tools/call comes last: a tool result can only answer a message
// that is otherwise right.
func scanEnvelope(msg []byte) (envelope, *envelopeError) {
	if len(msg) > maxMessage {
		var f idFinder
		_, _ = f.Write(msg) // it never fails
		id, kind := f.found()
		return envelope{id: id, idKind: kind}, tooLong()
	}
	s := envelopeScan{msg: msg}
	if !s.message() {
		text := fmt.Sprintf("parse error at byte %d", s.pos)
		return envelope{idKind: idUnreadable}, &envelopeError{Code: codeParseError, Message: text}
	}
	s.finish()
	return s.env, s.verdict()
}

// The checks by their number, which is their order. Check 1 is the size, check 2 the syntax.
const (
	checkObject = 3 + iota
	checkNest
	checkDuplicate
	checkAmbiguous
	checkNearKey
	checkVersion
	checkID
	checkSurrogate
)

// A checkFailure is the first failure of the lowest check so far; check 0: none.
type checkFailure struct {
	check int
	text  string
}

// An envelopeScan reads one message from front to back. Methods that read return false at a syntax
// error, with pos at the byte that cannot be.
type envelopeScan struct {
	msg []byte
	pos int
	env envelope

	depth   int
	objects []uint64                   // one bit per open container: an object
	bases   [maxEnvelopeNest + 1]int32 // by depth: where an object's keys begin in keys
	keys    []envelopeKey              // of all open objects
	index   []map[uint64]int32         // by depth: the keys of a large object; nil: no object was large so far

	exact       bool // keys may differ in case only: arguments, result, error
	inArguments bool
	versionOK   bool
	outer       checkFailure
	inner       checkFailure // inside params.arguments

	// Where keys and objects begin, so that a message with few keys costs this one allocation.
	keyBuf    [24]envelopeKey
	objectBuf [2]uint64
	textBuf   [2][64]byte
}

// An envelopeKey is one key of an open object.
type envelopeKey struct {
	hash     uint64 // of the text; where case must not decide, of the folded text
	from, to int32  // between the quotes
	next     int32  // index of another key with this hash, -1: none; kept only by large objects
	escaped  bool
}

// A jsonText is a string in the message, between its quotes.
type jsonText struct {
	from, to int
	escaped  bool
}

// fail notes that a check failed. text is only formatted if the failure counts.
func (s *envelopeScan) fail(check int, format string, args ...any) {
	at := &s.outer
	if s.inArguments {
		at = &s.inner
	}
	if at.check == 0 || check < at.check {
		*at = checkFailure{check, fmt.Sprintf(format, args...)}
	}
}

// verdict turns the failures into the one answer.
func (s *envelopeScan) verdict() *envelopeError {
	switch {
	case s.outer.check != 0 && (s.inner.check == 0 || s.env.method == "tools/call" || s.outer.check <= s.inner.check):
		return &envelopeError{Code: codeInvalidRequest, Message: s.outer.text}
	case s.inner.check != 0:
		return &envelopeError{Code: codeInvalidRequest, Message: s.inner.text, InArguments: s.env.method == "tools/call"}
	}
	return nil
}

// finish makes the checks that need the whole message.
func (s *envelopeScan) finish() {
	if !s.versionOK {
		s.fail(checkVersion, `jsonrpc must be "2.0"`)
	}
	if s.env.idKind == idUnreadable {
		s.fail(checkID, "invalid id")
	}
	if s.env.method != "tools/call" {
		s.env.arguments, s.env.argumentsAt = nil, 0
	}
}

// message reads the one value that the message is.
func (s *envelopeScan) message() bool {
	s.keys, s.objects = s.keyBuf[:0], s.objectBuf[:0]
	s.space()
	ok := false
	switch s.peek() {
	case '{':
		ok = s.members(topLevel)
	case '[':
		s.notObject("batch requests are not supported")
		ok = s.value()
	default:
		s.notObject("the message must be an object")
		ok = s.value()
	}
	if !ok {
		return false
	}
	s.space()
	return s.pos == len(s.msg)
}

func (s *envelopeScan) notObject(text string) {
	s.fail(checkObject, "%s", text)
	s.env.idKind = idUnreadable
}

// A level is one of the three objects whose members we know.
type level int

const (
	topLevel level = iota
	inParams
	inMeta
)

// knownKeys are the keys of each level that a message may not spell in another case: a lenient parser
// behind us would take `Method` for `method`, and so see another message than the one checked.
var knownKeys = [...][]string{
	topLevel: {"jsonrpc", "id", "method", "params", "result", "error"},
	inParams: {
		"name", "arguments", "_meta", "uri", "cursor", "ref", "argument", "context", "level",
		"protocolVersion", "capabilities", "clientInfo", "notifications", "requestId", "reason",
		"progressToken", "inputResponses", "requestState", "task",
	},
	inMeta: {
		"progressToken", metaVersion, "io.modelcontextprotocol/clientInfo",
		"io.modelcontextprotocol/clientCapabilities", metaLogLevel, metaSession, metaCall, metaThread,
		"traceparent", "tracestate", "baggage", "claudecode/toolUseId", "callId", "itemId",
	},
}

// Keys of _meta that the layer reads.
const (
	metaVersion  = "io.modelcontextprotocol/protocolVersion"
	metaLogLevel = "io.modelcontextprotocol/logLevel"
	metaSession  = "codehand/session"
	metaCall     = "codehand/call"
	metaThread   = "threadId"
)

// members reads an object whose keys mean something to us. It stands on the brace.
func (s *envelopeScan) members(at level) bool {
	s.open(true)
	s.pos++
	s.space()
	if s.peek() == '}' {
		s.pos++
		s.close()
		return true
	}
	for {
		text, ok := s.key()
		if !ok {
			return false
		}
		key := s.known(at, text)
		s.space()
		from := s.pos
		if !s.member(at, key) {
			return false
		}
		s.keep(at, key, s.msg[from:s.pos])
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
			s.space()
		case '}':
			s.pos++
			s.close()
			return true
		default:
			return false
		}
	}
}

// known returns the known key that text spells, or "".
func (s *envelopeScan) known(at level, text jsonText) string {
	b := s.plain(text, 0)
	for _, k := range knownKeys[at] {
		if string(b) == k {
			return k
		}
	}
	for _, k := range knownKeys[at] {
		// A folded letter takes at most three bytes where the plain one takes one.
		if len(b) <= 3*len(k) && strings.EqualFold(string(b), k) {
			s.fail(checkNearKey, "unknown key %s, did you mean %q", quoteKey(b), k)
		}
	}
	return ""
}

// member reads the value of one known key under the rules of its place.
func (s *envelopeScan) member(at level, key string) bool {
	object := s.peek() == '{'
	switch {
	case at == topLevel && key == "params" && object:
		return s.members(inParams)
	case at == inParams && key == "_meta" && object:
		return s.members(inMeta)
	case at == topLevel && (key == "result" || key == "error"):
		s.exact = true
	case at == inParams && key == "arguments":
		s.exact, s.inArguments = true, true
	}
	ok := s.value()
	s.exact, s.inArguments = false, false
	return ok
}

// keep takes what the envelope holds of one member. Of a key that stands twice the first counts; the
// message is refused anyway.
func (s *envelopeScan) keep(at level, key string, raw []byte) {
	e := &s.env
	switch at {
	case topLevel:
		switch key {
		case "jsonrpc":
			s.versionOK = string(s.textBytes(raw)) == "2.0"
		case "id":
			if e.idKind == idNone {
				if e.idKind = kindOfID(raw); e.idKind != idUnreadable {
					e.id = raw
				}
			}
		case "method":
			first(&e.method, s.text(raw))
		case "result":
			e.hasResult = true
		case "error":
			e.hasError = true
		}
	case inParams:
		switch key {
		case "name":
			first(&e.name, s.text(raw))
		case "uri":
			first(&e.uri, s.text(raw))
		case "reason":
			first(&e.reason, s.text(raw))
		case "arguments":
			if e.arguments == nil {
				e.arguments, e.argumentsAt = raw, s.pos-len(raw)
			}
		case "requestId":
			firstID(&e.requestID, raw)
		}
	case inMeta:
		s.keepMeta(key, raw)
	}
}

func (s *envelopeScan) keepMeta(key string, raw []byte) {
	e := &s.env
	switch key {
	case "progressToken":
		firstID(&e.progressToken, raw)
	case metaVersion:
		e.hasVersion = true
		first(&e.version, s.text(raw))
	case metaSession:
		e.hasSession = true
		first(&e.session, s.text(raw))
	case metaCall:
		e.hasCall = true
		first(&e.call, s.text(raw))
	case metaThread:
		e.hasThreadID = true
		first(&e.threadID, s.text(raw))
	case metaLogLevel:
		e.hasLogLevel = true
		first(&e.logLevel, s.text(raw))
	}
}

func first(at *string, text string) {
	if *at == "" {
		*at = text
	}
}

func firstID(at *json.RawMessage, raw []byte) {
	if *at == nil && kindOfID(raw) != idUnreadable {
		*at = raw
	}
}

// kindOfID judges a well-formed value: a string, or an integer literal of any size.
func kindOfID(raw []byte) idKind {
	if raw[0] == '"' {
		return idString
	}
	digits := bytes.TrimPrefix(raw, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return idUnreadable
		}
	}
	if len(digits) == 0 {
		return idUnreadable
	}
	return idInteger
}

// text returns the string that raw is, or "" if it is something else.
func (s *envelopeScan) text(raw []byte) string {
	return string(s.textBytes(raw))
}

// textBytes is text in a buffer that the next string overwrites, or in the message itself.
func (s *envelopeScan) textBytes(raw []byte) []byte {
	if raw[0] != '"' {
		return nil
	}
	b := raw[1 : len(raw)-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	return unescape(s.textBuf[0][:0], b)
}

// value reads one value of any kind. It does not recurse: the message decides how deep it nests, and
// it must be read to its end even if that is too deep.
func (s *envelopeScan) value() bool {
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
func (s *envelopeScan) begin() bool {
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
func (s *envelopeScan) next() (again, ok bool) {
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

// peek returns the byte at pos; 0, which can stand nowhere outside a string, at the end.
func (s *envelopeScan) peek() byte {
	if s.pos < len(s.msg) {
		return s.msg[s.pos]
	}
	return 0
}

func (s *envelopeScan) space() {
	for s.pos < len(s.msg) {
		switch s.msg[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// open enters a container.
func (s *envelopeScan) open(object bool) {
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	if word == len(s.objects) {
		s.objects = append(s.objects, 0)
	}
	s.objects[word] &^= bit
	if object {
		s.objects[word] |= bit
	}
	s.depth++
	if s.depth > maxEnvelopeNest {
		if s.depth == maxEnvelopeNest+1 {
			s.fail(checkNest, "nested deeper than %d", maxEnvelopeNest)
		}
		return
	}
	s.bases[s.depth] = int32(len(s.keys))
	if s.index != nil {
		s.index[s.depth] = nil
	}
}

// close leaves the innermost container and forgets its keys.
func (s *envelopeScan) close() {
	if s.depth <= maxEnvelopeNest {
		s.keys = s.keys[:s.bases[s.depth]]
	}
	s.depth--
}

func (s *envelopeScan) inObject() bool {
	i := s.depth - 1
	return s.objects[i/64]>>(i%64)&1 == 1
}

// key reads a key with its colon, and compares it with the others of its object. Keys below the
// allowed depth are not compared: the message is refused for its depth.
func (s *envelopeScan) key() (jsonText, bool) {
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
	if s.depth <= maxEnvelopeNest {
		s.addKey(text)
	}
	return text, true
}

// envelopeSeed makes the hashes of keys unpredictable, so that nobody can choose keys that collide.
var envelopeSeed = maphash.MakeSeed()

// addKey compares a key with those of its object and remembers it. Small objects are searched from
// end to end, large ones by a map, so the time is linear in the message.
func (s *envelopeScan) addKey(text jsonText) {
	k := envelopeKey{from: int32(text.from), to: int32(text.to), next: -1, escaped: text.escaped}
	k.hash = maphash.Bytes(envelopeSeed, s.normal(text, 0))
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
		s.index = make([]map[uint64]int32, maxEnvelopeNest+1)
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
func (s *envelopeScan) sameHash(k envelopeKey, text jsonText) {
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
func (s *envelopeScan) plain(t jsonText, buf int) []byte {
	if !t.escaped {
		return s.msg[t.from:t.to]
	}
	return unescape(s.textBuf[buf][:0], s.msg[t.from:t.to])
}

// normal returns a key as it is compared at this place: unescaped, and folded where case must not
// decide.
func (s *envelopeScan) normal(t jsonText, buf int) []byte {
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

// quoted reads a string. It stands on the quote.
func (s *envelopeScan) quoted() (jsonText, bool) {
	t := jsonText{from: s.pos + 1}
	i := t.from
	for {
		i = plainEnd(s.msg, i)
		if i == len(s.msg) {
			s.pos = i
			return t, false
		}
		switch c := s.msg[i]; {
		case c == '"':
			t.to, s.pos = i, i+1
			return t, true
		case c == '\\':
			t.escaped = true
			n, paired := escape(s.msg[i:])
			if n <= 0 {
				s.pos = i - n
				return t, false
			}
			if !paired {
				s.fail(checkSurrogate, "unpaired surrogate")
			}
			i += n
		case c < ' ':
			s.pos = i
			return t, false
		default:
			r, n := utf8.DecodeRune(s.msg[i:])
			if r == utf8.RuneError && n == 1 {
				s.pos = i
				return t, false
			}
			i += n
		}
	}
}

// Every byte of a word, for plainEnd.
const (
	everyLow  = 0x0101010101010101
	everyHigh = 0x80 * everyLow
)

// plainEnd returns the first place from i on that holds a quote, a backslash, a control character or
// a byte outside ASCII; len(b) if there is none. It looks at eight bytes at a time: in each term the
// lowest high bit that is set marks the first byte that matches.
func plainEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^('"'*everyLow), w^('\\'*everyLow)
		hit := ((quote-everyLow)&^quote | (slash-everyLow)&^slash | (w-' '*everyLow)&^w | w) & everyHigh
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// escape returns the length of the escape that b begins with: both halves of a surrogate pair
// together. paired is false for half a pair. For what is no escape n is zero or less: -n is the place
// of the byte that cannot be.
func escape(b []byte) (n int, paired bool) {
	if len(b) < 2 {
		return -len(b), false
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case 'u':
		r, bad := hex4(b)
		if bad != 0 {
			return -bad, false
		}
		if !utf16.IsSurrogate(r) {
			return 6, true
		}
		if r < 0xDC00 && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if low, bad := hex4(b[6:]); bad == 0 && low >= 0xDC00 && low <= 0xDFFF {
				return 12, true
			}
		}
		return 6, false
	}
	return -1, false
}

// hex4 reads `\uXXXX`; bad is the place of the byte that is no hex digit, 0 if there is none.
func hex4(b []byte) (r rune, bad int) {
	for i := 2; i < 6; i++ {
		if i >= len(b) {
			return 0, len(b)
		}
		c := b[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, i
		}
		r = r<<4 | rune(c)
	}
	return r, 0
}

// unescape appends the text that a string's bytes stand for. Half a surrogate pair becomes the three
// bytes that its number would have, so that different halves stay different keys.
func unescape(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return append(dst, b...)
		}
		dst, b = append(dst, b[:i]...), b[i:]
		n, paired := escape(b)
		if n <= 0 {
			return append(dst, b...)
		}
		dst = appendEscape(dst, b[:n], paired)
		b = b[n:]
	}
}

func appendEscape(dst, b []byte, paired bool) []byte {
	switch c := b[1]; c {
	case 'b':
		return append(dst, '\b')
	case 'f':
		return append(dst, '\f')
	case 'n':
		return append(dst, '\n')
	case 'r':
		return append(dst, '\r')
	case 't':
		return append(dst, '\t')
	case 'u':
		r, _ := hex4(b)
		switch {
		case !paired:
			return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
		case len(b) == 12:
			low, _ := hex4(b[6:])
			r = utf16.DecodeRune(r, low)
		}
		return utf8.AppendRune(dst, r)
	default:
		return append(dst, c)
	}
}

func (s *envelopeScan) literal(word string) bool {
	for i := range len(word) {
		if s.peek() != word[i] {
			return false
		}
		s.pos++
	}
	return true
}

// number reads a number, and refuses what is no value at all.
func (s *envelopeScan) number() bool {
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
func (s *envelopeScan) digits() bool {
	from := s.pos
	for s.pos < len(s.msg) && '0' <= s.msg[s.pos] && s.msg[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > from
}

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
	kind    idKind
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

func (f *idFinder) found() (json.RawMessage, idKind) {
	if f.array {
		return nil, idUnreadable
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
	if f.value && f.isID && f.kind == idNone {
		f.kind = idUnreadable
		raw := bytes.Trim(f.taken, " ")
		s := envelopeScan{msg: raw}
		if !f.long && s.begin() && s.pos == len(raw) && s.depth == 0 {
			f.kind = kindOfID(raw)
		}
		if f.kind != idUnreadable {
			f.id = bytes.Clone(raw)
		}
	}
	f.value, f.isID, f.long, f.taken = false, false, false, f.taken[:0]
}
