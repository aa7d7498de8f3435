package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"codehand/tools/catalog"
	"codehand/tools/session"
)

// A ranking is what a model types, and what it wants: each of Spec.Finds, as part now, and the lines of
// testdata/corpus/tool-search.tsv, which has what several tools may answer, and what was written without a look at them.
//
// The parts now and later were written before there was a search, blind after it had been tuned by them, and last after it
// had been tuned by blind; nothing was tuned by last. The part web-agents was written before the hints and descriptions of
// these tools were tuned by it. Parts with later in their name want tools that did not exist when they were written.
// Expected is the tool that must come first, several with a comma where each may, with > where all must come in this order
// and nothing else, and - for nothing at all.
type ranking struct {
	part, query, expected string
}

func readRankings(t *testing.T) []ranking {
	t.Helper()
	var all []ranking
	for _, x := range All(Engines{}) {
		for _, query := range x.Spec.Finds {
			all = append(all, ranking{"now", query, x.Spec.Name})
		}
	}
	for _, f := range readTable(t, "tool-search.tsv", 3) {
		all = append(all, ranking{f[0], f[1], f[2]})
	}
	return all
}

// readTable reads a file of the corpus without its first line.
func readTable(t *testing.T, name string, columns int) [][]string {
	t.Helper()
	raw, err := os.ReadFile("../testdata/corpus/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for i, l := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")[1:] {
		f := strings.Split(l, "\t")
		if len(f) != columns {
			t.Fatalf("%s:%d: %d columns, not %d", name, i+2, len(f), columns)
		}
		rows = append(rows, f)
	}
	return rows
}

