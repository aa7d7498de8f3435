package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// contents returns what resources/read gives, byte for byte.
func (a guest) contents(uri string) (data []byte, mime string) {
	a.t.Helper()
	r := a.ask("resources/read", map[string]any{"uri": uri})
	var got struct {
		Contents []struct {
			URI, MimeType string
			Text, Blob    *string
		}
	}
	if err := json.Unmarshal(r.Result, &got); err != nil || r.Error != nil || len(got.Contents) != 1 || got.Contents[0].URI != uri {
		a.t.Fatalf("%s: %v %+v %.300s", uri, err, r.Error, r.Result)
	}
	c := got.Contents[0]
	if (c.Text == nil) == (c.Blob == nil) {
		a.t.Fatalf("%s: text or blob: %.300s", uri, r.Result)
	}
	if c.Blob == nil {
		return []byte(*c.Text), c.MimeType
	}
	data, err := base64.StdEncoding.DecodeString(*c.Blob)
	must(a.t, err)
	return data, c.MimeType
}

// TestSkillResources: the files of a session's skills are listed, read byte for byte and in parts, and found by the
// extension with their digests, on each transport and in each era.
func TestSkillResources(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(strings.Repeat("0123456789 ä", 10)+"\n", 2_500)
	for name, a := range skilledGuests(t, nil, replaytest.Skills) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			replaytest.Lay(t, a.work, map[string]string{".claude/skills/greet/long.txt": long, ".claude/skills/greet/esc.txt": "\x1b[31mred\r\nend"})
			var uris []string
			for _, r := range a.list() {
				if strings.HasPrefix(r.URI, "skill://") {
					uris = append(uris, strings.TrimSuffix(strings.TrimPrefix(r.URI, "skill://"), "/SKILL.md"))
					if r.MIMEType != "text/markdown" || r.URI == "skill://greet/SKILL.md" && (r.Name != "greet" || r.Description != "Says hello.") || r.URI == "skill://other-name/SKILL.md" && r.Name != "another" {
						t.Errorf("%+v", r)
					}
				}
			}
			if got := strings.Join(uris, " "); got != "apart deploy greet look odd other-name quiet shelly" {
				t.Errorf("resources: %s", got)
			}
			for _, c := range []struct{ uri, file, mime string }{
				{"skill://greet/SKILL.md", ".claude/skills/greet/SKILL.md", "text/markdown"},
				{"skill://greet/esc.txt", ".claude/skills/greet/esc.txt", "text/plain"},
				{"skill://look/SKILL.md", ".claude/commands/look.md", "text/markdown"},
				{"skill://deploy/scripts/go.sh", ".claude/skills/deploy/scripts/go.sh", "text/x-shellscript"},
				{"skill://deploy/a%20b/notes%3F.txt", ".claude/skills/deploy/a b/notes?.txt", "text/plain"},
				{"skill://deploy/logo.png", ".claude/skills/deploy/logo.png", "image/png"},
			} {
				want, err := os.ReadFile(filepath.Join(a.work, c.file))
				must(t, err)
				if got, mime := a.contents(c.uri); string(got) != string(want) || mime != c.mime {
					t.Errorf("%s: %s %q, want %s %q", c.uri, mime, got, c.mime, want)
				}
			}
			if got, _ := a.read("skill://deploy/a%20b/notes%3F.txt?offset=2&limit=1"); got != "two\n[lines 2-2 of 3; the next ones: skill://deploy/a%20b/notes%3F.txt?offset=3]\n" {
				t.Errorf("%q", got)
			}
			var all strings.Builder
			for at := "skill://greet/long.txt"; at != ""; {
				text, _ := a.read(at)
				if len(text) > 256<<10 {
					t.Fatalf("%s: %d bytes", at, len(text))
				}
				at = ""
				if i := strings.LastIndex(text, "[lines "); i >= 0 && strings.HasSuffix(text, "]\n") {
					at, text = strings.TrimSuffix(text[strings.LastIndex(text, "skill://"):], "]\n"), text[:i]
				}
				all.WriteString(text)
			}
			if all.String() != long {
				t.Errorf("pages have %d bytes, the file %d", all.Len(), len(long))
			}
			a.published()
		})
	}
}

