package secrets

import (
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		// What is of use stays.
		"go test ./server/pipeline -run 'TestRedact|TestCall' -count=1": "go test ./server/pipeline -run 'TestRedact|TestCall' -count=1",
		"git show 28536afd3c1b0f1f0e6d7c8b9a0b1c2d3e4f5061":             "git show 28536afd3c1b0f1f0e6d7c8b9a0b1c2d3e4f5061",
		"rm -rf node_modules && ls -la /w/src/main/java":                "rm -rf node_modules && ls -la /w/src/main/java",
		`grep -rn "func (s \*Server) [a-z]+" .`:                         `grep -rn "func (s \*Server) [a-z]+" .`,
		"":                                                              "",
		"cat /tmp/TestAuditOfCalls1922960668/002/a_long_name-with-3-parts": "cat /tmp/TestAuditOfCalls1922960668/002/a_long_name-with-3-parts",

		"PASSWORD=hunter2 ./deploy":                                  "PASSWORD=[masked] ./deploy",
		"export DB_DSN='host=x pass=y' && run":                       "export DB_DSN=[masked] && run",
		"mytool --password hunter2 --verbose":                        "mytool --password [masked] --verbose",
		"mytool --api-key=\"a b c\" x":                               "mytool --api-key=[masked] x",
		"mytool --token 'never closed":                               "mytool --token [masked]",
		`curl -H "Authorization: Bearer abc def" https://x.org/a`:    `curl -H "Authorization: [masked]" https://x.org/a`,
		`curl -H 'X-Api-Key: abc'`:                                   `curl -H 'X-Api-Key: [masked]'`,
		"curl https://bob:hunter2@x.org/a":                           "curl https://[masked]@x.org/a",
		"curl 'https://x.org/a?sig=hunter2&b=1' -o f":                "curl 'https://x.org/a?[masked]' -o f",
		"curl -u bob:hunter2 x":                                      "curl -u bob:[masked] x",
		"sudo -u bob ls":                                             "sudo -u bob ls",
		"mysql -uroot -phunter2 db":                                  "mysql -uroot -p[masked] db",
		"sshpass -p hunter2 ssh x":                                   "sshpass -p [masked] ssh x",
		`echo '{"password": "hunter2", "a": 1}'`:                     `echo '{"password": [masked], "a": 1}'`,
		"cat > f <<EOF\nhunter2\nEOF\nls":                            "cat > f <<EOF [contents masked]",
		"base64 -d <<< hunter2":                                      "base64 -d <<< [masked]",
		"echo ghp_0123456789abcdefghijklmnopqrstuvwxyz":              "echo [masked github-token]",
		"echo -----BEGIN RSA PRIVATE KEY-----\nabc\ndef":             "echo [masked private-key]",
		"use 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c": "use [masked]",
		"use wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY":               "use [masked]",
		"use Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==":                       "use [masked]",
	} {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

// A secret that begins within what is looked at does not show because its end is beyond.
func TestRedactLong(t *testing.T) {
	t.Parallel()
	secret := "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	for n := maxRedacted - 60; n < maxRedacted+10; n++ {
		if got := Redact(strings.Repeat("a", n-1) + " " + secret + " more"); strings.Contains(got, "ghp_") {
			t.Fatalf("%d: …%q", n, got[n-10:])
		}
	}
	if got := Redact(strings.Repeat("x", maxRedacted) + secret); got != "…" {
		t.Errorf("one word of %d bytes: %.40q", maxRedacted, got)
	}
}

// FuzzRedact: a secret of a known form is masked whatever stands around it as long as it is a word of its own.
func FuzzRedact(f *testing.F) {
	f.Add("echo ", " x")
	f.Add("A='", "'")
	f.Add("<<E\n", "\nE")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
		got := Redact(before + " " + secret + " " + after)
		if strings.Contains(got, secret) && !strings.Contains(before+after, secret) {
			t.Errorf("%q", got)
		}
	})
}
