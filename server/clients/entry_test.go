package clients_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"codehand/server/clients"
)

var update = flag.Bool("update", false, "rewrite golden files")

// endpoints are the two ways in which a server can be reached. The query shows that nothing is escaped that needs not be.
var endpoints = map[string]clients.Endpoint{
	"none":  {URL: "http://127.0.0.1:7433/mcp", Command: "/home/you/go/bin/codehand"},
	"token": {URL: "https://tools.example.com/mcp?a=1&b=2", TokenEnv: "CODEHAND_TOKEN", Command: "/home/you/go/bin/codehand"},
}

// TestSnippetsGolden shows every snippet as it is pasted.
func TestSnippetsGolden(t *testing.T) {
	t.Parallel()
	for name, e := range endpoints {
		var b strings.Builder
		for _, s := range clients.Snippets(e) {
			fmt.Fprintf(&b, "-- %s --\nlinux: %s\nmacos: %s\nwindows: %s\nproject: %s\nnote: %s\n%s", s.ID,
				s.Files.On("linux"), s.Files.On("darwin"), s.Files.On("windows"), s.Files.Project, s.Note, s.Text)
		}
		path := filepath.Join("testdata", "snippets", name+".txt")
		want, err := os.ReadFile(path)
		if *update || os.IsNotExist(err) && os.Getenv("CI") == "" {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != string(want) {
			t.Errorf("%s differs. got:\n%s\nIf it is better now: go test ./server/clients -update, and read the diff.", path, got)
		}
	}
}

// TestSnippetsParse reads each snippet as its client does and looks for the address in it.
func TestSnippetsParse(t *testing.T) {
	t.Parallel()
	for name, e := range endpoints {
		for _, s := range clients.Snippets(e) {
			t.Run(name+"/"+s.ID, func(t *testing.T) {
				t.Parallel()
				var found []string
				switch file := s.Files.Linux; filepath.Ext(file) {
				case ".json":
					var v any
					if err := json.Unmarshal([]byte(s.Text), &v); err != nil {
						t.Fatalf("%v in:\n%s", err, s.Text)
					}
					found = values(v)
				case ".toml":
					var v any
					if err := toml.Unmarshal([]byte(s.Text), &v); err != nil {
						t.Fatalf("%v in:\n%s", err, s.Text)
					}
					found = values(v)
				case ".yaml":
					found = yamlValues(t, s.Text)
				default:
					t.Fatalf("%s has no known form", file)
				}
				if !slices.Contains(found, e.URL) {
					t.Errorf("%s is not among the values %q", e.URL, found)
				}
				all := strings.Join(found, " ")
				if token := strings.Contains(all, "CODEHAND_TOKEN") || strings.Contains(all, "${input:codehand}"); token != (e.TokenEnv != "") {
					t.Errorf("a token is named: %v, in:\n%s", token, s.Text)
				}
			})
		}
	}
}

// values are all texts in v, at any depth, with the keys.
func values(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			out = append(out, values(e)...)
		}
	case map[string]any:
		for k, e := range v {
			out = append(append(out, k), values(e)...)
		}
	}
	return out
}

// yamlValues reads the little YAML that we write: each line has two spaces for each level, and a value in the form of
// JSON, or a bare word.
func yamlValues(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(text) {
		bare := strings.TrimLeft(line, " ")
		if (len(line)-len(bare))%2 != 0 || strings.Contains(line, "\t") {
			t.Errorf("indented by an odd number of spaces, or by tabs: %q", line)
		}
		key, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(bare, "- ")), ":")
		if !ok || key == "" || value != "" && value[0] != ' ' {
			t.Errorf("no key with a value: %q", line)
		}
		value = strings.TrimSpace(value)
		var v any
		switch {
		case value == "":
		case json.Unmarshal([]byte(value), &v) == nil:
			out = append(out, values(v)...)
		case strings.Trim(value, "abcdefghijklmnopqrstuvwxyz-_") == "":
			out = append(out, value)
		default:
			t.Errorf("%q must be quoted", value)
		}
	}
	return out
}
