package main

import (
	"go/ast"
	"testing"
)

// longFunctions are those of more than 80 lines, from func to the brace that closes it: what fits on one screen. Tests
// are not counted: a table of cases may be long.
var longFunctions = limit{
	name: "functions", most: 80,
	advice: "%s has %d lines, at most %d: give a step of it a name and a function of its own",
}

func TestRulesFunctions(t *testing.T) {
	longFunctions.check(t, functionLines(readHouse(t)))
}

// functionLines counts the lines of every function of the product.
func functionLines(house []*room) map[string]int {
	lines := map[string]int{}
	for _, r := range house {
		for _, f := range r.files {
			for _, d := range f.tree.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || f.test {
					continue
				}
				key := r.name + " " + fn.Name.Name
				if receiver := receiverOf(fn); receiver != "" {
					key = r.name + " " + receiver + "." + fn.Name.Name
				}
				n := positions.Position(fn.End()).Line - positions.Position(fn.Pos()).Line + 1
				lines[key] = max(lines[key], n) // each system may have its own
			}
		}
	}
	return lines
}

// receiverOf is the name of a method's type; "": it is a function.
func receiverOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	for x := fn.Recv.List[0].Type; ; {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.Name
		default:
			return ""
		}
	}
}

func TestPlantedFunctions(t *testing.T) {
	t.Parallel()
	house := planted(t, `
-- a/a.go --
package a

type list[T any] struct{}

func (l *list[T]) long() {
	_ = 0

	_ = 0
}

func short() {
	_ = 0
}
-- a/a_test.go --
package a

func test() {
	_ = 0

	_ = 0
}
`)
	l := limit{most: 4, advice: longFunctions.advice}
	wantFailures(t, l.failures(functionLines(house), nil), "a list.long has 5 lines, at most 4")
	wantFailures(t, l.failures(functionLines(house), map[string]int{"a list.long": 5}))
}
