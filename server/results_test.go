package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/filestate/leaktest"
	"codehand/server/clients"
	"codehand/server/replaytest"
	"codehand/tools"
	"codehand/tools/tool"
)

// firstName is a name by which clients of a profile call themselves.
func firstName(profile string) string {
	names := append(clients.NamesOf(profile), "somebody") // whom no profile but the default one knows
	return strings.TrimSuffix(names[0], "*")
}

// TestResultsFitEveryClient: 1 MB from each tool that can give as much arrives on the wire within the characters, bytes and
// lines of the client that says its name, and of the tool; the path is on the first line, and the file is whole.
func TestResultsFitEveryClient(t *testing.T) {
	t.Parallel()
	caps := map[string]int{"wide": tool.DefaultMaxRunes}
	for _, x := range tools.All(tools.Engines{}) {
		caps[x.Spec.Name] = x.Spec.MaxRunes
	}
	for _, name := range leaktest.Some(4, clients.Names()) {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/", modern), func(t *testing.T) {
				t.Parallel()
				who := firstName(name)
				profile := clients.Find(who)
				if profile.Name != name {
					t.Fatalf("%q finds %s", who, profile.Name)
				}
				f := start(t, setup{client: who, modern: modern, make: allAnd(wide())})
				whole := replaytest.LayBig(t, f.work)
				a := guest{t, modern, func(method string, params map[string]any) replaytest.Reply {
					r, err := f.Request(method, params)
					must(t, err)
					return r
				}}
				for _, c := range [][3]string{
					{"run_shell", `{"command":"cat big.txt"}`, whole},
					{"grep_search", `{"pattern":"line","output_mode":"content","head_limit":0}`, ""},
					{"wide", `{"text":"` + strings.Repeat("汉 \u200b", 150) + `\n"}`, ""},
				} {
					got := a.call(c[0], c[1])
					text, k := got.Content[0].Text, got.Meta.Result
					if path := regexp.MustCompile(`Full output: (.+) Read`).FindStringSubmatch(text); profile.NoMeta && path != nil {
						if info, err := os.Stat(path[1]); k != nil || err != nil {
							t.Fatalf("%s: %+v, %v", c[0], k, err)
						} else {
							must(t, json.Unmarshal([]byte(replaytest.AsJSON(t, "path", path[1], "bytes", info.Size())), &k))
						}
					}
					if k == nil {
						t.Fatalf("%s: nothing was kept of %.300q", c[0], text)
					}
					first, _, _ := strings.Cut(text, "\n")
					if !strings.HasPrefix(first, "Output too large (") || !strings.Contains(first, k.Path) {
						t.Errorf("%s: first line %q", c[0], first)
					}
					most := min(profile.Runes, caps[c[0]])
					runes, bytes, lines := utf8.RuneCountInString(text), len(text), strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1
					small := runes < most/2 && profile.Lines == 0 && c[0] != "run_shell" // whose output is shown by lines
					if small || runes > most || profile.Bytes > 0 && bytes > profile.Bytes || profile.Lines > 0 && lines > profile.Lines {
						t.Errorf("%s: %d characters, %d bytes, %d lines; allowed are %d, %d, %d", c[0], runes, bytes, lines, most, profile.Bytes, profile.Lines)
					}
					kept, err := os.ReadFile(k.Path)
					if err != nil || int64(len(kept)) != k.Bytes || c[2] != "" && string(kept) != c[2] {
						t.Errorf("%s: kept are %d bytes (%v)", c[0], len(kept), err)
					}
					for path, mode := range map[string]os.FileMode{k.Path: 0o600, filepath.Dir(k.Path): 0o700 | os.ModeDir} {
						if info, err := os.Stat(path); err != nil || info.Mode() != mode {
							t.Errorf("%s: %v (%v)", path, info.Mode(), err)
						}
					}
				}
			})
		}
	}
}

