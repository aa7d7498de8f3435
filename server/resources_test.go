package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/auth"
	"codehand/server/replaytest"
)

// An guest is a client of any transport that asks one thing after the other.
type guest struct {
	t      *testing.T
	modern bool
	ask    func(method string, params map[string]any) replaytest.Reply
}

// guests are a client of each transport and era, each with a server of its own over a workspace with the file big.txt.
func guests(t *testing.T, profile string) map[string]guest {
	t.Helper()
	all := map[string]guest{}
	settings := map[string]string{"client.profile": profile, "sandbox.policy": "off", "permissions.allow": "Bash"}
	for name, modern := range map[string]bool{"stdio legacy": false, "stdio modern": true} {
		f := start(t, setup{modern: modern, settings: settings})
		replaytest.LayBig(t, f.work)
		all[name] = guest{t, modern, func(method string, params map[string]any) replaytest.Reply {
			t.Helper()
			r, err := f.Request(method, params)
			must(t, err)
			return r
		}}
	}
	for name, modern := range map[string]bool{"http legacy": false, "http modern": true} {
		x := serveHTTP(t, siteSetup{settings: settings})
		replaytest.LayBig(t, x.work)
		all[name] = x.guest(t, "", modern, nil)
	}
	return all
}

// guest is a client over HTTP. meta is what each request says besides.
func (x *httpSite) guest(t *testing.T, principal string, modern bool, meta map[string]any) guest {
	t.Helper()
	c := x.client(principal)
	if c.Modern = modern; !modern {
		c.Hello()
	}
	return guest{t, modern, func(method string, params map[string]any) replaytest.Reply {
		t.Helper()
		if params == nil {
			params = map[string]any{}
		}
		own := map[string]any{}
		if modern {
			own = map[string]any{
				"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": map[string]any{"name": "x", "version": "1"},
				"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			}
		}
		for k, v := range meta {
			own[k] = v
		}
		params["_meta"] = own
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		must(t, err)
		c := *c
		for _, key := range []string{"uri", "name"} {
			if name, ok := params[key].(string); ok && modern {
				encoded, _ := mcp.EncodeHeaderValue(name)
				c.Extra = map[string]string{"Mcp-Name": encoded}
			}
		}
		got := c.Do(c.Request(t.Context(), http.MethodPost, c.URL, string(body)))
		var r replaytest.Reply
		if err := json.Unmarshal([]byte(got.Answer), &r); err != nil {
			t.Fatalf("%s: %d %s", method, got.Status, got.Answer)
		}
		return r
	}}
}

// A called is what a tool call gave.
type called struct {
	Content []struct{ Type, Text string }
	IsError bool
	Meta    struct {
		Result *struct {
			URI, Path    string
			Bytes        int64
			Lines, Shown int
		} `json:"codehand/result"`
	} `json:"_meta"`
}

func (a guest) call(name, args string) called {
	a.t.Helper()
	r := a.ask("tools/call", map[string]any{"name": name, "arguments": json.RawMessage(args)})
	var c called
	if err := json.Unmarshal(r.Result, &c); err != nil || r.Error != nil || len(c.Content) != 1 || c.IsError {
		a.t.Fatalf("%s: %v %+v %s", name, err, r.Error, r.Result)
	}
	return c
}

// keep makes a result that is too long to show and returns its resource.
func (a guest) keep() string {
	a.t.Helper()
	got := a.call("grep_search", `{"pattern":"line","output_mode":"content","head_limit":0}`)
	if got.Meta.Result == nil {
		a.t.Fatalf("nothing was kept: %.300q", got.Content[0].Text)
	}
	return got.Meta.Result.URI
}

// list returns resources/list, but for the guide, which is always there.
func (a guest) list() []mcp.Resource {
	a.t.Helper()
	var list struct{ Resources []mcp.Resource }
	r := a.ask("resources/list", nil)
	if err := json.Unmarshal(r.Result, &list); err != nil || r.Error != nil || !strings.Contains(string(r.Result), `"resources":[`) {
		a.t.Fatalf("resources/list: %v %+v %s", err, r.Error, r.Result)
	}
	return slices.DeleteFunc(list.Resources, func(r mcp.Resource) bool { return r.URI == "codehand://guide/tools" })
}

// read returns the text of a resource.
func (a guest) read(uri string) (text, mime string) {
	a.t.Helper()
	r := a.ask("resources/read", map[string]any{"uri": uri})
	var got struct {
		Contents []struct{ URI, MimeType, Text string }
	}
	if err := json.Unmarshal(r.Result, &got); err != nil || r.Error != nil || len(got.Contents) != 1 || got.Contents[0].URI != uri {
		a.t.Fatalf("%s: %v %+v %.300s", uri, err, r.Error, r.Result)
	}
	return got.Contents[0].Text, got.Contents[0].MimeType
}

// gone checks that a resource is answered as one that never existed.
func (a guest) gone(uri string) {
	a.t.Helper()
	r := a.ask("resources/read", map[string]any{"uri": uri})
	code := -32002
	if a.modern {
		code = -32602
	}
	var data struct{ URI string }
	if r.Error == nil || r.Error.Code != code || r.Error.Message != "resource not found" || json.Unmarshal(r.Error.Data, &data) != nil || data.URI != uri || r.Result != nil {
		a.t.Errorf("%q: %+v %.200s", uri, r.Error, r.Result)
	}
}

// TestResources walks through what a session has, on each transport and in each era: a kept result and a job are listed,
// read whole and in parts, and completed.
func TestResources(t *testing.T) {
	t.Parallel()
	for name, a := range guests(t, "default") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			list := a.list()
			if len(list) != 1 || list[0].URI != "codehand://jobs" {
				t.Errorf("before anything: %+v", list)
			}
			a.gone("codehand://plan")
			if text, mime := a.read("codehand://jobs"); text != "[]" || mime != "application/json" {
				t.Errorf("jobs: %s %q", mime, text)
			}

			// Two results: one that the pipeline kept, one of a command.
			whole := map[string]string{}
			for _, c := range [][2]string{
				{"grep_search", `{"pattern":"line","output_mode":"content","head_limit":0}`}, {"run_shell", `{"command":"cat big.txt; printf '\\033[31mred\\n'"}`},
			} {
				got := a.call(c[0], c[1])
				k := got.Meta.Result
				if k == nil || !regexp.MustCompile(`^codehand://results/[a-z2-7]{16}$`).MatchString(k.URI) || !strings.Contains(k.Path, "-"+c[0]+".txt") {
					t.Fatalf("%s: %+v", c[0], k)
				}
				if first, _, _ := strings.Cut(got.Content[0].Text, "\n"); !strings.Contains(first, k.Path) || k.Shown != utf8.RuneCountInString(got.Content[0].Text) {
					t.Errorf("%s: first line %q, %+v", c[0], first, k)
				}
				kept, err := os.ReadFile(k.Path)
				if err != nil || int64(len(kept)) != k.Bytes || strings.Count(string(kept), "\n")-k.Lines > 1 {
					t.Errorf("%s: %d bytes (%v), %+v", c[0], len(kept), err, k)
				}
				whole[k.URI] = string(kept)
			}
			for uri, want := range whole {
				want = strings.ReplaceAll(want, "\x1b[31m", "")
				var all strings.Builder
				for at := uri; at != ""; {
					text, mime := a.read(at)
					if len(text) > 256<<10 || mime != "text/plain" {
						t.Fatalf("%s: %d bytes, %s", at, len(text), mime)
					}
					at = ""
					if m := regexp.MustCompile(`\n\[lines \d+-\d+ of [0-9,]+; the next ones: (\S+)\]\n$`).FindStringSubmatchIndex(text); m != nil {
						at, text = text[m[2]:m[3]], text[:m[0]+1]
					}
					all.WriteString(text)
				}
				if all.String() != want {
					t.Errorf("%s: pages have %d bytes, the result %d", uri, all.Len(), len(want))
				}
				lines := strings.SplitAfter(want, "\n")
				text, _ := a.read(uri + "?limit=2&offset=3")
				if first := lines[2] + lines[3]; !strings.HasPrefix(text, first) || !strings.HasPrefix(text[len(first):], "[lines 3-4 of ") {
					t.Errorf("lines 3 and 4: %.200q", text)
				}
				if text, _ := a.read(uri + "?offset=1000000"); !strings.HasPrefix(text, "[there is no line 1000000; the text has ") {
					t.Errorf("after the end: %.200q", text)
				}
			}

			// A job.
			job := regexp.MustCompile(`job_[a-z2-7]{12}`).FindString(a.call("run_shell", `{"command":"echo one; echo '[exit code 1: no match]'; exit 3","run_in_background":true}`).Content[0].Text)
			a.call("job_output", `{"job_id":"`+job+`","block":true}`)
			text, _ := a.read("codehand://jobs")
			var jobs []struct {
				ID, Command, State string
				Start              time.Time
				Exit               *int
			}
			if err := json.Unmarshal([]byte(text), &jobs); err != nil || len(jobs) != 1 || jobs[0].ID != job || jobs[0].State != "failed" ||
				jobs[0].Exit == nil || *jobs[0].Exit != 3 || !strings.HasPrefix(jobs[0].Command, "echo one") || time.Since(jobs[0].Start) > time.Hour {
				t.Errorf("jobs: %v %s", err, text)
			}
			if text, _ := a.read("codehand://jobs/" + job + "/output"); text != "one\n[exit code 1: no match]\n" {
				t.Errorf("output: %q", text)
			}
			if text, _ := a.read("codehand://jobs/" + job + "/output?limit=1"); text != "one\n[lines 1-1 of 2; the next ones: codehand://jobs/"+job+"/output?offset=2]\n" {
				t.Errorf("output: %q", text)
			}

			list = a.list()
			var uris []string
			for _, r := range list {
				uris = append(uris, r.URI)
				if r.Annotations != nil && len(r.Annotations.Audience) > 0 {
					t.Errorf("%s is for %v", r.URI, r.Annotations.Audience)
				}
				if _, ok := whole[r.URI]; ok && (r.Size == nil || *r.Size != int64(len(whole[r.URI])) || r.Annotations.LastModified == "" || r.Name == "") {
					t.Errorf("%+v", r)
				}
			}
			if len(list) != 4 || uris[0] != "codehand://jobs" || uris[1] != "codehand://jobs/"+job+"/output" || whole[uris[2]] == "" || whole[uris[3]] == "" {
				t.Errorf("listed are %v", uris)
			}

			for _, c := range []struct{ uri, name, value, want string }{
				{"codehand://results/{id}{?offset,limit}", "id", uris[2][len("codehand://results/"):][:10], uris[2][len("codehand://results/"):]},
				{"codehand://jobs/{id}/output{?offset,limit}", "id", "job_", job},
				{"codehand://jobs/{id}/output{?offset,limit}", "id", "job_1", ""},
				{"codehand://jobs/{id}/output{?offset,limit}", "offset", "", ""},
			} {
				r := a.ask("completion/complete", map[string]any{
					"ref": map[string]any{"type": "ref/resource", "uri": c.uri}, "argument": map[string]any{"name": c.name, "value": c.value},
				})
				var got struct {
					Completion struct {
						Values  []string
						HasMore bool
					}
				}
				if err := json.Unmarshal(r.Result, &got); err != nil || strings.Join(got.Completion.Values, " ") != c.want || got.Completion.HasMore {
					t.Errorf("%+v: %+v %s", c, r.Error, r.Result)
				}
			}
		})
	}
}

