package secrets

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// planted are secrets that never were any, put together here so that no scanner finds them in this file.
func planted() map[string][]string {
	n := func(s string, times int) string { return strings.Repeat(s, times) }
	return map[string][]string{
		"aws-access-key":     {"AK" + "IAIOSFODNN7EXAMPLE", "AS" + "IAY34FZKBOKMUTVV7A"},
		"aws-secret-key":     {"aws_secret_access_" + "key = " + n("wJalrXUtn/", 4), `"Secret` + `AccessKey": "` + n("wJalrXUtn+", 4) + `"`, "AWS_SECRET_ACCESS_" + "KEY=" + n("a1B2c3D4e5", 4)},
		"github-token":       {"gh" + "p_" + n("a1B2c3", 6), "gh" + "s_" + n("a1B2c3", 6), "github" + "_pat_" + n("a1", 11) + "_" + n("b", 59)},
		"gitlab-token":       {"gl" + "pat-" + n("aB1-_", 4), "gl" + "oas-" + n("a1", 32)},
		"slack-token":        {"xo" + "xb-123456789012-1234567890123-" + n("aB1c", 6), "xo" + "xp-123456789012-" + n("1", 12) + "-" + n("a", 32)},
		"slack-webhook":      {"https://hooks.sl" + "ack.com/services/T00000000/B00000000/" + n("Xa1B", 6)},
		"stripe-key":         {"sk" + "_live_" + n("4eC39H", 4), "rk" + "_live_" + n("4eC39H", 8)},
		"google-key":         {"AI" + "za" + n("SyD-9", 7)},
		"google-token":       {"ya" + "29." + n("a0AfH6S_-M", 6)},
		"openai-key":         {"sk" + "-proj-" + n("aB1_-", 8), "sk" + "-" + n("aB1c5", 4) + "T3Blb" + "kFJ" + n("aB1c5", 4), "sk" + "-svcacct-" + n("aB1_-", 20)},
		"anthropic-key":      {"sk" + "-ant-api03-" + n("aB1_-", 19)},
		"npm-token":          {"np" + "m_" + n("a1B2c3", 6)},
		"pypi-token":         {"py" + "pi-AgEI" + n("cHlwaS5vcmc", 10)},
		"docker-token":       {"dc" + "kr_pat_" + n("a1B2c3_-x", 3)},
		"huggingface-token":  {"h" + "f_" + n("aB", 17)},
		"sendgrid-key":       {"S" + "G." + n("a1", 11) + "." + n("b", 43)},
		"digitalocean-token": {"do" + "p_v1_" + n("0a1b", 16)},
		"databricks-token":   {"da" + "pi" + n("0a1b", 8), "da" + "pi" + n("0a1b", 8) + "-2"},
		"azure-key":          {"DefaultEndpointsProtocol=https;AccountName=x;Account" + "Key=" + n("aB", 43) + "=="},
		"jwt":                {"ey" + "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"},
		"private-key":        {"-----BEG" + "IN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA", "-----BEG" + "IN PRIVATE KEY-----\r\nMIIE", "-----BEG" + "IN EC PRIVATE KEY-----\\nMIIE", "-----BEG" + "IN PGP PRIVATE KEY BLOCK-----\n\nlQOY"},
		"url-password":       {"postgres://app:" + "s3cr3t-x@db.local/app", "https://u:" + "hunter22@example.com", "redis://:" + "s3cret%40x@host"},
		"codehand-token": {"ch" + "d_abcdefgh_" + n("aB1_-", 6), "ch" + "a_abcdefgh2345_" + n("aB1_-", 6),
			"ch" + "r_abcdefgh2345_" + n("aB1_-", 8), "ch" + "c_abcdefgh2345_" + n("aB1_-", 8), "ch" + "i_" + n("aB1_-", 8) + "xyz"},
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	kinds := map[string]bool{}
	for _, s := range secretShapes() {
		kinds[s.kind] = true
		if planted()[s.kind] == nil {
			t.Errorf("%s has no example in planted", s.kind)
		}
	}
	if len(kinds) < 20 {
		t.Errorf("%d kinds, not 20", len(kinds))
	}
	for kind, examples := range planted() {
		for _, secret := range examples {
			for _, form := range []string{"%s", "\n\n%s\n", "key: %q", "x = '%s';", "<a>%s</a>", "a %s b", "{\"k\":\"%s\"}", "\x1b[1;32m%s\x1b[0m", `{"log":"a\n%s"}`} {
				text := fmt.Sprintf(form, secret)
				if strings.Contains(form, "%q") && strings.ContainsAny(secret, "\n\"\\") {
					continue // which changes it
				}
				found := Find(text)
				if len(found) != 1 || found[0].Kind != kind {
					t.Errorf("%s in %q: %v", kind, text, found)
					continue
				}
				s := found[0]
				if want := 1 + strings.Count(text[:s.From], "\n"); s.Line != want || !strings.Contains(secret, text[s.From:s.To]) {
					t.Errorf("%s: line %d, not %d, %q", kind, s.Line, want, text[s.From:s.To])
				}
				if tail := s.Tail(text); tail != "" && !strings.HasSuffix(text[s.From:s.To], tail) {
					t.Errorf("%s: tail %q of %q", kind, tail, text[s.From:s.To])
				}
			}
		}
	}
}

// What only looks so: too short, too long, part of a word, a placeholder, a variable, a public key.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	n := strings.Repeat
	for _, text := range []string{
		"AKIA", "AK" + "IA" + n("a", 16), "XAK" + "IAIOSFODNN7EXAMPLE", "AK" + "IAIOSFODNN7EXAMPLEX", "my_gh" + "p_" + n("a", 36), "gh" + "p_" + n("a", 35), "gh" + "p_" + n("a", 37),
		"glpat-short", "xoxb-not-a-token", "https://hooks.slack.com/services/", "sk_live_", "sk" + "_test_" + n("a", 24), "AIza", "AI" + "za" + n("a", 36), "sk-learn", "sk-SK", "task-proj-abcdefghijklmnopqrstuvwxyz",
		"npm_config_registry", "npm_lifecycle_event_is_a_long_variable_name_", "hf_hub_download", "hf_" + n("_", 34), "dapi", "pypi-", "SG.x", "eyJhbGci", "eyJ0eXAiOiJKV1QifQ.a.b",
		"-----BEGIN PUBLIC KEY-----\nMIIB", "-----BEGIN CERTIFICATE-----\nMII", "a line with -----BEGIN PRIVATE KEY----- in the middle, `as text`",
		"https://user:password@example.com", "https://user:$PASS@example.com", "https://user:${PASS}@x", "https://user:<pw>@x", "https://user:***@x", "https://user@example.com", "http://[::1]:80/a@b", "https://example.com:443/x:y@z",
		"secret_access_key = os.environ", "aws_secret_access_key = $SECRET", "AccountKey=", "chd_", n("a", 1000),
	} {
		if found := Find(text); len(found) > 0 {
			t.Errorf("%q: %v", text, found)
		}
	}
}

