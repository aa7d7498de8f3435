package worktrees

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// What CheckName lets through is a name that git takes for a branch, and that leads nowhere else.
func TestCheckName(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("git")
	for name, good := range map[string]bool{
		"a": true, "A_1.2-x": true, "a/b/c": true, RandomName(): true, strings.Repeat("a", maxName): true,
		"": false, ".": false, "..": false, "a/..": false, "-a": false, "a/-b": false, "a.lock": false, "a.lock/b": false, "a..b": false,
		"a.": false, "a b": false, "a\n": false, "a'": false, "a~1": false, "a:b": false, "@{u}": false, "/a": false, "a/": false,
		strings.Repeat("a", maxName+1): false,
	} {
		if why := CheckName(name); (why == "") != good {
			t.Errorf("%q: %q", name, why)
		}
		if good && err == nil {
			if out, err := exec.Command("git", "check-ref-format", "refs/heads/"+branchPrefix+name).CombinedOutput(); err != nil {
				t.Errorf("git takes %q for no branch: %v %s", name, err, out)
			}
		}
	}
}

func TestListed(t *testing.T) {
	t.Parallel()
	if lines := listed(nil, "file", "files"); lines != nil {
		t.Errorf("%q", lines)
	}
	var all []string
	for i := range maxShown + 2 {
		all = append(all, fmt.Sprintf("f%d\x1b[31m", i))
	}
	lines := listed(all, "file", "files")
	if len(lines) != maxShown+2 || lines[0] != "22 files:" || lines[maxShown+1] != "  and 2 more" ||
		slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "\x1b") }) {
		t.Errorf("%q", lines)
	}
}