// TestResourceTemplates: what can be read is told in one list, the same for everybody.
func TestResourceTemplates(t *testing.T) {
	t.Parallel()
	f := start(t, setup{})
	r, err := f.Request("resources/templates/list", nil)
	must(t, err)
	var got struct {
		ResourceTemplates []struct{ URITemplate, MimeType string }
	}
	must(t, json.Unmarshal(r.Result, &got))
	if fmt.Sprint(got.ResourceTemplates) != "[{codehand://changes/{id}{?offset,limit} text/plain} {codehand://jobs/{id}/output{?offset,limit} text/plain} {codehand://plan{?offset,limit} text/markdown} {codehand://results/{id}{?offset,limit} text/plain} {skill://{name}/{+path} }]" {
		t.Errorf("%s", r.Result)
	}
}

// TestResourcesRefused: what is unknown or cannot be one of ours gets one error; a window that is none gets another.
func TestResourcesRefused(t *testing.T) {
	t.Parallel()
	for name, a := range guests(t, "default") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			uri := a.keep()
			for _, bad := range []string{
				"codehand://results/aaaaaaaaaaaaaaaa", "codehand://results/", "codehand://results/..", "codehand://results/%2e%2e%2fx", uri + "/x",
				uri + "-grep_search", uri + "?other=1", uri + "#x", "codehand://jobs/job_aaaaaaaaaaaa/output", "codehand://jobs/../output", "codehand://jobs/x",
				"codehand://plan", "codehand://other", "codehand://", "file:///etc/passwd", "CODEHAND://results/aaaaaaaaaaaaaaaa", "x",
			} {
				a.gone(bad)
			}
			for _, bad := range []string{"?offset=0", "?limit=-1", "?offset=x", "?limit=", "?offset=1&offset=2", "?limit=99999999999999999999"} {
				if r := a.ask("resources/read", map[string]any{"uri": uri + bad}); r.Error == nil || r.Error.Code != -32602 || r.Error.Message != "offset and limit must be whole numbers, at least 1" {
					t.Errorf("%s: %+v %.100s", bad, r.Error, r.Result)
				}
			}
			a.read(uri)
		})
	}
}

