package main

import (
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// addedPaths is all that may differ after a tool was added: what its author writes, and what -update writes for it.
var addedPaths = []string{
	"docs/tools.md", // written: its row of the table
	"testdata/sessions/word_count/counts.txtar", // the calls; the answers are written
	"testdata/specs/word_count.json",            // written
	"tools/all.go",
	"tools/word_count.go",
	"tools/word_count.md",
}

// addedTests are the tests that a new tool must pass, by package, in the order of the command of CONTRIBUTING.md: each
// writes golden files with -update that the next ones look at. A second part chooses among the cases of those that have
// cases.
var addedTests = []addedTest{
	{"tools", "^(TestNames|TestDescriptions|TestTraits|TestSchemas|TestBytes|TestSpecs|TestCodes|TestToolSearch.*|TestContract.*)$/^word_count$"},
	{"server", "^(TestSessions|TestWire|TestDigest|TestSelfCheck)$/" +
		"^(word_count|tool_search|call_tool|calls|envelope|eras|list_changed|listen)$"},
	{"cmd/codehand", "^TestToolTable$"},
}

// addedChecks are those that write nothing of a tool. With -update the rules would also write what others changed.
var addedChecks = []addedTest{
	{"cmd/codehand", "^(TestToolFiles|TestToolsShareNothing|TestRule(Weight|Knots|ToolNames)|TestRooms|TestImports)$"},
}

// TestAddTool adds a tool in a copy of the module, from testdata/addtool and by the steps of CONTRIBUTING.md, and counts what
// differs then. Each further path is a place that the author of a tool would have to know.
func TestAddTool(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "compiles and tests a copy of the module")
	a := newAddition(t, "addtool")
	a.write("tools/word_count.go", a.template("word_count.go"))
	a.write("tools/word_count.md", a.template("word_count.md"))
	a.write("testdata/sessions/word_count/counts.txtar", a.template("counts.txtar"))
	a.insert("tools/all.go", "\t\treadFile,\n", "\t\twordCount,\n")
	a.holdHands("tool", 4)
	a.test(addedTests)
	a.check(addedChecks)
	a.hold("tool", "the table of tools", addedPaths)
	session := readText(t, filepath.Join(a.module, "testdata", "sessions", "word_count", "counts.txtar"))
	if want := "\n3 words in $WORK/a.txt\n"; !strings.Contains(session, want) {
		t.Errorf("the session was written without its answers:\n%s", session)
	}
}
