package pipeline

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/permission"
	"codehand/tools/tool"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	long := "/w/" + strings.Repeat("é", 300)
	path := func(p string) []permission.Target { return []permission.Target{{Kind: permission.Path, Value: p}} }
	for _, c := range []struct {
		name    string
		input   any
		targets []permission.Target
		want    Summary
	}{
		{"path", map[string]string{"content": `"file_path":"/w/b"`, "file_path": "/w/a.go"}, path("/w/a.go"), Summary{Text: "file_path=/w/a.go", Brief: "file_path=/w/a.go"}},
		{"path of no parameter", map[string]string{"x": "y"}, path("/w"), Summary{Text: "path=/w", Brief: "path=/w"}},
		{"pattern", map[string]string{"path": "/w", "pattern": "a\tb"}, append(path("/w"), path("/w")...), Summary{Text: "pattern=a\tb path=/w", Brief: "pattern=a\tb path=/w"}},
		{"host", nil, []permission.Target{{Kind: permission.Domain, Value: "x.org"}}, Summary{Text: "host=x.org", Brief: "host=x.org"}},
		{"name", nil, []permission.Target{{Kind: permission.Name, Value: "deploy"}}, Summary{Text: "name=deploy", Brief: "name=deploy"}},
		{
			"command", nil, []permission.Target{{Kind: permission.Command, Value: "A=b ls \x1b[1m\u202e"}},
			Summary{Text: `command=A=[masked] ls \x1b[1m\u202e`, Brief: "command=sha256:" + digest([]byte("A=b ls \x1b[1m\u202e")) + " ls"},
		},
		{"long", map[string]string{"file_path": long}, path(long), Summary{Text: "file_path=" + long[:3] + strings.Repeat("é", 186) + "…", Brief: "file_path=" + long[:3] + strings.Repeat("é", 186) + "…"}},
		{"secret in a path", nil, path("/w/ghp_0123456789abcdefghijklmnopqrstuvwxyz"), Summary{Text: "path=/w/[masked github-token]", Brief: "path=/w/[masked github-token]"}},
		{"nothing", map[string]string{"content": "secret"}, nil, Summary{}},
	} {
		input, err := json.Marshal(c.input)
		if err != nil {
			t.Fatal(err)
		}
		call := &call{bound: tool.Call{Input: input, Targets: c.targets}}
		if got := summarize(&call.bound); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestFirstWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ls -l": "ls", "A=[masked] B=[masked] /bin/sh -c x": "/bin/sh", "": "", "$(echo x) y": "", `"my program" x`: "",
		strings.Repeat("x", 65): "", filepath.Join(".", "a.sh"): "a.sh",
	} {
		if got := firstWord(in); got != want {
			t.Errorf("firstWord(%q) = %q, want %q", in, got, want)
		}
	}
}

func BenchmarkSummarize(b *testing.B) {
	c := &call{bound: tool.Call{
		Input:   []byte(`{"command":"cd /w && go test ./... 2>&1 | tail -20","timeout":120000}`),
		Targets: []permission.Target{{Kind: permission.Command, Value: "cd /w && go test ./... 2>&1 | tail -20"}},
	}}
	for b.Loop() {
		summarize(&c.bound)
	}
}
