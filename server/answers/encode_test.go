package answers

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/tool"
)

// What Encode writes by itself is what mcp-go and encoding/json would write.
func TestEncode(t *testing.T) {
	t.Parallel()
	all := tool.Meta{
		Version: "v<1>", Files: []tool.FileChange{{Path: "/w/a&b", Op: "change", Before: "1", After: "2"}}, Job: &tool.Job{ID: "job_a", State: "failed", Exit: -1},
		Sandbox: &tool.Confinement{Level: 1}, Data: json.RawMessage(`{"x":[1,2]}`), Kept: &tool.Kept{Path: "/k", Bytes: 1 << 40, Lines: 2, Shown: 3},
		Decision: &tool.Decided{Verdict: "allow", Rule: `Bash("x")`, Asked: true}, Millis: 12,
	}
	timed := Result("x", tool.Result{Text: "a", Meta: tool.Meta{Millis: 12}})
	if got, err := Encode(timed); err != nil || !strings.Contains(string(got), `"codehand/ms":12`) {
		t.Errorf("%v: %s", err, got)
	}
	texts := []string{"", "one\ntwo\t\"<a>\\ \u2028 é", "\x00\b\f\r"}
	modern := Result("x", tool.Result{Text: "a", Meta: all})
	Decorate(modern, true, mcp.Implementation{Name: "codehand", Version: "1"})
	for name, r := range map[string]*mcp.CallToolResult{
		"empty":    {},
		"text":     Result("x", tool.Result{Text: texts[1]}),
		"controls": Result("x", tool.Result{Text: texts[2], Failed: tool.Timeout}),
		"all":      Result("x", tool.Result{Text: texts[0], Meta: all}),
		"image":    Result("x", tool.Result{Text: "a", Media: []tool.Media{{MIME: "image/png", Data: []byte{1, 2, 3}}}}),
		"bare":     Result("x", tool.Result{Meta: tool.Meta{Decision: &tool.Decided{Verdict: "deny"}, Job: &tool.Job{}}}),
		"refusal":  Refusal(tool.Refuse(tool.Busy, "%s", texts[1]), "x"),
		"modern":   modern,
		"token":    {Result: mcp.Result{Meta: &mcp.Meta{ProgressToken: 1, AdditionalFields: map[string]any{"a": "b"}}}},
		"annotated": {Content: []mcp.Content{mcp.TextContent{
			Type: mcp.ContentTypeText, Text: "a", Annotated: mcp.Annotated{Annotations: &mcp.Annotations{Audience: []mcp.Role{mcp.RoleUser}}},
		}}},
	} {
		got, err := Encode(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Content == nil {
			r.Content = []mcp.Content{}
		}
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var g, w any
		if err := json.Unmarshal(got, &g); err != nil {
			t.Fatalf("%s: %v: %s", name, err, got)
		}
		if err := json.Unmarshal(want, &w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(g, w) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}
