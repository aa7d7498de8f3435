package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The limits of types hold for all rooms. Rows of server and of the rooms below it go when their types are taken apart;
// the other rooms are good as they are, and what they have today may stay.
var (
	manyFields = limit{
		name: "fields", most: 15,
		advice: "%s has %d fields, at most %d: what changes together, or is made at another time, is a struct of " +
			"its own",
	}
	manyMethods = limit{
		name: "methods", most: 25,
		advice: "%s has %d methods, at most %d: it is several things, so give each its own type",
	}
	manyNamesakes = limit{
		name: "namesakes", most: 3,
		advice: "%s is the name of %d methods, at most %d: give the verb its object, as beginAudit (those of an " +
			"interface " +
			"do not count)",
	}
)

func TestRulesTypes(t *testing.T) {
	house := readHouse(t)
	manyFields.check(t, fieldCounts(house))
	manyMethods.check(t, methodCounts(house))
	checked, err := checkedHouse()
	if err != nil {
		t.Fatal(err)
	}
	manyNamesakes.check(t, checked.namesakes())
}

// fieldCounts counts the fields of every struct of the product, by what is declared at the top of the file around it.
func fieldCounts(house []*room) map[string]int {
	counts := map[string]int{}
	for _, r := range house {
		for _, f := range r.files {
			if f.test {
				continue
			}
			for _, d := range f.tree.Decls {
				function, in := false, ""
				for n := range ast.Preorder(d) {
					switch n := n.(type) {
					case *ast.FuncDecl:
						function, in = true, n.Name.Name
					case *ast.ValueSpec:
						if !function {
							in = n.Names[0].Name
						}
					case *ast.TypeSpec:
						if !function {
							in = n.Name.Name
						}
					case *ast.StructType:
						key := r.name + " " + in
						counts[key] = max(counts[key], n.Fields.NumFields())
					}
				}
			}
		}
	}
	return counts
}

// methodCounts counts the methods of every type of the product, on all systems.
func methodCounts(house []*room) map[string]int {
	counts := map[string]int{}
	for key := range methodsOf(house) {
		counts[key.room+" "+key.typ]++
	}
	return counts
}

type methodKey struct{ room, typ, name string }

func methodsOf(house []*room) map[methodKey]bool {
	methods := map[methodKey]bool{}
	for _, r := range house {
		for _, f := range r.files {
			for _, d := range f.tree.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && !f.test {
					methods[methodKey{r.name, receiverOf(fn), fn.Name.Name}] = true
				}
			}
		}
	}
	return methods
}

// A checked house is one whose product was checked for types, as it is on one system.
type checked struct {
	house []*room
	pkgs  map[string]*types.Package // by the name of the room
	info  *types.Info               // of all rooms
	all   []*types.Interface        // those that methods are made for
	local map[*types.Interface]string
	base  types.Importer
	files map[string][]string // of a room: what the system builds; nil: all
	errs  []error
}

// check checks the types of rooms. Packages of other modules come from base.
func check(house []*room, files map[string][]string, base types.Importer) (*checked, error) {
	c := &checked{
		house: house, pkgs: map[string]*types.Package{}, local: map[*types.Interface]string{}, base: base, files: files,
		info: &types.Info{
			Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Types: map[ast.Expr]types.TypeAndValue{},
		},
	}
	for _, r := range house {
		if _, err := c.Import(module + "/" + r.name); err != nil {
			return nil, err
		}
	}
	c.findInterfaces()
	return c, errors.Join(c.errs...)
}

// Import makes a checked house an importer: of its rooms, which it checks first, and of what base has.
func (c *checked) Import(p string) (*types.Package, error) {
	name, ok := strings.CutPrefix(p, module+"/")
	if !ok {
		return c.base.Import(p)
	}
	if pkg, ok := c.pkgs[name]; ok {
		return pkg, nil
	}
	i := slices.IndexFunc(c.house, func(r *room) bool { return r.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no room %s", name)
	}
	var trees []*ast.File
	for _, f := range c.house[i].files {
		if !f.test && c.builds(name, f) {
			trees = append(trees, f.tree)
		}
	}
	config := types.Config{Importer: c, Error: func(err error) { c.errs = append(c.errs, err) }}
	pkg, _ := config.Check(p, positions, trees, c.info)
	c.pkgs[name] = pkg
	return pkg, nil
}

func (c *checked) builds(room string, f *file) bool {
	return c.files == nil || slices.Contains(c.files[room], f.name)
}

// wellKnown are interfaces that the standard library asks for without a name.
const wellKnown = `package wellknown

type (
	unwraps    interface{ Unwrap() error }
	unwrapsAll interface{ Unwrap() []error }
	is         interface{ Is(error) bool }
	as         interface{ As(any) bool }
	timeout    interface{ Timeout() bool }
	marshals   interface{ MarshalText() ([]byte, error) }
	unmarshals interface{ UnmarshalText([]byte) error }
	halfCloses interface{ CloseWrite() error }
)
`

// findInterfaces lists the interfaces of the rooms, and those that packages which the rooms import have for others.
func (c *checked) findInterfaces() {
	add := func(o types.Object, room string) {
		name, ok := o.(*types.TypeName)
		if !ok || name.IsAlias() {
			return
		}
		named, ok := name.Type().(*types.Named)
		if !ok || named.TypeParams().Len() > 0 {
			return
		}
		if i, ok := named.Underlying().(*types.Interface); ok && i.IsMethodSet() && i.NumMethods() > 0 {
			c.all = append(c.all, i)
			c.local[i] = room
		}
	}
	add(types.Universe.Lookup("error"), "")
	known, err := parseFile("wellknown.go", []byte(wellKnown))
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	pkg, err := new(types.Config).Check("wellknown", positions, []*ast.File{known.tree}, nil)
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	for _, name := range pkg.Scope().Names() {
		add(pkg.Scope().Lookup(name), "")
	}
	others := map[string]*types.Package{}
	for name, pkg := range c.pkgs {
		for _, o := range c.info.Defs {
			if o != nil && o.Pkg() == pkg {
				add(o, name)
			}
		}
		for _, p := range pkg.Imports() {
			if !strings.HasPrefix(p.Path(), module+"/") {
				others[p.Path()] = p
			}
		}
	}
	for _, p := range others {
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() {
				add(o, "")
			}
		}
	}
}

