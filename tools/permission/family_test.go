package permission

import "testing"

// familyOf is the family of a tool in the tests of this room.
func familyOf(tool string) Family {
	switch tool {
	case "read_file", "list_files", "grep_search", "file_history", "lsp":
		return FamilyRead
	case "write_file", "edit_file", "multi_edit", "notebook_edit", "undo_change":
		return FamilyEdit
	case "run_shell", "run_readonly", "monitor":
		return FamilyBash
	}
	return FamilyNone
}

// A tool whose author forgot its family is closed by every rule of a family that denies or asks, and opened by none.
func TestFamilyForgotten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Read", "Edit", "Bash", "PowerShell"} {
		for v, list := range map[Verdict]Options{
			Deny: {Deny: []Rule{{Text: name}}}, Ask: {Ask: []Rule{{Text: name}}},
		} {
			p, err := New(list)
			if err != nil {
				t.Fatal(err)
			}
			for f, want := range map[Family]Verdict{FamilyUnknown: v, FamilyNone: Allow} {
				if d := p.Decide(Request{Tool: "x", Family: f, ReadOnly: true, Own: Allow}); d.Verdict != want {
					t.Errorf("%s with family %d: %v, want %v", name, f, d.Verdict, want)
				}
			}
		}
		p, err := New(Options{Allow: []Rule{{Text: name}}})
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Decide(Request{Tool: "x", Own: Allow}); d.Verdict == Allow {
			t.Errorf("an allow rule %s covers a tool without a family", name)
		}
	}
	p, err := New(Options{Deny: []Rule{{Text: "WebFetch"}, {Text: "Skill"}, {Text: "no_tool"}}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Off("x", nil, FamilyUnknown) {
		t.Error("a rule of no family covers a tool without one")
	}
}
