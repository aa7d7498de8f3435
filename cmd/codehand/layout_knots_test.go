package main

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// knots are what many others hang on: types of many methods, structs of many fields, rooms that import many rooms, and
// words that are the name of a type in many rooms.
var knots = register{
	name: "knots", unit: "now",
	advice: "cut it: what changes together, or is made at another time, has a type, a room or a word of its own",
	// One tool or one engine more is no reason to read a reason again: adding one is what the house is for.
	slack: func(recorded int) int { return recorded / 10 },
}

func TestRuleKnots(t *testing.T) { knots.check(t, findKnots(readHouse(t))) }

// findKnots counts in the product, on all systems, and returns what is over its limit.
func findKnots(house []*room) map[string]int {
	found := map[string]int{}
	for _, kind := range []struct {
		what  string
		most  int
		count map[string]int
	}{
		{"methods of ", 25, methodCounts(house)},
		{"fields of ", 15, fieldCounts(house)},
		{"rooms imported by ", 12, importCounts(house)},
		{"rooms with a type ", 4, typeNameCounts(house)},
	} {
		for name, n := range kind.count {
			if n > kind.most {
				found[kind.what+name] = n
			}
		}
	}
	return found
}

// productDecls calls f with each declaration of the product.
func productDecls(house []*room, f func(*room, ast.Decl)) {
	for _, r := range house {
		for _, file := range r.files {
			if !file.test {
				for _, d := range file.tree.Decls {
					f(r, d)
				}
			}
		}
	}
}

// methodCounts counts the methods of each type. A method that each system has in its own way is one.
func methodCounts(house []*room) map[string]int {
	methods := sets{}
	productDecls(house, func(r *room, d ast.Decl) {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			methods.add(r.name+"."+receiverOf(fn), fn.Name.Name)
		}
	})
	return methods.counts()
}

// fieldCounts counts the fields of each struct, by what is declared at the top of the file around it.
func fieldCounts(house []*room) map[string]int {
	counts := map[string]int{}
	productDecls(house, func(r *room, d ast.Decl) {
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
				key := r.name + "." + in
				counts[key] = max(counts[key], n.Fields.NumFields())
			}
		}
	})
	return counts
}

func importCounts(house []*room) map[string]int {
	imports := sets{}
	for _, r := range house {
		for _, f := range r.files {
			for _, spec := range f.tree.Imports {
				if p := imported(spec); !f.test && strings.HasPrefix(p, module+"/") {
					imports.add(r.name, p)
				}
			}
		}
	}
	return imports.counts()
}

// typeNameCounts counts the rooms that have a type of each name. Options do not count: in Go, New takes them.
func typeNameCounts(house []*room) map[string]int {
	rooms := sets{}
	productDecls(house, func(r *room, d ast.Decl) {
		if group, ok := d.(*ast.GenDecl); ok {
			for _, spec := range group.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok && typ.Name.Name != "Options" {
					rooms.add(typ.Name.Name, r.name)
				}
			}
		}
	})
	return rooms.counts()
}

// sets are sets of names, each with a name of its own.
type sets map[string]map[string]bool

func (s sets) add(set, name string) {
	if s[set] == nil {
		s[set] = map[string]bool{}
	}
	s[set][name] = true
}

func (s sets) counts() map[string]int {
	counts := map[string]int{}
	for set, names := range s {
		counts[set] = len(names)
	}
	return counts
}

func TestPlantedKnots(t *testing.T) {
	t.Parallel()
	// plant makes two files that are just over the limits or, with less, at them.
	plant := func(less int) []*room {
		var a strings.Builder
		a.WriteString("-- a/a.go --\npackage a\n\n")
		for i := range 13 - less {
			fmt.Fprintf(&a, "import _ \"codehand/b%d\"\n", i)
		}
		a.WriteString("import _ \"fmt\"\n\ntype wide struct {\n\tone struct{ x, y int }\n")
		for i := range 15 - less {
			fmt.Fprintf(&a, "\tf%d int\n", i)
		}
		a.WriteString("}\n\nfunc in() {\n\ttype local struct{}\n}\n\ntype busy struct{}\n\n")
		for i := range 26 - less {
			fmt.Fprintf(&a, "func (busy) m%d() {}\n", i)
		}
		a.WriteString("-- a/a_windows.go --\npackage a\n\nfunc (busy) m0() {}\n")
		a.WriteString("-- a/a_test.go --\npackage a\n\nimport _ \"codehand/test\"\n\nfunc (busy) inTest() {}\n")
		for i := range 5 - less {
			fmt.Fprintf(&a, "-- b%d/b.go --\npackage b\n\ntype Options struct{}\n\ntype place struct{}\n", i)
		}
		return planted(t, a.String())
	}
	wantFailures(t, knots.failures(findKnots(plant(1)), nil))
	found := findKnots(plant(0))
	wantFailures(t, knots.failures(found, nil), "fields of a.wide: 16 now: cut it: what changes together",
		"methods of a.busy: 26 now: ", "rooms imported by a: 13 now: ", "rooms with a type place: 5 now: ")

	rows := map[string]row{}
	for thing, n := range found {
		rows[thing] = row{n, "all of it is made at once"}
	}
	wantFailures(t, knots.failures(found, rows))
	rows["methods of a.busy"] = row{24, "all of it is made at once"}
	wantFailures(t, knots.failures(found, rows)) // a tenth more is no reason to read it again
	rows["methods of a.busy"] = row{23, "all of it is made at once"}
	wantFailures(t, knots.failures(found, rows), "methods of a.busy: 23 -> 26 now: read its reason")
	rows["methods of a.busy"] = row{26, "one method for each kind of word, and no state"}
	wantFailures(t, knots.failures(found, rows))
}
