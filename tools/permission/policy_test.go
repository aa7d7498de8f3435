package permission

import (
	"testing"

	"codehand/tools/search/ignore"
)

func TestWithheld(t *testing.T) {
	p, err := New(Options{Home: "/h/u", Ask: []Rule{{Text: "Read(private/**)"}, {Text: "Edit(src)"}}, Unprotect: []string{".netrc"}})
	if err != nil {
		t.Fatal(err)
	}
	p = p.At([]string{"/w", "/h/u/.config/x"}, "/w")
	for path, want := range map[string]bool{
		"/w/private/a": true, "/w/sub/private/a": true, "/w/src": false, "/w/.env": true, "/w/a/.env.local": true, "/w/.ENV": true,
		"/w/.env.example": false, "/w/.netrc": false, "/w/id_rsa": true, "/w/id_rsa.pub": false, "/w/.aws/config": true, "/w": false,
		"/opt/.env": false, "/h/u/.config/x/a": false, "/h/u/.config/x/.env": true,
	} {
		if got := p.Withheld("/w", path); got != want {
			t.Errorf("Withheld(%s) is %v, want %v", path, got, want)
		}
		d := p.Decide(Request{Tool: "read_file", Family: FamilyRead, ReadOnly: true, Own: Allow, Targets: []Target{{Kind: Path, Value: path, Real: path, Inside: true}}})
		if (d.Verdict == Ask) != want {
			t.Errorf("%s: got %+v, but Withheld is %v", path, d, want)
		}
	}
	// What was allowed for one reason was shown with what needs another.
	for _, c := range []struct {
		place, path string
		want        bool
	}{
		{"/w/private/a", "/w/private/a/b", false}, {"/w/private/a", "/w/private/a/.env", true}, {"/w/.aws", "/w/.aws/config", false}, {"/w/.aws", "/w/.aws/private/x", true},
		{"/w/.env", "/w/.env", false}, {"/w/private/.aws", "/w/private/.aws/config", false},
	} {
		if got := p.Withheld(c.place, c.path); got != c.want {
			t.Errorf("Withheld(%s, %s) is %v, want %v", c.place, c.path, got, c.want)
		}
	}
	if !p.AsksToRead("/w") || p.AsksToRead("/w/private/a") || newPolicy(t).AsksToRead("/w") {
		t.Error("only the first policy asks before reading, and not below what it has asked about")
	}
	var nobody *Policy
	if !nobody.Withheld("/w", "/w/a") || nobody.SecretNames() != nil {
		t.Error("a policy that New did not make withholds everything")
	}
}

// The names that a search counts are those that Withheld knows.
func TestSecretNamesAreWithheld(t *testing.T) {
	p := newPolicy(t).At([]string{"/w"}, "/w")
	for _, name := range []string{
		".env", ".env.local", ".env.example", ".env.sample", ".env.template", ".env.dist", "id_rsa", "id_rsa_work", "id_rsa.pub", "id_ed25519", "id_ecdsa.pub",
		".ssh", ".netrc", "credentials", "credentials.go", "shadow", ".npmrc", ".gitignore", "a.go", ".envrc", "sudoers",
	} {
		if listed := p.SecretNames().Match(name, false) == ignore.Ignore; listed != p.Withheld("/w", "/w/"+name) {
			t.Errorf("%s: on the list for searches: %v, withheld: %v", name, listed, !listed)
		}
	}
}

func TestFolding(t *testing.T) {
	p := newPolicy(t, "Read(Secret/**)").At([]string{"/w"}, "/w")
	if p.Hidden("/w/SECRET/a") || !p.Folding().Hidden("/w/SECRET/a") || !p.Folding().At([]string{"/W"}, "/W").Hidden("/w/secret/a") {
		t.Error("a rule hides other letter cases where the file system does not tell them apart, and only there")
	}
}
