package models

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"codehand/tools/agent/loop"
)

func TestEndpoint(t *testing.T) {
	t.Parallel()
	key := func() (string, error) { return "k", nil }
	for _, c := range []struct {
		provider, base string
		key            func() (string, error)
		plain          bool
		want           string // begins with http, or is in the error
	}{
		{Anthropic, "", key, false, "https://api.anthropic.com/v1/messages"},
		{Anthropic, "https://h/anthropic", key, false, "https://h/anthropic/v1/messages"},
		{Anthropic, "https://h/v1/", key, false, "https://h/v1/messages"},
		{Anthropic, "https://h/v1/messages", key, false, "https://h/v1/messages"},
		{OpenAI, "", key, false, "https://api.openai.com/v1/chat/completions"},
		{OpenAI, "https://openrouter.ai/api/v1", key, false, "https://openrouter.ai/api/v1/chat/completions"},
		{OpenAI, "https://h/v1/chat/completions/", key, false, "https://h/v1/chat/completions"},
		{OpenAI, "http://localhost:11434", key, false, "http://localhost:11434/v1/chat/completions"},
		{OpenAI, "http://[::1]:1/", key, false, "http://[::1]:1/v1/chat/completions"},
		{OpenAI, "http://gpu:8000", nil, false, "http://gpu:8000/v1/chat/completions"},
		{OpenAI, "http://gpu:8000", key, true, "http://gpu:8000/v1/chat/completions"},
		{OpenAI, "http://gpu:8000", key, false, "the key would be sent to gpu without encryption"},
		{OpenAI, "http://127.0.0.1.evil.example", key, false, "without encryption"},
		{OpenAI, "https://u:planted@h", key, false, "has a user"},
		{OpenAI, "https://h?key=planted", key, false, "a query"},
		{OpenAI, "https://h#planted", key, false, "a fragment"},
		{OpenAI, "h:planted", key, false, "not of the form"},
		{OpenAI, "ftp://planted", key, false, "not of the form"},
		{OpenAI, "https://%zzplanted", key, false, "not of the form"},
		{"gemini", "", key, false, `"gemini" is no provider`},
	} {
		m, err := New(Options{Provider: c.provider, BaseURL: c.base, Model: "m", Key: c.key, PlainHTTP: c.plain})
		if err == nil && m.url != c.want || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "planted")) {
			t.Errorf("%s %s: %+v, %v", c.provider, c.base, m, err)
		}
	}
	if _, err := New(Options{Provider: OpenAI}); err == nil {
		t.Error("no model is needed")
	}
}

var asked = loop.Turn{Messages: []loop.Message{{Role: loop.RoleUser, Parts: []loop.Part{{Text: "hello"}}}}}

func kindOf(err error) loop.Kind {
	var failure *loop.Error
	errors.As(err, &failure)
	if failure == nil {
		return ""
	}
	return failure.Kind
}

// Nothing of the environment decides where a request goes or what it holds.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{
		"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
		"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS",
	} {
		t.Setenv(name, "http://planted.invalid:1")
	}
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Set-Cookie", "a=b")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	for _, provider := range []string{OpenAI, Anthropic} {
		// The host is no loopback name, so a proxy of the environment would be used for it.
		m, err := New(Options{Provider: provider, BaseURL: "http://model.example", Model: "m", Tries: 1})
		if err != nil {
			t.Fatal(err)
		}
		m.transport.DialContext = dialTo(server)
		for range 2 {
			_, err := m.Turn(t.Context(), asked, nil)
			if (err == nil) != (provider == OpenAI) {
				t.Error(err)
			}
		}
		m.Close()
		want := "Accept Accept-Encoding Content-Length Content-Type User-Agent"
		delete(got, "Anthropic-Version")
		for name := range got {
			if !strings.Contains(want, name) {
				t.Errorf("%s: header %s: %s", provider, name, got[name])
			}
		}
	}
}

// Only a certificate that the given authorities signed is accepted, and a bad one is not tried again.
func TestCertificates(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the client that trusts no certificate
	server.StartTLS()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	for _, c := range []struct {
		roots *x509.CertPool
		kind  loop.Kind
	}{{pool, ""}, {x509.NewCertPool(), loop.Wrong}} {
		m, err := New(Options{Provider: OpenAI, BaseURL: server.URL, Model: "m", Roots: c.roots, Wait: func(context.Context, time.Duration) error {
			t.Error("it waits for another try")
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = m.Turn(t.Context(), asked, nil); kindOf(err) != c.kind {
			t.Error(err)
		}
		m.Close()
	}
}

// The operator's proxy is used, and its password is in no error.
func TestProxy(t *testing.T) {
	t.Parallel()
	var seen string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.URL.String() + " " + r.Header.Get("Proxy-Authorization")
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("u", "planted")
	for _, base := range []string{"http://model.example", "https://model.example"} {
		m, err := New(Options{Provider: OpenAI, BaseURL: base, Model: "m", Proxy: u, Tries: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Turn(t.Context(), asked, nil); err == nil || strings.Contains(err.Error(), "planted") || seen == "" {
			t.Errorf("%s: %q, %v", base, seen, err)
		}
		m.Close()
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key string
		err error
	}{{"", errors.New("the file is gone")}, {"two words", nil}, {"line\r\nX-Injected: 1", nil}, {"ключ", nil}} {
		m, err := New(Options{Provider: Anthropic, BaseURL: "http://127.0.0.1:1", Model: "m", Key: func() (string, error) { return c.key, c.err }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Turn(t.Context(), asked, nil); kindOf(err) != loop.Denied || c.key != "" && strings.Contains(err.Error(), c.key) {
			t.Errorf("%q: %v", c.key, err)
		}
	}
}

// A complaint that repeats the key, cut or not, does not show it.
func TestHide(t *testing.T) {
	t.Parallel()
	const key = "sk-planted-1234567890"
	for _, pad := range []int{0, 480, 490, 499, 580, 595} {
		f := failed(loop.Wrong, strings.Repeat("x", pad)+key+"\n\x00 \xff"+key)
		f.hide(key)
		if text := f.final(3).Text; strings.Contains(text, "sk-p") || strings.Contains(text, "\n") {
			t.Errorf("%d: %s", pad, text)
		}
	}
}

// However a stream comes in pieces, its events are the same; and no stream makes a panic or goes over a cap.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: a\ndata:b\n\n: c\nevent: x\r\ndata\r\n\r\ndata: end"))
	f.Add([]byte("\ufeffdata: \n\n\n\ndatax: 1\ndata: 2"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		read := func(r io.Reader) (list []string) {
			for e := newEvents(r); ; {
				data, err := e.next()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					return list
				}
				list = append(list, string(data))
			}
		}
		a, b := read(bytes.NewReader(stream)), read(iotest.OneByteReader(bytes.NewReader(stream)))
		if strings.Join(a, "\x00") != strings.Join(b, "\x00") {
			t.Errorf("%q and %q", a, b)
		}
		for _, data := range a {
			if strings.Contains(data, "\r\n") || len(data) > len(stream) {
				t.Errorf("event %q", data)
			}
		}
	})
}

// dialTo makes connections to a server, wherever they are to go.
func dialTo(server *httptest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
}
