package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// keptExports are exported names that no other room uses, each with the reason.
var keptExports = map[string]string{
	"server/console view.Connects":                       "a page's template asks for it by that name",
	"server/console view.Manages":                        "a page's template asks for it by that name",
	"server/console limited.Amount":                      "a page's template asks for it by that name",
	"server/console limited.Says":                        "a page's template asks for it by that name",
	"server/pauses Pause.Ends":                           "a page's template asks for it by that name",
	"server/listen limitedConn.NetConn":                  "whoever asks for the peer of a socket unwraps it by that name, as a tls.Conn",
	"server/state Audit":                                 "the family of a stream that the page of an operator will read",
	"server/state Change":                                "the family of a stream that the page of an operator will read",
	"server/relay writer.FlushError":                     "net/http asks a ResponseWriter for it by that name",
	"tools/agent/models Anthropic":                       "what Options.Provider may be; here it comes from a file of settings",
	"tools/mounts/upstream web.RequiresLegacyProtocol":   "mcp-go asks a transport for it by that name",
	"tools/mounts/upstream web.SetConnectionLostHandler": "mcp-go asks a transport for it by that name",
	"tools/agent/models OpenAI":                          "what Options.Provider may be; here it comes from a file of settings",
}

func TestRuleExports(t *testing.T) {
	leaktest.OutsideGate(t, "checks the types of all rooms, which takes 25 CPU seconds")
	readHouse(t)
	c, err := checkedHouse()
	if err != nil {
		t.Fatal(err)
	}
	// Rooms for tests export what tests that are still to be written need.
	lonely := slices.DeleteFunc(c.lonelyExports(), func(name string) bool {
		room, _, _ := strings.Cut(name, " ")
		return slices.Contains(testRooms, room)
	})
	for _, text := range exportFailures(lonely, keptExports) {
		t.Error(text)
	}
}

// exportFailures says which names to unexport, and which reasons are not needed any more.
func exportFailures(lonely []string, reasons map[string]string) []string {
	var failures []string
	stale := maps.Clone(reasons)
	for _, name := range lonely {
		if reasons[name] == "" {
			failures = append(failures,
				name+" is exported and nobody outside of its room uses it: unexport or delete it; "+
					"if what comes next needs it, say so in keptExports")
		}
		delete(stale, name)
	}
	for _, name := range slices.Sorted(maps.Keys(stale)) {
		failures = append(failures, name+" is used, not exported or gone: delete its row in keptExports")
	}
	return failures
}

// lonelyExports returns the exported names, as ROOM NAME or ROOM TYPE.METHOD, that no other room uses. Tests of other
// rooms are users. What belongs to something that is used, is used with it: a type that is mentioned in it, a constant
// with its type or with another of its group, an error or a constant that its comment names, and a method that an
// interface asks for.
func (c *checked) lonelyExports() []string {
	used, selected := c.usedOutside()
	var lonely []string
	for name, pkg := range c.pkgs {
		if pkg.Name() == "main" {
			continue
		}
		mentioned := map[types.Object]bool{}
		scope := pkg.Scope()
		groups, promised := c.groupsOf(name, used), c.promisesOf(name)
		for _, n := range scope.Names() {
			o := scope.Lookup(n)
			if used[o] || promised[n] && (isError(o) || isConstant(o)) {
				used[o] = true
				mention(o, pkg, mentioned)
			}
		}
		for _, n := range scope.Names() {
			if o := scope.Lookup(n); o.Exported() && !used[o] && !mentioned[o] && !groups[o] &&
				!ofSet(o, used, mentioned) {
				lonely = append(lonely, name+" "+n)
			}
		}
		for _, m := range c.methods(name) {
			typ := receiverType(m).(*types.Named).Obj().Name()
			if m.Exported() && !used[m] && !selected[name][m.Name()] && !c.wanted(m) {
				lonely = append(lonely, name+" "+typ+"."+m.Name())
			}
		}
	}
	slices.Sort(lonely)
	return lonely
}

// ofSet says whether an object is a constant of a type of its room that is used.
func ofSet(o types.Object, used, mentioned map[types.Object]bool) bool {
	value, ok := o.(*types.Const)
	if !ok {
		return false
	}
	typ, ok := value.Type().(*types.Named)
	return ok && typ.Obj().Pkg() == o.Pkg() && (used[typ.Obj()] || mentioned[typ.Obj()])
}

// groupsOf returns the constants of a room that are declared in one group with one that is used.
func (c *checked) groupsOf(room string, used map[types.Object]bool) map[types.Object]bool {
	of := map[types.Object]bool{}
	c.declarations(room, func(d ast.Decl) {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			return
		}
		var constants []types.Object
		for _, spec := range group.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				constants = append(constants, c.info.Defs[name])
			}
		}
		if slices.ContainsFunc(constants, func(o types.Object) bool { return used[o] }) {
			for _, o := range constants {
				of[o] = true
			}
		}
	})
	return of
}

var word = regexp.MustCompile(`\w+`)

// promisesOf returns the words in the comments of a room's exported functions, methods and types.
func (c *checked) promisesOf(room string) map[string]bool {
	promised := map[string]bool{}
	promise := func(comment *ast.CommentGroup) {
		for _, w := range word.FindAllString(comment.Text(), -1) {
			promised[w] = true
		}
	}
	c.declarations(room, func(d ast.Decl) {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				promise(d.Doc)
			}
		case *ast.GenDecl:
			for n := range ast.Preorder(d) {
				if f, ok := n.(*ast.Field); ok {
					promise(f.Doc)
				}
			}
		}
	})
	return promised
}

