package agent

import (
	"encoding/json"
	"slices"
	"testing"

	"codehand/tools/agent/loop"
	"codehand/tools/permission"
	"codehand/tools/skills"
)

func fromFront(name, front string) skills.Skill {
	return skills.Skill{Name: name, File: "/x/" + name + ".md", Front: json.RawMessage(front)}
}

// Files of other agents are read as they are.
func TestReadTypes(t *testing.T) {
	types := ReadTypes(skills.Set{Skills: []skills.Skill{
		fromFront("a", `{"name":"lister","description":"d","tools":["Read","Bash(git *)"],"model":"inherit"}`),
		fromFront("b", `{"description":"words","tools":"Read, Grep  Edit","max_turns":7,"permission_mode":"plan"}`),
		fromFront("c.agent", `{"description":"object","tools":{"bash":false,"webfetch":false,"read":true}}`),
		fromFront("d", `{"description":"only","tools":{"*":false,"read":true}}`),
		fromFront("e", `{"description":"none","tools":[]}`),
		fromFront("f", `{"description":"read-only","readonly":true,"skills":"one, two"}`),
		fromFront("g", `{"description":"bad mode","permissionMode":"everything"}`),
		fromFront("h", `{"name":"Explore","description":"takes a built-in name"}`),
		fromFront("i", `{"name":"no description"}`),
		fromFront("j", `{"name":"../x","description":"d"}`),
		fromFront("k", `{"name":"LISTER","description":"a second one"}`),
	}})
	if len(types.All) != 3+7 || len(types.Dropped) != 4 {
		t.Fatalf("%d types, dropped %v", len(types.All), types.Dropped)
	}
	at := func(name string) Type {
		x, ok := types.Find(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		return x
	}
	if x := at("Lister"); !slices.Equal(x.Tools, []string{"Read", "Bash(git *)"}) || x.Model != "" {
		t.Errorf("%+v", x)
	}
	if x := at("b"); !slices.Equal(x.Tools, []string{"Read", "Grep", "Edit"}) || x.MaxTurns != 7 || !x.Narrows || x.Mode != permission.Plan {
		t.Errorf("%+v", x)
	}
	if x := at("c"); x.Tools != nil || !slices.Equal(x.Without, []string{"bash", "webfetch"}) {
		t.Errorf("%+v", x)
	}
	if x := at("d"); !slices.Equal(x.Tools, []string{"read"}) {
		t.Errorf("%+v", x)
	}
	if x := at("e"); x.Tools == nil || len(x.Tools) != 0 {
		t.Errorf("an empty list is a list of all: %+v", x)
	}
	if mode, ok := at("f").limit(); mode != permission.Plan || !ok || len(at("f").Skills) != 2 {
		t.Errorf("%+v", at("f"))
	}
	if mode, ok := at("g").limit(); mode != permission.Default || !ok {
		t.Errorf("a mode that nobody knows is %v, %v", mode, ok)
	}
}

func TestPick(t *testing.T) {
	var all []Offered
	for _, x := range []struct {
		name      string
		audience  Audience
		alias     string
		elsewhere string
	}{
		{"read_file", AllAgents, "Read", "view"}, {"grep_search", AllAgents, "Grep", "search"},
		{"edit_file", ChangingAgents, "Edit", "patch"}, {"run_shell", ChangingAgents, "Bash", "terminal"},
		{"web_fetch", AllAgents, "WebFetch", "web"}, {"todo_write", AllAgents, "TodoWrite", "todoread"},
		{"agent", StartingAgents, "Agent", "subagent"}, {"ask_user_question", NoAgents, "AskUserQuestion", "ask"},
		{"tool_search", ProgramAgents, "ToolSearch", "find"}, {"exit_plan_mode", NoAgents, "ExitPlanMode", "plan"},
	} {
		all = append(all, Offered{Tool: loop.Tool{Name: x.name}, Aliases: []string{x.alias}, Elsewhere: []string{x.elsewhere}, For: x.audience})
	}
	for _, c := range []struct {
		x       Type
		deeper  bool
		want    []string
		unknown []string
	}{
		{Type{}, false, []string{"read_file", "grep_search", "edit_file", "run_shell", "web_fetch", "todo_write"}, nil},
		{Type{}, true, []string{"read_file", "grep_search", "edit_file", "run_shell", "web_fetch", "todo_write", "agent"}, nil},
		{Type{ReadOnly: true}, true, []string{"read_file", "grep_search", "web_fetch", "todo_write"}, nil},
		{Type{Tools: []string{"Read", "grep", "Frob", "Bash(git *)"}}, false, []string{"read_file", "grep_search"}, []string{"Frob", "Bash(git *)"}},
		{Type{Tools: []string{"*"}, Without: []string{"Bash(rm *)", "webfetch"}}, false, []string{"read_file", "grep_search", "edit_file", "todo_write"}, nil},
		{Type{Tools: []string{"Task", "AskUserQuestion", "tool_search", "ExitPlanMode"}}, false, nil, nil},
		{Type{Tools: []string{"Task", "AskUserQuestion", "tool_search", "ExitPlanMode"}}, true, []string{"agent"}, nil},
		{Type{Tools: []string{"VIEW", "Terminal"}, Without: []string{"patch"}}, false, []string{"read_file", "run_shell"}, nil},
		{Type{Without: []string{"*"}}, true, nil, nil},
		{Type{Tools: []string{}}, true, nil, nil},
	} {
		given, unknown := c.x.Pick(all, c.deeper)
		var names []string
		for _, g := range given {
			names = append(names, g.Name)
		}
		if !slices.Equal(names, c.want) || !slices.Equal(unknown, c.unknown) {
			t.Errorf("%+v: %v, unknown %v", c.x, names, unknown)
		}
	}
}
