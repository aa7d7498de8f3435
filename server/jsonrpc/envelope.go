package jsonrpc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Limits of one message.
const (
	MaxMessage    = 32 << 20 // bytes, without the newline
	maxNest       = 64       // open objects and arrays, the message itself included
	maxFoundID    = 4096     // bytes of an id that is looked for in a message too long to be kept
	linearKeys    = 64       // up to so many keys of one object are compared one by one: cheaper than a map
	maxKeyInError = 60       // runes of a client's key that an error repeats
)

// The JSON-RPC codes that the layer itself answers with: the first two end a scan.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An IDKind says what is known about a message's id.
type IDKind int

// What is known of an id.
const (
	IDNone       IDKind = iota // there is none: the message is a notification, and nothing answers it
	IDString                   // usable
	IDInteger                  // usable
	IDUnreadable               // invalid, or the message is no object: answered with the id null
)

// An Envelope is what the layer needs to know of a message before anything else parses it. The raw
// fields are slices of the scanned message. A Has flag says that the key is there; the text beside it
// stays empty if the value is not a string.
type Envelope struct {
	ID     json.RawMessage // as sent; nil: no usable one
	IDKind IDKind
	Method string

	HasResult, HasError bool

	Params
	Meta
}

// Params are what an Envelope has of params.
type Params struct {
	Name, URI   string
	Arguments   json.RawMessage // of a tools/call; nil: absent
	ArgumentsAt int             // where Arguments begins in the message
	RequestID   json.RawMessage // params.requestId, string or integer; nil: none
	Reason      string
	Cursor      string
	HasCursor   bool // one that says something, or is no text

	InputResponses json.RawMessage // answers to the questions of the result before; nil: none
	RequestState   json.RawMessage // which names those questions; nil: none
}

// Meta is what an Envelope has of params._meta.
type Meta struct {
	ProgressToken                    json.RawMessage // string or integer; nil: none
	Version, Session, Call           string
	ThreadID                         string // of the client's conversation; ChatGPT's as a hash
	ToolUse, CallID                  string // ids that the model gave a call, as Claude Code and Codex send them
	HasSession, HasCall, HasThreadID bool
	ClientInfo, Capabilities         json.RawMessage // of a modern client; nil: absent
	Turn                             json.RawMessage // what Codex says of a turn, its model among it; nil: absent
}

// Modern says that the request is of protocol 2026-07-28 or later.
func (e Envelope) Modern() bool { return e.Version >= FirstModern }

// Repeatable says that a call has an id of its client's, by which it is known when it arrives again.
func (e Envelope) Repeatable() bool { return e.HasCall || e.ToolUse != "" || e.CallID != "" }

// FirstModern is the first version without the initialize handshake.
const FirstModern = "2026-07-28"

// Era is modern or legacy, for the record.
func (e Envelope) Era() string {
	if e.Modern() {
		return "modern"
	}
	return "legacy"
}

// Unnamed is the envelope without what gives a single request a session of its own: tools/list brings none of it.
func (e Envelope) Unnamed() Envelope {
	e.HasSession, e.HasThreadID = false, false
	return e
}

// Named says that a request may have another session than its connection.
func (e Envelope) Named() bool { return e.HasSession || e.HasThreadID }

// A Fault is the answer to a message that fails a check. InArguments says that the model
// wrote what is wrong and can repair it: a tool result with isError, not a JSON-RPC error.
type Fault struct {
	Code        int
	Message     string
	InArguments bool
}

// Answer is the answer to a message that failed, unless a tool result is.
func (f *Fault) Answer() *Error { return &Error{Code: f.Code, Message: f.Message} }

// TooLong is the answer to a message of more than MaxMessage bytes.
func TooLong() *Fault {
	return &Fault{Code: CodeInvalidRequest, Message: fmt.Sprintf("message exceeds %d bytes", MaxMessage)}
}