// withLater adds the tools that do not exist yet, as testdata/corpus/tool-search-later.tsv describes them. Of one that has
// come to exist the corpus searches its real words.
func withLater(t *testing.T, now []catalog.Entry) []catalog.Entry {
	t.Helper()
	all := slices.Clone(now)
	for _, f := range readTable(t, "tool-search-later.tsv", 5) {
		if slices.ContainsFunc(now, func(e catalog.Entry) bool { return e.Name == f[0] }) {
			continue
		}
		properties := map[string]any{}
		for _, p := range strings.Fields(f[3]) {
			properties[p] = map[string]any{"type": "string"}
		}
		all = append(all, catalog.Entry{
			Name: f[0], Aliases: strings.Fields(f[1]), Hint: f[2], Description: f[4], Deferred: true,
			Schema: encode(t, map[string]any{"type": "object", "properties": properties}),
		})
	}
	slices.SortFunc(all, func(a, b catalog.Entry) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func foundNames(entries []catalog.Entry, query string) []string {
	var names []string
	for _, e := range catalog.Find(entries, query).Entries {
		names = append(names, e.Name)
	}
	return names
}

// judge says whether what was found begins with what is wanted, and whether that is among the first three.
func (r ranking) judge(got []string) (first, third bool) {
	switch wants := strings.Split(r.expected, ","); {
	case r.expected == "-":
		return len(got) == 0, len(got) == 0
	case strings.Contains(r.expected, ">"):
		same := strings.Join(got, ">") == r.expected
		return same, same
	default:
		wanted := func(name string) bool { return slices.Contains(wants, name) }
		return len(got) > 0 && wanted(got[0]), slices.ContainsFunc(got[:min(3, len(got))], wanted)
	}
}

// TestToolSearchRanking: what a model types finds the tool that it wants first, 95 times of 100 in each part of the corpus,
// and always among the first three; today, and when the tools that are still to come are there.
func TestToolSearchRanking(t *testing.T) {
	t.Parallel()
	now := catalogOf(All(Engines{}))
	later := withLater(t, now)
	type tally struct{ n, first, third int }
	for name, entries := range map[string][]catalog.Entry{"now": now, "later": later} {
		sums := map[string]*tally{}
		var misses []string
		for _, r := range readRankings(t) {
			if name == "now" && strings.HasSuffix(r.part, "later") {
				continue
			}
			part := strings.TrimSuffix(strings.TrimSuffix(r.part, "later"), "-")
			sum := sums[part]
			if sum == nil {
				sum = &tally{}
				sums[part] = sum
			}
			got := foundNames(entries, r.query)
			first, third := r.judge(got)
			sum.n++
			if first {
				sum.first++
			} else {
				misses = append(misses, fmt.Sprintf("%s: %q wants %s, finds %v", r.part, r.query, r.expected, got))
			}
			if third {
				sum.third++
			}
		}
		for part, s := range sums {
			part = cmp.Or(part, "later")
			t.Logf("over the tools of %s, part %s: %d queries, %d first, %d among the first three", name, part, s.n, s.first, s.third)
			if s.first*100 < 95*s.n || s.third < s.n || s.n < 10 {
				t.Errorf("part %s over the tools of %s: %d of %d first (at least 95 %%), %d among the first three (all). Mend the hint or the description of the tool that is missed: synonyms belong there.\n%s",
					part, name, s.first, s.n, s.third, strings.Join(misses, "\n"))
			}
		}
	}
}

// TestToolSearchFindsTheWebAndAgents: each of the tools for the web and for sub-agents comes first for everything that its
// Spec.Finds names, and that is at least ten phrasings; of what was written before it was tuned, at least nine of ten.
func TestToolSearchFindsTheWebAndAgents(t *testing.T) {
	t.Parallel()
	entries := catalogOf(All(Engines{}))
	for _, name := range []string{"web_fetch", "web_search", "agent", "send_message"} {
		phrasings, blind, found := map[string]bool{}, 0, 0
		for _, r := range readRankings(t) {
			if r.expected != name {
				continue
			}
			got := foundNames(entries, r.query)
			first, _ := r.judge(got)
			switch {
			case r.part == "web-agents":
				if blind++; first {
					found++
				}
			case r.part == "now" && !first:
				t.Errorf("%s: %q finds %v", name, r.query, got)
			case r.part == "now":
				phrasings[strings.ToLower(r.query)] = true
			}
		}
		if len(phrasings) < 10 {
			t.Errorf("%s is found by %d phrasings, at least 10: add to its Finds", name, len(phrasings))
		}
		if blind < 10 || found*10 < blind*9 {
			t.Errorf("%s comes first for %d of %d phrasings of the part web-agents", name, found, blind)
		}
	}
}

// Every name that the corpus wants is that of a tool.
func TestToolSearchCorpus(t *testing.T) {
	t.Parallel()
	all := withLater(t, catalogOf(All(Engines{})))
	seen := map[string]bool{}
	for _, r := range readRankings(t) {
		for _, name := range strings.FieldsFunc(r.expected, func(c rune) bool { return c == ',' || c == '>' }) {
			if name != "-" && !slices.ContainsFunc(all, func(e catalog.Entry) bool { return e.Name == name }) {
				t.Errorf("%q wants %s, which is no tool", r.query, name)
			}
		}
		if seen[r.part+r.query] {
			t.Errorf("%q is there twice", r.query)
		}
		seen[r.part+r.query] = true
	}
	if len(seen) < 60 {
		t.Errorf("the corpus has %d queries, at least 60", len(seen))
	}
}

// TestToolSearchSpelling: order, case, plural and punctuation of words seldom change what comes first.
func TestToolSearchSpelling(t *testing.T) {
	t.Parallel()
	entries := withLater(t, catalogOf(All(Engines{})))
	each := func(change func(string) string) func(string) string {
		return func(q string) string {
			words := strings.Fields(q)
			for i, w := range words {
				words[i] = change(w)
			}
			return strings.Join(words, " ")
		}
	}
	for name, change := range map[string]func(string) string{
		"reversed": func(q string) string {
			words := strings.Fields(q)
			slices.Reverse(words)
			return strings.Join(words, " ")
		},
		"upper case":  strings.ToUpper,
		"title case":  each(func(w string) string { return strings.ToUpper(w[:1]) + w[1:] }),
		"punctuation": func(q string) string { return "\"" + strings.ReplaceAll(q, " ", ", ") + "\"?" },
		"underscores": func(q string) string { return strings.ReplaceAll(q, " ", "_") },
		"plural": each(func(w string) string {
			if len(w) < 4 || strings.HasSuffix(w, "s") {
				return w
			}
			return w + "s"
		}),
	} {
		n, changed := 0, []string{}
		for _, r := range readRankings(t) {
			was := foundNames(entries, r.query)
			if strings.Contains(r.query, ":") || strings.Contains(r.query, "+") || len(was) == 0 {
				continue
			}
			n++
			if is := foundNames(entries, change(r.query)); len(is) == 0 || is[0] != was[0] {
				changed = append(changed, fmt.Sprintf("%q: %v, as %q: %v", r.query, was, change(r.query), is))
			}
		}
		t.Logf("%s: %d of %d differ", name, len(changed), n)
		if len(changed)*100 > 3*n {
			t.Errorf("%s changes what comes first for %d of %d queries, at most 3 %%:\n%s", name, len(changed), n, strings.Join(changed, "\n"))
		}
	}
}

// searched are the tools that an answer shows, and the lines after them.
func searched(t *testing.T, text string) (names, notes []string) {
	t.Helper()
	rest, open := strings.CutPrefix(text, "<functions>\n")
	for l := range strings.SplitSeq(rest, "\n") {
		function, ok := strings.CutPrefix(l, "<function>")
		switch {
		case open && ok:
			var f struct{ Description, Name, Parameters json.RawMessage }
			function, closed := strings.CutSuffix(function, "</function>")
			if err := json.Unmarshal([]byte(function), &f); err != nil || !closed || len(f.Parameters) == 0 || len(f.Description) == 0 {
				t.Errorf("no function: %s (%v)", l, err)
			}
			names = append(names, strings.Trim(string(f.Name), `"`))
		case open && l == "</functions>":
			open = false
		default:
			notes = append(notes, l)
		}
	}
	return names, notes
}

const callable = "These tools can be called now, by name or through call_tool."

func TestToolSearchAnswers(t *testing.T) {
	t.Parallel()
	all := "No matching deferred tools found. All: " + strings.Join(deferredNames(), ", ")
	for _, c := range []struct{ input, names, notes string }{
		{`{"query":"todo"}`, "todo_write", callable},
		{`{"query":"select:TodoWrite, read_file"}`, "todo_write read_file", callable},
		{`{"query":"select:exit_plan_mode,todo_writ,zzz"}`, "exit_plan_mode",
			callable + "\nUnknown tool: todo_writ. Nearest: todo_write.\nUnknown tool: zzz."},
		{`{"query":"zzz"}`, "", all},
		{`{"query":"select:zzz"}`, "", all + "\nUnknown tool: zzz."},
		{`{"query":"+task","max_results":1}`, "task_create", callable + "\n[3 more match: task_get, task_list, task_update]"},
		{`{"query":"select:task_update,task_list,task_get,task_create,todo_write,Read","max_results":1}`,
			"task_update task_list task_get task_create todo_write read_file", callable}, // it says what it wants
		{`{"query":"select:a,b,c,d,e,f,g,h,i,j,k,l"}`, "", all + "\nUnknown tool: " +
			strings.Join(strings.Split("abcdefghij", ""), ".\nUnknown tool: ") + ".\n[2 more names are unknown]"},
	} {
		names, notes := searched(t, newRig(t).ok("tool_search", c.input))
		same(t, strings.Join(names, " "), c.names)
		same(t, strings.Join(notes, "\n"), c.notes)
	}
}

func deferredNames() []string {
	var names []string
	for _, e := range catalogOf(All(Engines{})) {
		if e.Deferred {
			names = append(names, e.Name)
		}
	}
	return names
}

// What is not in the catalog of a session does not exist for it: another place may deny it, a client may not answer.
func TestToolSearchFindsOnlyItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Catalog = slices.DeleteFunc(catalogOf(All(Engines{})), func(e catalog.Entry) bool { return e.Name == "ask_user_question" })
	for _, q := range []string{"ask_user_question", "AskUserQuestion", "ask the user a question", "+ask", "select:ask_user_question", "zzz"} {
		if text := r.ok("tool_search", `{"query":"`+q+`"}`); strings.Contains(strings.ReplaceAll(text, "Unknown tool: ask_user_question", ""), "ask_user_question") {
			t.Errorf("%q: %s", q, text)
		}
	}
	r.Catalog = slices.DeleteFunc(r.Catalog, func(e catalog.Entry) bool { return e.Deferred })
	same(t, r.ok("tool_search", `{"query":"todo"}`), "No matching tools found: all tools are already listed.")
}

// Where call_tool is denied, it was named as a way to call what was found.
func TestToolSearchWithoutCallTool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Catalog = slices.DeleteFunc(catalogOf(All(Engines{})), func(e catalog.Entry) bool { return e.Name == "call_tool" })
	_, notes := searched(t, r.ok("tool_search", `{"query":"todo"}`))
	same(t, strings.Join(notes, "\n"), "These tools can be called now, by name.")
}

