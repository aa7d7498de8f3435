package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		if room != "server" {
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

// otherFiles are the files of tools that are not a tool: its documentation, its table, and refusals of several tools.
var otherFiles = []string{"doc.go", "all.go", "refusals.go"}

func TestToolFiles(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, x := range tools.All() {
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
	for _, r := range readHouse(t) {
		if r.name == "tools" {
			checkStrangers(t, r)
		}
	}
}

// checkStrangers fails for a top-level name of one tool file that another file uses. Only all.go may, and only the
// variable of the tool.
func checkStrangers(t *testing.T, r *room) {
	var trees []*ast.File
	fset := token.NewFileSet()
	for _, f := range r.files {
		if f.test {
			continue
		}
		tree, err := parser.ParseFile(fset, f.name, f.source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
	}
	// What other packages have is not of interest, so they are empty, and the errors that follow are dropped.
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	pkg, _ := config.Check(r.name, fset, trees, &info)
	for use, object := range info.Uses {
		from, at := fset.Position(object.Pos()).Filename, fset.Position(use.Pos())
		if object.Parent() != pkg.Scope() || from == at.Filename || slices.Contains(otherFiles, from) {
			continue
		}
		if at.Filename != "all.go" || object.Name() != lowerCamel(strings.TrimSuffix(from, ".go")) {
			t.Errorf("tools/%s uses %s of %s: what two tools share goes to a room below tools", at, object.Name(), from)
		}
	}
}

// emptyPackages stands in for every import.
type emptyPackages struct{}

func (emptyPackages) Import(p string) (*types.Package, error) {
	pkg := types.NewPackage(p, path.Base(p))
	pkg.MarkComplete()
	return pkg, nil
}

// lowerCamel makes readFile of read_file.
func lowerCamel(name string) string {
	parts := strings.Split(name, "_")
	for i, part := range parts[1:] {
		parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
	}
	return strings.Join(parts, "")
}