// TestResourcesAreTheSessionsOwn: neither another principal nor another session of the same one sees a result, a job, a
// plan, or an id; the ladder that finds the session is that of calls.
func TestResourcesAreTheSessionsOwn(t *testing.T) {
	t.Parallel()
	for name, modern := range map[string]bool{"legacy": false, "modern": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := serveHTTP(t, siteSetup{
				settings: map[string]string{"sandbox.policy": "off", "permissions.allow": "Bash"}, principals: []string{"alice", "bob", "reader"},
				values: map[string]auth.Values{"reader": {Scopes: []string{}}},
			})
			one := map[string]any{"codehand/session": "handle-one"}
			a := x.guest(t, "alice", modern, one)
			a.call("run_shell", `{"command":"seq -f 'line %.0f' 1 40000 > big.txt"}`)
			uri := a.keep()
			job := regexp.MustCompile(`job_[a-z2-7]{12}`).FindString(a.call("run_shell", `{"command":"echo one","run_in_background":true}`).Content[0].Text)
			all := []string{uri, "codehand://jobs/" + job + "/output"}

			again := x.guest(t, "alice", modern, one) // another connection with the same handle
			for _, uri := range all {
				again.read(uri)
			}
			if list := again.list(); len(list) != 3 {
				t.Errorf("the same session lists %+v", list)
			}
			for who, other := range map[string]guest{
				"another session": x.guest(t, "alice", modern, map[string]any{"codehand/session": "handle-two"}),
				"a thread":        x.guest(t, "alice", modern, map[string]any{"threadId": "thread-one"}),
				"no handle":       x.guest(t, "alice", modern, nil),
				"bob":             x.guest(t, "bob", modern, one),
			} {
				for _, uri := range all {
					other.gone(uri)
				}
				if list := other.list(); len(list) != 1 || list[0].URI != "codehand://jobs" {
					t.Errorf("%s lists %+v", who, list)
				}
				if text, _ := other.read("codehand://jobs"); text != "[]" {
					t.Errorf("%s has the jobs %s", who, text)
				}
				r := other.ask("completion/complete", map[string]any{
					"ref": map[string]any{"type": "ref/resource", "uri": "codehand://results/{id}{?offset,limit}"}, "argument": map[string]any{"name": "id", "value": ""},
				})
				if !strings.Contains(string(r.Result), `"values":[]`) {
					t.Errorf("%s completes %s", who, r.Result)
				}
			}
			// Without the right to read there is nothing to see at all.
			reader := x.guest(t, "reader", modern, one)
			if list := reader.list(); len(list) != 0 {
				t.Errorf("without mcp:read: %+v", list)
			}
			reader.gone("codehand://jobs")
			if r := a.ask("resources/read", map[string]any{"uri": uri, "_meta": nil}); r.Error != nil {
				t.Errorf("%+v", r.Error)
			}
		})
	}
}

