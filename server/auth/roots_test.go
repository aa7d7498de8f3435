package auth

import (
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// onUnix skips a test whose paths are those of Unix.
func onUnix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
}

func TestCheckRoot(t *testing.T) {
	t.Parallel()
	onUnix(t)
	for template, want := range map[string]string{ // of slug bob; "": refused
		"/srv/ws/{principal}":        "/srv/ws/bob",
		"/srv/{principal}/code/":     "/srv/bob/code",
		"/srv/ws-{principal}":        "/srv/ws-bob",
		"/srv/shared":                "/srv/shared",
		"/{principal}/{principal}":   "/bob/bob",
		"/srv//a/./{principal}":      "/srv/a/bob",
		"/srv/..a":                   "/srv/..a",
		"":                           "",
		"srv/{principal}":            "",
		"{principal}":                "",
		"~/ws":                       "",
		"/srv/{user}":                "",
		"/srv/{Principal}":           "",
		"/srv/{principal":            "",
		"/srv/principal}":            "",
		"/srv/{{principal}}":         "",
		"/srv/{principal}/..":        "",
		"/srv/{principal}/../shared": "",
		"/srv/a\x00":                 "",
		"/srv/a\n":                   "",
		"/srv/\xff":                  "",
	} {
		err := CheckRoot(template)
		if (err == nil) != (want != "") {
			t.Errorf("%q: %v", template, err)
		}
		if err == nil && expand(template, "bob") != want {
			t.Errorf("%q: got %q, want %q", template, expand(template, "bob"), want)
		}
	}
}

func TestDisjoint(t *testing.T) {
	t.Parallel()
	onUnix(t)
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"/a", "/a", true},
		{"/a", "/b", true},
		{"/a", "/ab", true},
		{"/a/", "/a", true},
		{"/a", "/a/b", false},
		{"/", "/a", false},
		{"/", "/", true},
		{"/a", "/a/..b", false},
		{"/srv/ann /x", "/srv/bob /x", true},
		{"/srv/ann /x", "/srv/bob /x/y", false},
		{"", "/a", true},
	} {
		a, b := strings.Fields(c.a), strings.Fields(c.b)
		if Disjoint(a, b) != c.want || Disjoint(b, a) != c.want {
			t.Errorf("%q and %q: want %v", a, b, c.want)
		}
	}
}

// One template gives different principals disjoint roots, whatever they are called.
func TestOneTemplateIsDisjoint(t *testing.T) {
	t.Parallel()
	onUnix(t)
	random := rand.New(rand.NewPCG(3, 4))
	name := func() string {
		id := make([]byte, 1+random.IntN(4))
		for i := range id {
			id[i] = "ab-_/."[random.IntN(6)]
		}
		return string(id)
	}
	for range 2000 {
		a, b := name(), name()
		for _, template := range []string{"/{principal}", "/w/{principal}/c", "/w-{principal}-x", "/{principal}{principal}/{principal}"} {
			x, y := expand(template, Slug(a)), expand(template, Slug(b))
			if !Disjoint([]string{x}, []string{y}) || (x == y) != (a == b) || !filepath.IsAbs(x) {
				t.Fatalf("%s: %q has %s, %q has %s", template, a, x, b, y)
			}
		}
	}
}