// declarations calls f with what the files of a room declare that were checked for types.
func (c *checked) declarations(room string, f func(ast.Decl)) {
	for _, r := range c.house {
		for _, file := range r.files {
			if r.name == room && !file.test && c.builds(room, file) {
				for _, d := range file.tree.Decls {
					f(d)
				}
			}
		}
	}
}

func isConstant(o types.Object) bool {
	_, ok := o.(*types.Const)
	return ok
}

func isError(o types.Object) bool {
	i := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	return implements(o.Type(), i)
}

// usedOutside returns what the rooms use of each other, and the names after a dot in files that are not checked for
// types, tests and those of other systems, by the room that they may belong to: any but their own.
func (c *checked) usedOutside() (used map[types.Object]bool, selected map[string]map[string]bool) {
	used, selected = map[types.Object]bool{}, map[string]map[string]bool{}
	for name := range c.pkgs {
		selected[name] = map[string]bool{}
	}
	for _, r := range c.house {
		for _, f := range r.files {
			if !f.test && c.builds(r.name, f) {
				for n := range ast.Preorder(f.tree) {
					if id, ok := n.(*ast.Ident); ok {
						if o := c.info.Uses[id]; o != nil && o.Pkg() != c.pkgs[r.name] {
							used[origin(o)] = true
						}
					}
				}
				continue
			}
			imports := importsOf(f.tree)
			for n := range ast.Preorder(f.tree) {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				for name := range selected {
					selected[name][sel.Sel.Name] = selected[name][sel.Sel.Name] || name != r.name
				}
				if x, ok := sel.X.(*ast.Ident); ok {
					other, _ := strings.CutPrefix(imports[x.Name], module+"/")
					if pkg := c.pkgs[other]; pkg != nil && other != r.name {
						used[pkg.Scope().Lookup(sel.Sel.Name)] = true
					}
				}
			}
		}
	}
	return used, selected
}

// origin is what a method or a type of a generic type was declared as.
func origin(o types.Object) types.Object {
	if f, ok := o.(*types.Func); ok {
		return f.Origin()
	}
	return o
}

// importsOf returns the paths that a file imports, by the names that they have in it.
func importsOf(tree *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range tree.Imports {
		name := path.Base(imported(spec))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = imported(spec)
	}
	return names
}

// mention notes the types of a package that an object's type is made of: who may use the object has values of them.
func mention(o types.Object, pkg *types.Package, mentioned map[types.Object]bool) {
	var walk func(t types.Type)
	walk = func(t types.Type) {
		switch t := t.(type) {
		case *types.Named:
			for i := range t.TypeArgs().Len() {
				walk(t.TypeArgs().At(i))
			}
			if t.Obj().Pkg() != pkg || mentioned[t.Obj()] {
				return
			}
			mentioned[t.Obj()] = true
			walk(t.Underlying())
			for m := range t.Methods() {
				if m.Exported() {
					walk(m.Signature())
				}
			}
		case *types.Alias:
			mentioned[t.Obj()] = true
			walk(types.Unalias(t))
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					walk(f.Type())
				}
			}
		case *types.Signature:
			for v := range t.Params().Variables() {
				walk(v.Type())
			}
			for v := range t.Results().Variables() {
				walk(v.Type())
			}
		case *types.Interface:
			for m := range t.Methods() {
				walk(m.Signature())
			}
		case *types.Map:
			walk(t.Key())
			walk(t.Elem())
		case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
			walk(t.Elem())
		}
	}
	walk(o.Type())
}

// wanted says whether an interface of any room, or of what it imports, asks for a method.
func (c *checked) wanted(method *types.Func) bool {
	return slices.ContainsFunc(c.all, func(i *types.Interface) bool {
		o, _, _ := types.LookupFieldOrMethod(i, false, method.Pkg(), method.Name())
		return o != nil && implements(receiverType(method), i)
	})
}

func TestPlantedExports(t *testing.T) {
	t.Parallel()
	c := plantedTypes(t, `
-- a/a.go --
package a

// Open fails with ErrPromised. Its Mode is one of the constants.
func Open() (Handle, error) { return Handle{}, ErrPromised }

type failure struct{}

func (failure) Error() string { return "" }

var (
	ErrPromised = failure{}
	ErrSecret   = failure{}
)

type Handle struct{ Of Mentioned }

func (Handle) Used()     {}
func (Handle) Unused()   {}
func (Handle) InTest()   {}
func (Handle) Wanted()   {}
func (Handle) internal() {}

type Mentioned struct{}

type Mode int

const (
	Slow Mode = iota
	Fast
)

const (
	First  = "first"
	Second = "second"
)

const Alone = "alone"

type wants interface{ Wanted() }

func Forgotten() { Handle{}.Unused() }

func Tested() {}
-- a/a_test.go --
package a

func test() { Forgotten() }
-- b/b.go --
package b

import "codehand/a"

func use() {
	h, _ := a.Open()
	h.Used()
	_ = a.Mode(1)
	_ = a.First
}
-- b/b_test.go --
package b

import "codehand/a"

func test(h a.Handle) {
	a.Tested()
	h.InTest()
}
`)
	lonely := c.lonelyExports()
	wantFailures(t, exportFailures(lonely, nil), "a Alone is exported", "a ErrSecret is exported",
		"a Forgotten is exported", "a Handle.Unused is exported")
	reasons := map[string]string{"a Alone": "a reason", "a ErrSecret": "", "a Handle.Unused": "a reason",
		"a Tested": "a reason"}
	wantFailures(t, exportFailures(lonely, reasons), "a ErrSecret is exported", "a Forgotten is exported",
		"a Tested is used")
}
