package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// The one field of the question about permission that counts, and what it may hold.
const (
	decisionField = "decision"
	reasonField   = "reason"
	allowOnce     = "allow once"
	allowSession  = "allow for this session"
	allowAlways   = "always allow"
	denyIt        = "deny"
)

// askPermission puts the call to a person. Anything but an acceptance of what was shown is a no.
func (c *decided) askPermission(ctx context.Context, hookSays string) error {
	q := c.permissionQuestion(ctx, hookSays)
	shown := q.digest(c.record.Digest)
	if c.found.Shown != shown { // what a person saw is not what would run now
		if c.replied(askedPermission) {
			c.arrival.Reply = nil
		}
		c.found.Shown, c.found.Allowed = shown, false
	}
	if c.found.Allowed { // said before the tool's own question went out
		c.record.Asked, c.record.Verdict, c.record.Decision, c.record.By = true, "allow", askAllowed, byUser
		return nil
	}
	if !c.decision.Hard && c.canAsk() && !c.replied(askedPermission) {
		if err := c.declinedJustNow(ctx); err != nil {
			return err
		}
	}
	a, err := c.ask(ctx, askedPermission, q.Question)
	if err != nil {
		return err
	}
	if a.Outcome == tool.Unanswered {
		why := " and this client cannot ask one."
		if at := c.arrival.Page; at.URL != "" {
			why += " The user is asked on " + at.URL +
				" as long as that page is open: tell them, and make this call again."
		} else if at.Start != nil {
			if start := at.Start(); start != "" {
				why += " While `" + start + "` runs, the user is asked on its page: tell them, and make this call " +
					"again."
			}
		}
		return c.unavailable(q.rule, why)
	}
	if !a.Silent {
		c.record.Asked, c.record.By = true, byUser
	}
	said := a.Values[decisionField]
	switch {
	case a.Outcome != tool.Accepted || len(said) != 1 || !slices.Contains(q.choices, said[0]) || said[0] == denyIt:
		return c.declined(ctx, q.rule, a)
	case said[0] == allowSession && q.rule == "":
		c.grant(ctx, permission.Grant{Rule: q.session, Discards: true})
	case said[0] == allowSession:
		c.grant(ctx, permission.Grant{Rule: q.rule})
	case said[0] == allowAlways:
		if err := c.pipe.Always.keep(ctx, q.rule); err != nil {
			c.grant(ctx, permission.Grant{Rule: q.rule}) // at least that
			c.pipe.log().WarnContext(ctx, "a rule cannot be kept", "rule", q.rule, "call", c.visit.id, "error", err)
		}
	}
	c.found.Allowed = true
	c.record.Verdict, c.record.Decision = "allow", askAllowed
	return nil
}

// unavailable refuses a call that needs a person where none answers, for which why ends the sentence. rule would allow
// the call; "": none would.
func (c *decided) unavailable(rule, why string) error {
	c.record.Decision, c.record.By = askDenied, byClient
	if c.arrival.inside != nil {
		c.record.By = byTool
		why = ", and codehand asks no one about a call that a skill makes."
	} else if c.arrival.Agent.ID != "" {
		c.record.By = byTool
		why = ", and nobody can be asked about this call of a sub-agent. Go on without it, and report it."
	}
	cause := because(c.decision)
	if harm := oneLine(c.danger()); harm != "" && c.decision.Reason == permission.MustApprove {
		cause += " (" + clipLine(harm) + ")"
	}
	return tool.Refuse(tool.AskUnavailable,
		"Permission denied: %s needs a person's approval%s It is asked because: %s. %s", c.bound.Spec.Name,
		why, cause, remedy(c.pipe.UserFile, c.decision, rule))
}

// remedy says what the user, whose settings are in file, can do so that a call runs for which a person must say yes.
func remedy(file string, d permission.Decision, rule string) string {
	switch {
	case rule != "" && file != "":
		return fmt.Sprintf("The user can allow it with the rule %s in permissions.allow of %s.", rule, file)
	case rule != "":
		return fmt.Sprintf("The operator can allow it with the rule %s in permissions.allow.", rule)
	case d.Hard && d.Rule != "" && d.Origin != permission.BuiltIn:
		return "The user can do it, or change that rule."
	case d.Hard && openedName(d) != "":
		names := []string{openedName(d)}
		for _, name := range d.Names[min(1, len(d.Names)):] {
			names = append(names, strings.TrimSuffix(name, "/**"))
		}
		setting := `permissions.unprotect = ["` + strings.Join(names, `", "`) + `"]`
		if file != "" {
			setting += " in " + file
		}
		return "The user can do it, or open that name with " + setting + "."
	case d.Dangerous:
		return "The user can do it, or allow exactly this command with a rule."
	case d.Hard:
		return "The user can do it."
	}
	return "The operator can change permissions.mode or permissions.ask_fallback."
}

