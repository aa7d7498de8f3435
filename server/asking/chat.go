package asking

import (
	"fmt"
	"strings"

	"codehand/tools/results"
	"codehand/tools/tool"
)

// What a person may say to a new chat.
const (
	chatField  = "decision"
	chatReason = "reason"
	letChat    = "allow this chat"
	refuseChat = "deny"
	// longestFirst is how many characters a person is shown of the input of its first call.
	longestFirst = 1_000
)

// A Chat is a session that no person has let work yet. All texts come from clients and models.
type Chat struct {
	Name     string // of its client, and its version; "": none
	ID       string // its ShortName
	IP, Auth string // as pipeline.From
	Roots    []string
	Shared   bool // its client names no chat
	Tool     string
	Input    []byte // of its first call
}

// Question asks a person on a page whether the chat may work.
func (c Chat) Question() tool.Question {
	name := c.Name
	if name == "" {
		name = "a client without a name"
	}
	by := "without a sign-in"
	if c.Auth != "none" {
		by = "signed in with " + c.Auth
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Asked because: each new chat waits for you (console.approve_chats).\n")
	if c.IP != "" {
		fmt.Fprintf(&b, "Chat %s, from %s, %s\n", c.ID, c.IP, by)
	}
	fmt.Fprintf(&b, "Works in: %s\n", strings.Join(c.Roots, ", "))
	if c.Shared {
		b.WriteString("This client does not name its chats: you let all of them work, now and later.\n")
	}
	input := results.CutMiddle(strings.Join(strings.Fields(string(c.Input)), " "), longestFirst)
	fmt.Fprintf(&b, "First call: %s %s", c.Tool, input)
	return tool.Question{
		Title: "Let a new chat of " + name + " work?", Text: b.String(), Decides: chatField,
		Fields: []tool.Field{
			{Name: chatField, Label: "Decision", Choices: []string{letChat, refuseChat}},
			{Name: chatReason, Label: "Reason (optional)"},
		},
	}
}

// OfChat is what a person said to the Question of a Chat, and why, as a model may read it; "": they did not say why.
func (s *Said) OfChat() (let bool, why string) {
	content, _ := s.Content.(map[string]any)
	why, _ = content[chatReason].(string)
	return content[chatField] == letChat, results.Disown(results.Clean(results.CutMiddle(why, maxText)))
}
