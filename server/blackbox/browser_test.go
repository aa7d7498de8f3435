package blackbox

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// long skips a test that starts programs of others, unless CODEHAND_LONG is set.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("it starts programs from npm or Debian, for many seconds; set CODEHAND_LONG=1")
	}
}

// chromiumBy makes a command that drives Chromium by a script of .ci/conformance/browser. Pictures go to
// $CODEHAND_PICTURES.
func chromiumBy(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	node, _ := inspector(t)
	program, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "chromium"))
	if err != nil {
		unavailable(t, "Chromium is not installed: apt-get install chromium")
	}
	path, err := filepath.Abs(filepath.Join("../../.ci/conformance/browser", script))
	must(t, err)
	if dir := os.Getenv("CODEHAND_PICTURES"); dir != "" {
		args = append(args, "--out", dir)
	}
	cmd := exec.Command(node, append([]string{path}, args...)...)
	cmd.Env = append(os.Environ(), "CHROMIUM="+program, "TMPDIR="+shortDir(t))
	return cmd
}

// shortDir is a directory whose path leaves room for the name of a socket: Chromium makes some below it, and a name may
// have 107 bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "b") //nolint:usetesting // that of t is named after the test
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what a browser still writes there goes with the run
	return dir
}

// TestPagesInChromium: the pages of sign-in, on a phone and a desk, light and dark, by keyboard alone, without script,
// with a passkey, in a frame; axe finds nothing to mend. Over plain http a person signs in for each client, over https
// once.
func TestPagesInChromium(t *testing.T) {
	t.Parallel()
	long(t)
	t.Run("plain http", func(t *testing.T) {
		t.Parallel()
		d := opened(t, nil)
		d.pages(strings.Replace(d.s.url, "127.0.0.1", "localhost", 1)) // an address has no passkeys
	})
	t.Run("https", func(t *testing.T) {
		t.Parallel()
		inside := replaytest.Reserved(t) // one more address of the server
		public, env := tlsProxy(t, inside)
		d := opened(t, nil, "--listen", inside, "--http-public-url", public)
		d.pages(public, env...)
	})
}

// pages tries the pages of sign-in at origin. env is what Chromium and Node need to trust it.
func (d *door) pages(origin string, env ...string) {
	d.t.Helper()
	a := d.register("http://127.0.0.1:33419/callback")
	a.resource = origin + "/mcp"
	authorize := strings.Replace(a.authorizeURL(a.wish()), d.s.url, origin, 1)
	cmd := chromiumBy(d.t, "pages.mjs", "--authorize", authorize, "--password", d.password, "--verifier", a.verifier)
	cmd.Env = append(cmd.Env, env...)
	conversed(d.t, cmd, func(string) (string, bool) { return "", false })
}

// tlsProxy speaks TLS for a server, as a tunnel does, and returns its URL and what lets Chromium and Node trust it.
func tlsProxy(t *testing.T, inside string) (public string, env []string) {
	t.Helper()
	ca := replaytest.NewAuthority(t)
	cert, key := ca.Issue(t, "localhost")
	pair, err := tls.X509KeyPair(cert, key)
	must(t, err)
	silent := log.New(io.Discard, "", 0) // browsers end requests and open connections that they do not use
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{ErrorLog: silent, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: inside})
		r.Out.Host = r.In.Host
	}})
	proxy.Config.ErrorLog = silent
	proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Cert.Raw}), 0o600))
	known := sha256.Sum256(pair.Leaf.RawSubjectPublicKeyInfo)
	return strings.Replace(proxy.URL, "127.0.0.1", "localhost", 1),
		[]string{"NODE_EXTRA_CA_CERTS=" + file, "TRUSTED_KEY=" + base64.StdEncoding.EncodeToString(known[:])}
}

// TestTeamInChromium: alice and bob are invited, set a password and a passkey in a browser, and let a client in. It sees the
// workspace of its person and no other. A link works once. The pages show each what their client does, also once the
// server has been killed and started, and nothing of the other.
func TestTeamInChromium(t *testing.T) {
	t.Parallel()
	long(t)
	t.Run("plain http", func(t *testing.T) {
		t.Parallel()
		teamInChromium(t, "", replaytest.Reserved(t))
	})
	t.Run("https", func(t *testing.T) {
		t.Parallel()
		inside := replaytest.Reserved(t)
		public, env := tlsProxy(t, inside)
		teamInChromium(t, public, inside, env...)
	})
}

// teamInChromium is TestTeamInChromium with a server at an address and its public URL; "": it has none.
func teamInChromium(t *testing.T, public, address string, env ...string) {
	t.Helper()
	d := &door{deployment: &deployment{t: t, program: replaytest.Program(t), home: t.TempDir(), address: address,
		set: []string{"CODEHAND_SANDBOX_POLICY=off", "CODEHAND_HTTP_PUBLIC_URL=" + public}}}
	d.work = leaktest.Dir(t)
	replaytest.Lay(t, d.work, map[string]string{"alice/of-alice.txt": "a", "bob/of-bob.txt": "b", "carol/c": ""})
	replaytest.Lay(t, d.home, map[string]string{".config/codehand/config.toml": "[auth]\nmode = \"team\"\n" +
		"[permissions]\nallow = [\"Bash(sleep *)\"]\n" +
		"[principals.default]\nroots = ['" + d.work + "/{principal}']\n[principals.carol]\nadmin = true\n" +
		"[http]\nlisten = ['" + d.address + "']\n"})
	d.s = startDaemon(t, d.codehand("serve"))
	local := cmp.Or(public, strings.Replace(d.s.url, "127.0.0.1", "localhost", 1)) // an address has no passkeys
	link := func(name string) string { return strings.Replace(d.output("invite", name), d.s.url, local, 1) }
	cmd := chromiumBy(t, "team.mjs", "--url", local+"/mcp", "--alice", link("alice"), "--bob", link("bob"),
		"--carol", link("carol"))
	cmd.Env = append(cmd.Env, env...)
	conversed(t, cmd, func(line string) (string, bool) {
		if line != "RESTART" {
			return "", false
		}
		d.s.kill()
		d.s = startDaemon(t, d.codehand("serve"))
		return "go on", true
	})
	for _, who := range []string{"alice", "bob"} {
		text, err := os.ReadFile(filepath.Join(d.work, who, "made.txt"))
		if err != nil || string(text) != "by "+who {
			t.Errorf("%s wrote %q, %v", who, text, err)
		}
	}
	audits, err := filepath.Glob(filepath.Join(d.home, "state", "codehand", "audit", "audit-*.jsonl"))
	must(t, err)
	var log strings.Builder
	for _, name := range audits {
		text, err := os.ReadFile(name)
		must(t, err)
		log.Write(text)
	}
	for event, p := range map[string]string{
		"page.stop": "bob", "page.undo": "alice", "page.end": "bob", "page.invite": "dora",
	} {
		told := func(line string) bool {
			return strings.Contains(line, `"`+event+`"`) && strings.Contains(line, `"by":"carol"`) &&
				strings.Contains(line, `"p":"`+p+`"`)
		}
		if !slices.ContainsFunc(strings.Split(log.String(), "\n"), told) {
			t.Errorf("the audit does not say %s by carol", event)
		}
	}
	var grants []struct{ ID, Principal string }
	must(t, json.Unmarshal([]byte(d.output("grants", "list", "--json")), &grants))
	if len(grants) != 1 || grants[0].Principal != "alice" { // carol ended that of bob
		t.Errorf("the grants are %+v", grants)
	}
}
