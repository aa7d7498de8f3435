package main

import (
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// addedSettingPaths is all that may differ after a setting was added.
var addedSettingPaths = []string{
	"server/config/settings.go", // by hand: the field, its default and the row

	// The others are written by -update. They do not count as paths that the author has to know.
	"cmd/codehand/testdata/help/codehand_settings.txt",
	"docs/settings.md",
}

// addedSettingTests are the tests that look at every setting, in the order of the command of CONTRIBUTING.md.
var addedSettingTests = []addedTest{
	{"cmd/codehand", "^(TestHelp|TestSettingsPage)$"},
}

// addedSettingChecks are those that write nothing.
var addedSettingChecks = []addedTest{
	{"server/config", "."},
	{"cmd/codehand", "^(TestRule(Columns|Exports|Functions|Weight|Knots)|TestImports)$"},
	{"server", "^TestConfigurationIsFixed$"},
}

// TestAddSetting adds a setting in a copy of the module, by the steps of CONTRIBUTING.md. By hand that is one file; the
// code that obeys it is the second. -update writes the documents.
func TestAddSetting(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "compiles and tests a copy of the module")
	const settings = "server/config/settings.go"
	a := newAddition(t, "")
	a.insert(settings, "\ntype List struct {\n", "\tDepth     int // directories below that of the call\n")
	a.insert(settings, "List{Limit: 100, ", "Depth: 40, ")
	a.insert(settings, "\t\t{\"list.gitignore\", \"leave ignored files out of listings\", guidance, toggle{&c.List.Gitignore}},\n",
		"\t\t{\"list.depth\", \"how deep listings go\", narrower, number{&c.List.Depth, 1, 1000, false}},\n")
	a.holdHands("setting", 1)
	a.test(addedSettingTests)
	a.check(addedSettingChecks)
	a.hold("setting", "its row", addedSettingPaths)
	want := "\nlist.depth                   40                  how deep listings go\n"
	for _, path := range addedSettingPaths[1:] {
		if text := readText(t, a.module+"/"+path); !strings.Contains(text, want) {
			t.Errorf("%s was written without %q", path, want)
		}
	}
}
