package pipeline

import (
	"fmt"
	"strings"
	"testing"

	names "codehand/tools/guarded"
	"codehand/tools/permission"
)

// A refusal of a protected or secret name ended with "The user can do it": no setting was named, and no person knew it.
// Each built-in name is refused with a setting that opens it.
func TestEachNameSaysWhatOpensIt(t *testing.T) {
	t.Parallel()
	check := func(verb, name string, open func(unprotect []string) (*names.Names, error)) {
		t.Helper()
		d := permission.Decision{Verdict: permission.Ask, Hard: true, Rule: verb + "(**/" + name + ")", Origin: permission.BuiltIn}
		said := remedy("/c.toml", d, "")
		opened := openedName(d)
		if want := fmt.Sprintf("permissions.unprotect = [%q] in /c.toml.", opened); opened == "" || !strings.HasSuffix(said, want) {
			t.Errorf("%s: %q", name, said)
			return
		}
		all, err := open([]string{opened})
		if err != nil {
			t.Errorf("%s is no setting: %v", opened, err)
			return
		}
		sample := strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(name, "/**"), "**", "x"), "*", "x")
		if strings.HasSuffix(name, "/**") {
			sample += "/x"
		}
		if left := all.Find(sample); left != "" {
			t.Errorf("%s is still %s after permissions.unprotect = [%q]", sample, left, opened)
		}
	}
	protected := func(unprotect []string) (*names.Names, error) { return names.ProtectedNames(nil, unprotect) }
	n := 0
	for _, g := range names.Groups {
		for _, name := range g.Names {
			check("Edit", name, protected)
			n++
		}
	}
	secret, err := names.SecretNames(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range secret.Texts() {
		check("Read", name, names.SecretNames)
		n++
	}
	if n < 30 {
		t.Errorf("only %d names were tried", n)
	}
}
