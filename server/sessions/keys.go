package sessions

import (
	"cmp"
	"errors"
	"strings"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/jsonrpc"
	"codehand/server/state"
	"codehand/tools/session"
)

// The kinds of session keys: what each begins with.
const (
	ByHandle       = "h:" // explicit handle
	ByThread       = "t:" // the client's conversation id, _meta.threadId
	ByHTTP         = "m:" // Mcp-Session-Id
	BySSE          = "s:" // sessionId of legacy SSE
	byConversation = "e:" // id in the environment
	byProcess      = "p:" // stdio without any of them
	ByWorkspace    = "w:" // modern HTTP without any of them: all conversations of one grant share it
)

// A Pipe names what the sessions of a process on stdio are called by, besides what a request says.
type Pipe struct {
	Principal    string // whose they are; "": the person's who started this process
	Handle       string // of the environment; "" or one that is malformed: none
	Conversation string // id in the environment; "": none
	Process      string // names this process
}

// Key returns the session of a request: the first that is present of the explicit handle of the request, the handle of
// the environment, the client's conversation id (threadId), the environment's conversation id, and this process. It is
// never empty. The error is a malformed handle.
func (p Pipe) Key(env jsonrpc.Envelope) (session.Key, error) {
	key := session.Key{Principal: cmp.Or(p.Principal, auth.LocalID)}
	if env.HasSession && !config.Handle(env.Session) {
		return key, ErrHandle
	}
	switch {
	case env.HasSession:
		key.Session = ByHandle + env.Session
	case config.Handle(p.Handle):
		key.Session = ByHandle + p.Handle
	case env.HasThreadID && config.Conversation(env.ThreadID):
		key.Session = ByThread + env.ThreadID
	case p.Conversation != "":
		key.Session = byConversation + p.Conversation
	default:
		key.Session = byProcess + p.Process
	}
	return key, nil
}

// HTTPKey returns the session of a request over HTTP: the first that is present of the explicit handle of the request
// or its URL, the client's conversation id (threadId or openai/session), and the transport session. Without any, all
// requests with the same grant and roots share one session. handle and transport may be empty. The error is for the
// client: a malformed handle, or two that differ.
//
// Whatever a session is called by, it belongs to the grant or static token of its requests (auth.Principal.Seal): what
// a person allowed one client, another one of the same person does not read or change.
func HTTPKey(who auth.Principal, env jsonrpc.Envelope, handle, transport string) (session.Key, error) {
	key := session.Key{Principal: who.ID}
	if env.HasSession && handle != "" && env.Session != handle {
		return key, errors.New("codehand/session and the handle in the URL differ")
	}
	if env.HasSession {
		handle = env.Session
	}
	switch {
	case env.HasSession || handle != "":
		if !config.Handle(handle) {
			return key, ErrHandle
		}
		key.Session = ByHandle + handle
	case env.HasThreadID && config.Conversation(env.ThreadID):
		key.Session = ByThread + env.ThreadID
	case transport != "":
		key.Session = transport
	default:
		key.Session = ByWorkspace + state.Hash(strings.Join(who.Roots, "\x00"))
	}
	return Sealed(who, key), nil
}

// Sealed is the session of that name that belongs to the grant or static token of who.
func Sealed(who auth.Principal, key session.Key) session.Key {
	if seal := who.Seal(); seal != "" {
		key.Session += "@" + seal
	}
	return key
}

// SealOf is the seal of the session of that name, or of the one on whose behalf it works; "": it has none. Sessions of
// one principal with different seals do not read each other's memory.
func SealOf(name string) string {
	name = session.OwnerOf(name)
	seal := name[strings.LastIndexByte(name, '@')+1:]
	if len(seal) == len(name) || len(seal) != sealDigits || strings.Trim(seal, "0123456789abcdef") != "" {
		return ""
	}
	return seal
}

// sealDigits is how long auth.Principal.Seal is.
const sealDigits = 32

// Page is the session of what a person does on the page.
const Page = "page"

// ErrHandle says that an explicit handle is malformed.
var ErrHandle = errors.New("codehand/session must be 8-64 characters of [A-Za-z0-9._-]")

// Looks reports whether the answer to a method other than tools/call depends on the session.
func Looks(method string) bool {
	switch method {
	case "resources/list", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"completion/complete", "prompts/list", "prompts/get",
		"skills/list", "skills/get", "resources/directory/read":
		return true
	}
	return false
}

// Keyed reports whether the answer to a request depends on its session, so that a malformed handle is an error.
func Keyed(env jsonrpc.Envelope, modern bool) bool {
	return env.Method == "tools/call" || Looks(env.Method) || !modern && env.Method == "tools/list"
}
