package upstream

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// asServer is set where this test binary stands for a server; its value says how that behaves.
const asServer = "UPSTREAM_TEST_SERVER"

func TestMain(m *testing.M) {
	if how := os.Getenv(asServer); how != "" {
		serve(how)
		os.Exit(7)
	}
	leaktest.Main(m)
}

// serve is a server that hears initialize first, or ends.
func serve(how string) {
	if how == "rude" {
		_, _ = os.Stderr.WriteString("no \x1b[2Jway")
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	for first := true; lines.Scan(); first = false {
		var r struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(lines.Bytes(), &r) != nil || first && r.Method != "initialize" {
			return
		}
		result := `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`
		if r.Method == "initialize" {
			result = `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`
		}
		if r.ID != nil {
			_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + result + "}\n")
		}
	}
}

func program(t *testing.T, how string) Options {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Command: Command{Argv: []string{path}, Env: []string{asServer + "=" + how, "GOCOVERDIR=" + t.TempDir()}, Dir: t.TempDir()}}
}

// A server that ends when it is asked for the newer era first is started again, and spoken to in the older one. Why one
// ended is said with its last words.
func TestDial(t *testing.T) {
	t.Parallel()
	c, err := Dial(t.Context(), program(t, "old"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if all, left, err := c.Tools(t.Context()); err != nil || left != 0 || len(all) != 1 || all[0].Name != "a" {
		t.Errorf("%v %d %v", all, left, err)
	}
	if c, err := Dial(t.Context(), program(t, "rude")); c != nil || err == nil || !strings.Contains(err.Error(), "it exited with code 7 and said: no \x1b[2Jway") {
		t.Errorf("%v", err)
	}
	if _, err := Dial(t.Context(), Options{Command: Command{Argv: []string{"no-such-program"}, Env: []string{"PATH=" + t.TempDir()}, Dir: "/"}}); err == nil || !strings.Contains(err.Error(), "no program no-such-program in PATH") {
		t.Errorf("%v", err)
	}
}

// A header, which may hold a key, goes to no other host; a server that refuses it, or that is none, says so.
func TestHeaders(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer other.Close()
	for path, want := range map[string]string{"/away": "redirects to another host", "/401": "refuses the credentials", "/500": "status 500", "/html": "unexpected content type"} {
		at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/away":
				http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			case "/401":
				w.WriteHeader(http.StatusUnauthorized)
			case "/500":
				w.WriteHeader(http.StatusInternalServerError)
			default:
				_, _ = io.WriteString(w, "<html>")
			}
		}))
		_, err := Dial(t.Context(), Options{URL: at.URL + path, Header: map[string]string{"Authorization": "Bearer x"}, Only: true})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Bearer") {
			t.Errorf("%s: %v", path, err)
		}
		at.Close()
	}
}

// A server over HTTP that answers the first question of the newer era by naming older versions alone is spoken to in the
// older one.
func TestOnlyLegacy(t *testing.T) {
	t.Parallel()
	var said []string // the methods, one after the other
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&q) != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		said = append(said, q.Method)
		result := map[string]string{
			"server/discover": `{"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{"tools":{}}}`,
			"initialize":      `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`,
			"tools/list":      `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`,
		}[q.Method]
		if result == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(q.ID)+`,"result":`+result+`}`)
	}))
	defer at.Close()
	c, err := Dial(t.Context(), Options{URL: at.URL, Only: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if all, _, err := c.Tools(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
	if got := strings.Join(said, " "); got != "server/discover initialize notifications/initialized tools/list" {
		t.Error(got)
	}
}

// A message that is too long ends the stream before it is all in memory; an event of SSE has as many lines as it likes.
func TestLineLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		blocks bool
		ok     bool
	}{
		{strings.Repeat("12345678\n", 9), false, true}, {"12345678901\n", false, false},
		{"12345\n12345\n", true, false}, {"1234\r\n\r\n1234\n\n1234\n\n", true, true}, {strings.Repeat("\n", 99), true, true},
	} {
		got, err := io.ReadAll(&lineLimit{Reader: strings.NewReader(c.text), most: 10, blocks: c.blocks})
		if c.ok != (err == nil && string(got) == c.text) || !c.ok && !errors.Is(err, errTooLong) {
			t.Errorf("%q: %q %v", c.text, got, err)
		}
	}
}
