// Package explain says what would become of a call, and which rule decides, without running anything.
package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/server/toolset"
	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// An Explanation says what would become of a call, for people and programs.
type Explanation struct {
	Tool    string `json:"tool"`
	Verdict string `json:"verdict"` // allow, ask, deny
	Hard    bool   `json:"hard,omitempty"`
	Off     bool   `json:"off,omitempty"` // the tool is switched off as a whole
	Code    string `json:"code,omitempty"`
	Reason  string `json:"reason"`
	Ruling
	About string `json:"about,omitempty"` // the path, sub-command, host or name that decided
	Mode  string `json:"mode,omitempty"`

	AskedBy  string `json:"asked_by,omitempty"` // client: its own dialog, and the call runs; person: by elicitation, or not at all
	Question string `json:"question,omitempty"`
	Suggests string `json:"suggested_rule,omitempty"`
	Hooks    bool   `json:"hooks_not_run,omitempty"` // they may decide otherwise

	Command *CommandLine `json:"command,omitempty"`
	Paths   []Path       `json:"paths,omitempty"`
}

// A Ruling is the rule that decided; the zero value: none did.
type Ruling struct {
	Rule   string   `json:"rule,omitempty"`   // as written
	Origin string   `json:"origin,omitempty"` // file and line, flag, environment variable
	Covers []string `json:"covers,omitempty"` // absolute patterns of the files that it is about here; nil: of none
}

// A CommandLine is a command as rules see it.
type CommandLine struct {
	Class string       `json:"class"` // readonly, write, dangerous, unknown
	Why   string       `json:"why,omitempty"`
	Parts []SubCommand `json:"parts"`
	Runs  string       `json:"runs"` // at which sandbox level and in which profile; or that it does not
}

// A SubCommand is one simple command.
type SubCommand struct {
	Text  string `json:"text"`
	Class string `json:"class"`
	Why   string `json:"why,omitempty"`
	Exact bool   `json:"exact,omitempty"` // no rule with a star allows it
	Inner bool   `json:"inner,omitempty"`
}

// A Path is one file that the call would touch.
type Path struct {
	Path   string `json:"path"`
	Real   string `json:"real,omitempty"` // if it is another one
	Use    string `json:"use"`            // read, write
	Inside bool   `json:"inside_roots"`
}

// An UnknownToolError says that there is no tool of a name, and which ones come near.
type UnknownToolError struct{ Text string }

func (e *UnknownToolError) Error() string { return e.Text }

// An Explainer says what would become of calls of one tenant.
type Explainer struct {
	Tools  *toolset.Set
	Tenant *tenants.Tenant
	Pipe   *pipeline.Pipeline
	// Keyed finds the session of a request.
	Keyed func(jsonrpc.Envelope) (session.Key, error)
	// Open opens a session. None begins, so no hook is told of one.
	Open func(session.Key, *tenants.Tenant) (*session.State, func(), error)
}

// Explain says what would become of a call, without running anything: the same code decides as about a call that runs.
// err is an *UnknownToolError, a state store that does not answer, or a fault of ours.
func (x Explainer) Explain(ctx context.Context, name string, arguments json.RawMessage) (Explanation, error) {
	t, ok := x.Tools.Get(name)
	if !ok {
		return Explanation{}, &UnknownToolError{x.Tools.Unknown(x.Tenant.Offers(false).Catalog, name)}
	}
	to := x.Tools.Follow(x.Tenant, t, arguments)
	refused := to.Unknown(x.Tenant.Offers(false).Catalog)
	if refused == nil {
		refused = x.Tenant.Forbids(to.Tool)
	}
	if t, arguments = to.Tool, to.Input; refused != nil {
		return explanation(nil, t, pipeline.Explanation{Refusal: refused}), nil
	}
	key, err := x.Keyed(jsonrpc.Envelope{})
	if err != nil {
		return Explanation{}, err
	}
	state, release, err := x.Open(key, x.Tenant)
	if err != nil {
		return Explanation{}, err
	}
	defer release()
	if _, err := sessions.Locate(ctx, state); err != nil {
		return Explanation{}, err
	}
	found, err := x.Pipe.Explain(ctx, state, t, arguments)
	if err != nil {
		return Explanation{}, err
	}
	e := explanation(state, t, found)
	if path := pipeline.Outside(state, &found.Request); path != "" && e.Verdict != "deny" {
		// Whatever rules and people say, the tool opens nothing there.
		e = Explanation{Tool: e.Tool, Verdict: "deny", Code: string(tool.OutsideRoots), Mode: e.Mode, Hooks: e.Hooks,
			Reason: path + " is outside the roots: " + strings.Join(state.Space.Roots(), ", "), Paths: e.Paths}
	}
	for _, c := range state.Rules.Coverage() {
		if c.Rule.Text == e.Rule && c.Rule.Origin == e.Origin {
			e.Covers = c.Paths
		}
	}
	return e, nil
}

func explanation(st *session.State, t tool.Tool, x pipeline.Explanation) Explanation {
	e := Explanation{Tool: t.Spec.Name, Verdict: "deny", Hooks: x.Unheard}
	if x.Refusal != nil {
		e.Code, e.Reason = string(x.Refusal.Code), x.Refusal.Text
		return e
	}
	d, r := x.Decision, x.Request
	e.Hard, e.Off, e.Reason, e.Rule, e.Origin, e.About = d.Hard, d.Off, d.Reason, d.Rule, d.Origin, d.About
	e.Mode, e.Question, e.Suggests = r.Mode.String(), x.Question, x.Suggests
	switch {
	case d.Verdict == permission.Allow:
		e.Verdict = "allow"
	case d.Verdict == permission.Ask && x.ByClient:
		e.Verdict, e.AskedBy = "ask", "client"
	case d.Verdict == permission.Ask:
		e.Verdict, e.AskedBy = "ask", "person"
	}
	for _, target := range r.Targets {
		switch {
		case target.Kind == permission.Command && target.Analysis != nil:
			e.Command = explainCommand(target.Analysis)
			e.Command.Runs = st.Confine.Runs(r.ReadOnly || target.Analysis.Class == bash.ReadOnly)
		case target.Kind == permission.Path:
			e.Paths = append(e.Paths, explainPath(target, r.ReadOnly && !r.Tries))
		}
	}
	return e
}

func explainCommand(a *bash.Analysis) *CommandLine {
	c := &CommandLine{Class: a.Class.String(), Why: a.Why, Parts: []SubCommand{}}
	if a.Held && a.Class == bash.Writes && strings.HasPrefix(a.Why, "R7 ") {
		c.Why = "dangerous below sandbox level 3: " + a.Why
	}
	for _, p := range a.Parts {
		c.Parts = append(c.Parts, SubCommand{Text: p.Text, Class: p.Class.String(), Why: p.Why, Exact: p.Exact,
			Inner: p.Inner})
	}
	return c
}

func explainPath(t permission.Target, readOnly bool) Path {
	p := Path{Path: t.Value, Use: "write", Inside: t.Inside}
	if t.Real != t.Value {
		p.Real = t.Real
	}
	if t.Use == permission.CommandReads || t.Use == permission.ByCall && readOnly {
		p.Use = "read"
	}
	return p
}

// Source names the rule that decided and where it stands; "": no rule did.
func (e Explanation) Source() string {
	switch {
	case e.Rule == "":
		return ""
	case e.Origin == "":
		return e.Rule
	}
	return fmt.Sprintf("%s (%s)", e.Rule, e.Origin)
}
