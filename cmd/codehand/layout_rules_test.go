package main

import (
	"go/ast"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools"
)

// entrances are rooms that end the process in their init where it is no server, but was started by one inside a
// sandbox: to wait for the inits of all other packages takes longer than what it does.
var entrances = []string{"tools/sandbox/kernel", "tools/sandbox/probe"}

func TestHouseRules(t *testing.T) {
	for _, r := range readHouse(t) {
		for _, f := range r.files {
			names := map[string]string{} // name in the file -> path
			for _, spec := range f.tree.Imports {
				name := path.Base(imported(spec))
				if spec.Name != nil {
					name = spec.Name.Name
				}
				names[name] = imported(spec)
			}
			for _, d := range f.tree.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if ok && fn.Recv == nil && fn.Name.Name == "init" && !slices.Contains(entrances, r.name) {
					t.Errorf("%s: no init; make it in a constructor, and hand it down", r.at(f, fn))
				}
			}
			for n := range ast.Preorder(f.tree) {
				if call, ok := n.(*ast.CallExpr); ok {
					if text := forbiddenCall(r.name, f.test || slices.Contains(testRooms, r.name), names, call); text != "" {
						t.Errorf("%s: %s", r.at(f, call), text)
					}
				}
			}
		}
	}
}

// forbiddenCall says what is wrong with a call, and what to do.
func forbiddenCall(room string, test bool, imports map[string]string, call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	from := ""
	if x, ok := sel.X.(*ast.Ident); ok {
		from = imports[x.Name]
	}
	command := strings.HasPrefix(room, "cmd/")
	switch name := sel.Sel.Name; {
	case from == "time" && name == "Sleep":
		if test && imports["synctest"] == "" {
			return "no time.Sleep in a test: use testing/synctest, a channel, or wait for a process's exit or line"
		}
	case test:
	case from == "context" && name == "WithValue", name == "Value" && len(call.Args) == 1 && isContext(sel.X):
		if room != "server/mcpgo" {
			return "no values in a context; pass it as an argument"
		}
	case from == "os" && slices.Contains([]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}, name):
		if !command && room != "server/config" && room != "tools/sandbox" && room != "tools/sandbox/probe" {
			return "the environment is read by server/config; take a setting as an argument"
		}
	case from == "fmt" && strings.HasPrefix(name, "Print"), from == "log" && isLogging(name):
		if !command {
			return "standard output is the wire and the log is a *slog.Logger; return the text, or take the logger as an argument"
		}
	}
	return ""
}

func isLogging(name string) bool {
	return strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Panic")
}

// isContext guesses by its name whether an expression is a context.
func isContext(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.HasSuffix(strings.ToLower(x.Name), "ctx")
	case *ast.SelectorExpr:
		return isContext(x.Sel)
	case *ast.CallExpr:
		sel, ok := x.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Context"
	}
	return false
}

// otherFiles are the files of tools that are not a tool: its documentation, its table, what the tools are handed, and
// refusals of several tools.
var otherFiles = []string{"doc.go", "all.go", "engines.go", "refusals.go"}

func TestToolFiles(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, x := range tools.All(tools.Engines{}) {
		names[x.Spec.Name] = true
	}
	for name := range names {
		for _, p := range []string{"tools/" + name + ".go", "tools/" + name + ".md", "testdata/specs/" + name + ".json",
			"testdata/sessions/" + name + "/*.txtar"} {
			if len(glob(t, p)) == 0 {
				t.Errorf("the tool %s has no %s: write it (go test ./tools ./server ./cmd/codehand -update writes specs and answers)", name, p)
			}
		}
	}
	for _, p := range []string{"tools/*.go", "tools/*.md", "testdata/specs/*", "testdata/sessions/*"} {
		for _, base := range glob(t, p) {
			name := strings.TrimSuffix(base, filepath.Ext(base))
			if !names[name] && !slices.Contains(otherFiles, base) && !strings.HasSuffix(base, "_test.go") {
				t.Errorf("%s/%s belongs to no tool of tools.All(): add its line to tools/all.go, rename it, or delete it; what tools share goes to a room below tools: wording, viewing, editing, history, running, planning",
					path.Dir(p), base)
			}
		}
	}
}

// glob returns the last elements of the paths below the module that match.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found
}

func TestToolsShareNothing(t *testing.T) {
	leaktest.OutsideGate(t, "checks the types of all rooms, which takes 25 CPU seconds")
	readHouse(t)
	c, err := checkedHouse()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range c.sharedByTools() {
		t.Error(text)
	}
}

// sharedByTools finds top-level names of one tool file that another file uses. Only all.go may, and only the name that
// the tool is made by.
func (c *checked) sharedByTools() []string {
	var failures []string
	for _, r := range c.house {
		for _, f := range r.files {
			if r.name != "tools" || f.test {
				continue
			}
			for n := range ast.Preorder(f.tree) {
				id, ok := n.(*ast.Ident)
				if !ok || c.info.Uses[id] == nil || c.info.Uses[id].Parent() != c.pkgs["tools"].Scope() {
					continue
				}
				from := filepath.Base(positions.Position(c.info.Uses[id].Pos()).Filename)
				makes := f.name == "all.go" && id.Name == lowerCamel(strings.TrimSuffix(from, ".go"))
				if from != f.name && !makes && !slices.Contains(otherFiles, from) {
					failures = append(failures, r.at(f, id)+" uses "+id.Name+" of "+from+": what two tools share goes to a "+
						"room below tools")
				}
			}
		}
	}
	return failures
}

// lowerCamel makes readFile of read_file.
func lowerCamel(name string) string {
	parts := strings.Split(name, "_")
	for i, part := range parts[1:] {
		parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
	}
	return strings.Join(parts, "")
}

func TestPlantedTools(t *testing.T) {
	t.Parallel()
	c := plantedTypes(t, `
-- tools/all.go --
package tools

var all = []string{readFile, shared}
-- tools/read_file.go --
package tools

var readFile = refusal + own

const own, shared = "own", "shared"
-- tools/refusals.go --
package tools

const refusal = "refused"
-- tools/write_file.go --
package tools

var writeFile = shared

func f(own string) string { return own }
`)
	wantFailures(t, c.sharedByTools(), "tools/all.go:3 uses shared of read_file.go: what two tools share goes to a room",
		"tools/write_file.go:3 uses shared of read_file.go")
}