func TestSecretsInOrder(t *testing.T) {
	t.Parallel()
	key := "gh" + "p_" + strings.Repeat("a", 36)
	text := "one\nhttps://bot:" + key + "@github.com\nAK" + "IAIOSFODNN7EXAMPLE " + key + "\n"
	var got []string
	for _, s := range Find(text) {
		got = append(got, fmt.Sprint(s.Kind, s.Line))
	}
	if want := "[github-token2 aws-access-key3 github-token3]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// goSource is the directory of Go's own source.
func goSource(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("the source of Go: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}

// The source of Go has 9,000 files of all kinds, and the secrets in it are examples of tests.
func TestSecretsInGo(t *testing.T) {
	t.Parallel()
	root := goSource(t)
	long := leaktest.Long() // else the parts in which there are most keys
	files, bytes, hits := 0, int64(0), map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && !long && filepath.Dir(path) == root && !slices.Contains([]string{"crypto", "net", "encoding"}, d.Name()) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".txt") && !strings.HasSuffix(path, ".md") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		bytes += int64(len(raw))
		for _, s := range Find(string(raw)) {
			rel, _ := filepath.Rel(root, path)
			if strings.HasSuffix(path, "_test.go") || strings.Contains(rel, "testdata") || strings.Contains(rel, "internal/test") {
				continue // examples, which are true to their shapes
			}
			hits[s.Kind]++
			t.Logf("%s:%d: %s %q", rel, s.Line, s.Kind, raw[s.From:min(s.To, s.From+60)])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d MiB: %v", files, bytes>>20, hits)
	if files < 500 {
		t.Errorf("%d files below %s are too few to say anything", files, root)
	}
	for kind, n := range hits {
		t.Errorf("%d times %s in programs that hold none", n, kind)
	}
}

// No text makes the search look at more than a few times its length: 1 MiB of `-eyJhbGci` took 24 seconds, since each of
// them was tried as far as 4,096 bytes. The beginnings of every kind stand here behind what a beginning may stand behind.
func TestSecretsLookLittle(t *testing.T) {
	t.Parallel()
	const size = 2 << 10
	worst, of := 0, ""
	for kind, examples := range planted() {
		for _, example := range examples {
			for n := 2; n <= min(len(example), 120); n++ {
				for _, between := range []string{"", "-", ".", "/", " ", ":", "\n", "-.", ".-"} {
					part := example[:n] + between
					text := strings.Repeat(part, size/len(part))
					looked := 0
					found := findBy(text, func(re *regexp.Regexp, s string) []int {
						r := strings.NewReader(s)
						m := re.FindReaderSubmatchIndex(r)
						looked += len(s) - r.Len()
						return m
					})
					if n == 3 && !slices.Equal(found, Find(text)) {
						t.Errorf("%q is not searched as it is counted", part)
					}
					if looked > worst {
						worst, of = looked, kind+" in "+part
					}
				}
			}
		}
	}
	t.Logf("at most %.1f bytes are looked at for each byte: %s", float64(worst)/size, of)
	if worst > 20*size {
		t.Errorf("%d bytes of %d are looked at: %s", worst, size, of)
	}
}

func BenchmarkSecretsHostile(b *testing.B) {
	for _, part := range []string{"AKIA", "sk-proj-", "://a:b", "://", "eyJhbGci.", "-----BEGIN A A A ", "secret_access_key =", "xoxb-1-", ".SG", "-eyJhbGci", "-eyJhbGciaaaaaaaa.-"} {
		b.Run(part, func(b *testing.B) {
			text := strings.Repeat(part, 1<<20/len(part))
			b.SetBytes(1 << 20)
			for b.Loop() {
				Find(text)
			}
		})
	}
}

func BenchmarkSecrets(b *testing.B) {
	raw, err := os.ReadFile(filepath.Join(goSource(b), "net", "http", "server.go"))
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(string(raw), 1+1<<20/len(raw))[:1<<20]
	b.SetBytes(1 << 20)
	for b.Loop() {
		Find(text)
	}
}

func FuzzSecrets(f *testing.F) {
	for _, examples := range planted() {
		f.Add(examples[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, s := range Find(text) {
			if s.From < at || s.To <= s.From || s.To > len(text) || s.Line != 1+strings.Count(text[:s.From], "\n") {
				t.Fatalf("%+v in %q", s, text)
			}
			at = s.To
		}
	})
}