// Scan checks one message and returns what it says about itself. It keeps and copies nothing
// but short strings. With an error the envelope still holds what was found, id and method above all;
// after a parse error it holds nothing, since nothing of a broken message can be trusted.
//
// The answer is the first failure in the order of the checks, wherever it stands in the message. A
// failure inside the arguments of a tools/call comes last: a tool result can only answer a message
// that is otherwise right.
func Scan(msg []byte) (Envelope, *Fault) {
	if len(msg) > MaxMessage {
		var f idFinder
		_, _ = f.Write(msg) // it never fails
		id, kind := f.found()
		return Envelope{ID: id, IDKind: kind}, TooLong()
	}
	s := scan{source: source{msg: msg}}
	if !s.message() {
		text := fmt.Sprintf("parse error at byte %d", s.pos)
		return Envelope{IDKind: IDUnreadable}, &Fault{Code: CodeParseError, Message: text}
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

// An scan reads one message from front to back. Methods that read return false at a syntax
// error, with pos at the byte that cannot be.
type scan struct {
	source
	env Envelope

	depth   int
	objects []uint64           // one bit per open container: an object
	bases   [maxNest + 1]int32 // by depth: where an object's keys begin in keys
	keys    []scannedKey       // of all open objects
	index   []map[uint64]int32 // by depth: the keys of a large object; nil: no object was large so far

	exact       bool // keys may differ in case only: arguments, result, error
	inArguments bool
	versionOK   bool
	outer       checkFailure
	inner       checkFailure // inside params.arguments

	// Where keys and objects begin, so that a message with few keys costs this one allocation.
	keyBuf    [24]scannedKey
	objectBuf [2]uint64
	textBuf   [2][64]byte
}

// An scannedKey is one key of an open object.
type scannedKey struct {
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
func (s *scan) fail(check int, format string, args ...any) {
	at := &s.outer
	if s.inArguments {
		at = &s.inner
	}
	if at.check == 0 || check < at.check {
		*at = checkFailure{check, fmt.Sprintf(format, args...)}
	}
}

// verdict turns the failures into the one answer.
func (s *scan) verdict() *Fault {
	switch {
	case s.outer.check != 0 && (s.inner.check == 0 || s.env.Method == "tools/call" || s.outer.check <= s.inner.check):
		return &Fault{Code: CodeInvalidRequest, Message: s.outer.text}
	case s.inner.check != 0:
		return &Fault{Code: CodeInvalidRequest, Message: s.inner.text, InArguments: s.env.Method == "tools/call"}
	}
	return nil
}

// finish makes the checks that need the whole message.
func (s *scan) finish() {
	if !s.versionOK {
		s.fail(checkVersion, `jsonrpc must be "2.0"`)
	}
	if s.env.IDKind == IDUnreadable {
		s.fail(checkID, "invalid id")
	}
	if s.env.Method != "tools/call" {
		s.env.Arguments, s.env.ArgumentsAt = nil, 0
	}
}

// message reads the one value that the message is.
func (s *scan) message() bool {
	s.keys, s.objects = s.keyBuf[:0], s.objectBuf[:0]
	s.space()
	var ok bool
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

func (s *scan) notObject(text string) {
	s.fail(checkObject, "%s", text)
	s.env.IDKind = IDUnreadable
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
		"progressToken", metaVersion, metaClientInfo, metaCapabilities, metaLogLevel, metaSession, metaCall, metaThread,
		metaOpenAI, metaTurn, metaToolUse, metaCallID,
		"traceparent", "tracestate", "baggage", "itemId",
	},
}

// Keys of _meta that the layer reads.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSession      = "codehand/session"
	metaCall         = "codehand/call"
	metaThread       = "threadId"
	metaOpenAI       = "openai/session" // what ChatGPT has in place of threadId
	metaTurn         = "x-codex-turn-metadata"
	metaToolUse      = "claudecode/toolUseId"
	metaCallID       = "callId" // Codex's
)

// members reads an object whose keys mean something to us. It stands on the brace.
func (s *scan) members(at level) bool {
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
func (s *scan) known(at level, text jsonText) string {
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
func (s *scan) member(at level, key string) bool {
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
func (s *scan) keep(at level, key string, raw []byte) {
	e := &s.env
	switch at {
	case topLevel:
		switch key {
		case "jsonrpc":
			s.versionOK = string(s.textBytes(raw)) == "2.0"
		case "id":
			if e.IDKind == IDNone {
				if e.IDKind = kindOfID(raw); e.IDKind != IDUnreadable {
					e.ID = raw
				}
			}
		case "method":
			first(&e.Method, s.text(raw))
		case "result":
			e.HasResult = true
		case "error":
			e.HasError = true
		}
	case inParams:
		switch key {
		case "name":
			first(&e.Name, s.text(raw))
		case "uri":
			first(&e.URI, s.text(raw))
		case "cursor":
			first(&e.Cursor, s.text(raw))
			e.HasCursor = e.HasCursor || string(raw) != "null" && string(raw) != `""`
		case "reason":
			first(&e.Reason, s.text(raw))
		case "arguments":
			if e.Arguments == nil {
				e.Arguments, e.ArgumentsAt = raw, s.pos-len(raw)
			}
		case "inputResponses":
			firstRaw(&e.InputResponses, raw)
		case "requestState":
			firstRaw(&e.RequestState, raw)
		case "requestId":
			firstID(&e.RequestID, raw)
		}
	case inMeta:
		s.keepMeta(key, raw)
	}
}

func (s *scan) keepMeta(key string, raw []byte) {
	e := &s.env
	switch key {
	case "progressToken":
		firstID(&e.ProgressToken, raw)
	case metaVersion:
		first(&e.Version, s.text(raw))
	case metaSession:
		e.HasSession = true
		first(&e.Session, s.text(raw))
	case metaCall:
		e.HasCall = true
		first(&e.Call, s.text(raw))
	case metaOpenAI:
		if text := s.text(raw); text != "" {
			sum := sha256.Sum256([]byte(text)) // its form is nowhere promised
			e.HasThreadID = true
			first(&e.ThreadID, "openai:"+hex.EncodeToString(sum[:16]))
		}
	case metaThread:
		e.HasThreadID = true
		first(&e.ThreadID, s.text(raw))
	case metaClientInfo:
		firstRaw(&e.ClientInfo, raw)
	case metaCapabilities:
		firstRaw(&e.Capabilities, raw)
	case metaTurn:
		firstRaw(&e.Turn, raw)
	case metaToolUse:
		first(&e.ToolUse, s.text(raw))
	case metaCallID:
		first(&e.CallID, s.text(raw))
	}
}

func first(at *string, text string) {
	if *at == "" {
		*at = text
	}
}

func firstRaw(at *json.RawMessage, raw []byte) {
	if *at == nil {
		*at = raw
	}
}

func firstID(at *json.RawMessage, raw []byte) {
	if *at == nil && kindOfID(raw) != IDUnreadable {
		*at = raw
	}
}

// kindOfID judges a well-formed value: a string, or an integer literal of any size.
func kindOfID(raw []byte) IDKind {
	if raw[0] == '"' {
		return IDString
	}
	digits := bytes.TrimPrefix(raw, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return IDUnreadable
		}
	}
	if len(digits) == 0 {
		return IDUnreadable
	}
	return IDInteger
}

// text returns the string that raw is, or "" if it is something else.
func (s *scan) text(raw []byte) string {
	return string(s.textBytes(raw))
}

// textBytes is text in a buffer that the next string overwrites, or in the message itself.
func (s *scan) textBytes(raw []byte) []byte {
	if raw[0] != '"' {
		return nil
	}
	b := raw[1 : len(raw)-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	return unescape(s.textBuf[0][:0], b)
}