// The schema is that of tools/list, byte by byte, and nothing is escaped that JSON lets stand.
func TestToolSearchSchemas(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, x := range All(Engines{}) {
		text := r.ok("tool_search", `{"query":"select:`+x.Spec.Name+`"}`)
		want := `"name":"` + x.Spec.Name + `","parameters":` + string(x.Schema) + "}</function>\n"
		if !strings.Contains(text, want) {
			t.Errorf("%s is shown as\n%s\nand listed with\n%s", x.Spec.Name, text, x.Schema)
		}
	}
	r.Catalog = []catalog.Entry{{Name: "x", Description: "a < b & c.", Deferred: true, Schema: json.RawMessage(`{"type":"object"}`)}}
	same(t, r.ok("tool_search", `{"query":"x"}`), "<functions>\n"+
		`<function>{"description":"a < b & c.","name":"x","parameters":{"type":"object"}}</function>`+"\n</functions>\nThese tools can be called now, by name.")
}

// A legacy session gets what it was shown on its list, once.
func TestToolSearchActivates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct {
		query, active string
		changed       bool
	}{
		{"select:todo_write,read_file", "todo_write", true}, // the core is there already
		{"select:todo_write", "todo_write", false},
		{"select:read_file", "todo_write", false},
		{"zzz", "todo_write", false},
		{"select:task_list,todo_write,exit_plan_mode", "exit_plan_mode task_list todo_write", true},
	} {
		res, text := r.do("tool_search", `{"query":"`+c.query+`"}`)
		active, err := r.Active.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same(t, strings.Join(active, " "), c.active)
		if res.ListChanged != c.changed {
			t.Errorf("%s: the list changed: %v, want %v\n%s", c.query, res.ListChanged, c.changed, text)
		}
		if names, _ := searched(t, text); strings.HasPrefix(c.query, "select:") && len(names) != strings.Count(c.query, ",")+1 {
			t.Errorf("%s shows %v: repeats are shown again", c.query, names)
		}
	}
	// What max_results leaves out is not loaded.
	r.ok("tool_search", `{"query":"+task","max_results":1}`)
	if active, _ := r.Active.Load(t.Context()); !slices.Contains(active, "task_create") || slices.Contains(active, "task_update") {
		t.Errorf("one of the tasks tools was shown, and active are %v", active)
	}
}

