package blackbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The tests of this file are about time and memory of the built program, so they do not run beside others of this
// package. By default they show that limits hold; with CODEHAND_LONG=1 they are floods, and others must notice nothing.

// The limits of an HTTP server.
const (
	headerLimit = 5 * time.Second
	bodyLimit   = 30 * time.Second
	writeLimit  = 30 * time.Second
)

// A target is a running daemon that raw requests are sent to.
type target struct {
	*daemon
	at string
}

// attacked starts a server for tokens, which are made by the caller before.
func attacked(d *deployment) *target {
	s := d.serve()
	return &target{s, strings.TrimPrefix(s.url, "http://")}
}

// issue makes a token for a principal.
func (d *deployment) issue(principal string, more ...string) string {
	d.t.Helper()
	out, err := d.codehand(append([]string{"token", "new", principal}, more...)...).Output()
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// unbounded are the options of a token that no quota of requests stops.
var unbounded = []string{
	"--quota", "calls_per_minute=0", "--quota", "bytes_in_per_minute=0", "--quota", "requests_per_minute=0", "--quota", "connections=0",
}

// a client of its own, whose connections are not those of others.
func (s *target) client(token string) (*http.Client, func(method, path, session, body string) (int, http.Header, string, error)) {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: hang}
	return c, func(method, path, session, body string) (int, http.Header, string, error) {
		q, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
		if err != nil {
			return 0, nil, "", err
		}
		if body != "" {
			q.Header.Set("Content-Type", "application/json")
		}
		q.Header.Set("Accept", "application/json, text/event-stream")
		if token != "" {
			q.Header.Set("Authorization", "Bearer "+token)
		}
		if session != "" {
			q.Header.Set("Mcp-Session-Id", session)
		}
		r, err := c.Do(q)
		if err != nil {
			return 0, nil, "", err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return r.StatusCode, r.Header, string(text), err
	}
}

// latencies measures a call over and over, every so often, until the context ends. Every answer must be a result.
func (s *target) latencies(ctx context.Context, t *testing.T, token string, every time.Duration) []time.Duration {
	t.Helper()
	c, do := s.client(token)
	defer c.CloseIdleConnections()
	_, h, text, err := do(http.MethodPost, "/mcp", "", hello)
	session := h.Get("Mcp-Session-Id")
	if err != nil || session == "" {
		t.Errorf("initialize: %v %s", err, text)
		return nil
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var all []time.Duration
	for {
		select {
		case <-ctx.Done():
			return all
		case <-tick.C:
		}
		began := time.Now()
		_, _, text, err := do(http.MethodPost, "/mcp", session, replaytest.CallLine(len(all), "list_files", `{"pattern":"*"}`, ""))
		all = append(all, time.Since(began))
		if err != nil || strings.Contains(text, `"error"`) || strings.Contains(text, `"isError":true`) {
			t.Errorf("a normal call: %v %s", err, text)
			return all
		}
	}
}

// percentile returns the 99th percentile: of fewer than 100, the slowest.
func percentile(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*99/100)]
}

// calm measures what an undisturbed call takes, so that a busy machine is not taken for a slow server.
func (s *target) calm(t *testing.T, token string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return percentile(s.latencies(ctx, t, token, 2*time.Millisecond))
}

// bounded fails if calls were slowed over the limit, unless they were as slow before.
func bounded(t *testing.T, before time.Duration, all []time.Duration, limit time.Duration) {
	t.Helper()
	p99 := percentile(all)
	t.Logf("%d normal calls beside it: p99 %v (before: %v), limit %v", len(all), p99, before, limit)
	if len(all) == 0 || leaktest.Long() && p99 > max(limit, 3*before) {
		t.Errorf("p99 %v of %d calls, limit %v", p99, len(all), limit)
	}
}

