package guard

import "testing"

func domain(t *testing.T, text string) Domain {
	t.Helper()
	d, err := ParseDomain(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// An entry names exactly what it says: whole labels, and no other port (SEC-32).
func TestSEC32Domains(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entry, host string
		port        uint16
		want        bool
	}{
		{"example.com", "example.com", 443, true},
		{"example.com", "example.com", 80, true},
		{"Example.COM.", "example.com", 443, true},
		{"example.com", "example.com", 22, false},
		{"example.com", "example.com", 0, false},
		{"example.com", "evil-example.com", 443, false},
		{"example.com", "www.example.com", 443, false},
		{"example.com", "example.com.evil.net", 443, false},
		{"example.com", "com", 443, false},
		{"*.npmjs.org", "registry.npmjs.org", 443, true},
		{"*.npmjs.org", "a.b.npmjs.org", 443, true},
		{"*.npmjs.org", "npmjs.org", 443, false},
		{"*.npmjs.org", "evilnpmjs.org", 443, false},
		{"*.npmjs.org", "registry.npmjs.org.evil.net", 443, false},
		{"example.com:8443", "example.com", 8443, true},
		{"example.com:8443", "example.com", 443, false},
		{"*.example.com:22", "git.example.com", 22, true},
		{"bücher.example", "xn--bcher-kva.example", 443, true},
	} {
		if got := domain(t, c.entry).Allows(c.host, c.port); got != c.want {
			t.Errorf("%s allows %s:%d: %v", c.entry, c.host, c.port, got)
		}
	}
	for _, wrong := range []string{
		"", "*", "*.com", "com", "localhost", "*.localhost", "127.0.0.1", "10.0.0.1:80", "[::1]", "[::1]:443", "::1", "2130706433", "https://example.com",
		"example.com/x", "user@example.com", "example.com:0", "example.com:65536", "example.com:", "example.com:http", "a*.example.com", "*.*.example.com",
		"**.example.com", "*example.com", ".example.com", "*..example.com", "a b.com", "a_b.example.com", "metadata.google.internal", "printer.local",
	} {
		if d, err := ParseDomain(wrong); err == nil {
			t.Errorf("%q is read as %s", wrong, d)
		}
	}
}

func TestMeet(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"example.com", "example.com", "example.com"},
		{"*.example.com", "a.example.com", "a.example.com"},
		{"*.example.com", "*.a.example.com", "*.a.example.com"},
		{"*.example.com", "example.com", ""},
		{"*.example.com", "a.example.org", ""},
		{"*.example.com:443", "a.example.com", "a.example.com:443"},
		{"*.example.com", "a.example.com:80", "a.example.com:80"},
		{"*.example.com", "a.example.com:22", ""},
		{"example.com:22", "example.com:23", ""},
	} {
		a, b := domain(t, c[0]), domain(t, c[1])
		for range 2 {
			got := ""
			if both, ok := a.Meet(b); ok {
				got = both.String()
			}
			if got != c[2] {
				t.Errorf("%s and %s: %q, want %q", a, b, got, c[2])
			}
			a, b = b, a
		}
	}
}
