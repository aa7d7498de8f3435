package tools

import (
	"strings"
	"testing"

	"codehand/tools/tool"
)

// Names of parameters and values that other agents use, and of which only one thing can be meant, are taken for ours.
func TestWordsOfOtherAgents(t *testing.T) {
	t.Parallel()
	r, other := newRig(t), newRig(t) // a second reading of the same lines says only that they are the same
	for _, r := range []*rig{r, other} {
		r.write("f", "one\ntwo\nthree\nfour\n")
		r.write("src/a/b.go", "x\n")
		r.write("c.go", "x\n")
	}
	for _, c := range []struct{ name, args, like string }{
		{"list_files", `{"glob":"**/b.go"}`, `{"pattern":"**/b.go"}`},
		{"list_files", `{"path":"src"}`, `{"pattern":"**","path":"src"}`},
		{"read_file", `{"path":"f","start_line":2,"end_line":3}`, `{"file_path":"f","offset":2,"limit":2}`},
		{"read_file", `{"path":"f","end_line":"1"}`, `{"file_path":"f","limit":1}`},
		{"read_file", `{"path":"f","start_line":3}`, `{"file_path":"f","offset":3}`},
		{"read_file", `{"path":"f","start_line":3,"limit":1}`, `{"file_path":"f","offset":3,"limit":1}`},
		{"read_file", `{"path":"f","view_range":[2,3]}`, `{"file_path":"f","offset":2,"limit":2}`},
		{"read_file", `{"path":"f","view_range":[2,-1]}`, `{"file_path":"f","offset":2}`},
		{"read_file", `{"path":"f","view_range":"[2, 2]"}`, `{"file_path":"f","offset":2,"limit":1}`},
		{"read_file", `{"path":"f","view_range":[]}`, `{"file_path":"f"}`},
		{"todo_write",
			`{"todos":[{"id":"1","content":"a","status":"done","priority":"high"},{"id":2,"content":"b","status":"pending"}]}`,
			`{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"pending"}]}`},
	} {
		same(t, r.ok(c.name, c.args), other.ok(c.name, c.like))
	}
	if got := r.ok("list_files", `{"path":"src"}`); !strings.Contains(got, "b.go") {
		t.Errorf("without a pattern, what lies in directories below is shown: %s", got)
	}
	for _, c := range []struct{ name, args, want string }{
		{"list_files", `{"pattern":""}`, `"pattern" must have 1 to 1000 characters`},
		{"list_files", `{"glob":"*.go","pattern":"*.c"}`, `"glob" and "pattern" are the same parameter and differ`},
		{"read_file", `{"path":"f","start_line":3,"end_line":2}`, "the last line, 2, is before the first, 3"},
		{"read_file", `{"path":"f","end_line":3,"limit":2}`, `"end_line" and "limit" say the same; give one of them`},
		{"read_file", `{"path":"f","start_line":0}`, `"offset" must be at least 1`},
		{"read_file", `{"path":"f","view_range":[1]}`, `"view_range" is the first and the last line`},
		{"read_file", `{"path":"f","view_range":[1,2,3]}`, `"view_range" is the first and the last line`},
		{"read_file", `{"path":"f","view_range":[1,2],"offset":1}`, `"view_range" is the first and the last line`},
		{"read_file", `{"path":"f","view_range":[0,2]}`, `"view_range" counts lines from 1`},
		{"read_file", `{"path":"f","view_range":[3,-2]}`, "the last line, -2, is before the first, 3"},
		{"todo_write", `{"todos":[{"content":"a","status":"started"}]}`,
			`must be one of "pending", "in_progress", "completed", not "started"`},
		{"todo_write", `{"todos":[{"content":"a","status":"pending","merge":true}]}`, `unknown parameter "todos[0].merge"`},
		{"multi_edit", `{"path":"f","edits":[{"path":"f","file_path":"g","old_str":"one","new_str":"1"}]}`,
			`"file_path" and "path" are the same parameter and differ`},
	} {
		if got := r.fails(tool.InputInvalid, c.name, c.args); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s\nhas no %q", c.name, c.args, got, c.want)
		}
	}
}

// The same for tools that change a file: what the names mean shows in the files.
func TestWordsOfOtherAgentsInEdits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "one\ntwo\nthree\n")
	r.write("g", "one\n")
	r.ok("read_file", `{"file_path":"f"}`)
	r.ok("read_file", `{"file_path":"g"}`)
	r.ok("multi_edit", `{"path":"f","edits":[{"old_str":"one","new_str":"1"},{"oldText":"two","newText":"2"},`+
		`{"old_text":"three","new_text":"3"},{"path":"g","old_str":"one","new_str":"ONE"}]}`)
	r.holds("f", "1\n2\n3\n")
	r.holds("g", "ONE\n")
	r.ok("write_file", `{"path":"h","file_text":"x\n"}`)
	r.holds("h", "x\n")
}
