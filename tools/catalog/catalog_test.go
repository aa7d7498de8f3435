package catalog

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// entry is a deferred tool whose schema has these parameters.
func entry(name, alias, hint, description string, parameters ...string) Entry {
	properties := map[string]any{}
	for _, p := range parameters {
		properties[p] = map[string]any{"type": "string"}
	}
	schema, _ := json.Marshal(map[string]any{"type": "object", "properties": properties}) // maps of strings encode
	e := Entry{Name: name, Hint: hint, Description: description, Schema: schema, Deferred: true}
	if alias != "" {
		e.Aliases = []string{alias}
	}
	return e
}

// shelf is a small catalog, by name.
func shelf() []Entry {
	core := entry("read_file", "Read", "read files and images", "Read a text file.", "file_path")
	core.Deferred = false
	task := entry("agent", "Task", "delegate a task to a sub-agent", "Delegate work.", "prompt")
	task.Deferred = false
	return []Entry{
		task,
		entry("enter_worktree", "EnterWorktree", "work in an isolated git worktree", "Create a git worktree.", "name", "path"),
		entry("mcp__github__create_issue", "", "create an issue on github", "Create an issue.", "owner", "repo", "labels"),
		entry("notebook_edit", "NotebookEdit", "edit jupyter notebook cells", "Edit one cell.", "cell_id"),
		core,
		entry("task_create", "TaskCreate", "create a tracked task", "Create a task.", "subject"),
		entry("task_list", "TaskList", "list all tracked tasks", "List all tasks."),
		entry("todo_write", "TodoWrite", "keep a todo list of steps", "Replace the todo list.", "todos"),
	}
}

func namesOf(entries []Entry) string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, want string }{
		{"", ""},
		{"   ", ""},
		{"the of a", ""},
		{"+", ""},
		{"select", ""},
		{"xyzzy", ""},

		// A name alone, in any case, and without its neighbours.
		{"todo_write", "todo_write"},
		{"TODOWRITE", "todo_write"},
		{" TaskList ", "task_list"},
		{"read", "read_file"},
		{"Read_File", "read_file"},
		{"task", "agent task_create task_list"}, // the name of a core tool is a word as well

		// Words.
		{"todo", "todo_write"},
		{"todos", "todo_write"},
		{"to-do", "todo_write"},
		{"todolist", "todo_write"},
		{"TodoRead", "todo_write"},
		{"note book", "notebook_edit"},
		{"list of tasks", "task_list"},
		{"creating a task", "task_create"},
		{"create", "mcp__github__create_issue task_create"},
		{"github issues", "mcp__github__create_issue"},
		{"mcp__github", "mcp__github__create_issue"},
		{"labels", "mcp__github__create_issue"}, // of a parameter
		{"ask", ""},                             // no part of task
		{"read a text file", ""},                // only a core tool is about that

		// What the name must have.
		{"+task", "task_create task_list"},
		{"+task list", "task_list task_create"},
		{"list +task", "task_list task_create"},
		{"+ task list", "task_list task_create"},
		{"+tasks", "task_create task_list"},
		{"+task +list", "task_list"},
		{"+TaskList", "task_list"},
		{"+zebra todo", ""},
		{"+cells", ""}, // in the hint only
	} {
		f := Find(shelf(), c.query)
		if got := namesOf(f.Entries); got != c.want {
			t.Errorf("%q finds %q, want %q", c.query, got, c.want)
		}
		if f.Named || f.Unknown != nil {
			t.Errorf("%q is taken for a select: %+v", c.query, f)
		}
	}
}

func TestFindSelected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, want, unknown string }{
		{"select:", "", ""},
		{"select: , ,", "", ""},
		{"select:todo_write", "todo_write", ""},
		{"select:Task", "agent", ""},
		{"select:TaskList,TodoWrite", "task_list todo_write", ""},
		{"SELECT: tasklist ,\n read , READ_FILE", "task_list read_file", ""},
		{"select:TodoWrite,todo_write,TODOWRITE", "todo_write", ""},
		{"select:task_list todo_write", "task_list todo_write", ""},
		{"select:\"task_list\",`todo_write`", "task_list todo_write", ""},
		{"select:todo", "", "todo: todo_write"}, // the name, or none
		{"select:todo_writ,nope,NOPE,read", "read_file", "todo_writ: todo_write; nope:"},
		{"select:TodoRead", "", "TodoRead: read_file todo_write"},
		{"select:tsak_list", "", "tsak_list: task_list"},
		{"select:x", "", "x:"},
		{"select:" + strings.Repeat("task_", 20), "", strings.Repeat("task_", 20) + ":"},
	} {
		f := Find(shelf(), c.query)
		var unknown []string
		for _, u := range f.Unknown {
			unknown = append(unknown, strings.TrimSuffix(u.Name+": "+strings.Join(u.Near, " "), " "))
		}
		if got := namesOf(f.Entries); got != c.want || strings.Join(unknown, "; ") != c.unknown || !f.Named {
			t.Errorf("%q finds %q and does not know %q, want %q, %q", c.query, got, unknown, c.want, c.unknown)
		}
	}
}

