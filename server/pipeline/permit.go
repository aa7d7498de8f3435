package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"codehand/tools/permission"
	"codehand/tools/tool"
)

// permit is stage 4: the one decision about the call, and where it says so, a person's. Whoever asks a person gives up
// the place in the queue first.
func (c *call) permit(ctx context.Context) error {
	r := c.request()
	d := c.state.Rules.Decide(r)
	c.record.decided(d, r)
	if err := c.settle(ctx, d); err != nil {
		return err
	}
	if err := c.question(ctx); err != nil {
		return err
	}
	return interrupted(ctx)
}

// settle turns the decision into an answer: nil lets the call run.
func (c *call) settle(ctx context.Context, d permission.Decision) error {
	name := c.bound.Spec.Name
	switch {
	case d.Verdict == permission.Allow:
		return nil
	case d.Verdict == permission.Ask && !d.Hard && c.pipe.AskFallback == AskClient:
		c.record.Decision, c.record.By = AskAllowed, ByClient
		return nil
	case d.Verdict == permission.Ask:
		return c.askPermission(ctx, d)
	case d.Off:
		return tool.Refuse(tool.ToolDisabled, "%s is not available: %s", name, because(d))
	case d.Origin == permission.BuiltIn:
		return tool.Refuse(tool.PermissionDenied, "Permission denied: %s: %s (%s).", name, because(d), strings.TrimSuffix(d.Reason, "."))
	case d.Rule != "":
		return tool.Refuse(tool.PermissionDenied, "Permission denied: %s: %s. The operator can remove that rule. Ask the user, or do it another way.", name, because(d))
	}
	return tool.Refuse(tool.PermissionDenied, "Permission denied: %s: %s. The operator can allow it with another permissions.mode.", name, because(d))
}

// because names the rule that decided, or else the reason.
func because(d permission.Decision) string {
	if d.Rule == "" {
		return strings.TrimSuffix(d.Reason, ".")
	}
	if d.Origin == "" {
		return "rule " + d.Rule
	}
	return "rule " + d.Rule + ", " + d.Origin
}

// The one field of the question about permission that counts, and what it may hold.
const (
	decisionField = "decision"
	reasonField   = "reason"
	allowOnce     = "allow once"
	denyIt        = "deny"
)

// askPermission puts the call to a person. Anything but an acceptance is a no.
func (c *call) askPermission(ctx context.Context, d permission.Decision) error {
	if c.found.Allowed {
		c.record.Decision, c.record.By = AskAllowed, ByUser
		return nil // said before the tool's own question went out
	}
	a, err := c.ask(ctx, askedPermission, permissionQuestion(c.bound, d))
	if err != nil {
		return err
	}
	name := c.bound.Spec.Name
	if a.Outcome == tool.Unanswered {
		c.record.Decision, c.record.By = AskDenied, ByClient
		text := "Permission denied: %s needs a person's approval and this client cannot ask one. "
		if d.Hard {
			return tool.Refuse(tool.AskUnavailable, text+"Ask the user to do it, or find another way.", name)
		}
		return tool.Refuse(tool.AskUnavailable, text+"The operator can change permissions.mode or permissions.ask_fallback.", name)
	}
	c.record.Asked, c.record.By = true, ByUser
	if a.Outcome == tool.Accepted && slices.Equal(a.Values[decisionField], []string{allowOnce}) {
		c.found.Allowed = true
		c.record.Verdict, c.record.Decision = "allow", AskAllowed
		return nil
	}
	c.record.Verdict, c.record.Decision = "deny", AskDenied
	text := "The user declined this action."
	if said := strings.Join(a.Values[reasonField], " "); a.Outcome == tool.Accepted && said != "" {
		text += " They said: " + clip(said)
	}
	return tool.Refuse(tool.UserDeclined, "%s", text)
}

// maxQuestion is how many runes of a call's targets a question shows.
const maxQuestion = 2_000

func permissionQuestion(b tool.Call, d permission.Decision) tool.Question {
	var text strings.Builder
	if b.Activity != "" {
		fmt.Fprintf(&text, "%s\n", b.Activity)
	}
	for _, t := range b.Targets {
		fmt.Fprintf(&text, "%s\n", t.Value)
	}
	if why := because(d); why != "" {
		fmt.Fprintf(&text, "Asked because: %s", why)
	}
	shown := []rune(text.String())
	if len(shown) > maxQuestion {
		shown = append(shown[:maxQuestion], '…')
	}
	return tool.Question{
		Title: "Allow " + b.Spec.Name + "?",
		Text:  string(shown),
		Fields: []tool.Field{
			{Name: decisionField, Label: "Decision", Choices: []string{allowOnce, denyIt}},
			{Name: reasonField, Label: "Reason (optional)"},
		},
	}
}

// question asks what the tool itself wants to know. Without a person its answer stays Unanswered.
func (c *call) question(ctx context.Context) error {
	if c.bound.Question == nil {
		return nil
	}
	q, err := c.bound.Question(ctx, c.state)
	if err != nil || q == nil {
		return err
	}
	c.answer, err = c.ask(ctx, askedTool, *q)
	return err
}

// ask gets the answer to one question: from the reply that this call brought, or from a person. Unanswered means that
// nobody can be asked.
func (c *call) ask(ctx context.Context, what string, q tool.Question) (tool.Answer, error) {
	if r := c.arrival.Reply; r != nil && c.found.Asked == what {
		return r.Answer, nil
	}
	if c.pipe.Ask == nil || !c.state.Client.CanAsk {
		return tool.Answer{}, nil
	}
	c.visit.stepAside()
	f := c.found
	f.Asked = what
	before, err := json.Marshal(f)
	if err != nil {
		return tool.Answer{}, fmt.Errorf("keep what the hooks said: %w", err)
	}
	a, err := c.pipe.Ask(ctx, c.state, Asking{Tool: c.bound.Spec.Name, Digest: c.digest, Question: q, Before: before})
	switch {
	case err == nil, errors.Is(err, tool.ErrPending):
		return a, err
	case ctx.Err() != nil:
		return a, interrupted(ctx)
	}
	return a, fmt.Errorf("ask about %s: %w", c.bound.Spec.Name, err)
}

// digest is what a reply and a record name an input by.
func digest(input []byte) string {
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:])
}
