package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// An Explanation says what would become of a call, for people and programs.
type Explanation struct {
	Tool    string `json:"tool"`
	Verdict string `json:"verdict"` // allow, ask, deny
	Hard    bool   `json:"hard,omitempty"`
	Off     bool   `json:"off,omitempty"` // the tool is switched off as a whole
	Code    string `json:"code,omitempty"`
	Reason  string `json:"reason"`
	ExplainedRule
	About string `json:"about,omitempty"` // the path, sub-command, host or name that decided
	Mode  string `json:"mode,omitempty"`

	AskedBy  string `json:"asked_by,omitempty"` // client: its own dialog, and the call runs; person: by elicitation, or not at all
	Question string `json:"question,omitempty"`
	Suggests string `json:"suggested_rule,omitempty"`
	Hooks    bool   `json:"hooks_not_run,omitempty"` // they may decide otherwise

	Command *ExplainedCommand `json:"command,omitempty"`
	Paths   []ExplainedPath   `json:"paths,omitempty"`
}

// An ExplainedRule is the rule that decided; the zero value: none did.
type ExplainedRule struct {
	Rule   string   `json:"rule,omitempty"`   // as written
	Origin string   `json:"origin,omitempty"` // file and line, flag, environment variable
	Covers []string `json:"covers,omitempty"` // absolute patterns of the files that it is about here; nil: of none
}

// An ExplainedCommand is a command as rules see it.
type ExplainedCommand struct {
	Class string          `json:"class"` // readonly, write, dangerous, unknown
	Why   string          `json:"why,omitempty"`
	Parts []ExplainedPart `json:"parts"`
}

// An ExplainedPart is one simple command.
type ExplainedPart struct {
	Text  string `json:"text"`
	Class string `json:"class"`
	Why   string `json:"why,omitempty"`
	Exact bool   `json:"exact,omitempty"` // no rule with a star allows it
	Inner bool   `json:"inner,omitempty"`
}

// An ExplainedPath is one file that the call would touch.
type ExplainedPath struct {
	Path   string `json:"path"`
	Real   string `json:"real,omitempty"` // if it is another one
	Use    string `json:"use"`            // read, write
	Inside bool   `json:"inside_roots"`
}

// An UnknownToolError says that there is no tool of a name, and which ones come near.
type UnknownToolError struct{ Text string }

func (e *UnknownToolError) Error() string { return e.Text }

// Explain says what would become of a call of principal local, without running anything: the same code decides as about
// a call that runs. err is an *UnknownToolError, a state store that does not answer, or a fault of ours.
func (s *Server) Explain(ctx context.Context, name string, arguments json.RawMessage) (Explanation, error) {
	t, ok := s.tools.Get(name)
	if !ok {
		return Explanation{}, &UnknownToolError{s.tools.Unknown(s.local.Offers(false).Catalog, name).Message}
	}
	to := s.tools.Follow(s.local, t, arguments)
	refused := to.Unknown(s.local.Offers(false).Catalog)
	if refused == nil {
		refused = s.local.Forbids(to.Tool)
	}
	if t, arguments = to.Tool, to.Input; refused != nil {
		return explanation(t, pipeline.Explanation{Refusal: refused}), nil
	}
	key, err := s.names.Key(jsonrpc.Envelope{})
	if err != nil {
		return Explanation{}, err
	}
	state, release, err := s.build(key, s.local) // no session begins, so no hook is told of one
	if err != nil {
		return Explanation{}, err
	}
	defer release()
	if _, err := sessions.Locate(ctx, state); err != nil {
		return Explanation{}, err
	}
	found, err := s.pipe.Explain(ctx, state, t, arguments)
	if err != nil {
		return Explanation{}, err
	}
	e := explanation(t, found)
	if path := outside(state, found); path != "" && e.Verdict != "deny" {
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

// outside returns the first path that a tool would open for a call and that lies outside of what it may open; "": none.
func outside(st *session.State, x pipeline.Explanation) string {
	access := workspace.Write
	if x.Request.ReadOnly {
		access = workspace.Read
	}
	for _, t := range x.Request.Targets {
		if t.Kind != permission.Path || t.Use != permission.ByCall {
			continue
		}
		place, err := st.Space.Open(t.Value, access)
		if err == nil {
			_ = place.Dir.Close() // it was only looked at
		}
		if _, is := errors.AsType[*workspace.OutsideError](err); is {
			return t.Value
		}
	}
	return ""
}

// A RuleReport says what one rule covers in the roots, for people and programs.
type RuleReport = tenants.RuleReport

// Rules says what each rule of principal local covers: how many files there are now is counted until ctx ends.
func (s *Server) Rules(ctx context.Context) []RuleReport {
	return s.engines.tenants.Report(ctx, s.local)
}

func explanation(t tool.Tool, x pipeline.Explanation) Explanation {
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
		case target.Kind == permission.Path:
			e.Paths = append(e.Paths, explainPath(target, r.ReadOnly))
		}
	}
	return e
}

func explainCommand(a *bash.Analysis) *ExplainedCommand {
	c := &ExplainedCommand{Class: a.Class.String(), Why: a.Why, Parts: []ExplainedPart{}}
	for _, p := range a.Parts {
		c.Parts = append(c.Parts, ExplainedPart{Text: p.Text, Class: p.Class.String(), Why: p.Why, Exact: p.Exact,
			Inner: p.Inner})
	}
	return c
}

func explainPath(t permission.Target, readOnly bool) ExplainedPath {
	p := ExplainedPath{Path: t.Value, Use: "write", Inside: t.Inside}
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
