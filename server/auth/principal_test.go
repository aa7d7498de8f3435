package auth

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestCheckID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"dev-7": true, "corp/1234": true, "Ann Lee <ann@example.com>": true, "日本": true, "é": true,
		strings.Repeat("a", 200): true, strings.Repeat("é", 100): true,
		"": false, strings.Repeat("a", 201): false, strings.Repeat("é", 101): false,
		"a\nb": false, "a\x00": false, "a\x7f": false, "\xff": false, "a\ufffd": false, "a\u202eb": false, "a\u200bb": false, "a\u00a0b": false, "a\tb": false,
	} {
		if err := CheckID(id); (err == nil) != want {
			t.Errorf("%q: %v, want accepted: %v", id, err, want)
		}
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	made := regexp.MustCompile(`-[0-9a-f]{32}$`)
	for id, want := range map[string]string{ // what is made has its hash as #
		"dev-7":                              "dev-7",
		"0_a":                                "0_a",
		strings.Repeat("a", 40):              strings.Repeat("a", 40),
		strings.Repeat("a", 41):              strings.Repeat("a", 40) + "#",
		"dev-1234567":                        "dev-1234567",
		"dev-12345678":                       "dev-12345678#",
		"dev-1234abcd":                       "dev-1234abcd#",
		"dev-1234abcg":                       "dev-1234abcg",
		"d-" + strings.Repeat("1a", 16):      "d-" + strings.Repeat("1a", 16) + "#",
		"dev_1234abcd":                       "dev_1234abcd",
		"-a":                                 "a#",
		"_a":                                 "_a#",
		"Dev":                                "dev#",
		"corp/1234":                          "corp-1234#",
		"Ann Lee <ann@x.de>":                 "ann-lee-ann-x-de#",
		"../../etc":                          "etc#",
		"..":                                 "#",
		"日本":                                 "#",
		"a  b":                               "a-b#",
		"a--b/":                              "a--b#",
		strings.Repeat("a", 39) + "/" + "bb": strings.Repeat("a", 39) + "-" + "#",
	} {
		got := Slug(id)
		if again := Slug(id); again != got {
			t.Errorf("%q: %q, then %q", id, got, again)
		}
		if strings.HasSuffix(want, "#") {
			got = made.ReplaceAllString(got, "#")
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
}

// Different IDs never share a slug, and a slug is always a plain name of at most 73 bytes.
func TestSlugsDiffer(t *testing.T) {
	t.Parallel()
	plain := regexp.MustCompile(`^[a-z0-9_-]{0,40}(-[0-9a-f]{32})?$`)
	seen := map[string]string{}
	add := func(id string) {
		slug := Slug(id)
		if other, ok := seen[slug]; ok && other != id {
			t.Fatalf("%q and %q are both %q", id, other, slug)
		}
		if !plain.MatchString(slug) || slug == "" {
			t.Fatalf("%q is %q", id, slug)
		}
		seen[slug] = id
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		id := make([]byte, 1+random.IntN(6))
		for i := range id {
			id[i] = "aA-_./0é"[random.IntN(7)]
		}
		add(string(id))
		if slug := Slug(string(id)); slug != string(id) {
			add(slug) // who is called as another one is in paths gets a name of his own
		}
	}
}