// The worth of one word at each place, and that of a place does not hide another.
func TestScore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    Entry
		want int
	}{
		{entry("alpha_issue", "", "", ""), partEqual},
		{entry("alpha_issues", "", "", ""), partEqual},
		{entry("alpha", "AlphaIssue", "", ""), partEqual},
		{entry("issuetracker", "", "", ""), partBegins},
		{entry("subissue", "", "", ""), partHolds},
		{entry("alpha", "", "all issues", ""), inHint},
		{entry("alpha", "", "", "Shows an issue."), inText},
		{entry("alpha", "", "", "", "issueNumber"), inSchema},
		{entry("issue", "", "of issues", "An issue.", "issue"), partEqual + inHint + inText},
		{entry("alpha", "", "", "Tissue."), inText},
		{entry("alpha", "", "", ""), 0},
		{Entry{Name: "issue", Schema: json.RawMessage("{"), Deferred: true}, partEqual},
	} {
		if got := scoreOf(c.e, parse("issue")); got != c.want {
			t.Errorf("%s %v %q %q: %d, want %d", c.e.Name, c.e.Aliases, c.e.Hint, c.e.Description, got, c.want)
		}
	}
	e := entry("alpha_issue", "", "", "About beta.")
	if got, want := scoreOf(e, parse("issue beta gamma")), (partEqual+inText)*2*2; got != want {
		t.Errorf("two of three words: %d, want %d", got, want)
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                        "",
		"__":                      "",
		"todo_write":              "todo write",
		"TodoWrite":               "todo write",
		"todoWrite":               "todo write",
		"HTMLPage":                "html page",
		"getHTML":                 "get html",
		"LSP":                     "lsp",
		"mcp__github__getIssue":   "github get issue",
		"MCP__x__y":               "x y",
		"mcp__":                   "mcp",
		"list_mcp_resources":      "list mcp resources",
		"sub-agent":               "sub agent",
		"web2_fetch":              "web2 fetch",
		"what's new?":             "what s new",
		"größeÄndern":             "größe ändern",
		"\xff\xfetodo\x00write\n": "todo write",
	} {
		if got := strings.Join(parts(name), " "); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestStem(t *testing.T) {
	t.Parallel()
	for want, words := range map[string]string{
		"task":      "task tasks tasking tasked",
		"plan":      "plan plans planning planned",
		"chang":     "change changes changing changed",
		"dependenc": "dependency dependencies",
		"quer":      "query queries querying",
		"file":      "file files",
		"search":    "search searches searching",
		"box":       "box boxes",
		"class":     "class classes",
		"status":    "status",
		"this":      "this",
		"set":       "set sets setting settings",
		"call":      "call calls calling called",
		"process":   "process processes processing",
		"tie":       "tie ties",
		"string":    "string strings",
		"url":       "url urls",
		"lsp":       "lsp",
		"is":        "is",
		"s":         "s",
		"":          "",
	} {
		for w := range strings.FieldsSeq(words) {
			if got := stem(w); got != want {
				t.Errorf("%s becomes %s, want %s", w, got, want)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"todo_writ":              "todo_write",
		"NotebookEdt":            "notebook_edit",
		"issues":                 "mcp__github__create_issue",
		"create_task":            "task_create agent enter_worktree",
		"delete_everything":      "",
		"":                       "",
		strings.Repeat("a", 100): "",
	} {
		if got := Nearest(shelf(), name); name == "create_task" {
			if !slices.Contains(got, "task_create") || got[0] != "task_create" || len(got) != maxNear {
				t.Errorf("%q: %q", name, got)
			}
		} else if strings.Join(got, " ") != want {
			t.Errorf("%q is near %q, want %q", name, got, want)
		}
	}
}

// Nothing of an entry is changed or shared with the answer, so that all sessions of a place can search at once.
func TestFindChangesNothing(t *testing.T) {
	t.Parallel()
	entries := shelf()
	for _, q := range []string{"task", "Read", "select:todo_write,task_list", "+task list"} {
		f := Find(entries, q)
		for i := range f.Entries {
			f.Entries[i] = Entry{}
		}
		_ = append(f.Entries, Entry{Name: "x"})
	}
	for i, e := range shelf() {
		if entries[i].Name != e.Name {
			t.Errorf("entry %d is %q now, was %q", i, entries[i].Name, e.Name)
		}
	}
}

func TestFunction(t *testing.T) {
	t.Parallel()
	e := Entry{Name: "a_b", Description: "x < y & \"z\".\nNext.", Schema: json.RawMessage(`{"type": "object"}`)}
	const want = `{"description":"x < y & \"z\".\nNext.","name":"a_b","parameters":{"type":"object"}}`
	if got, err := e.Function(); err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	e.Schema = json.RawMessage(`{`)
	if got, err := e.Function(); err == nil {
		t.Errorf("a schema that is no JSON gives %s", got)
	}
}

// FuzzFind: whatever is asked, the answer holds entries of the catalog, each once, that the query can mean.
func FuzzFind(f *testing.F) {
	for _, q := range []string{
		"", "todo", "TodoWrite", "select:todo_write,TaskList", "Select: a\t,,+b \"c\"", "+task list", "+ +x", "mcp__github__create_issue",
		"how do I track progress?", "select:", "\xff+\xfe", "İstanbul ſ", "ss ies ing ed", "Read", strings.Repeat("a_", 500),
	} {
		f.Add(q)
	}
	entries := shelf()
	f.Fuzz(func(t *testing.T, q string) {
		found := Find(entries, q)
		seen := map[string]bool{}
		for _, e := range found.Entries {
			if seen[e.Name] {
				t.Fatalf("%q finds %s twice", q, e.Name)
			}
			seen[e.Name] = true
			called := slices.ContainsFunc(append([]string{e.Name}, e.Aliases...), func(n string) bool {
				return strings.Contains(strings.ToLower(q), strings.ToLower(n)) || strings.EqualFold(strings.TrimSpace(q), n)
			})
			if (found.Named || !e.Deferred) && !called && isASCII(q) {
				t.Fatalf("%q finds %s, whose name is not in it", q, e.Name)
			}
		}
		if again := Find(entries, q); namesOf(again.Entries) != namesOf(found.Entries) {
			t.Fatalf("%q finds %q, then %q", q, namesOf(found.Entries), namesOf(again.Entries))
		}
		for _, u := range found.Unknown {
			if !found.Named || u.Name == "" || len(u.Near) > maxNear || indexOf(entries, u.Name) >= 0 || !strings.Contains(q, u.Name) {
				t.Fatalf("%q does not know %+v", q, u)
			}
		}
		r := parse(q)
		for _, w := range slices.Concat(r.must, r.words, r.pairs) {
			if s := stem(w); w == "" || s == "" || strings.Join(parts(w), "") != w || len(s) > len(w) || !strings.HasPrefix(w, s[:len(s)-1]) {
				t.Fatalf("%q has the word %q, without its ending %q", q, w, s)
			}
		}
		for _, w := range r.must {
			if !found.Named && len(found.Entries) > 1 && !strings.Contains(strings.ToLower(found.Entries[1].Name+strings.Join(found.Entries[1].Aliases, " ")), stem(w)) {
				t.Fatalf("%q must have %q and finds %s", q, w, found.Entries[1].Name)
			}
		}
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// BenchmarkFind searches 200 tools, as several mounted servers have.
func BenchmarkFind(b *testing.B) {
	base := shelf()
	var entries []Entry
	for i := range 200 {
		e := base[i%len(base)]
		e.Name = "mcp__server" + strconv.Itoa(i) + "__" + e.Name
		e.Aliases = nil
		e.Description = strings.Repeat(e.Description+" ", 20)
		e.Deferred = true
		entries = append(entries, e)
	}
	b.Run("words", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if f := Find(entries, "how do I create a github issue"); len(f.Entries) == 0 {
				b.Fatal("nothing")
			}
		}
	})
	b.Run("select", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if f := Find(entries, "select:mcp__server7__todo_write,nope"); len(f.Entries) != 1 {
				b.Fatal("nothing")
			}
		}
	})
}
