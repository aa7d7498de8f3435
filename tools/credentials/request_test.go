package credentials

import (
	"slices"
	"strings"
	"testing"
)

// What a command says is no request for another protocol, and no line of it becomes two.
func TestParse(t *testing.T) {
	for text, want := range map[string]request{
		"protocol=https\nhost=Example.com\n\n":                                 {protocol: "https", host: "example.com"},
		"protocol=https\nhost=example.com:8443\nusername=ann\npath=a/b.git":    {"https", "example.com:8443", "a/b.git", "ann"},
		"protocol=http\nhost=[::1]:80\nwwwauth[]=Basic\ncapability[]=authtype": {protocol: "http", host: "[::1]:80"},
		"protocol=https\nhost=a\n\nhost=b\n":                                   {protocol: "https", host: "a"},
	} {
		if got, err := parse(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "\n", "protocol=https\n", "host=example.com\n", "protocol=ssh\nhost=example.com", "protocol=file\nhost=a",
		"protocol=https\nhost=example.com/evil", "protocol=https\nhost=a@b", "protocol=https\nhost=a b",
		"protocol=https\nhost=a\rhost=b", "protocol=https\nhost=a\x00", "protocol=https\nhost=a\nusername=x\x1b[1m",
		"protocol=https\nhost=-a", "url=https://example.com", "https://example.com", "protocol=https\nhost=a#b",
		"protocol=https\nhost=" + strings.Repeat("a", maxRequest),
	} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q was taken for %+v", text, got)
		}
	}
}

func TestSites(t *testing.T) {
	urls := []string{
		"https://ann@Example.com/a.git", "https://example.com:443/b", "http://example.com/c", "https://example.com:8443/",
		"git@github.com:a/b.git", "ssh://github.com/a", "/srv/a.git", "https://", "https://a b/c", "gh:a/b", "ext::sh -c id",
	}
	want := []string{"https://example.com", "http://example.com", "https://example.com:8443", "https://github.com"}
	if got := sites(urls, map[string]string{"gh:": "https://github.com/", "gh": "https://never.example/"}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (request{protocol: "https", host: "example.com:443"}).site(); got != want[0] {
		t.Errorf("got %q", got)
	}
}

// An operator writes a host, not a path or a pattern.
func TestSite(t *testing.T) {
	for text, want := range map[string]string{
		"GitHub.com": "https://github.com", "gitlab.example:8443": "https://gitlab.example:8443", "a.example:443": "https://a.example",
		"http://10.0.0.7": "http://10.0.0.7", "https://a.example/": "https://a.example", "gitlab": "https://gitlab",
		"": "", "*.example.com": "", "a.example/x": "", "ssh://a.example": "", "u@a.example": "", "a b": "", "a.example?x": "",
	} {
		if got, err := Site(text); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}
