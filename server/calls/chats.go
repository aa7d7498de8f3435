package calls

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/asking"
	"codehand/server/jsonrpc"
	"codehand/server/sessions"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// What a person may say to a new chat. A no is a rule of its session, which they can take back on the page.
const (
	chatField  = "decision"
	chatReason = "reason"
	letChat    = "allow this chat"
	refuseChat = "deny"
	everyTool  = "*" // as a rule names them
	// longestFirst is how many characters a person is shown of the input of the first call.
	longestFirst = 1_000
)

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
	return limit.Let || slices.ContainsFunc(limit.Rules, func(r session.SetRule) bool {
		return r.Rule == everyTool && !r.Asks
	}), nil
}

// keepChat keeps what a person said to the chat.
func keepChat(ctx context.Context, t *toolCall, answer *asking.Said) *tool.Refusal {
	content, _ := answer.Content.(map[string]any)
	let := content[chatField] == letChat
	_, err := t.State.Limit.Change(ctx, func(l session.Limit) (session.Limit, error) {
		if let {
			l.Let = true
		} else {
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
	if why, _ := content[chatReason].(string); why != "" {
		text += " They said: " + results.Disown(results.Clean(results.CutMiddle(why, longestFirst)))
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
	name := strings.TrimSpace(t.client.Name + " " + t.client.Version)
	if name == "" {
		name = "a client without a name"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Asked because: each new chat waits for you (console.approve_chats).\n")
	if from := t.Req.Caller.From; from.IP != "" {
		by := "without a sign-in"
		if from.Auth != "none" {
			by = "signed in with " + from.Auth
		}
		fmt.Fprintf(&b, "Chat %s, from %s, %s\n", asking.ShortName(t.Req.Session), from.IP, by)
	}
	if t.State.Space != nil {
		fmt.Fprintf(&b, "Works in: %s\n", strings.Join(t.State.Space.Roots(), ", "))
	}
	if t.State.Shared {
		b.WriteString("This client does not name its chats: you let all of them work, now and later.\n")
	}
	input := results.CutMiddle(strings.Join(strings.Fields(string(t.target.Input)), " "), longestFirst)
	fmt.Fprintf(&b, "First call: %s %s", t.tool(), input)
	return tool.Question{
		Title: "Let a new chat of " + name + " work?", Text: b.String(), Decides: chatField,
		Fields: []tool.Field{
			{Name: chatField, Label: "Decision", Choices: []string{letChat, refuseChat}},
			{Name: chatReason, Label: "Reason (optional)"},
		},
	}
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