// made says whether a method is there for an interface: one of another package, or one of its own that at least two of
// its types have.
func (c *checked) made(room string, method *types.Func) bool {
	return slices.ContainsFunc(c.all, func(i *types.Interface) bool {
		if o, _, _ := types.LookupFieldOrMethod(i, false, method.Pkg(), method.Name()); o == nil {
			return false
		}
		if !implements(receiverType(method), i) {
			return false
		}
		return c.local[i] != room || c.implementations(room, i) >= 2
	})
}

func (c *checked) implementations(room string, i *types.Interface) int {
	n := 0
	scope := c.pkgs[room].Scope()
	for _, name := range scope.Names() {
		if o, ok := scope.Lookup(name).(*types.TypeName); ok && !types.IsInterface(o.Type()) &&
			implements(o.Type(), i) {
			n++
		}
	}
	return n
}

func implements(t types.Type, i *types.Interface) bool {
	return types.Implements(t, i) || types.Implements(types.NewPointer(t), i)
}

// receiverType is the type of a method's receiver, without the pointer.
func receiverType(method *types.Func) types.Type {
	t := method.Signature().Recv().Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	return t
}

// methods are those that are declared in a room, for this system.
func (c *checked) methods(room string) []*types.Func {
	var found []*types.Func
	scope := c.pkgs[room].Scope()
	for _, name := range scope.Names() {
		o, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || o.IsAlias() {
			continue
		}
		if named, ok := o.Type().(*types.Named); ok && !types.IsInterface(named) {
			found = slices.AppendSeq(found, named.Methods())
		}
	}
	return found
}

// namesakes counts the methods of each name in a room that are not there for an interface.
func (c *checked) namesakes() map[string]int {
	counts := map[string]int{}
	for room := range c.pkgs {
		for _, m := range c.methods(room) {
			if !c.made(room, m) {
				counts[room+" "+m.Name()]++
			}
		}
	}
	return counts
}

// checkedHouse checks the product once, as it is on Linux, so that the rows are the same everywhere.
var checkedHouse = sync.OnceValues(func() (*checked, error) {
	found, err := house()
	if err != nil {
		return nil, err
	}
	files, outside := map[string][]string{}, map[string]bool{}
	err = listPackages(func(p listedPackage) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		files[name] = p.GoFiles
		for _, other := range p.Imports {
			if !strings.HasPrefix(other, module+"/") {
				outside[other] = true
			}
		}
	}, "-tags=conformance", "./...")
	if err != nil {
		return nil, err
	}
	exports := map[string]string{} // import path -> file with the types that the compiler wrote
	args := append([]string{"-export", "-deps"}, slices.Sorted(maps.Keys(outside))...)
	if err := listPackages(func(p listedPackage) { exports[p.ImportPath] = p.Export }, args...); err != nil {
		return nil, err
	}
	base := importer.ForCompiler(positions, "gc", func(p string) (io.ReadCloser, error) { return os.Open(exports[p]) })
	return check(found, files, base)
})

type listedPackage struct {
	ImportPath, Export string
	GoFiles, Imports   []string
}

// listPackages calls f with each package of go list, for Linux.
func listPackages(f func(listedPackage), args ...string) error {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Export,GoFiles,Imports"}, args...)...)
	cmd.Dir = root
	if runtime.GOOS != "linux" {
		cmd.Env = append(os.Environ(), "GOOS=linux")
	}
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("go list: %s", e.Stderr)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); err == nil; {
		var p listedPackage
		if err = decoder.Decode(&p); err == nil {
			f(p)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// plantedTypes checks planted rooms, which import nothing but each other.
func plantedTypes(t *testing.T, archive string) *checked {
	t.Helper()
	c, err := check(planted(t, archive), nil, emptyPackages{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPlantedTypes(t *testing.T) {
	t.Parallel()
	c := plantedTypes(t, `
-- server/a.go --
package server

type wide struct {
	a, b, c int
	d       struct{ x, y int }
}

func (wide) one()   {}
func (*wide) two()  {}
func (wide) begin() {}

type narrow struct{ a, b int }

func (narrow) begin() {}
func (narrow) take()  {}
func (narrow) Close() {}
func (narrow) Error() string { return "" }

type taker interface{ take() }

type third struct{}

func (third) take()         {}
func (third) Close()        {}
func (third) Error() string { return "" }

// Only narrow begins so, which makes no interface of it.
type beginner interface {
	begin()
	Close()
	take()
}

func in() {
	_ = struct{ a, b, c, d, e int }{}
}
-- tools/a.go --
package tools

type Closer interface{ Close() }
-- tools/a_test.go --
package tools

type inTest struct{ a, b, c, d, e int }
`)
	fields, methods, names := manyFields, manyMethods, manyNamesakes
	fields.most, methods.most, names.most = 3, 2, 1
	wantFailures(t, fields.failures(fieldCounts(c.house), nil), "server in has 5 fields", "server wide has 4 fields")
	wantFailures(t, methods.failures(methodCounts(c.house), nil), "server narrow has 4 methods",
		"server third has 3 methods", "server wide has 3 methods")
	wantFailures(t, names.failures(c.namesakes(), nil), "server begin is the name of 2 methods")
}
