package guard

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

// Spellings that some resolver, browser or library reads as an address of this machine are either no URL, or the
// address that Guard.Host then blocks (SEC-30).
func TestSEC30Spellings(t *testing.T) {
	t.Parallel()
	spellings := []string{
		"http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://017700000001/", "http://0177.0.0.1/",
		"http://0x7f.0.0.1/", "http://0x7f000001/", "http://0X7F.1/", "http://127.0.0.1./", "http://127.0.0.01/", "http://127.0.0.1:80/",
		"http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://127.0.0.1。/", "http://１２７.０.０.１/", "http://0/", "http://0.0.0.0/", "http://1.2.3.4.5/",
		"http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[fe80::1%25eth0]/", "http://[::1%25lo]/",
		"http://[127.0.0.1]/", "http://[0:0:0:0:0:0:0:1]/", "http://::1/", "http://[::1/", "http://localhost/", "http://LOCALHOST/",
		"http://localhost./", "http://a.localhost/", "http://ｌｏｃａｌｈｏｓｔ/", "http://localhost。/", "http://localhost.localdomain/", "http://ip6-localhost/",
		"http://printer.local/", "http://metadata.google.internal/", "http://intranet/", "http://kubernetes.default.svc.cluster.local/",
		"http://%31%32%37.0.0.1/", "http://127.0.0.1%00.example.com/", "http://127.0.0.1%2f.example.com/", "http://example.com@127.0.0.1/",
		"http://user:pw@example.com/", "http://@example.com/", "http://127.0.0.1\\@example.com/", "http://example.com:22/", "http://example.com:/",
		"http://example.com:0443/", "http://example.com:99999/", "//example.com/", "example.com", "http:example.com", "http:/example.com", "http:///x", "",
		"ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_x", "javascript:alert(1)", "unix:///run/docker.sock",
		"http://exa mple.com/", "http://example.com/a b", "http://example.com/\n", "http://example.com/\u00a0", "http://example.com/\x7f", "http://example.com/\xff",
		"http://example..com/", "http://.example.com/", "http://-a.example.com/", "http://a_b.example.com/", "http://*.example.com/", "http://xn--a.example.com/",
		"http://" + strings.Repeat("a", 64) + ".com/", "http://" + strings.Repeat("a.", 127) + "com/", "http://example.com/" + strings.Repeat("a", 2000),
	}
	g := New(Options{})
	for _, text := range spellings {
		u, err := URL(text)
		if err == nil {
			err = g.Host(u.Hostname())
			if strings.HasPrefix(u.Host, "[") {
				err = g.Host(u.Host)
			}
			if !errors.Is(err, ErrBlocked) {
				t.Errorf("%q: is %s, %v; want it blocked", text, u.Host, err)
			}
		} else if !errors.Is(err, ErrInvalid) || u != nil {
			t.Errorf("%q: %v, %v; want it invalid", text, u, err)
		}
	}
	for text, want := range map[string]string{
		"http://example.com":                    "http://example.com",
		"https://EXAMPLE.com./a?b=c#d":          "https://example.com/a?b=c#d",
		"https://example.com:443/":              "https://example.com/",
		"http://example.com:80/":                "http://example.com/",
		"https://example.com:80/":               "https://example.com:80/",
		"https://ｅｘａｍｐｌｅ。com/":                  "https://example.com/",
		"https://bücher.example/ä":              "https://xn--bcher-kva.example/%C3%A4",
		"https://xn--bcher-kva.example/":        "https://xn--bcher-kva.example/",
		"https://8.8.8.8/":                      "https://8.8.8.8/",
		"https://[2606:4700:4700:0::1111]:443/": "https://[2606:4700:4700::1111]/",
		"https://ip6-test.example.com/":         "https://ip6-test.example.com/",
		"https://1and1.example.com/":            "https://1and1.example.com/",
		"https://123.example.com/":              "https://123.example.com/",
	} {
		u, err := URL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := g.Host(u.Host); u.String() != want || err != nil && u.Port() == "" {
			t.Errorf("%s: is %s, %v; want %s", text, u, err, want)
		}
	}
}

// FuzzURL: what is accepted has one form, which is accepted as it is, and whose host is a public name or an address.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"http://example.com", "https://EXAMPLE.com.:443/a?b#c", "http://①②⑦.0.0.1/", "http://[::ffff:1.2.3.4]:80/", "http://xn--bcher-kva.example/",
		"http://a。b/", "http://0x7f.1/", "http://%E4%BE%8B.example/", "http://Xn-%8000000000000000000000",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := URL(text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		host := strings.TrimSuffix(u.Host, ":"+u.Port())
		again, err := Host(host)
		if err != nil || again != host || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.[]:") != "" {
			t.Fatalf("%q: host %q becomes %q, %v", text, host, again, err)
		}
		if _, ok := literal(host); !ok && strings.Trim(host[strings.LastIndexByte(host, '.')+1:], "0123456789") == "" {
			t.Fatalf("%q: host %q is a number and no address", text, host)
		}
		if len(u.String()) > maxURL { // escapes are longer than what they stand for
			return
		}
		second, err := URL(u.String())
		if err != nil || second.Host != u.Host || second.String() != u.String() {
			t.Fatalf("%q becomes %q, and that %v, %v", text, u, second, err)
		}
		if plain, err := url.Parse(u.String()); err != nil || plain.Host != u.Host {
			t.Fatalf("%q: others read %v, %v", u, plain, err)
		}
	})
}
