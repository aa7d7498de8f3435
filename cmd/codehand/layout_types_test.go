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
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A checked house is one whose product was checked for types, as it is on one system.
type checked struct {
	house []*room
	pkgs  map[string]*types.Package // by the name of the room
	info  *types.Info               // of all rooms
	all   []*types.Interface        // those that methods are made for
	base  types.Importer
	files map[string][]string // of a room: what the system builds; nil: all
	errs  []error
}

// check checks the types of rooms. Packages of other modules come from base.
func check(house []*room, files map[string][]string, base types.Importer) (*checked, error) {
	c := &checked{
		house: house, pkgs: map[string]*types.Package{}, base: base, files: files,
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
	add := func(o types.Object) {
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
		}
	}
	add(types.Universe.Lookup("error"))
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
		add(pkg.Scope().Lookup(name))
	}
	others := map[string]*types.Package{}
	for _, pkg := range c.pkgs {
		for _, o := range c.info.Defs {
			if o != nil && o.Pkg() == pkg {
				add(o)
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
				add(o)
			}
		}
	}
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

// checkedHouse checks the product once, as it is on Linux, so that the failures are the same everywhere.
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
	}, "-tags=conformance,score", "./...")
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

// emptyPackages stands in for every import.
type emptyPackages struct{}

func (emptyPackages) Import(p string) (*types.Package, error) {
	pkg := types.NewPackage(p, path.Base(p))
	pkg.MarkComplete()
	return pkg, nil
}