// published checks the extension: entries, their digests, and directories.
func (a skilled) published() {
	t := a.t
	t.Helper()
	r := a.ask("skills/list", nil)
	var list struct {
		Skills []struct {
			URI         string
			FrontMatter map[string]any `json:"frontmatter"`
			Resources   any
		}
		ResultType, CacheScope string
		TTLMs                  *int
	}
	if err := json.Unmarshal(r.Result, &list); err != nil || r.Error != nil {
		t.Fatalf("skills/list: %v %+v", err, r.Error)
	}
	if (list.ResultType == "complete") != a.modern || (list.TTLMs != nil) != a.modern || (list.CacheScope == "private") != a.modern || strings.Contains(string(r.Result), "serverInfo") != a.modern {
		t.Errorf("%s", r.Result)
	}
	var names []string
	for _, s := range list.Skills {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(s.URI, "skill://"), "/SKILL.md"))
		parts, ok := s.Resources.([]any)
		if ok == (s.URI == "skill://greet/SKILL.md") { // it has a file that is longer than an answer
			t.Errorf("%s: %v", s.URI, s.Resources)
		}
		for _, p := range parts {
			part := p.(map[string]any)
			data, _ := a.contents(part["uri"].(string))
			sum := sha256.Sum256(data)
			if part["digest"] != "sha256:"+hex.EncodeToString(sum[:]) || part["size"] != float64(len(data)) {
				t.Errorf("%v", part)
			}
		}
		got := a.ask("skills/get", map[string]any{"uri": s.URI})
		var one struct{ Skill json.RawMessage }
		if err := json.Unmarshal(got.Result, &one); err != nil || !strings.Contains(string(r.Result), string(one.Skill)) || strings.Contains(string(got.Result), "nextCursor") {
			t.Errorf("skills/get %s: %v %+v %s", s.URI, err, got.Error, got.Result)
		}
	}
	if got := strings.Join(names, " "); got != "apart deploy greet quiet shelly" {
		t.Errorf("published: %s", got)
	}
	for _, uri := range []string{"skill://look/SKILL.md", "skill://other-name/SKILL.md", "skill://nothing/SKILL.md", "skill://greet", "skill://greet/long.txt", "skill://%67reet/SKILL.md", "x", ""} {
		a.refused("skills/get", map[string]any{"uri": uri}, "resource not found")
	}
	for _, c := range []struct{ uri, want string }{
		{"skill://deploy", "SKILL.md:text/markdown a%20b:inode/directory logo.png:image/png scripts:inode/directory"},
		{"skill://deploy/", "SKILL.md:text/markdown a%20b:inode/directory logo.png:image/png scripts:inode/directory"},
		{"skill://deploy/scripts", "scripts/go.sh:text/x-shellscript"},
		{"skill://look", "SKILL.md:text/markdown"},
	} {
		r := a.ask("resources/directory/read", map[string]any{"uri": c.uri})
		var dir struct{ Resources []mcp.Resource }
		must(t, json.Unmarshal(r.Result, &dir))
		var got []string
		for _, e := range dir.Resources {
			name, _, _ := strings.Cut(strings.TrimPrefix(c.uri, "skill://"), "/")
			got = append(got, strings.TrimPrefix(e.URI, "skill://"+name+"/")+":"+e.MIMEType)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v %+v", c.uri, got, r.Error)
		}
	}
	for _, uri := range []string{"skill://deploy/SKILL.md", "skill://nothing", "skill://deploy/..", "skill://look/x", "codehand://plan", ""} {
		a.refused("resources/directory/read", map[string]any{"uri": uri}, "no directory")
	}
	a.refused("skills/list", map[string]any{"cursor": "x"}, "cursor is none")
	a.refused("resources/directory/read", map[string]any{"uri": "skill://deploy", "cursor": "x"}, "cursor is none")
	if r := a.ask("skills/list", map[string]any{"cursor": ""}); r.Error != nil {
		t.Errorf("%+v", r.Error)
	}
	if r := a.ask("skills/other", nil); r.Error == nil || r.Error.Code != mcp.METHOD_NOT_FOUND {
		t.Errorf("%+v", r.Error)
	}
}