// wide is a tool that says a word over and over: 1,000 times.
func wide() tool.Tool {
	return fixtureTool("wide", tool.Traits{ReadOnly: true, Parallel: true, Local: true}, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
		return tool.Result{Text: strings.Repeat(in.Text, 1_000)}, nil
	})
}

// TestTenAtOnce: ten calls that arrive together show at most 200,000 characters together, whether the tool keeps its text
// or pages. What was cut says where the whole is; a page is shorter instead, and says how to go on.
func TestTenAtOnce(t *testing.T) {
	t.Parallel()
	calls := map[string]func(i int) string{
		"read_file": func(i int) string { return fmt.Sprintf(`{"file_path":"f%d.txt"}`, i) },
		"wide":      func(i int) string { return fmt.Sprintf(`{"text":"%s\n"}`, strings.Repeat(strconv.Itoa(i), 39)) },
	}
	lay := func(work string) {
		for i := range 10 {
			must(t, os.WriteFile(filepath.Join(work, fmt.Sprintf("f%d.txt", i)), []byte(strings.Repeat(strings.Repeat(strconv.Itoa(i), 99)+"\n", 390)), 0o644))
		}
	}
	cut := map[string]*regexp.Regexp{
		"read_file": regexp.MustCompile(`^PARTIAL view: lines 1-\d+ of 390 \(limit: [\d,]+ characters\)\. Continue with offset=\d+, or use grep_search\.\n`),
		"wide":      regexp.MustCompile(`^Output too large \(.*\)\. Full output: (.+?) Read it with read_file offset/limit or grep_search\.(?: The other results of this turn leave no room for it; called on its own it is shown\.)?\n`),
	}
	check := func(t *testing.T, name string, texts []string) {
		t.Helper()
		total, whole := 0, 0
		for _, text := range texts {
			total += utf8.RuneCountInString(text)
			m := cut[name].FindStringSubmatch(text)
			if m == nil {
				if len(text) < 39_000 {
					t.Errorf("%.200q", text)
				}
				whole++
				continue
			}
			if len(m) > 1 {
				kept, err := os.ReadFile(m[1])
				if err != nil || len(kept) != 40_000 || len(text) > 2_500 {
					t.Errorf("%s holds %d bytes (%v); shown are %d", m[1], len(kept), err, len(text))
				}
			}
		}
		// A page claims the most that it could have before it is made, so a fourth may find less room than there will be.
		if len(texts) != 10 || total > 200_000 || whole < 3 || whole > 4 {
			t.Errorf("%d results have %d characters, %d are whole", len(texts), total, whole)
		}
	}
	for name, args := range calls {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint("stdio/", name, "/", modern), func(t *testing.T) {
				t.Parallel()
				arrived := make(chan struct{})
				hold := fixtureTool("hold", tool.Traits{Private: true, Local: true}, func(context.Context, tool.Env, word) (tool.Result, error) {
					<-arrived // until then no call passes the gate, and none of the ten is answered
					return tool.Result{Text: "held"}, nil
				})
				f := start(t, setup{client: "claude-code", modern: modern, make: allAnd(wide(), hold)})
				lay(f.work)
				meta := `"x":1`
				if modern {
					meta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"claude-code","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
				}
				var all strings.Builder
				add := func(i int, name, args string) {
					fmt.Fprintf(&all, `{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s}}}`+"\n", i, name, args, meta)
				}
				add(10, "hold", `{"text":"x"}`)
				for i := range 10 {
					add(i, name, args(i))
				}
				// What answers at once has arrived behind them.
				fmt.Fprintf(&all, `{"jsonrpc":"2.0","id":"last","method":"tools/list","params":{"_meta":{%s}}}`, meta)
				must(t, f.Send(all.String()))
				var texts []string
				for len(texts) < 10 {
					l, err := f.Receive()
					must(t, err)
					if strings.Contains(string(l), `"id":"last"`) {
						close(arrived)
						continue
					}
					if strings.Contains(string(l), `"id":"c10"`) {
						continue
					}
					text, failed := replaytest.HTTPReply{Answer: string(l)}.Text()
					if failed || text == "" {
						t.Fatalf("%.500s", l)
					}
					texts = append(texts, text)
				}
				check(t, name, texts)
			})
		}
	}
}

