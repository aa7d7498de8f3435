package tools

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/tools/tool"
	"codehand/tools/tooltest"
)

var update = flag.Bool("update", false, "rewrite the golden specs")

// The budget of the list, which every conversation pays for. A token is four bytes here.
const (
	maxEntryBytes = 1_600 // of one tool; half of that is usual
	maxCoreTokens = 2_700 // of the tools that are not Deferred
	maxTokens     = 9_000 // of all
)

// A property is one parameter as it is published.
type property struct {
	Type        json.RawMessage     `json:"type"`
	Description string              `json:"description"`
	Minimum     *int                `json:"minimum"`
	Items       *property           `json:"items"`
	Properties  map[string]property `json:"properties"`
}

// entry is a tool as tools/list shows it.
func entry(t *testing.T, x tool.Tool) []byte {
	t.Helper()
	traits := x.Spec.Traits
	e := struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations map[string]bool `json:"annotations"`
		Meta        map[string]any  `json:"_meta"`
	}{
		x.Spec.Name, x.Spec.Title, x.Spec.Description, x.Schema, map[string]bool{
			"readOnlyHint": traits.ReadOnly, "destructiveHint": !traits.ReadOnly && !traits.Additive,
			"idempotentHint": traits.Idempotent, "openWorldHint": !traits.Local,
		},
		map[string]any{"anthropic/maxResultSizeChars": 100_000, "anthropic/alwaysLoad": true},
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, x := range All(Engines{}) {
		s := x.Spec
		if !regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`).MatchString(s.Name) {
			t.Errorf("%s: a name has at most 40 of [a-z0-9_]; some clients refuse the whole list otherwise", s.Name)
		}
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			if other := seen[name]; other != "" {
				t.Errorf("%s: the name %s is that of %s", s.Name, name, other)
			}
			seen[name] = s.Name
		}
		if n := len(strings.Fields(s.Hint)); n < 3 || n > 10 {
			t.Errorf("%s: the hint has %d words, not 3 to 10", s.Name, n)
		}
		if n := len(strings.Fields(s.Title)); n < 2 || n > 3 {
			t.Errorf("%s: the title has %d words, not two or three", s.Name, n)
		}
	}
}

func TestClientsTakeEveryTool(t *testing.T) {
	t.Parallel()
	for _, x := range All(Engines{}) {
		if err := tooltest.Check(x); err != nil {
			t.Errorf("%s: %v", x.Spec.Name, err)
		}
	}
}

func TestDescriptions(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, x := range All(Engines{}) {
		known[x.Spec.Name] = true
	}
	for _, x := range All(Engines{}) {
		d := x.Spec.Description
		if len(d) > 2000 || !strings.HasSuffix(d, ".") {
			t.Errorf("%s: a description has at most 2,000 bytes, which is where clients cut, and ends with a full stop", x.Spec.Name)
		}
		if strings.ContainsFunc(d, func(r rune) bool { return r < ' ' && r != '\n' || r > '~' }) {
			t.Errorf("%s: the description has characters that some clients show wrong", x.Spec.Name)
		}
		for _, word := range regexp.MustCompile(`[a-z]+(_[a-z]+)+`).FindAllString(d, -1) {
			if !known[word] && !strings.Contains(string(x.Schema), `"`+word+`"`) {
				t.Errorf("%s: the description names %s, which is neither a tool nor one of its parameters or their values", x.Spec.Name, word)
			}
		}
		if raw, err := os.ReadFile(x.Spec.Name + ".md"); err != nil || strings.TrimSpace(string(raw)) != d {
			t.Errorf("%s: the description is not that of %s.md (%v)", x.Spec.Name, x.Spec.Name, err)
		}
	}
}

func TestTraits(t *testing.T) {
	t.Parallel()
	for _, x := range All(Engines{}) {
		traits := x.Spec.Traits
		if traits.ReadOnly && (traits.Private || traits.Additive) {
			t.Errorf("%s: what changes nothing is neither private nor additive", x.Spec.Name)
		}
		if traits.Parallel && !traits.ReadOnly {
			t.Errorf("%s: only readers may run side by side", x.Spec.Name)
		}
		if x.Spec.Name == "agent" || x.Spec.Name == "send_message" {
			continue // sub-agents work through calls that are checked one by one; a command line is for one person alone
		}
		if _, _, dispatches := x.Forward([]byte(x.Spec.Example)); x.Spec.Scope == tool.ScopeRead && !traits.ReadOnly && !traits.Private && !dispatches {
			t.Errorf("%s: a token for reading must not reach a tool that writes: set Traits.ReadOnly or Private, or another Scope", x.Spec.Name)
		}
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, x := range All(Engines{}) {
		var root map[string]json.RawMessage
		if err := json.Unmarshal(x.Schema, &root); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"anyOf", "oneOf", "allOf", "not", "if", "$ref"} {
			if root[key] != nil {
				t.Errorf("%s: %s at the root is refused by some model providers", x.Spec.Name, key)
			}
		}
		if string(root["type"]) != `"object"` || string(root["additionalProperties"]) != "false" {
			t.Errorf("%s: the root is not a closed object", x.Spec.Name)
		}
		var all map[string]property
		if err := json.Unmarshal(root["properties"], &all); err != nil {
			t.Fatal(err)
		}
		checkProperties(t, x.Spec.Name, all)
	}
}

func checkProperties(t *testing.T, name string, all map[string]property) {
	t.Helper()
	for key, p := range all {
		at := name + "." + key
		var one string
		if json.Unmarshal(p.Type, &one) != nil {
			t.Errorf("%s: a union of types is refused by some model providers: %s", at, p.Type)
		}
		if n := len([]rune(p.Description)); n == 0 || n > 80 {
			t.Errorf("%s: the description has %d characters, not 1 to 80", at, n)
		}
		if one == "integer" && p.Minimum == nil {
			t.Errorf("%s: an integer needs a minimum", at)
		}
		if one == "array" && p.Items == nil {
			t.Errorf("%s: an array without items is refused by some model providers", at)
		}
		if p.Items != nil {
			checkProperties(t, at, p.Items.Properties)
		}
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	core, all := 0, 0
	for _, x := range All(Engines{}) {
		n := len(entry(t, x))
		if n > maxEntryBytes {
			t.Errorf("%s takes %d bytes of the list, at most %d: every conversation pays for them; shorten the .md or its parameters", x.Spec.Name, n, maxEntryBytes)
		}
		if all += n; !x.Spec.Deferred {
			core += n
		}
	}
	if tokens := core / 4; tokens > maxCoreTokens {
		t.Errorf("the core takes %d tokens, at most %d: make a tool Deferred, or shorten what is there", tokens, maxCoreTokens)
	}
	if tokens := all / 4; tokens > maxTokens {
		t.Errorf("all tools take %d tokens, at most %d", tokens, maxTokens)
	}
}

// A change of a name, a schema or a description is a change of what models read, so it must be seen.
func TestSpecs(t *testing.T) {
	t.Parallel()
	for _, x := range All(Engines{}) {
		var b bytes.Buffer
		if err := json.Indent(&b, entry(t, x), "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		path := filepath.Join("..", "testdata", "specs", x.Spec.Name+".json")
		want, err := os.ReadFile(path)
		if missing := os.IsNotExist(err); *update || missing && os.Getenv("CI") == "" {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: go test ./tools -update writes it", err)
		} else if !bytes.Equal(want, b.Bytes()) {
			t.Errorf("%s is not what tools/list says: go test ./tools -update, then read the difference\n%s", path, b.Bytes())
		}
	}
}

// unused are codes that belong to what does not exist yet. Each leaves this list with its first use.
var unused = map[string]string{}

// A declared code that no tool returns is an empty promise in the documents; a code that is not declared is in no
// document.
func TestCodes(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	file, err := parser.ParseFile(token.NewFileSet(), "tool/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && fmt.Sprint(v.Type) == "Code" {
			declared[v.Names[0].Name] = true
		}
		return true
	})
	used := map[string]bool{}
	for _, dir := range []string{".", "../server"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "tool/codes.go" {
				return err
			}
			return findCodes(t, path, used)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for code := range declared {
		if !used[code] && unused[code] == "" {
			t.Errorf("nothing gives tool.%s: delete it, or say in the list of unused ones what it waits for", code)
		}
		if used[code] && unused[code] != "" {
			t.Errorf("tool.%s is used: take it off the list of unused ones", code)
		}
	}
}

// TestCodesPage: docs/errors.md has one item for each code, with what it means and what to do, and no other.
func TestCodesPage(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("tool/codes.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for item := range strings.SplitSeq(string(page), "\n- ") {
		item, _, _ = strings.Cut(item, "\n\n")
		name, text, ok := strings.Cut(item, "`: ")
		if !ok || !strings.HasPrefix(name, "`") {
			continue
		}
		said[name[1:]] = len(strings.Fields(text))
	}
	for _, m := range regexp.MustCompile(`Code += "([A-Z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		if said[m[1]] < 4 {
			t.Errorf("docs/errors.md does not say what %s means and what to do then", m[1])
		}
		delete(said, m[1])
	}
	for name := range said {
		t.Errorf("docs/errors.md has %s, which is no code", name)
	}
}

// findCodes notes every name that a file takes from tool, or in tool from itself, and fails for a code made of a string.
func findCodes(t *testing.T, path string, used map[string]bool) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	inTool := file.Name.Name == "tool"
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if from, ok := n.X.(*ast.Ident); ok && from.Name == "tool" {
				used[n.Sel.Name] = true
			}
		case *ast.Ident:
			if inTool {
				used[n.Name] = true
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Code" || len(n.Args) != 1 {
				return true
			}
			if _, literal := n.Args[0].(*ast.BasicLit); literal {
				t.Errorf("%s makes a code of a string: declare it in codes.go", path)
			}
		}
		return true
	})
	return nil
}

// A caller that changes the table does not change it for others.
func TestAllIsACopy(t *testing.T) {
	t.Parallel()
	all := All(Engines{})
	slices.Reverse(all)
	if All(Engines{})[0].Spec.Name != "read_file" {
		t.Error("the table can be changed from outside")
	}
}