// sound checks that the server neither panicked nor wrote a token anywhere.
func (s *target) sound(t *testing.T, tokens ...string) {
	t.Helper()
	log := s.log.String()
	if strings.Contains(log, "panic") || strings.Contains(log, "internal error") {
		t.Errorf("the log tells of a fault:\n%s", log)
	}
	for _, token := range tokens {
		if strings.Contains(log, token[len("chd_aaaaaaaaaa_"):]) {
			t.Error("a token is in the log")
		}
	}
}

// filler is endless JSON text: the inside of a string.
type filler struct{}

func (filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// TestHugeBody sends more than a message may have, announced and in chunks, to every route that takes a body, with and
// without a token. All are refused, and the server's memory hardly notices.
func TestHugeBody(t *testing.T) {
	d := deploy(t)
	token := d.issue("alice", unbounded...)
	s := attacked(d)
	c, do := s.client(token)
	defer c.CloseIdleConnections()
	_, h, _, err := do(http.MethodPost, "/mcp", "", hello)
	if err != nil {
		t.Fatal(err)
	}
	session := h.Get("Mcp-Session-Id")
	stream, id := s.openSSE(t, token)
	defer stream.Close()
	before := peak(t, s.cmd.Process.Pid)
	size := int64(leaktest.Rounds(48, 300)) << 20
	head := "Host: " + s.at + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	auth := "Authorization: Bearer " + token + "\r\nMcp-Session-Id: " + session + "\r\n"
	begin := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file","arguments":{"file_path":"`
	n := 0
	for _, test := range []struct{ path, auth, want string }{
		{"/mcp", auth, "413"}, {"/mcp/s/handle-1", auth, "413"}, {"/message?sessionId=" + id, auth, "413"},
		{"/mcp", "", "401"}, {"/nothing", auth, "404"}, {"/healthz", "", "405"},
	} {
		for _, coding := range []string{"Content-Length: " + strconv.FormatInt(size, 10) + "\r\n", "Transfer-Encoding: chunked\r\n"} {
			n++
			body := io.MultiReader(strings.NewReader(begin), io.LimitReader(filler{}, size-int64(len(begin))))
			if got := s.pour(t, "POST "+test.path+" HTTP/1.1\r\n"+head+test.auth+coding+"\r\n", body, strings.HasPrefix(coding, "Transfer")); got != test.want {
				t.Errorf("%s, %s: %q, want %s", test.path, strings.TrimSpace(coding), got, test.want)
			}
		}
	}
	grown := peak(t, s.cmd.Process.Pid) - before
	t.Logf("%d bodies of %d MiB: peak memory grew by %d KiB", n, size>>20, grown)
	if grown > 16<<10 {
		t.Errorf("peak memory grew by %d KiB, limit 16 MiB", grown)
	}
	s.sound(t, token)
}

// pour sends a request with a body until the server has enough, and returns the status of the answer.
func (s *target) pour(t *testing.T, head string, body io.Reader, chunked bool) string {
	t.Helper()
	c, err := net.Dial("tcp", s.at)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(hang))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.Close()
	wg.Go(func() {
		if _, err := io.WriteString(c, head); err != nil || !chunked {
			_, _ = io.Copy(c, body) // until the other side closes
			return
		}
		part := make([]byte, 64<<10)
		for {
			n, err := body.Read(part)
			if err != nil {
				return
			}
			if _, err := fmt.Fprintf(c, "%x\r\n%s\r\n", n, part[:n]); err != nil {
				return
			}
		}
	})
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	_, status, _ := strings.Cut(line, " ")
	return strings.TrimSpace(status)[:3]
}

// openSSE opens a stream of legacy SSE and returns its id.
func (s *target) openSSE(t *testing.T, token string) (net.Conn, string) {
	t.Helper()
	c, err := net.Dial("tcp", s.at)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET /sse HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", s.at, token)
	_ = c.SetReadDeadline(time.Now().Add(hang))
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if _, id, ok := strings.Cut(lines.Text(), "data: /message?sessionId="); ok {
			return c, id
		}
	}
	t.Fatal("no endpoint event")
	return nil, ""
}

// TestSlowClients has connections that send a header slowly, and as many that send half a body. Others are served, and each
// is closed when its time is up.
func TestSlowClients(t *testing.T) {
	d := deploy(t)
	alice, bob := d.issue("alice", unbounded...), d.issue("bob", unbounded...)
	s := attacked(d)
	before := s.calm(t, bob)
	watch := time.Duration(leaktest.Rounds(6, 60)) * time.Second // a header has 5 s
	head := "POST /mcp HTTP/1.1\r\nHost: " + s.at + "\r\nContent-Type: application/json\r\n"
	kinds := map[string]struct {
		first string
		drip  string // once a second
		n     int
		limit time.Duration
		say   string // the first line of an answer; "": none
	}{
		"header":                 {"POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: ", "a", 500, headerLimit, "HTTP/1.1 408"},
		"body with a token":      {head + "Authorization: Bearer " + alice + "\r\nContent-Length: 1000000\r\n\r\n{", " ", 200, bodyLimit, "HTTP/1.1 408"},
		"body without a token":   {head + "Content-Length: 1000\r\n\r\n{", " ", 200, bodyLimit, "HTTP/1.1 401"},
		"body of what is not":    {strings.Replace(head, "/mcp", "/nothing", 1) + "Transfer-Encoding: chunked\r\n\r\n5\r\n", "", 50, bodyLimit, "HTTP/1.1 404"},
		"body for another host":  {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\n", "", 25, bodyLimit, "HTTP/1.1 403"},
		"body of general option": {"OPTIONS * HTTP/1.1\r\nHost: " + s.at + "\r\nContent-Length: 1000\r\n\r\n", "", 25, bodyLimit, "HTTP/1.1 4"},
	}
	slack := time.Duration(leaktest.Rounds(60, 5)) * time.Second // of a machine with better things to do
	var wg sync.WaitGroup
	var open atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), watch)
	defer cancel()
	for name, kind := range kinds {
		for range leaktest.Rounds(kind.n/25, kind.n) {
			c, err := net.Dial("tcp", s.at)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.WriteString(c, kind.first); err != nil {
				t.Fatal(err)
			}
			open.Add(1)
			stop := make(chan struct{})
			if kind.drip != "" {
				wg.Go(func() {
					tick := time.NewTicker(time.Second)
					defer tick.Stop()
					for {
						select {
						case <-stop:
							return
						case <-tick.C:
							_, _ = io.WriteString(c, kind.drip) // until it is closed
						}
					}
				})
			}
			wg.Go(func() {
				defer c.Close()
				defer close(stop)
				if kind.limit > watch { // only the whole test waits so long
					<-ctx.Done()
					return
				}
				_ = c.SetReadDeadline(began.Add(kind.limit + slack))
				said, err := io.ReadAll(c)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("slow %s: still open after %v, limit %v", name, time.Since(began), kind.limit)
				} else if err == nil && !strings.HasPrefix(string(said), kind.say) && !(len(said) == 0 && kind.limit == headerLimit) {
					t.Errorf("slow %s: closed with %.60q, want %s", name, said, kind.say)
				}
				open.Add(-1)
			})
		}
	}
	most := open.Load()
	all := s.latencies(ctx, t, bob, 5*time.Millisecond)
	wg.Wait()
	t.Logf("%d slow connections, %d of them not waited for", most, open.Load())
	bounded(t, before, all, 100*time.Millisecond)
	s.sound(t, alice, bob)
}

// TestUnreadAnswers has clients that ask and never read. Each holds its connection for the time of one body and one write,
// no longer.
func TestUnreadAnswers(t *testing.T) {
	t.Parallel() // it mostly waits
	leaktest.OnlyLong(t, "waits for the deadline of a write")
	d := deploy(t)
	token := d.issue("alice", unbounded...)
	s := attacked(d)
	var wg sync.WaitGroup
	for _, ask := range []string{
		"GET /nothing HTTP/1.1\r\nHost: " + s.at + "\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: " + s.at + "\r\n\r\n",
		"POST /mcp HTTP/1.1\r\nHost: " + s.at + "\r\nContent-Length: 2\r\n\r\n{}",
		"POST /mcp HTTP/1.1\r\nHost: " + s.at + "\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(hello)) + "\r\n\r\n" + hello,
	} {
		wg.Go(func() {
			c, err := net.Dial("tcp", s.at)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			block := []byte(strings.Repeat(ask, 1+100_000/len(ask)))
			_ = c.SetWriteDeadline(time.Now().Add(bodyLimit + writeLimit + 30*time.Second))
			for err == nil {
				_, err = c.Write(block)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%.20q is still open", ask)
			}
		})
	}
	wg.Wait()
	s.sound(t, token)
}

// TestNoisyNeighbour: one principal calls as fast as it can. It is told to slow down, and another one notices nothing.
func TestNoisyNeighbour(t *testing.T) {
	d := deploy(t)
	noisy, quiet := d.issue("noisy"), d.issue("quiet", unbounded...)
	s := attacked(d)
	before := s.calm(t, quiet)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	var ok, limited, refused, other atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() { // a machine with better things to do takes longer to reach the quota
		defer cancel()
		least := time.NewTimer(time.Duration(leaktest.Rounds(1, 30)) * time.Second)
		defer least.Stop()
		select {
		case <-least.C:
		case <-ctx.Done():
			return
		}
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for limited.Load() == 0 && ctx.Err() == nil {
			<-look.C
		}
	})
	pace := make(chan struct{}, 16)
	wg.Go(func() { // 1,000 calls a second
		defer close(pace)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				select {
				case pace <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	c, do := s.client(noisy)
	defer c.CloseIdleConnections()
	_, h, _, err := do(http.MethodPost, "/mcp", "", hello)
	if err != nil {
		t.Fatal(err)
	}
	session := h.Get("Mcp-Session-Id")
	var id atomic.Int64
	for range 16 {
		wg.Go(func() {
			for range pace {
				status, h, text, err := do(http.MethodPost, "/mcp", session, replaytest.CallLine(id.Add(1), "grep_search", `{"pattern":"x"}`, ""))
				switch {
				case err != nil:
					t.Error(err)
				case status == http.StatusTooManyRequests:
					if after, err := strconv.Atoi(h.Get("Retry-After")); err != nil || after < 1 {
						t.Errorf("Retry-After %q", h.Get("Retry-After"))
					}
					refused.Add(1)
				case strings.Contains(text, "RATE_LIMITED"):
					if !strings.Contains(text, "retryAfterMs") {
						t.Errorf("no hint: %s", text)
					}
					limited.Add(1)
				case status == http.StatusOK && strings.Contains(text, `"result"`):
					ok.Add(1)
				default:
					t.Logf("%d %s", status, text)
					other.Add(1)
				}
			}
		})
	}
	all := s.latencies(ctx, t, quiet, time.Duration(leaktest.Rounds(5, 20))*time.Millisecond)
	wg.Wait()
	t.Logf("the noisy one: %d calls done, %d RATE_LIMITED, %d refused with 429, %d others", ok.Load(), limited.Load(), refused.Load(), other.Load())
	if limited.Load() == 0 || other.Load() > 0 || ok.Load() > 100+600 {
		t.Error("the quotas do not hold")
	}
	bounded(t, before, all, 200*time.Millisecond)
	s.sound(t, noisy, quiet)
}

// TestCaps: connections of all, streams and sessions of one principal, at their defaults but for the first.
func TestCaps(t *testing.T) {
	const connections = 150
	d := deploy(t, "CODEHAND_HTTP_MAX_CONNECTIONS="+strconv.Itoa(connections))
	alice, bob := d.issue("alice", unbounded...), d.issue("bob")
	s := attacked(d)
	c, do := s.client(alice)
	defer c.CloseIdleConnections()

	for range 64 {
		stream, _ := s.openSSE(t, alice)
		defer stream.Close()
	}
	status, h, text, err := do(http.MethodGet, "/sse", "", "")
	if err != nil || status != http.StatusTooManyRequests || h.Get("Retry-After") == "" {
		t.Errorf("the 65th stream: %d %v %s", status, err, text)
	}
	for i := range 201 {
		status, h, text, err = do(http.MethodPost, "/mcp", "", hello)
		if want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[i < 200]; err != nil || status != want {
			t.Fatalf("session %d: %d %v %s", i+1, status, err, text)
		}
	}
	if h.Get("Retry-After") == "" || !strings.Contains(text, "too many sessions") {
		t.Errorf("session 201: %v %s", h, text)
	}
	// The 64 streams are open. Idle connections take the rest, at the latest when that has ended which all went over.
	c.CloseIdleConnections()
	idle := make([]net.Conn, connections-64)
	for i := range idle {
		if idle[i], err = net.Dial("tcp", s.at); err != nil {
			t.Fatal(err)
		}
		defer idle[i].Close()
		if _, err := io.WriteString(idle[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(idle[i]).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200") {
			t.Fatalf("connection %d: %q %v", i, line, err)
		}
	}
	waiting := make(chan error, 1)
	go func() {
		c, do := s.client(bob)
		defer c.CloseIdleConnections()
		status, _, _, err := do(http.MethodPost, "/mcp", "", hello)
		if status != http.StatusOK && err == nil {
			err = fmt.Errorf("status %d", status)
		}
		waiting <- err
	}()
	select {
	case err := <-waiting:
		t.Errorf("a connection over the limit is served: %v", err)
	case <-time.After(200 * time.Millisecond): // that it is served later, too, would not be seen
	}
	_ = idle[0].Close()
	select {
	case err := <-waiting:
		if err != nil {
			t.Errorf("a connection that waited: %v", err)
		}
	case <-time.After(hang):
		t.Error("a connection that waited is not served when another one ends")
	}
	s.sound(t, alice, bob)
}

// TestOtherUser: without authentication the endpoint is that of one user, not of the machine.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	for _, name := range []string{"setpriv", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skipf("%s is needed: %v", name, err)
		}
	}
	d := deploy(t)
	dir := leaktest.Public(t)
	socket := filepath.Join(dir, "s")
	s := startDaemon(t, d.codehand("serve", d.work, "--listen", "127.0.0.1:0", "--listen", "unix:"+socket, "--http-unix-mode", "0666", "--auth-mode", "none"))
	file := filepath.Join(dir, "hello")
	if err := os.WriteFile(file, []byte(hello), 0o644); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	curl := func(uid string, args ...string) string {
		t.Helper()
		all := []string{"--reuid=" + uid, "--regid=" + uid, "--clear-groups", "curl", "-sS", "--max-time", "60", "-w", " %{http_code}", "-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream"}
		out, err := exec.Command("setpriv", append(all, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("curl %v: %v %s", args, err, out)
		}
		return string(bytes.TrimSpace(out))
	}
	post := []string{"--data-binary", "@" + file}
	over := map[string][]string{"tcp": nil, "unix": {"--unix-socket", socket}}
	for name, how := range over {
		for _, ask := range [][]string{
			append(post, s.url+"/mcp"), append(post, s.url+"/mcp/s/handle-1"), append(post, s.url+"/message?sessionId=x"),
			{s.url + "/mcp"}, {"-X", "DELETE", s.url + "/mcp"}, {s.url + "/sse"}, {s.url + "/metrics"}, {s.url + "/readyz"}, {"-H", "Authorization: Bearer x", s.url + "/metrics"},
		} {
			if got := curl("65534", append(how, ask...)...); !strings.HasSuffix(got, " 403") || !strings.Contains(got, "not_local_user") {
				t.Errorf("%s %v by another user: %s", name, ask, got)
			}
		}
		if got := curl("65534", append(how, s.url+"/healthz")...); !strings.HasSuffix(got, " 200") {
			t.Errorf("%s /healthz by another user: %s", name, got)
		}
		if got := curl("0", append(how, append(post, s.url+"/mcp")...)...); !strings.HasSuffix(got, " 200") {
			t.Errorf("%s by root: %s", name, got)
		}
	}
}
