package blackbox

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// insideMark says that the test runs in a network of its own; see inNetwork.
const insideMark = "CODEHAND_TEST_NETWORK"

// documentAddress is a public address to the guard. It belongs to a host of the test, in a network that has no other.
const documentAddress = "93.184.215.14"

// hostsInside are the names of that network.
const hostsInside = "127.0.0.1 localhost\n" + documentAddress + " example.com www.example.com claude.ai chatgpt.com\n127.0.0.1 loop.example.com\n" +
	"10.0.0.1 ten.example.com\n169.254.169.254 meta.example.com\n"

// inNetwork says whether the test runs in a network namespace of its own in which documentAddress is a host. If not it
// runs the test there, and reports what came of it. A metadata document must come from a public address, and the guard
// has no exception for tests.
func inNetwork(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideMark) != "" {
		return true
	}
	for _, program := range []string{"unshare", "ip", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			unavailable(t, "%s is not installed: %v", program, err)
		}
	}
	if out, err := exec.Command("unshare", "--map-root-user", "--net", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("this machine gives no namespaces: %v\n%s", err, out)
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	must(t, os.WriteFile(hosts, []byte(hostsInside), 0o644))
	cmd := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-euc",
		`ip link set lo up; ip addr add `+documentAddress+`/32 dev lo; mount --bind "$0" /etc/hosts; "$@"; exit $?`, hosts,
		os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.count", "1", "-test.v")
	cmd.Env = append(os.Environ(), insideMark+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("in a network of its own: %v\n%s", err, out)
	}
	return false
}

// published starts the host of metadata documents and returns the file of the authority that a server must trust.
func published(t *testing.T, h http.Handler) (trust string) {
	t.Helper()
	l, err := net.Listen("tcp", documentAddress+":443")
	must(t, err)
	ca, config := replaytest.NewAuthority(t), &tls.Config{}
	for _, name := range []string{"example.com", "www.example.com", "claude.ai", "chatgpt.com"} {
		pair, err := tls.X509KeyPair(ca.Issue(t, name))
		must(t, err)
		config.Certificates = append(config.Certificates, pair)
	}
	s := &httptest.Server{Listener: l, TLS: config, Config: &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}}
	s.StartTLS()
	t.Cleanup(s.Close)
	trust = filepath.Join(leaktest.Dir(t), "ca.pem")
	must(t, os.WriteFile(trust, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Cert.Raw}), 0o600))
	return trust
}

// documentOf is a good metadata document.
func documentOf(id string, redirects ...string) map[string]any {
	return map[string]any{"client_id": id, "client_name": "Document app", "client_uri": "https://example.com", "redirect_uris": redirects,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none"}
}

// documents answers each URL with a document about it.
func documents(redirects ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// a client that left reads nothing
		_ = json.NewEncoder(w).Encode(documentOf("https://"+r.Host+r.URL.Path, redirects...))
	})
}

// TestOAuthDocuments: each SDK does what TestOAuthClients wants of it, known by its metadata document and not registered.
func TestOAuthDocuments(t *testing.T) {
	t.Parallel()
	long(t)
	if !inNetwork(t) {
		return
	}
	const id, redirect = "https://example.com/app/client.json", "http://127.0.0.1:33419/callback"
	trust := published(t, documents(redirect))
	for _, f := range signers {
		t.Run(f.name, func(t *testing.T) {
			d := opened(t, []string{"SSL_CERT_FILE=" + trust})
			d.accompany(f.signer(t, "--url", d.s.url+"/mcp", "--redirect", redirect, "--document", id))
		})
	}
}

// TestOAuthDocumentAttacks: a document with a wrong content or at a wrong place leads to no sign-in, and the server
// sends no request to its own network for it.
func TestOAuthDocumentAttacks(t *testing.T) {
	t.Parallel()
	if !inNetwork(t) {
		return
	}
	const redirect = "http://127.0.0.1:33419/callback"
	inside, err := net.Listen("tcp", "127.0.0.1:443")
	must(t, err)
	defer inside.Close()
	asked := make(chan struct{}, 1)
	go func() {
		if c, err := inside.Accept(); err == nil {
			_ = c.Close()
			asked <- struct{}{}
		}
	}()
	release := make(chan struct{})
	good := documents(redirect)
	changed := func(key string, value any) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			doc := documentOf("https://"+r.Host+r.URL.Path, redirect)
			doc[key] = value
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(doc) // a client that left reads nothing
		}
	}
	bad := map[string]http.HandlerFunc{
		"/huge": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 1 << 10 {
				if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<16)); err != nil {
					return
				}
			}
		},
		"/slow": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		},
		"/drip": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{")) // the rest never comes
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-release:
			}
		},
		"/to-good": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/good", http.StatusFound) },
		"/to-inside": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1/x", http.StatusFound)
		},
		"/gone": http.NotFound,
		"/html": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_ = json.NewEncoder(w).Encode(documentOf("https://"+r.Host+r.URL.Path, redirect))
		},
		"/no-json": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("client"))
		},
		"/deep": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(bytes.Repeat([]byte("["), 60_000))
		},
		"/another":      changed("client_id", "https://example.com/good"),
		"/nobody":       changed("client_id", nil),
		"/script":       changed("redirect_uris", []string{"javascript:alert(1)", redirect}),
		"/plain":        changed("redirect_uris", []string{"http://evil.example/cb", redirect}),
		"/elsewhere":    changed("redirect_uris", []string{"https://evil.example/cb"}),
		"/no-redirects": changed("redirect_uris", []string{}),
		"/secret":       changed("client_secret", "x"),
		"/implicit":     changed("response_types", []string{"token"}),
	}
	trust := published(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := bad[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		good.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { close(release) }) // before the host of documents is closed
	d := opened(t, []string{"SSL_CERT_FILE=" + trust})
	ids := []string{"https://loop.example.com/good", "https://ten.example.com/good", "https://meta.example.com/good", "https://absent.example.com/good",
		"https://" + documentAddress + "/good"} // it is no name that a certificate is for
	for path := range bad {
		ids = append(ids, "https://example.com"+path)
	}
	var all sync.WaitGroup // two are slow
	for _, id := range ids {
		all.Go(func() {
			x := d.besieged(t)
			a := &app{d: d, id: id, redirect: redirect, resource: d.s.url + "/mcp", verifier: strings.Repeat("v", 43)}
			if got := x.get(a.authorizeURL(a.wish())); got != "400 page" {
				t.Errorf("%s: %s", id, got)
			}
		})
	}
	all.Wait()
	select {
	case <-asked:
		t.Error("a host inside was asked")
	default:
	}
	a := &app{d: d, id: "https://example.com/good", redirect: redirect, resource: d.s.url + "/mcp", verifier: strings.Repeat("v", 43)}
	if got := d.besieged(t).get(a.authorizeURL(a.wish())); got != "to signin" {
		t.Errorf("a good document: %s", got)
	}
}