// Where the list depends on the request alone, and where everything is listed, nothing is remembered.
func TestToolSearchLeavesOtherListsAlone(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*session.Client){
		"modern": func(c *session.Client) { c.Modern = true }, "sees all": func(c *session.Client) { c.SeesAll = true },
	} {
		r := newRig(t)
		set(&r.Client)
		r.Active = session.Cell[[]string]{} // has no memory, so that a change would fail
		res, text := r.do("tool_search", `{"query":"todo"}`)
		if names, notes := searched(t, text); res.ListChanged || len(names) != 1 || len(notes) != 1 {
			t.Errorf("%s: %v, %s", name, res.ListChanged, text)
		}
	}
}

// A Store that does not answer costs the list its change, and nothing else.
func TestToolSearchWithoutStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.Store.Close(); err != nil {
		t.Fatal(err)
	}
	res, text := r.do("tool_search", `{"query":"todo"}`)
	names, notes := searched(t, text)
	if res.ListChanged || res.Failed != "" || !slices.Equal(names, []string{"todo_write"}) ||
		!slices.Equal(notes, []string{callable, "[the state store does not answer: these tools can be called, but will not be listed]"}) {
		t.Errorf("%v %s", res.ListChanged, text)
	}
}

// Parallel searches lose nothing of what each of them found.
func TestToolSearchTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var calls sync.WaitGroup
	want := deferredNames()
	for _, name := range want {
		call, err := toolSearch(nil).Bind(r.State, json.RawMessage(`{"query":"`+name+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		env := r.Env(call)
		calls.Go(func() {
			if res, err := call.Run(t.Context(), env); err != nil || !res.ListChanged {
				t.Errorf("%s: %v %v", name, res, err)
			}
		})
	}
	calls.Wait()
	if active, err := r.Active.Load(t.Context()); err != nil || !slices.Equal(active, want) {
		t.Errorf("%v are active, want %v (%v)", active, want, err)
	}
}

// A client that takes little gets fewer functions, each of them whole, and the names of the others.
func TestToolSearchFits(t *testing.T) {
	t.Parallel()
	wanted := deferredNames()[:20] // as many as one answer has
	for _, limit := range []func(*session.Client, int){
		func(c *session.Client, n int) { c.MaxRunes = n }, func(c *session.Client, n int) { c.MaxBytes = n },
	} {
		last := 0
		for _, room := range []int{1, 1500, 2500, 4000, 8000, 50_000} {
			r := newRig(t)
			limit(&r.Client, room)
			text := r.ok("tool_search", `{"query":"select:`+strings.Join(wanted, ",")+`"}`)
			names, notes := searched(t, text)
			if len(names) == 0 || len(names) > 1 && utf8.RuneCountInString(text) > room || len(names) < last {
				t.Errorf("%d characters hold %d functions in %d", room, len(names), len(text))
			}
			left := wanted[len(names):]
			want := fmt.Sprintf("[%d more match and do not fit here: %s; select them by name]", len(left), strings.Join(left, ", "))
			if len(left) > 10 { // so many are named
				want = fmt.Sprintf("[%d more match and do not fit here: %s, ...; select them by name]", len(left), strings.Join(left[:10], ", "))
			}
			if len(left) > 0 && notes[len(notes)-1] != want {
				t.Errorf("%d characters: %q, want %q", room, notes, want)
			}
			active, _ := r.Active.Load(t.Context())
			if !slices.Equal(active, wanted[:len(names)]) {
				t.Errorf("%d characters: %v are active and %v were shown", room, active, names)
			}
			last = len(names)
		}
		if last != len(wanted) {
			t.Errorf("50,000 characters hold %d functions, not all %d", last, len(wanted))
		}
	}
}

// Of very many only the first are named.
func TestToolSearchAmongMany(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Catalog = nil
	for i := range 200 {
		r.Catalog = append(r.Catalog, catalog.Entry{
			Name: fmt.Sprintf("mcp__big__thing_%03d", i), Description: strings.Repeat("x", 2000), Hint: "do one thing", Deferred: true,
			Schema: json.RawMessage(`{"type":"object"}`),
		})
	}
	text := r.ok("tool_search", `{"query":"thing","max_results":20}`)
	names, notes := searched(t, text)
	if len(names) != 20 || len(notes) != 2 || !strings.HasPrefix(notes[1], "[180 more match: mcp__big__thing_020, ") ||
		!strings.HasSuffix(notes[1], ", mcp__big__thing_029, ...; to see them add words of what you need, or +word of their names]") || len(text) > 50_000 {
		t.Errorf("%d characters: %v %v", len(text), names, notes)
	}
	// What they say is true.
	if names, _ := searched(t, r.ok("tool_search", `{"query":"+thing 123"}`)); len(names) == 0 || names[0] != "mcp__big__thing_123" {
		t.Errorf("a narrower search: %v", names)
	}
	r.Catalog = append(r.Catalog, catalog.Entry{Name: "own", Deferred: true, Schema: json.RawMessage(`{"type":"object"}`)})
	text = r.ok("tool_search", `{"query":"zzz"}`)
	if !strings.Contains(text, ", mcp__big__thing_009, own\n") || !strings.HasSuffix(text, "\n[190 more of the server big: +big and words of what you need]") {
		t.Errorf("nothing found: %s", text)
	}
}

func TestToolSearchCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	call, err := toolSearch(nil).Bind(r.State, json.RawMessage(`{"query":"todo"}`))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := call.Run(ctx, r.Env(call)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v %v", res, err)
	}
	if active, _ := r.Active.Load(t.Context()); active != nil {
		t.Errorf("%v are active", active)
	}
}

// A model that calls a tool by the name that another agent has for it is told ours, the best first.
func TestNearestOfOtherAgents(t *testing.T) {
	t.Parallel()
	entries := catalogOf(All(Engines{}))
	for name, want := range map[string]string{
		"exec": "run_shell", "LS": "list_files", "view": "read_file", "View": "read_file", "terminal": "run_shell monitor",
		"str_replace_editor":          "edit_file read_file write_file",
		"str_replace_based_edit_tool": "edit_file read_file write_file",
		"bash":                        "run_shell", "zzz": "",
	} {
		if got := strings.Join(catalog.Nearest(entries, name), " "); got != want {
			t.Errorf("%s is near %q, want %q", name, got, want)
		}
	}
}
