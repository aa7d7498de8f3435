package main

import (
	"slices"
	"testing"

	"codehand/filestate/leaktest"
)

// addedEnginePaths is what may differ after an engine was added, besides the paths of its tool.
var addedEnginePaths = []string{
	"ARCHITECTURE.md",             // the sentence of its room
	"cmd/codehand/layout_test.go", // who may import its room
	"server/engines/open.go",      // where it is made
	"tools/engines.go",            // its field
	"tools/rig_test.go",           // the one that tests of tools use
	"tools/words/words.go",        // its room
	"tools/words/words_test.go",
}

// engineHands is how many paths an engine takes by hand: its room, which is one, and five more.
const engineHands = 6

// addedEngineTests are those of a tool, and of rooms.
var addedEngineTests = slices.Concat(addedTests,
	[]addedTest{{"cmd/codehand", "^(TestRuleFloors|TestRuleExports|TestRuleColumns)$"}})

// TestAddEngine adds the tool of TestAddTool over an engine of its own, from testdata/addengine and by the steps of
// CONTRIBUTING.md. That no cancelled call of it works on, and that the server hands the engine over, the tests of the
// tool show.
func TestAddEngine(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "compiles and tests a copy of the module")
	a := newAddition(t, "addengine")
	a.write("tools/words/words.go", a.template("words.go"))
	a.write("tools/words/words_test.go", a.template("words_test.go"))
	imported := "\t\"codehand/tools/words\"\n"
	a.insert("tools/engines.go", "import (\n", imported)
	a.insert("tools/engines.go", "type Engines struct {\n", "\tWords *words.Counter // nil: no word is counted\n")
	a.insert("server/engines/open.go", "import (\n", imported)
	a.insert("server/engines/open.go", "func (e *Set) makeTools(o Options, local func() Local) (err error) {\n",
		"\te.Words = words.New(1000)\n")
	a.insert("tools/rig_test.go", "import (\n", imported)
	a.insert("tools/rig_test.go", "engines: Engines{", "Words: words.New(1000), ")
	a.insert("ARCHITECTURE.md", "- `keys`: the operator's keys.\n", "- `words`: words of texts.\n")
	a.insert("cmd/codehand/layout_test.go", "var rooms = map[string][]string{\n", "\t\"tools/words\": {},\n")
	a.insert("cmd/codehand/layout_test.go", "\t\"tools\": {", "\"tools/words\", ")
	a.insert("cmd/codehand/layout_test.go", "\t\"server/engines\": {", "\"tools/words\", ")
	a.holdHands("engine", engineHands+1) // its room is two files

	a.write("tools/word_count.go", a.template("word_count.go"))
	tool := newAddition(t, "addtool")
	a.write("tools/word_count.md", tool.template("word_count.md"))
	a.write("testdata/sessions/word_count/counts.txtar", tool.template("counts.txtar"))
	a.insert("tools/all.go", "\t\treadFile,\n", "\t\twordCount(e.Words),\n")
	goIn(t, a.module, "go", "test", "-vet=off", "./tools/words")
	a.test(addedEngineTests)
	a.hold("engine", "tools.Engines", slices.Concat(addedPaths, addedEnginePaths))
}
