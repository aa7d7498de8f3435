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
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// A decided is a call about which the rules have decided, until it is clear whether it runs: hooks, the client or a
// person may have to say so.
type decided struct {
	*call
	about    permission.Request // what the decision depends on
	decision permission.Decision
}

// permit is stage 4: the one decision about the call, and a person's where that decision asks for one. A call that asks
// a person gives up its place in the queue first.
func (c *call) permit(ctx context.Context) error {
	r, d := c.decide(ctx)
	decided := &decided{call: c, about: r, decision: d}
	guardOpens(c)
	c.record.decided(d, r)
	if c.record.By == byHook {
		c.record.Origin = c.found.Hooks.Origin
	}
	if d.Verdict != permission.Deny && c.replied(askedPermission) && c.arrival.Reply.no() {
		return decided.refusedNow(ctx)
	}
	if err := decided.settle(ctx); err != nil {
		return err
	}
	if err := c.question(ctx); err != nil {
		return err
	}
	return interrupted(ctx)
}

// no says whether a reply to the question about permission is a person's no. It holds whatever would allow the call by
// now: another answer may have granted a rule meanwhile.
func (r *Reply) no() bool {
	said := r.Answer.Values[decisionField]
	return r.Answer.Outcome != tool.Accepted || len(said) != 1 ||
		!slices.Contains([]string{allowOnce, allowSession, allowAlways}, said[0])
}

// refusedNow is the refusal of a call to which a person said no.
func (c *decided) refusedNow(ctx context.Context) error {
	rule := c.state.Rules.Suggest(c.about)
	if c.decision.Verdict == permission.Allow { // that rule did not decide
		c.record.Rule, c.record.Origin = "", ""
	}
	c.record.Asked, c.record.By = true, byUser
	return c.declined(ctx, rule, c.arrival.Reply.Answer)
}

// settle turns the decision into an answer: nil lets the call run.
func (c *decided) settle(ctx context.Context) error {
	name := c.bound.Spec.Name
	switch {
	case c.arrival.From.Page && c.decision.Verdict != permission.Deny && !c.about.ReadOnly && !c.about.Private:
		return tool.Refuse(tool.PermissionDenied, "Permission denied: %s: a web page may only read here. The "+
			"user can list the page's origin in http.allowed_origins, or serve with tokens.", name)
	case c.decision.Verdict == permission.Allow:
		return nil
	case c.decision.Verdict == permission.Ask:
		return c.settleAsk(ctx)
	}
	return denial(name, c.decision)
}

// denial is the refusal of a call of the tool name that a decision denies.
func denial(name string, d permission.Decision) error {
	switch {
	case d.Off && d.Origin == permission.OnPage:
		return tool.Refuse(tool.ToolDisabled, "%s is not available: %s. The user can take that rule back on the page.",
			name, because(d))
	case d.Off:
		return tool.Refuse(tool.ToolDisabled, "%s is not available: %s", name, because(d))
	case d.Origin == permission.BuiltIn:
		return tool.Refuse(tool.PermissionDenied, "Permission denied: %s: %s (%s).", name, because(d),
			strings.TrimSuffix(d.Reason, "."))
	case d.Origin == permission.OnPage:
		return tool.Refuse(tool.PermissionDenied,
			"Permission denied: %s: %s. The user can take that rule back on the page.", name, because(d))
	case d.Rule != "":
		return tool.Refuse(tool.PermissionDenied,
			"Permission denied: %s: %s. The operator can remove that rule.", name, because(d))
	}
	return tool.Refuse(tool.PermissionDenied,
		"Permission denied: %s: %s. The operator can allow it with another permissions.mode.", name, because(d))
}

// settleAsk finds who may say yes: the operator's hooks, the client's own dialog where that is set, else a person. A
// file outside of the roots is refused without a question: whatever they say, the tool refuses it. Where a link leads
// out, the tool has words of its own.
func (c *decided) settleAsk(ctx context.Context) error {
	if path, err := firstOutside(c.state, &c.about); err != nil && err.Link == "" {
		return wording.PathRefusal(tool.Env{State: c.state}, path, err)
	}
	v, why, err := c.hookDecision(ctx)
	switch {
	case err != nil:
		return err
	case v == permission.Allow:
		return nil
	case leaves(c.call, c.decision):
		c.record.Decision, c.record.By = askAllowed, byClient
		return nil
	}
	return c.askPermission(ctx, why)
}

