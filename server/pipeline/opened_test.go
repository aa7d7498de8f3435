package pipeline

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// openings are the input of opener.
type openings struct {
	Path string `json:"path" jsonschema:"a file"`
	Then string `json:"then,omitempty" jsonschema:"another"` // opened in its place, as if it led there now
}

// opener is a tool that opens another file than the one that it names.
func opener(spec tool.Spec, a workspace.Access) tool.Tool {
	spec.Name, spec.Title, spec.Description = "opener", "Opener", "A fixture."
	return tool.Define(tool.Def[openings]{Spec: spec, Paths: func(in *openings) []*string { return []*string{&in.Path} },
		Run: func(_ context.Context, env tool.Env, in openings) (tool.Result, error) {
			p, err := env.Space.Open(in.Then, a)
			if err != nil {
				return tool.Result{}, err
			}
			_ = p.Dir.Close()
			return tool.Result{Text: "opened " + filepath.Base(p.Path)}, nil
		}})
}

// What a tool opens is held against the decision about its call: what that was about passes; of the rest, what a rule
// denies is refused by it, what may be read without asking anyone is read, and everything else must be called again.
func TestOpensAreDecidedAbout(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs links")
	}
	reading := tool.Spec{Traits: reads, Family: permission.FamilyRead, Scope: tool.ScopeRead}
	editing := tool.Spec{Family: permission.FamilyEdit, Scope: tool.ScopeWrite}
	root := leaktest.Dir(t)
	for _, name := range []string{"a", "b", "denied", "asked", "linked/one", ".git/hooks/x", ".env"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"denied": "other name", "a": "a too"} {
		if err := os.Link(filepath.Join(root, from), filepath.Join(root, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	const busy = "BUSY: ROOT/NAME leads to another file than when this call was checked. Nothing was done. Try again."
	const ruled = "PERMISSION_DENIED: Permission denied: opener: rule Read(denied), test. The operator can remove that rule."
	for _, c := range []struct {
		spec     tool.Spec
		access   workspace.Access
		named    string
		opens    string
		want     string
		opinions []permission.Verdict
	}{
		{spec: reading, access: workspace.Read, named: "a", opens: "a", want: "opened a"},
		{spec: reading, access: workspace.Read, named: "link", opens: "a", want: "opened a"},
		{spec: reading, access: workspace.Read, named: "a", opens: "link", want: "opened a"},
		{spec: reading, access: workspace.Read, named: "a", opens: "b", want: "opened b"},
		{spec: reading, access: workspace.Write, named: "a", opens: "b", want: busy}, // a dry run
		{spec: reading, access: workspace.Read, named: "a", opens: "denied", want: ruled},
		{spec: reading, access: workspace.Write, named: "a", opens: "denied", want: ruled},
		{spec: reading, access: workspace.Read, named: "a", opens: "other name", want: ruled},
		{spec: reading, access: workspace.Read, named: "a", opens: "asked", want: busy},
		{spec: reading, access: workspace.Read, named: "a", opens: ".env", want: busy},
		{spec: reading, access: workspace.Read, named: "a", opens: "b", want: busy,
			opinions: []permission.Verdict{permission.Ask, permission.Allow}},
		{spec: reading, access: workspace.Read, named: "a", opens: "b", want: "opened b",
			opinions: []permission.Verdict{permission.Allow}},
		{spec: editing, access: workspace.Write, named: "a", opens: "a", want: "opened a"},
		{spec: editing, access: workspace.Write, named: "link", opens: "a", want: "opened a"},
		{spec: editing, access: workspace.Write, named: "new", opens: "new", want: "opened new"},
		{spec: editing, access: workspace.Write, named: "new/deep", opens: "new/deep", want: "opened deep"},
		{spec: editing, access: workspace.Write, named: "a", opens: "b", want: busy},
		{spec: editing, access: workspace.Write, named: "a", opens: "a too", want: busy},
		{spec: editing, access: workspace.Write, named: "a", opens: ".git/hooks/x", want: busy},
		{spec: editing, access: workspace.Write, named: "a", opens: "denied", want: ruled},
		{spec: editing, access: workspace.Read, named: "a", opens: "b", want: "opened b"}, // a name near one that is missing
		{spec: editing, access: workspace.Read, named: "a", opens: ".git/hooks/x", want: "opened x"},
		{spec: editing, access: workspace.Read, named: "a", opens: "denied", want: ruled},
		{spec: editing, access: workspace.Write, named: "a", opens: "b", want: busy, opinions: []permission.Verdict{permission.Allow}},
	} {
		p, s := newCorridor(), newState(t, "s", root)
		p.Hooks = &fakeHooks{before: func(context.Context, hooks.Event) (hooks.Outcome, error) {
			return hooks.Outcome{Opinions: c.opinions}, nil
		}}
		s.Start = permission.AcceptEdits
		rules, err := permission.New(permission.Options{Deny: []permission.Rule{{Text: "Read(denied)", Origin: "test"}},
			Ask: []permission.Rule{{Text: "Read(asked)", Origin: "test"}}})
		if err != nil {
			t.Fatal(err)
		}
		s.Rules = rules.At([]string{root}, root)
		p.Ask = func(context.Context, Asking) (tool.Answer, error) {
			return tool.Answer{Outcome: tool.Accepted, Values: map[string][]string{decisionField: {allowOnce}}}, nil
		}
		s.Client = session.Client{CanAsk: true}
		raw, err := json.Marshal(openings{c.named, c.opens})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.run(t, s, opener(c.spec, c.access), string(raw), Arrival{})
		text := got.Text
		if err != nil {
			text = err.Error()
		}
		text = strings.ReplaceAll(text, root, "ROOT")
		if want := strings.ReplaceAll(c.want, "NAME", c.opens); text != want {
			t.Errorf("%v %s, opens %s (access %d): got %s, want %s", c.spec.Family, c.named, c.opens, c.access, text, want)
		}
		if r := p.last(); (r.Verdict == "deny") != (c.want == ruled) || c.want == ruled && r.Rule != "Read(denied)" {
			t.Errorf("%s opens %s: recorded %s by %q", c.named, c.opens, r.Verdict, r.Rule)
		}
	}
}