// TestSkillMethodsKeepChecks: the extension's methods pass the same checks as those that mcp-go knows, and their errors
// have the status of the era.
func TestSkillMethodsKeepChecks(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	replaytest.Lay(t, x.work, replaytest.Skills)
	modern := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for _, c := range []struct {
		name, body string
		change     func(http.Header)
		status     int
		want       string
	}{
		{"good", `{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{` + modern + `}}`, nil, 200, `"skills":[`},
		{"unknown", `{"jsonrpc":"2.0","id":1,"method":"skills/get","params":{"uri":"skill://no/SKILL.md",` + modern + `}}`, nil, 400, `"code":-32602`},
		{"method in the header", `{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{` + modern + `}}`, func(h http.Header) { h.Set("Mcp-Method", "tools/list") }, 400, `"code":-32020`},
		{"version in the header", `{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{` + modern + `}}`, func(h http.Header) { h.Set("Mcp-Protocol-Version", "2025-11-25") }, 400, `"error"`},
		{"no capabilities", `{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, nil, 400, `"code":-32602`},
		{"no token", `{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{` + modern + `}}`, func(h http.Header) { h.Del("Authorization") }, 401, ""},
		{"another method", `{"jsonrpc":"2.0","id":1,"method":"skills/other","params":{` + modern + `}}`, nil, 404, `"code":-32601`},
	} {
		client := x.client("alice")
		client.Modern = true
		q := client.Request(t.Context(), http.MethodPost, client.URL, c.body)
		if c.change != nil {
			c.change(q.Header)
		}
		if got := client.Do(q); got.Status != c.status || !strings.Contains(got.Answer, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.name, got.Status, got.Answer, c.status, c.want)
		}
	}
	legacy := x.client("alice")
	if got := legacy.Do(legacy.Request(t.Context(), http.MethodPost, legacy.URL, `{"jsonrpc":"2.0","id":1,"method":"skills/list"}`)); got.Status != 400 {
		t.Errorf("without a session: %d %s", got.Status, got.Answer)
	}
	legacy.Hello()
	if got := legacy.Do(legacy.Request(t.Context(), http.MethodPost, legacy.URL, `{"jsonrpc":"2.0","id":1,"method":"skills/get","params":{"uri":"skill://no/SKILL.md"}}`)); got.Status != 200 || !strings.Contains(got.Answer, `"code":-32602`) {
		t.Errorf("legacy: %d %s", got.Status, got.Answer)
	}
}

// TestHostileSkills: whatever a skill's directory holds and whatever a URI asks for, nothing outside of what the session
// may see is answered, and nothing blocks.
func TestHostileSkills(t *testing.T) {
	t.Parallel()
	for name, a := range skilledGuests(t, map[string]string{"permissions.deny": "Read(**/hidden.txt)"}, replaytest.Skills) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			secret := filepath.Join(leaktest.Dir(t), "secret.txt")
			must(t, os.WriteFile(secret, []byte("SECRET"), 0o644))
			dir := filepath.Join(a.work, ".claude", "skills", "greet")
			must(t, os.Symlink(secret, filepath.Join(dir, "out.txt")))
			must(t, os.Symlink(filepath.Dir(secret), filepath.Join(dir, "outside")))
			must(t, os.Symlink(".", filepath.Join(dir, "loop")))
			must(t, replaytest.Mkfifo(filepath.Join(dir, "pipe")))
			must(t, os.WriteFile(filepath.Join(dir, "hidden.txt"), []byte("SECRET"), 0o644))
			must(t, os.WriteFile(filepath.Join(dir, "huge.bin"), nil, 0o644))
			must(t, os.Truncate(filepath.Join(dir, "huge.bin"), 1<<30))
			must(t, os.WriteFile(filepath.Join(a.work, ".claude", "skills", "loose.txt"), []byte("SECRET"), 0o644))
			for _, uri := range []string{
				"skill://greet/out.txt", "skill://greet/outside/secret.txt", "skill://greet/pipe", "skill://greet/hidden.txt", "skill://greet/loop",
				"skill://greet/../loose.txt", "skill://greet/%2e%2e/loose.txt", "skill://greet/..%2floose.txt", "skill://greet/%2e%2e%2floose.txt", "skill://greet/..\\loose.txt",
				"skill://greet/scripts/../../loose.txt", "skill://..", "skill://../loose.txt", "skill://./loose.txt", "skill:///loose.txt", "skill://loose.txt",
				"skill://greet//SKILL.md", "skill://greet/%00", "skill://greet/" + secret, "skill://greet/%2f" + secret[1:], "skill://greet", "skill://greet/", "skill://broken/SKILL.md",
				"skill://greet/SKILL.md#x", "skill://greet/SKILL.md?x=1", "skill://user@greet/SKILL.md", "skill://greet:80/SKILL.md", "skill://look/other.md", "skill://look/look.md",
				"skill://greet/" + strings.Repeat("x/", 5_000) + "y",
			} {
				a.gone(uri)
				a.refused("skills/get", map[string]any{"uri": uri}, "")
				if uri != "skill://greet" && uri != "skill://greet/" && uri != "skill://greet/loop" {
					a.refused("resources/directory/read", map[string]any{"uri": uri}, "no directory")
				}
			}
			a.refused("resources/read", map[string]any{"uri": "skill://greet/huge.bin"}, "larger than can be shown")
			a.refused("resources/read", map[string]any{"uri": "skill://greet/SKILL.md?offset=0"}, "whole numbers")
			r := a.ask("resources/directory/read", map[string]any{"uri": "skill://greet"})
			for _, never := range []string{"out.txt", "outside", "pipe", "hidden.txt"} {
				if strings.Contains(string(r.Result), "/"+never+`"`) {
					t.Errorf("the directory shows %s: %s", never, r.Result)
				}
			}
			for _, uri := range []string{"skill://greet/outside", "skill://greet/pipe"} {
				a.refused("resources/directory/read", map[string]any{"uri": uri}, "no directory")
			}
			if r := a.ask("skills/list", nil); r.Error != nil || !strings.Contains(string(r.Result), `"skill://greet/SKILL.md"`) || strings.Contains(string(r.Result), "hidden.txt") {
				t.Errorf("%+v %s", r.Error, r.Result)
			}
			if text := a.prompt("greet", nil); strings.Contains(text, "hidden.txt") || strings.Contains(text, "secret.txt") {
				t.Errorf("%q", text)
			}
		})
	}
}