// Outside returns the first path that the tool itself would open for a call and that lies outside of what it may open;
// "": none. It opens the path, so it is for calls that are not going to run, or wait anyway.
func Outside(s *session.State, about *permission.Request) string {
	path, _ := firstOutside(s, about)
	return path
}

// firstOutside returns that path with the error that says where it leads.
func firstOutside(s *session.State, about *permission.Request) (string, *workspace.OutsideError) {
	access := workspace.Write
	if about.ReadOnly {
		access = workspace.Read
	}
	for _, t := range about.Targets {
		if t.Kind != permission.Path || t.Use != permission.ByCall {
			continue
		}
		place, err := s.Space.Open(t.Value, access)
		if err == nil {
			_ = place.Dir.Close() // it was only looked at
		}
		if outside, is := errors.AsType[*workspace.OutsideError](err); is {
			return t.Value, outside
		}
	}
	return "", nil
}

// leaves says whether the client's own dialog stands in for a person.
func leaves(c *call, d permission.Decision) bool {
	return !d.Hard && c.pipe.AskFallback == AskClient && c.arrival.inside == nil && c.arrival.Agent.ID == "" &&
		!c.arrival.From.Page &&
		!(d.Dangerous && c.canAsk())
}

// because names the rule that decided, or else the reason.
func because(d permission.Decision) string {
	if d.Rule == "" {
		return strings.TrimSuffix(d.Reason, ".")
	}
	if d.Origin == "" {
		return "rule " + d.Rule
	}
	if d.Obeyed != "" {
		return "rule " + d.Rule + ", " + d.Origin + ", since git obeys " + d.About + " by " + d.Obeyed
	}
	about := ""
	if len(d.Names) > 0 {
		about = ", about " + d.About
	}
	if len(d.Names) > 1 {
		about += "; likewise " + strings.Join(d.Names[1:], ", ")
	}
	return "rule " + d.Rule + ", " + d.Origin + about
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

// replied says whether the call brought the answer to a question.
func (c *call) replied(what string) bool { return c.arrival.Reply != nil && c.found.Asked == what }

// canAsk says whether there is a person who can be asked about permission.
func (c *call) canAsk() bool {
	return c.arrival.Ask != nil && c.arrival.inside == nil && (c.state.Client.CanAsk || c.arrival.Page.Open)
}

// onPage says whether that person is asked on the page, since the client cannot ask.
func onPage(c *call) bool { return c.canAsk() && !c.state.Client.CanAsk }

// ask gets the answer to one question: from the reply that this call brought, or from a person. Unanswered means that
// there is no person to ask.
func (c *call) ask(ctx context.Context, what string, q tool.Question) (tool.Answer, error) {
	if c.replied(what) {
		a := c.arrival.Reply.Answer
		a.Seen = c.found.Seen
		return a, nil
	}
	if !c.canAsk() || what == askedTool && onPage(c) && !q.OnPage { // the tool itself says what holds for such clients
		return tool.Answer{}, nil
	}
	c.visit.stepAside()
	f := c.found
	f.Asked, f.Seen = what, q.Seen
	before, err := f.encode()
	if err != nil {
		return tool.Answer{}, err
	}
	a, err := c.arrival.Ask(ctx, Asking{Call: c.visit.id, Tool: c.bound.Spec.Name, Digest: c.digest, Question: q,
		Before: before})
	a.Seen = q.Seen
	switch {
	case err == nil, errors.Is(err, tool.ErrPending):
		return a, err
	case ctx.Err() != nil:
		return a, interrupted(ctx)
	}
	if refused, ok := refusal(err); ok {
		return a, refused
	}
	return a, fmt.Errorf("ask about %s: %w", c.bound.Spec.Name, err)
}

// maxFound is how many bytes of what was found travel with a question: a value of the Store has a limit.
const maxFound = 128 << 10

// encode makes what travels with a question. What hooks found is left out where it is too long, above all another
// input; they are then asked again, and the question is put again if it has changed by that.
func (f found) encode() (json.RawMessage, error) {
	before, err := json.Marshal(f)
	if err == nil && len(before) > maxFound {
		f.Hooks, f.Request = nil, nil
		before, err = json.Marshal(f)
	}
	if err != nil {
		return nil, fmt.Errorf("keep what was found before the question: %w", err)
	}
	return before, nil
}

// digest is what a reply and a record name an input by.
func digest(input []byte) string {
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:])
}
