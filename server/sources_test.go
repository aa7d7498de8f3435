package server

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"codehand/server/engines"
	"codehand/server/pipeline"
	"codehand/server/replaytest"
	"codehand/server/toolset"
	"codehand/tools/tool"
)

// The schema of foreign tools. What the root says besides its type goes to clients as it is.
const foreignSchema = `{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"$comment":"theirs"}`

// foreignTool is a tool that is made at run time; it answers with its name and what it was given.
func foreignTool(t *testing.T, name string, traits tool.Traits) tool.Tool {
	t.Helper()
	x, err := tool.Foreign(tool.Spec{Name: name, Title: name, Description: "A tool of another server.", Hint: "a tool of tests", Traits: traits},
		json.RawMessage(foreignSchema), nil, func(_ context.Context, _ tool.Env, input json.RawMessage) (tool.Result, error) {
			return tool.Result{Text: name + " " + string(input)}, nil
		})
	must(t, err)
	return x
}

// changingSource is a Source whose tools a test changes.
type changingSource struct {
	mu      sync.Mutex
	tools   []tool.Tool
	changed chan struct{}
}

func (s *changingSource) Tools() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

func (s *changingSource) Changed() <-chan struct{} { return s.changed }

func (s *changingSource) set(tools ...tool.Tool) {
	s.mu.Lock()
	s.tools = tools
	s.mu.Unlock()
	s.changed <- struct{}{}
}

