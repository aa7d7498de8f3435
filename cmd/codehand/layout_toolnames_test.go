package main

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"testing"

	"codehand/tools"
)

// toolNames are the files that decide something by the name of a tool, outside of tools and of the tables of
// tools/permission, where rules for tools that come later must parse. The number is of different names. A name within
// a longer text is advice to a model and does not count; nor do tests.
var toolNames = register{
	name: "toolnames", unit: "names of tools",
	advice: "what is special about a tool is a field of its tool.Spec, so that a new tool is one file: ask that field",
}

func TestRuleToolNames(t *testing.T) {
	var names []string
	for _, x := range tools.All(tools.Engines{}) {
		names = append(names, x.Spec.Name)
	}
	toolNames.check(t, toolNameCounts(readHouse(t), names))
}

// toolNameCounts counts the names of tools that stand as a text of their own in each file of the product.
func toolNameCounts(house []*room, names []string) map[string]int {
	found := sets{}
	for _, r := range house {
		if r.name == "tools" || r.name == "tools/permission" || slices.Contains(testRooms, r.name) {
			continue
		}
		for _, f := range r.files {
			for n := range ast.Preorder(f.tree) {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && !f.test {
					if name, _ := strconv.Unquote(text.Value); slices.Contains(names, name) {
						found.add(path.Join(r.name, f.name), name)
					}
				}
			}
		}
	}
	return found.counts()
}

func TestPlantedToolNames(t *testing.T) {
	t.Parallel()
	house := planted(t, `
-- server/a.go --
package server

// "read_file" in a comment.
const advice = "Use read_file"

func f(tool string) bool { return tool == "read_file" || tool == "read_file" }
-- server/a_test.go --
package server

const tested = "read_file"
-- tools/a.go --
package tools

const mine = "read_file"
-- tools/permission/a.go --
package permission

const rule = "read_file"
`)
	found := toolNameCounts(house, []string{"read_file", "run_shell"})
	wantFailures(t, toolNames.failures(found, nil), "server/a.go: 1 names of tools: what is special about a tool is a field")
	rows := map[string]row{"server/a.go": {1, "the command line offers it as a command"}}
	wantFailures(t, toolNames.failures(found, rows))
	wantFailures(t, toolNames.failures(nil, rows), "server/a.go: it is gone or needs no reason any more: delete its row")
}
