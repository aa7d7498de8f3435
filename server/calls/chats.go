package calls

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/asking"
	"codehand/server/jsonrpc"
	"codehand/server/sessions"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// everyTool is the rule by which a person keeps a chat from working. They can take it back on the page.
const everyTool = "*"

// letIn waits until a person lets the chat of this call work, on the page, where the operator wants that and nobody has
// said anything about it yet. The call gives up its places meanwhile. nil: it goes on, and meets the person's rule if
// they said no.
func letIn(ctx context.Context, t *toolCall) *tool.Refusal {
	said, refusal := t.chatSaid(ctx)
	if said || refusal != nil {
		return refusal
	}
	url, open := t.h.Desk.Page(t.Req.Session.Principal)
	if !open || t.Req.Caller.From.Page {
		return t.chatWaits(url, false)
	}
	t.places.Leave()
	defer t.takePlaces()
	answer := t.put(ctx, url, asking.Waiting{Tool: t.tool(), Question: aboutChat(t), Chat: true})
	if answer == nil {
		return t.chatWaits(url, true)
	}
	return keepChat(ctx, t, answer)
}

// chatSaid reports whether the session may make requests as far as that depends on what a person says to a new chat:
// they said something, or need not. Calls of the page, of our own command line and of sub-agents belong to no new chat.
func (t *turn) chatSaid(ctx context.Context) (said bool, refusal *tool.Refusal) {
	if !t.h.Chats || t.Req.Child != nil || t.inProcess() {
		return true, nil
	}
	limit, err := t.State.Limit.Load(ctx)
	if err != nil {
		return false, sessions.NotRead(ctx, "whether a person lets this chat work is", err)
	}
	return limit.Let || refused(limit), nil
}

// refused reports whether a person keeps the chat from working.
func refused(l session.Limit) bool {
	return slices.ContainsFunc(l.Rules, func(r session.SetRule) bool { return r.Rule == everyTool && !r.Asks })
}

// keepChat keeps what a person said to the chat.
func keepChat(ctx context.Context, t *toolCall, answer *asking.Said) *tool.Refusal {
	let, why := answer.OfChat()
	_, err := t.State.Limit.Change(ctx, func(l session.Limit) (session.Limit, error) {
		switch {
		case let:
			l.Let = true
		case !refused(l): // or another call of it, about which they were asked at once, has noted that
			l.Rules = append(l.Rules, session.SetRule{Rule: everyTool, At: time.Now(), By: answer.By})
		}
		return l, nil
	})
	if err != nil {
		return sessions.NotRead(ctx, "what the user said to this chat is", err)
	}
	if let {
		return nil
	}
	text := "The user did not let this chat work, so none of its calls run. Stop here."
	if why != "" {
		text += " They said: " + why
	}
	return &tool.Refusal{Code: tool.UserDeclined, Text: text}
}

// chatWaits is the refusal of a call that no person has let in. asked: they were asked and did not answer.
func (t *turn) chatWaits(url string, asked bool) *tool.Refusal {
	where := ", and there is no page on which they could. The operator can change that (codehand doctor), or " +
		"console.approve_chats."
	switch {
	case asked:
		where = "; they did not answer on " + url + " in time. Tell them, and make exactly this call again."
	case url != "":
		where = ": they are asked on " + url + " as long as that page is open. Tell them, and make exactly this call " +
			"again."
	}
	return &tool.Refusal{Code: tool.AskUnavailable, Text: "Nothing was done. The user must let this new chat (" +
		asking.ShortName(t.Req.Session) + ") work first (console.approve_chats)" + where}
}

// aboutChat asks a person whether the chat may work.
func aboutChat(t *toolCall) tool.Question {
	from := t.Req.Caller.From
	var roots []string
	if t.State.Space != nil {
		roots = t.State.Space.Roots()
	}
	return asking.Chat{
		Name: strings.TrimSpace(t.client.Name + " " + t.client.Version), ID: asking.ShortName(t.Req.Session),
		IP: from.IP, Auth: from.Auth, Roots: roots, Shared: t.State.Shared, Tool: t.tool(), Input: t.target.Input,
	}.Question()
}

// reads reports whether a method other than tools/call shows the content of something.
func reads(method string) bool {
	return sessions.Looks(method) && (strings.HasSuffix(method, "/read") || strings.HasSuffix(method, "/get") ||
		strings.HasSuffix(method, "/complete"))
}

// shut is the error of a request that shows something, in a chat that no person has let work; nil: it may.
func (t *turn) shut(ctx context.Context) *jsonrpc.Error {
	if !reads(t.Req.Method) {
		return nil
	}
	said, refusal := t.chatSaid(ctx)
	if said {
		return nil
	}
	if refusal == nil {
		url, _ := t.h.Desk.Page(t.Req.Session.Principal)
		refusal = t.chatWaits(url, false)
	}
	return &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Message: refusal.Text}
}