// TestForeignTools: a tool that is not compiled in is listed with its schema, called, refused for an input that lacks
// something, and asked about unless it says that it only reads on this machine; on each transport, in each era.
func TestForeignTools(t *testing.T) {
	t.Parallel()
	made := func(*runCount) []tool.Tool {
		return []tool.Tool{
			foreignTool(t, "mcp__demo__look", reader),
			foreignTool(t, "mcp__demo__push", tool.Traits{}),
			foreignTool(t, "mcp__demo__fetch", tool.Traits{ReadOnly: true, Parallel: true}),
		}
	}
	eachWire(t, replaytest.Declared, made, func(t *testing.T, c *replaytest.ElicitClient, _ *runCount) {
		meta := ""
		if c.Modern {
			meta = `"_meta":{` + c.Meta() + `}`
		}
		list := string(c.Request(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{` + meta + `}}`)())
		if strings.Count(list, `"inputSchema":`+foreignSchema) != 3 || !strings.Contains(list, `"name":"mcp__demo__push"`) {
			t.Errorf("listed as %s", list)
		}
		if a := c.Call("mcp__demo__look", `{ "n": 1, "more": [true] }`, replaytest.Never(t)); a.Failed || a.Text != `mcp__demo__look {"n":1,"more":[true]}` {
			t.Errorf("a reader: %+v", a)
		}
		if a := c.Call("mcp__demo__look", `{"m":1}`, replaytest.Never(t)); !a.Failed || !strings.HasPrefix(a.Text, "INPUT_INVALID: ") || !strings.Contains(a.Text, `"n" is required`) {
			t.Errorf("without n: %+v", a)
		}
		for _, name := range []string{"mcp__demo__push", "mcp__demo__fetch"} {
			if a := c.Call(name, `{"n":1}`, replaytest.Always(replaytest.SayDeny)); a.Asked != 1 || !a.Failed || !strings.HasPrefix(a.Text, "USER_DECLINED: ") {
				t.Errorf("%s, declined: %+v", name, a)
			}
			a := c.Call(name, `{"n":2}`, func(q string) string {
				if !strings.HasPrefix(q, "Allow "+name) || !strings.Contains(q, "Asked because: it reaches the network.") {
					t.Errorf("the question is %q", q)
				}
				return replaytest.SayOnce
			})
			if a.Asked != 1 || a.Failed || a.Text != name+` {"n":2}` {
				t.Errorf("%s, allowed: %+v", name, a)
			}
		}
	})
}

// TestForeignToolsAreHeld: plan mode refuses a foreign tool that may change something and lets one that only reads run;
// a rule denies one by its name; and the record names each.
func TestForeignToolsAreHeld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings map[string]string
		name     string
		traits   tool.Traits
		want     string
		decision string
	}{
		{map[string]string{"permissions.mode": "plan"}, "mcp__demo__push", tool.Traits{}, "PLAN_MODE: ", "plan"},
		{map[string]string{"permissions.mode": "plan"}, "mcp__demo__push", tool.Traits{Local: true}, "PLAN_MODE: ", "plan"},
		{map[string]string{"permissions.mode": "plan"}, "mcp__demo__look", reader, `mcp__demo__look {"n":1}`, "allow"},
		{map[string]string{"permissions.mode": "dontAsk"}, "mcp__demo__push", tool.Traits{}, "PERMISSION_DENIED: ", "deny"},
		{map[string]string{"permissions.mode": "dontAsk", "permissions.allow": "mcp__demo__push"}, "mcp__demo__push", tool.Traits{}, `mcp__demo__push {"n":1}`, "allow"},
		{map[string]string{"permissions.mode": "bypassPermissions"}, "mcp__demo__push", tool.Traits{}, `mcp__demo__push {"n":1}`, "allow"},
	} {
		var records []pipeline.Record
		var mu sync.Mutex
		s, err := New(Options{Options: engines.Options{Config: testSettings(t, t.TempDir(), filepath.Join(t.TempDir(), "state"), c.settings), Version: "test", Proven: limitsOnly, Sources: []toolset.Source{toolset.Fixed{foreignTool(t, c.name, c.traits)}}}, Record: func(r pipeline.Record) {
			mu.Lock()
			defer mu.Unlock()
			records = append(records, r)
		}})
		must(t, err)
		text, _, err := s.Call(t.Context(), c.name, json.RawMessage(`{"n":1}`))
		must(t, err)
		must(t, s.Close())
		if !strings.HasPrefix(text, c.want) {
			t.Errorf("%v %s: %s", c.settings, c.name, text)
		}
		if len(records) != 1 || records[0].Tool != c.name || records[0].Decision != c.decision {
			t.Errorf("%v %s: recorded as %+v", c.settings, c.name, records)
		}
	}
}

// TestSourceChanges: what a source has begins and ceases to be listed and callable while clients are connected. Each is
// told that its list changed, and the tools of the server itself stay.
func TestSourceChanges(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		src := &changingSource{changed: make(chan struct{})}
		f := start(t, setup{modern: modern, client: "claude-code", sources: []toolset.Source{src}})
		if modern {
			must(t, f.Send(listenLine(`"a"`, `{"toolsListChanged":true}`)))
			if l := f.line(t); !strings.Contains(l, "acknowledged") {
				t.Fatal(l)
			}
		}
		_, before, _ := replaytest.ToldTools(t, f.Wire)
		told := func() []string {
			t.Helper()
			if l := f.line(t); !strings.Contains(l, replaytest.ChangedList) {
				t.Fatalf("modern %t: %s", modern, l)
			}
			_, all, _ := replaytest.ToldTools(t, f.Wire)
			return replaytest.NamesOf(all)
		}
		look := foreignTool(t, "mcp__demo__look", reader)
		// A name of ours, in whatever case, is not a source's to take.
		src.set(look, foreignTool(t, "Read_File", reader))
		if now := told(); len(now) != len(before)+1 || !slices.Contains(now, "mcp__demo__look") || slices.Contains(now, "Read_File") {
			t.Errorf("modern %t: there are %q", modern, now)
		}
		if text, _ := replaytest.Uses(t, f.Wire, "mcp__demo__look", map[string]any{"n": 1}); text != `mcp__demo__look {"n":1}` {
			t.Errorf("modern %t: %s", modern, text)
		}
		src.set()
		if now := told(); !slices.Equal(now, replaytest.NamesOf(before)) {
			t.Errorf("modern %t: there are %q", modern, now)
		}
		if r, err := f.Request("tools/call", map[string]any{"name": "mcp__demo__look", "arguments": map[string]any{"n": 1}}); err != nil || !strings.Contains(string(r.Result), "UNKNOWN_TOOL") {
			t.Errorf("modern %t: a tool that is gone answers %s", modern, r.Result)
		}
	}
}
