package main

import (
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// addedClientPaths is all that may differ after a client was added.
var addedClientPaths = []string{
	"server/clients/clients.go", // by hand: its line in all
	"server/clients/quill_studio.go",

	// The others are written by -update.
	"cmd/codehand/testdata/help/codehand_install.txt", // only since it needs a directory
	"docs/clients/README.md",
	"docs/clients/quill-studio.md",
	"server/clients/install/testdata/golden/quill-studio.txtar",
	"server/clients/install/testdata/places.txt",
	"server/clients/testdata/snippets/none.txt",
	"server/clients/testdata/snippets/token.txt",
	"tools/guarded/clients.txt",
}

// addedClientTests are the tests that look at every client, in the order of the command of CONTRIBUTING.md.
var addedClientTests = []addedTest{
	{"server/clients", "."},
	{"server/clients/install", "^(TestGolden|TestWritesSnippets|TestPageOfClients|TestPlacesGolden|TestOtherSystems" +
		"|TestPresent|TestAgain|TestForeign|TestLinks)$"},
	{"cmd/codehand", "^TestHelp$"},
}

// addedClientChecks are those that write nothing.
var addedClientChecks = []addedTest{
	{"tools/guarded", "."},
	{"cmd/codehand", "^(TestRule(Columns|Exports|Functions|Weight|Knots)|TestRooms|TestImports)$"},
	{"server/doctor", "^(TestExpand|TestHomeClients)"},
	{"server/toolset", "."},
	{"server/pipeline", "^TestEveryProfile$/^quill-studio$"},
	{"server", "^(TestResultsFitEveryClient|TestLoads)$/^quill-studio$"},
}

// TestAddClient adds a client, with all columns that others have, in a copy of the module, from testdata/addclient and
// by the steps of CONTRIBUTING.md. By hand that is one file and one line; -update writes the rest.
func TestAddClient(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "compiles and tests a copy of the module")
	a := newAddition(t, "addclient")
	a.write("server/clients/quill_studio.go", a.template("quill_studio.go"))
	a.insert("server/clients/clients.go", "\tcrush,\n", "\tquillStudio,\n")
	a.holdHands("client", 2)
	a.lay("tools/guarded/clients.txt") // embedded, and written by the tests of server/clients
	a.test(addedClientTests)
	a.check(addedClientChecks)
	a.hold("client", "its row", addedClientPaths)
	for path, want := range map[string]string{
		"tools/guarded/clients.txt":                       "\n.quill/**\n",
		"docs/clients/README.md":                          "\n| [Quill Studio](quill-studio.md) | `quill-studio` | yes | documented |\n",
		"docs/clients/quill-studio.md":                    "| names that it gives itself | `quill-studio*` |\n",
		"cmd/codehand/testdata/help/codehand_install.txt": "LM Studio, Quill Studio.\n",
	} {
		if text := readText(t, a.module+"/"+path); !strings.Contains(text, want) {
			t.Errorf("%s was written without %q:\n%s", path, want, text)
		}
	}
}