// TestReadsInARow: reads that follow one another are whole, however many, and what is read can be edited; the fifth ended
// in a preview, and the edit in FILE_NOT_READ. What a read that a full turn shortened has shown counts as read, too.
func TestReadsInARow(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		f := start(t, setup{client: "claude-code", modern: modern})
		for i := range 20 {
			text := fmt.Sprintf("first %d\n", i) + strings.Repeat(strings.Repeat("x", 99)+"\n", 380) + "last\n"
			must(t, os.WriteFile(filepath.Join(f.work, fmt.Sprintf("f%d.txt", i)), []byte(text), 0o644))
		}
		for i := range 10 {
			if text := f.Must(t, "read_file", fmt.Sprintf(`{"file_path":"f%d.txt"}`, i)); !strings.Contains(text, "382\tlast") {
				t.Fatalf("modern %t: file %d: %.200q", modern, i, text)
			}
			edit := fmt.Sprintf(`{"file_path":"f%d.txt","old_string":"last","new_string":"end"}`, i)
			if text := f.Must(t, "edit_file", edit); strings.HasPrefix(text, "! ") {
				t.Errorf("modern %t: an edit of file %d: %.200q", modern, i, text)
			}
		}
	}
}

// TestPlainResults is a property of all tools, on the wire in both eras: whatever is called, answers and errors have one
// text at most, no structuredContent, no resource link, and no annotations, so no audience.
func TestPlainResults(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		f := start(t, setup{modern: modern})
		replaytest.LayBig(t, f.work)
		args := map[string][]string{
			"read_file": {`{"file_path":"big.txt"}`, `{"file_path":"none"}`}, "write_file": {`{"file_path":"new.txt","content":"x\n"}`},
			"edit_file": {`{"file_path":"new.txt","old_string":"x","new_string":"y"}`}, "multi_edit": {`{"edits":[{"file_path":"new.txt","old_string":"y","new_string":"z"}]}`},
			"list_files": {`{"pattern":"*"}`}, "grep_search": {`{"pattern":"line","output_mode":"content","head_limit":0}`},
			"run_shell": {`{"command":"cat big.txt"}`, `{"command":"cat big.txt; exit 3"}`, `{"command":"true","run_in_background":true}`},
		}
		for _, x := range tools.All(tools.Engines{}) {
			for _, in := range append(args[x.Spec.Name], `{}`, `{"unknown":1}`) {
				r, err := f.Request("tools/call", map[string]any{"name": x.Spec.Name, "arguments": json.RawMessage(in)})
				must(t, err)
				if r.Error != nil && r.Error.Code == mcp.MISSING_REQUIRED_CLIENT_CAPABILITY && x.Spec.Name == "ask_user_question" && modern {
					continue // it has no result there, for a client that takes no questions
				}
				var result map[string]json.RawMessage
				var content []map[string]json.RawMessage
				if err := json.Unmarshal(r.Result, &result); err != nil {
					t.Fatalf("%s %s: %v %+v", x.Spec.Name, in, err, r.Error)
				}
				must(t, json.Unmarshal(result["content"], &content))
				if len(content) != 1 || string(content[0]["type"]) != `"text"` || len(content[0]) != 2 {
					t.Errorf("%s %s: content %.300s", x.Spec.Name, in, result["content"])
				}
				for key := range result {
					if key != "content" && key != "_meta" && key != "isError" && key != "resultType" {
						t.Errorf("%s %s has %s", x.Spec.Name, in, key)
					}
				}
			}
		}
	}
}