// TestKeptIsReadable: a kept result is read with read_file and searched with grep_search, in pages that are not kept again.
func TestKeptIsReadable(t *testing.T) {
	t.Parallel()
	for name, a := range guests(t, "default") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			for _, c := range [][2]string{
				{"grep_search", `{"pattern":"line","output_mode":"content","head_limit":0}`}, {"run_shell", `{"command":"cat big.txt"}`},
			} {
				path := a.call(c[0], c[1]).Meta.Result.Path
				page := a.call("read_file", fmt.Sprintf(`{"file_path":%q,"offset":5001,"limit":2}`, path))
				if !strings.Contains(page.Content[0].Text, "line 5000 of a long file\n5002\t") || page.Meta.Result != nil {
					t.Errorf("%s: %q, %+v", c[0], page.Content[0].Text, page.Meta.Result)
				}
				found := a.call("grep_search", fmt.Sprintf(`{"pattern":"line 777 of","path":%q,"output_mode":"content"}`, path))
				if !strings.Contains(found.Content[0].Text, "line 777 of a long file") {
					t.Errorf("%s: %q", c[0], found.Content[0].Text)
				}
			}
		})
	}
}

// TestPlanResource: the plan of a session is listed and read once there is one, by its own session only; what was
// removed, or replaced by a link to somewhere else, is not.
func TestPlanResource(t *testing.T) {
	t.Parallel()
	for name, a := range guests(t, "default") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			text := a.call("enter_plan_mode", `{}`).Content[0].Text
			path := regexp.MustCompile(`/[^"\n]+/plans/[a-z-]+\.md`).FindString(text)
			if path == "" {
				t.Fatalf("no plan file in %q", text)
			}
			a.call("read_file", fmt.Sprintf(`{"file_path":%q}`, path))
			a.call("write_file", fmt.Sprintf(`{"file_path":%q,"content":"# Plan\n1. look\u001b[31m\n"}`, path))
			if list := a.list(); len(list) != 2 || list[0].URI != "codehand://plan" || list[0].MIMEType != "text/markdown" {
				t.Errorf("listed are %+v", list)
			}
			if text, mime := a.read("codehand://plan"); text != "# Plan\n1. look\n" || mime != "text/markdown" {
				t.Errorf("%s %q", mime, text)
			}
			if text, mime := a.read("codehand://plan?offset=2"); text != "1. look\n" || mime != "text/markdown" {
				t.Errorf("%s %q", mime, text)
			}
			must(t, os.Remove(path))
			a.gone("codehand://plan")
			must(t, os.Symlink("/etc/passwd", path))
			a.gone("codehand://plan")
			if list := a.list(); len(list) != 1 {
				t.Errorf("listed are %+v", list)
			}
		})
	}
}
