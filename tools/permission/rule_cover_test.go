package permission

import (
	"slices"
	"strings"
	"testing"
)

// TestCoverage: what is shown of a rule is what it decides about, and a place that it is said not to reach has no file
// that it covers.
func TestCoverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  Rule
		v     Verdict
		paths string // as they are shown
		below string // in the root /w and in the root /v
	}{
		{Rule{Text: "Edit(/migrations/**)"}, Ask, "/w/migrations/** /v/migrations/**", "/w/migrations /v/migrations"},
		{Rule{Text: "Edit(/migrations/**)"}, Allow, "/w/migrations/** /v/migrations/**", "/w/migrations /v/migrations"},
		{Rule{Text: "Edit(/migrations/**)", Dir: "/v"}, Deny, "/v/migrations/**", "/v/migrations"},
		{Rule{Text: "Edit(/a/*/b)", Dir: "/gone"}, Deny, "/gone/a/*/b", ""},
		{Rule{Text: "Read(//migrations/**)"}, Deny, "/migrations/**", ""},
		{Rule{Text: "Read(//w/a/*.go)"}, Deny, "/w/a/*.go", "/w/a"},
		{Rule{Text: "Read(//**/x)"}, Deny, "/**/x", "/w /v"},
		{Rule{Text: "Read(//*/x)"}, Deny, "/*/x", "/w /v"},
		{Rule{Text: "Read(//*.d/x)"}, Deny, "/*.d/x", ""},
		{Rule{Text: "Read(//w)"}, Deny, "/w", "/w"},
		{Rule{Text: `Read(//w/a\[1]/x)`}, Deny, `/w/a\[1]/x`, "/w/a[1]/x"},
		{Rule{Text: "Read(~/.aws/**)"}, Deny, "/h/u/.aws/**", ""},
		{Rule{Text: "Read(secrets/**)"}, Deny, "/w/**/secrets/** /v/**/secrets/**", "/w /v"},
		{Rule{Text: "Edit(secrets/**)"}, Allow, "/w/sub/secrets/**", "/w/sub/secrets"},
		{Rule{Text: "Read(*.pem)"}, Ask, "/w/**/*.pem /v/**/*.pem", "/w /v"},
		{Rule{Text: "Read(a/b)"}, Ask, "/w/a/b /v/a/b /w/sub/a/b", "/w/a/b /w/sub/a/b /v/a/b"},
		{Rule{Text: "Read(**)"}, Deny, "/w/** /v/**", "/w /v"},
		{Rule{Text: "Bash(make)"}, Deny, "", ""},
	} {
		o := Options{Home: "/h/u"}
		*map[Verdict]*[]Rule{Deny: &o.Deny, Ask: &o.Ask, Allow: &o.Allow}[c.v] = []Rule{c.rule}
		p := mustNew(t, o).At([]string{"/w", "/v"}, "/w/sub")
		all := p.Coverage()
		if len(all) != 1 || all[0].Rule != c.rule || all[0].Verdict != c.v {
			t.Fatalf("%s: got %+v", c.rule.Text, all)
		}
		got := all[0]
		var below []string
		for _, root := range []string{"/w", "/v"} {
			below = append(below, got.Below(root)...)
		}
		if strings.Join(got.Paths, " ") != c.paths || strings.Join(below, " ") != c.below {
			t.Errorf("%v %s: covers %q, below %q; want %q, %q", c.v, c.rule.Text, got.Paths, below, c.paths, c.below)
		}
		if got.Kind != Path {
			continue
		}
		for _, file := range []string{"/w/migrations/a", "/v/migrations/a", "/w/a/x.go", "/w/x", "/w/a[1]/x", "/w/deep/secrets/k", "/w/sub/secrets/k", "/v/k.pem", "/w/sub/a/b/c"} {
			decided := map[Verdict]bool{Deny: p.Ruled(file, true) == Deny, Ask: p.Ruled(file, got.rule.writes) == Ask}[c.v]
			if c.v != Allow && decided != got.Covers(file) {
				t.Errorf("%v %s: covers %s is %v, and it decides %v", c.v, c.rule.Text, file, got.Covers(file), decided)
			}
			reached := slices.ContainsFunc(below, func(place string) bool { return file == place || strings.HasPrefix(file, place+"/") })
			if got.Covers(file) && !reached {
				t.Errorf("%v %s covers %s, which is not below %q", c.v, c.rule.Text, file, below)
			}
		}
	}
	if got := mustNew(t, Options{Deny: []Rule{{Text: "Read(/x)"}}}).At(nil, "").Coverage(); len(got) != 1 || len(got[0].Paths) != 0 {
		t.Errorf("without a root: %+v", got)
	}
}