// TestCompletions: names and paths of skills, the words that a hint offers, and nothing of other principals.
func TestCompletions(t *testing.T) {
	t.Parallel()
	many := maps.Clone(replaytest.Skills)
	for i := range 120 {
		many[fmt.Sprintf(".claude/skills/many/f%03d.txt", i)] = "x"
	}
	many[".claude/skills/many/SKILL.md"] = "---\nname: many\ndescription: Has many files.\n---\n"
	for name, a := range skilledGuests(t, nil, many) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			complete := func(ref map[string]any, variable, value string, known map[string]any) (values []string, total int, more bool) {
				t.Helper()
				params := map[string]any{"ref": ref, "argument": map[string]any{"name": variable, "value": value}}
				if known != nil {
					params["context"] = map[string]any{"arguments": known}
				}
				r := a.ask("completion/complete", params)
				var got struct {
					Completion struct {
						Values  []string
						Total   int
						HasMore bool
					}
				}
				if err := json.Unmarshal(r.Result, &got); err != nil || r.Error != nil || got.Completion.Values == nil {
					t.Fatalf("%v: %v %+v %s", params, err, r.Error, r.Result)
				}
				return got.Completion.Values, got.Completion.Total, got.Completion.HasMore
			}
			skill := map[string]any{"type": "ref/resource", "uri": "skill://{name}/{+path}"}
			for _, c := range []struct{ variable, value, of, want string }{
				{"name", "", "", "apart deploy greet look many odd other-name quiet shelly"},
				{"name", "de", "", "deploy"},
				{"name", "x", "", ""},
				{"path", "", "deploy", "SKILL.md a%20b/notes%3F.txt logo.png scripts/go.sh"},
				{"path", "scr", "deploy", "scripts/go.sh"},
				{"path", "", "look", "SKILL.md"},
				{"path", "", "nothing", ""},
				{"path", "", "", ""},
				{"id", "", "deploy", ""},
			} {
				got, _, more := complete(skill, c.variable, c.value, map[string]any{"name": c.of})
				if strings.Join(got, " ") != c.want || more {
					t.Errorf("%+v: %v", c, got)
				}
			}
			if got, total, more := complete(skill, "path", "", map[string]any{"name": "many"}); len(got) != 100 || total != 121 || !more {
				t.Errorf("%d of %d, more %v", len(got), total, more)
			}
			prompt := func(name string) map[string]any { return map[string]any{"type": "ref/prompt", "name": name} }
			for _, c := range []struct{ name, variable, value, want string }{
				{"deploy", "arguments", "", "staging,production"},
				{"deploy", "arguments", "p", "production"},
				{"deploy", "arguments", "production ", "production patch,production minor,production major"},
				{"deploy", "arguments", "production m", "production minor,production major"},
				{"deploy", "arguments", "production minor ", ""},
				{"deploy", "other", "", ""},
				{"greet", "arguments", "", ""},
				{"commit", "arguments", "", ""},
				{"nothing", "arguments", "", ""},
				{"quiet", "arguments", "", ""},
			} {
				if got, _, more := complete(prompt(c.name), c.variable, c.value, nil); strings.Join(got, ",") != c.want || more {
					t.Errorf("%+v: %v", c, got)
				}
			}
		})
	}
}
