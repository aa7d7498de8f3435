package main

import (
	"testing"

	"codehand/filestate/leaktest"
)

// addedStoreChecks are the tests that look at every Store. None of them writes anything.
var addedStoreChecks = []addedTest{
	{"server/state", "^TestStore$/^plain$"},
	{"server/config", "^TestStoreURLs$"},
	{"cmd/codehand", "^(TestHelp|TestRuleColumns|TestRuleExports|TestRuleWeight|TestRuleKnots|TestRooms|TestImports)$"},
}

// TestAddStore adds a kind of Store in a copy of the module, from testdata/addstore: its file, and a line in the table of
// Open. The suite then runs it, and store.url can name it.
func TestAddStore(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "compiles and tests a copy of the module")
	a := newAddition(t, "addstore")
	a.write("server/state/plain.go", a.template("plain.go"))
	a.insert("server/state/open.go", "\t\"memory:\": openMemory,\n", "\t\"plain:\":  openPlain,\n")
	a.holdHands("store", 2)
	a.check(addedStoreChecks)
	a.hold("store", "the table of openers", []string{"server/state/open.go", "server/state/plain.go"})
}
