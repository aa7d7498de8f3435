package main

import (
	"fmt"
	"go/ast"
	"testing"
)

// TestRuleFunctions finds functions of more than 80 lines, from func to the brace that closes it: what fits on one
// screen. Tests are not counted: a table of cases may be long.
func TestRuleFunctions(t *testing.T) {
	for _, text := range longFunctions(readHouse(t), 80) {
		t.Error(text)
	}
}

func longFunctions(house []*room, most int) []string {
	var failures []string
	for _, r := range house {
		for _, f := range r.files {
			for _, d := range f.tree.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || f.test {
					continue
				}
				lines := positions.Position(fn.End()).Line - positions.Position(fn.Pos()).Line + 1
				if lines > most {
					failures = append(failures, fmt.Sprintf("%s: %s has %d lines, at most %d: give a step of it a name "+
						"and a function of its own", r.at(f, fn), fn.Name.Name, lines, most))
				}
			}
		}
	}
	return failures
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
	wantFailures(t, longFunctions(house, 4), "a/a.go:5: long has 5 lines, at most 4")
	wantFailures(t, longFunctions(house, 5))
}
