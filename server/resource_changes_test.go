package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// TestChangeResources: on each transport and in each era, changes are listed once there are some, read whole and in parts,
// and completed.
func TestChangeResources(t *testing.T) {
	t.Parallel()
	for name, a := range guests(t, "default") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			if a.lists("codehand://changes") {
				t.Error("changes are listed before there are any")
			}
			if text, mime := a.read("codehand://changes"); text != "[]" || mime != "application/json" {
				t.Errorf("no changes are %s %q", mime, text)
			}
			var ids []string
			for i := range 3 {
				ids = append(ids, a.change("write_file", fmt.Sprintf(`{"file_path":"new%d.txt","content":"one\ntwo %d\n"}`, i, i)))
			}
			if !a.lists("codehand://changes") {
				t.Error("changes are not listed")
			}
			slices.Reverse(ids)
			if got := a.complete("codehand://changes/{id}{?offset,limit}", "id", ""); !slices.Equal(got, ids) {
				t.Errorf("completed are %v, want %v", got, ids)
			}
			if got := a.complete("codehand://changes/{id}{?offset,limit}", "id", ids[0][:9]); !slices.Contains(got, ids[0]) {
				t.Errorf("completed are %v, want %s among them", got, ids[0])
			}
			var list []struct {
				ID, Tool string
				Files    []struct{ Path, Op string }
			}
			text, _ := a.read("codehand://changes")
			if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 3 || list[0].ID != ids[0] || list[0].Tool != "write_file" || list[2].Files[0].Op != "create" {
				t.Errorf("the changes are %v %s", err, text)
			}
			text, mime := a.read("codehand://changes/" + ids[2])
			if !strings.HasPrefix(text, ids[2]+" ") || !strings.HasSuffix(text, "\n@@ -0,0 +1,2 @@\n+one\n+two 0") || mime != "text/plain" {
				t.Errorf("a change is %s %q", mime, text)
			}
			if text, _ := a.read("codehand://changes/" + ids[2] + "?offset=3&limit=1"); !strings.HasPrefix(text, "+one\n[lines 3-3 of 4; the next ones: codehand://changes/"+ids[2]+"?offset=4]") {
				t.Errorf("a line of it is %q", text)
			}
			for _, uri := range []string{"codehand://changes/", "codehand://changes/zzzzzzzzzzzzzzzz", "codehand://changes/" + ids[0] + "/x", "codehand://changes/../changes"} {
				a.gone(uri)
			}
		})
	}
}

// What a call would not list without a question, a resource does not show either; nor anything of another principal.
func TestChangeResourcesWithheld(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{settings: map[string]string{"permissions.mode": "acceptEdits"}})
	a := x.guest(t, "", true, nil)
	id := a.change("write_file", `{"file_path":"a.txt","content":"one\n"}`)
	for name, settings := range map[string]map[string]string{
		"switched off": {"permissions.deny": "file_history"},
		"denied":       {"permissions.deny": "Read(a.txt)"},
		"asked about":  {"permissions.ask": "Read"},
		"ask for it":   {"permissions.ask": "Read(a.txt)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, setup{modern: true, settings: settings})
			b := guest{t, true, func(method string, params map[string]any) replaytest.Reply {
				t.Helper()
				r, err := f.Request(method, params)
				must(t, err)
				return r
			}}
			own := b.tried("write_file", `{"file_path":"a.txt","content":"one\n"}`)
			if b.lists("codehand://changes") {
				t.Error("changes are listed")
			}
			b.gone("codehand://changes/" + id)
			if own != "" {
				b.gone("codehand://changes/" + own)
			}
		})
	}
}

func (a guest) lists(uri string) bool {
	a.t.Helper()
	for _, r := range a.list() {
		if r.URI == uri {
			return true
		}
	}
	return false
}

// tried calls a tool and returns the id of the change that it made; "": it was refused.
func (a guest) tried(name, args string) string {
	a.t.Helper()
	r := a.ask("tools/call", map[string]any{"name": name, "arguments": json.RawMessage(args)})
	var c struct {
		Meta struct {
			Data struct{ Change string } `json:"codehand/data"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(r.Result, &c); err != nil || r.Error != nil {
		a.t.Fatalf("%s: %v %+v %s", name, err, r.Error, r.Result)
	}
	return c.Meta.Data.Change
}

func (a guest) change(name, args string) string {
	a.t.Helper()
	id := a.tried(name, args)
	if id == "" {
		a.t.Fatalf("%s made no change", name)
	}
	return id
}

// complete returns what a variable of a template may be.
func (a guest) complete(uri, name, value string) []string {
	a.t.Helper()
	r := a.ask("completion/complete", map[string]any{
		"ref": map[string]any{"type": "ref/resource", "uri": uri}, "argument": map[string]any{"name": name, "value": value},
	})
	var got struct{ Completion struct{ Values []string } }
	if err := json.Unmarshal(r.Result, &got); err != nil || r.Error != nil {
		a.t.Fatalf("%s: %v %+v %s", uri, err, r.Error, r.Result)
	}
	return got.Completion.Values
}