// openedName is the protected or secret name that a built-in rule is about, as permissions.unprotect takes it; "": it
// is about none, or no setting opens it.
func openedName(d permission.Decision) string {
	name, found := strings.CutPrefix(d.Rule, "Edit(**/")
	if !found {
		name, found = strings.CutPrefix(d.Rule, "Read(**/")
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, ")"), "/**")
	if !found {
		return ""
	}
	return name
}

// grant keeps a rule for the rest of the session; where there are too many, the oldest goes. If that fails, the person
// is asked again the next time.
func (c *decided) grant(ctx context.Context, g permission.Grant) {
	g.At = time.Now()
	_, err := c.state.Grants.Change(ctx, func(all []permission.Grant) ([]permission.Grant, error) {
		return permission.WithGrant(all, g), nil
	})
	if err != nil {
		c.pipe.log().WarnContext(ctx, "a rule for this session cannot be kept", "tool", c.bound.Spec.Name,
			"call", c.visit.id, "error", err)
	}
}

const (
	// askedAgain is how long a call that a person declined is refused without another question. Another call is asked
	// about at once: nobody has said anything about it.
	askedAgain = time.Minute
	// maxDeclines is how many declined calls a session remembers.
	maxDeclines = 20
)

// declinedJustNow refuses a default ask about a call that a person has just declined.
func (c *decided) declinedJustNow(ctx context.Context) error {
	d, err := c.state.Declines.Load(ctx)
	if err != nil {
		return stateUnavailable(ctx, err)
	}
	at, found := d.At[c.declineKey()]
	if ago := time.Since(at); !found || ago < 0 || ago >= askedAgain {
		return nil
	}
	c.record.Verdict, c.record.Decision, c.record.By = "deny", askDenied, byUser
	return tool.Refuse(tool.UserDeclined, "The user has just declined exactly this call, so they were not asked "+
		"again. They are asked 60 s after that, and about any other call at once. Change the approach or talk to the "+
		"user.")
}

// declineKey is what a decline of this call is known by.
func (c *decided) declineKey() string {
	return digest([]byte(c.bound.Spec.Name + "\x00" + c.record.Digest))
}

// declined remembers a decline, and returns the refusal. A question without an answer does not count as a decline.
func (c *decided) declined(ctx context.Context, rule string, a tool.Answer) error {
	c.record.Verdict, c.record.Decision = "deny", askDenied
	if a.Silent {
		why := ". No person answered."
		if a.Stopped {
			why = ". codehand stopped before a person answered. Make exactly this call again once it runs: they are " +
				"asked again."
		} else if onPage(c.call) {
			why = ". No person answered on " + c.arrival.Page.URL +
				" in time. Tell the user, and make exactly this call again: they are asked there again."
		}
		return c.unavailable(rule, why)
	}
	c.noteDecline(ctx)
	text := "The user declined this action."
	if said := strings.Join(a.Values[reasonField], " "); a.Outcome == tool.Accepted && said != "" {
		text += " They said: " + hookText(said)
	}
	text += "\nIt was asked because: " + because(c.decision) + "."
	if rule != "" {
		text += " " + remedy(c.pipe.UserFile, c.decision, rule)
	}
	return tool.Refuse(tool.UserDeclined, "%s", text)
}

// noteDecline remembers a decline; where there are too many, the oldest goes.
func (c *decided) noteDecline(ctx context.Context) {
	key, now := c.declineKey(), time.Now()
	_, err := c.state.Declines.Change(ctx, func(d session.Declines) (session.Declines, error) {
		at := maps.Clone(d.At)
		if at == nil {
			at = map[string]time.Time{}
		}
		at[key] = now
		for len(at) > maxDeclines {
			older := func(a, b string) int { return at[a].Compare(at[b]) }
			delete(at, slices.MinFunc(slices.Collect(maps.Keys(at)), older))
		}
		return session.Declines{At: at}, nil
	})
	if err != nil {
		c.pipe.log().WarnContext(ctx, "a decline cannot be kept", "tool", c.bound.Spec.Name, "call", c.visit.id,
			"error", err)
	}
}
