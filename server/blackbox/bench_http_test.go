package blackbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The benchmarks of this file run `codehand serve` as it is by default, with a token, audit and the embedded Store,
// beside trivial servers of the official Go and TypeScript SDKs (testdata/bench), in turns and in the same run. They
// report the ratio ours/peer; the goals are in .ci/bench. Ours has its whole tool list and the whole pipeline in the
// path; only its quotas are off, since they would stop any benchmark. The callers are our own and speak plain HTTP/1.1
// on kept connections: they share the processors with the servers, and the work of a real client would hide what is
// measured. Each answer is held against what was asked. The peers answer as their SDKs do by default, with an event
// stream; sdk-json is the Go SDK told to answer with JSON, and modern is ours without sessions, for information.

// A site is one server under measurement.
type site struct {
	cmd  *exec.Cmd
	addr string // host:port
	auth string // header of each request, with its end; "": none
	ours bool
	late bool // the headers of a stream come with its first event

	drained chan struct{} // closed when it has said its last
}

// openSite starts a server that says its URL in the first line of a pipe of cmd, and ends it with the benchmark.
func openSite(b *testing.B, cmd *exec.Cmd, pipe func() (io.ReadCloser, error)) *site {
	b.Helper()
	out, err := pipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := leaktest.Start(cmd); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReader(out)
	said, err := lines.ReadString('\n')
	s := &site{cmd: cmd, drained: make(chan struct{})}
	go func() { // a server that logs must not wait for us
		_, _ = io.Copy(io.Discard, lines)
		close(s.drained)
	}()
	b.Cleanup(s.end)
	at := benchURL.FindStringSubmatch(said)
	if at == nil {
		b.Fatalf("%s does not say where it listens: %s (%v)", cmd.Path, said, err)
	}
	s.addr = at[1]
	return s
}

var benchURL = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// end ends the server; the second time it does nothing. Peers end by the signal, which is no failure.
func (s *site) end() {
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.drained
	_ = s.cmd.Wait()
}

// openOurs starts codehand with a principal that has no quotas and may run the command that makes a job.
func openOurs(b *testing.B) *site {
	b.Helper()
	path := replaytest.Program(b)
	home, work := b.TempDir(), b.TempDir()
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("one\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	env := []string{"HOME=" + home, "XDG_STATE_HOME=" + home, "PATH=" + os.Getenv("PATH")}
	tokens := filepath.Join(home, "tokens.jsonl")
	args := []string{
		"token", "new", "bench", "--json", "--file", tokens, "--root", work, "--mode", "bypassPermissions", "--max-mode", "bypassPermissions",
		"--scope", "mcp:all",
	}
	for _, q := range []string{
		"calls_per_minute", "burst", "concurrent_calls", "streams", "connections", "sessions", "requests_per_minute", "bytes_in_per_minute",
		"bytes_out_per_minute",
	} {
		args = append(args, "--quota", q+"=0")
	}
	issue := exec.Command(path, args...)
	issue.Env = env
	said, err := issue.Output()
	if err != nil {
		b.Fatalf("%v: %v", issue.Args, err)
	}
	var made struct{ Token string }
	if err := json.Unmarshal(said, &made); err != nil || made.Token == "" {
		b.Fatalf("no token in %s: %v", said, err)
	}
	cmd := exec.Command(path, "serve", "--listen", "127.0.0.1:0", "--sandbox-policy", "off", "--auth-mode", "token", "--auth-token-file", tokens,
		"--session-max-per-principal", "5000")
	cmd.Env = env
	s := openSite(b, cmd, cmd.StderrPipe)
	s.auth, s.ours = "Authorization: Bearer "+made.Token+"\r\n", true
	return s
}

// openGo starts the Go SDK's server.
func openGo(b *testing.B, args ...string) *site {
	b.Helper()
	path, err := peer()
	if err != nil {
		b.Skipf("the peer cannot be built (%v); its modules come from the module proxy", err)
	}
	cmd := exec.Command(path, append([]string{"http"}, args...)...)
	return openSite(b, cmd, cmd.StdoutPipe)
}

// openNode starts the TypeScript SDK's server.
func openNode(b *testing.B) *site {
	b.Helper()
	const node, dir = "../../.ci/conformance/node_modules/node/bin/node", "../../testdata/bench/node"
	for _, need := range []string{node, dir + "/node_modules"} {
		if _, err := os.Stat(need); err != nil {
			b.Skipf("%v: .ci/bench installs Node and the SDK", err)
		}
	}
	cmd := exec.Command(node, dir+"/server.mjs")
	s := openSite(b, cmd, cmd.StdoutPipe)
	s.late = true
	return s
}

// A benchConn is one connection to a site. It belongs to one goroutine.
type benchConn struct {
	at      *site
	conn    net.Conn
	in      *bufio.Reader
	session string // header, with its end; "": none yet
	request []byte // reused
	answer  []byte // reused
}

func dialSite(at *site) (*benchConn, error) {
	conn, err := net.Dial("tcp", at.addr)
	if err != nil {
		return nil, err
	}
	c := &benchConn{at: at, conn: conn, in: bufio.NewReaderSize(conn, 4<<10)}
	return c, conn.SetDeadline(time.Now().Add(benchPatience))
}

// benchPatience turns a hang into a failure.
const benchPatience = 5 * time.Minute

const (
	benchLegacy = "2025-11-25"
	benchModern = "2026-07-28"
)

// send writes a request. more are headers, each with its end.
func (c *benchConn) send(method, more string, body []byte) error {
	r := c.request[:0]
	r = append(r, method...)
	r = append(r, " /mcp HTTP/1.1\r\nHost: "...)
	r = append(r, c.at.addr...)
	r = append(r, "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	r = append(r, c.at.auth...)
	r = append(r, more...)
	r = append(r, "Content-Length: "...)
	r = strconv.AppendInt(r, int64(len(body)), 10)
	r = append(r, "\r\n\r\n"...)
	r = append(r, body...)
	c.request = r
	_, err := c.conn.Write(r)
	return err
}

// head reads status line and headers, of which it keeps the session's. length is -1 if the body comes in chunks.
func (c *benchConn) head() (length int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	bad := !bytes.HasPrefix(line, []byte("HTTP/1.1 20"))
	status := ""
	if bad {
		status = string(line)
	}
	for {
		line, err = c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			length = -1
		case bytes.EqualFold(name, []byte("Mcp-Session-Id")) && c.session == "":
			c.session = "Mcp-Session-Id: " + string(value) + "\r\nMcp-Protocol-Version: " + benchLegacy + "\r\n"
		}
	}
	if bad {
		body, _ := c.append(max(length, 0))
		return 0, fmt.Errorf("%s%s", status, body)
	}
	return length, nil
}

// receive reads a whole answer. What it returns is valid until the next one.
func (c *benchConn) receive() ([]byte, error) {
	length, err := c.head()
	if err != nil {
		return nil, err
	}
	c.answer = c.answer[:0]
	if length >= 0 {
		return c.append(length)
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseInt(string(bytes.TrimRight(line, "\r\n")), 16, 32)
		if err != nil {
			return nil, err
		}
		if _, err := c.append(int(n)); err != nil {
			return nil, err
		}
		if _, err := c.in.Discard(2); err != nil || n == 0 {
			return c.answer, err
		}
	}
}

func (c *benchConn) append(n int) ([]byte, error) {
	from := len(c.answer)
	c.answer = slices.Grow(c.answer, n)[:from+n]
	_, err := io.ReadFull(c.in, c.answer[from:])
	return c.answer, err
}

// open begins a legacy session.
func (c *benchConn) open() error {
	if err := c.send("POST", "", []byte(strings.TrimSpace(helloLines))); err != nil {
		return err
	}
	if answer, err := c.receive(); err != nil || c.session == "" {
		return fmt.Errorf("no session: %s: %w", answer, err)
	}
	if err := c.send("POST", c.session, []byte(strings.TrimSpace(readyLine))); err != nil {
		return err
	}
	_, err := c.receive()
	return err
}

// An errand is a call that a benchConn makes again and again.
type errand struct {
	more       string // headers
	head, tail []byte // of the body, around the id
	want       []byte // in the answer
}

func newErrand(more, name, arguments, meta, want string) *errand {
	head, tail, _ := strings.Cut(replaytest.CallLine("#", name, arguments, meta), "#")
	return &errand{more: more, head: []byte(head), tail: []byte(tail), want: []byte(want)}
}

// run makes the call with this id and checks the answer.
func (c *benchConn) run(e *errand, id int) error {
	var body [1024]byte
	m := append(body[:0], e.head...)
	m = strconv.AppendInt(m, int64(id), 10)
	m = append(m, e.tail...)
	if err := c.send("POST", e.more, m); err != nil {
		return err
	}
	answer, err := c.receive()
	if err != nil {
		return err
	}
	var number [24]byte
	wanted := strconv.AppendInt(append(number[:0], `"id":`...), int64(id), 10)
	at := bytes.Index(answer, wanted)
	if at < 0 || !bytes.ContainsAny(answer[at+len(wanted):][:1], ",}") || !bytes.Contains(answer, e.want) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return fmt.Errorf("want id %d and %q, got %s", id, e.want, answer)
	}
	return nil
}

// wake makes sure that the server still has the connection. While others are measured, on a busy machine for long, it
// closes one that sent nothing for 60 s, or for 5 s if it never sent anything; a client opens another one then.
func (c *benchConn) wake(e *errand) error {
	const id = 3
	err := c.run(e, id)
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	_ = c.conn.Close()
	again, err := dialSite(c.at)
	if err != nil {
		return err
	}
	c.conn, c.in = again.conn, again.in
	return c.run(e, id)
}

// An errander is a connection with a session and what is asked in it.
type errander struct {
	*benchConn
	does *errand
}

// hire opens a connection and a session, and finds the errand: with ours job_output of a job that has ended, as in the
// benchmarks of stdio, or a listing of one file; with others ping.
func hire(b *testing.B, at *site, how string) errander {
	b.Helper()
	c, err := dialSite(at)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.conn.Close() })
	more, meta := "", ""
	if how == "modern" {
		more = "Mcp-Protocol-Version: " + benchModern + "\r\nMcp-Method: tools/call\r\nMcp-Name: "
		meta = `"codehand/session":"bench-modern","io.modelcontextprotocol/protocolVersion":"` + benchModern +
			`","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	} else if err := c.open(); err != nil {
		b.Fatal(err)
	} else {
		more = c.session
	}
	named := func(name string) string {
		if how == "modern" {
			return more + name + "\r\n"
		}
		return more
	}
	switch {
	case !at.ours:
		return errander{c, newErrand(more, "ping", `{}`, "", `"pong"`)}
	case how == "list":
		return errander{c, newErrand(more, "list_files", `{"pattern":"*"}`, "", "a.txt")}
	}
	if err := c.run(newErrand(named("run_shell"), "run_shell", `{"command":"true","run_in_background":true}`, meta, "Started job"), 1); err != nil {
		b.Fatal(err)
	}
	args := fmt.Sprintf(`{"job_id":%q`, replaytest.JobID.Find(c.answer))
	wait := newErrand(named("job_output"), "job_output", args+`,"block":true}`, meta, "job")
	for !bytes.Contains(c.answer, []byte("no new output")) {
		if err := c.run(wait, 2); err != nil {
			b.Fatal(err)
		}
	}
	return errander{c, newErrand(named("job_output"), "job_output", args+"}", meta, "no new output")}
}

// A stand is what is measured under one name.
type stand struct {
	name string
	at   *site
	how  string // of hire
}

// stands start all servers.
func stands(b *testing.B) []stand {
	b.Helper()
	ours := openOurs(b)
	return []stand{
		{"ours", ours, ""}, {"sdk", openGo(b), ""}, {"node", openNode(b), ""},
		{"list", ours, "list"}, {"modern", ours, "modern"}, {"sdk-json", openGo(b, "json"), ""},
	}
}

// BenchmarkHTTPRoundTrip: one call at a time; each iteration is 200 calls of each kind, in turns.
func BenchmarkHTTPRoundTrip(b *testing.B) {
	const calls = 200
	all := stands(b)
	hired := make([]errander, len(all))
	for i, s := range all {
		hired[i] = hire(b, s.at, s.how)
	}
	took := map[string][]time.Duration{}
	id := 100
	for b.Loop() {
		for i, s := range all {
			if err := hired[i].wake(hired[i].does); err != nil {
				b.Fatalf("%s: %v", s.name, err)
			}
			for range calls {
				id++
				start := time.Now()
				if err := hired[i].run(hired[i].does, id); err != nil {
					b.Fatalf("%s: %v", s.name, err)
				}
				took[s.name] = append(took[s.name], time.Since(start))
			}
		}
	}
	p50 := map[string]float64{}
	for name, d := range took {
		p50[name] = median(d)
		b.ReportMetric(p50[name], name+"-p50-us")
	}
	b.ReportMetric(float64(took["ours"][len(took["ours"])*99/100])/1e3, "ours-p99-us")
	b.ReportMetric(p50["ours"]/p50["sdk"], "http-p50-ratio")
	b.ReportMetric(p50["ours"]/p50["node"], "http-p50-node-ratio")
}

// BenchmarkHTTPClients: 8 clients at the same time, each with a connection and a session of its own; each iteration is
// 1,600 calls of each kind, in turns. Ratios are medians over the iterations.
func BenchmarkHTTPClients(b *testing.B) { benchmarkAtOnce(b, false) }

// BenchmarkHTTPSession: the same with 8 calls at the same time in one session, each on a connection of its own.
func BenchmarkHTTPSession(b *testing.B) { benchmarkAtOnce(b, true) }

func benchmarkAtOnce(b *testing.B, oneSession bool) {
	const clients, calls = 8, 200
	all := stands(b)
	hired := make([][]errander, len(all))
	for i, s := range all {
		for len(hired[i]) < clients {
			if len(hired[i]) == 0 || !oneSession {
				hired[i] = append(hired[i], hire(b, s.at, s.how))
				continue
			}
			c, err := dialSite(s.at)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = c.conn.Close() })
			hired[i] = append(hired[i], errander{c, hired[i][0].does})
		}
	}
	name := "http-8"
	if oneSession {
		name = "http-session"
	}
	rate := map[string][]float64{}       // calls per second, of each iteration
	took := map[string][]time.Duration{} // of each call
	work := map[string]time.Duration{}   // of the server's processors
	id := 100
	for b.Loop() {
		for i, s := range all {
			for _, c := range hired[i] {
				if err := c.wake(c.does); err != nil {
					b.Fatalf("%s: %v", s.name, err)
				}
			}
			before := s.at.worked(b)
			var wg sync.WaitGroup
			each := make([][]time.Duration, clients)
			failed := make([]error, clients)
			start := time.Now()
			for j, c := range hired[i] {
				from := id + j*calls
				each[j] = make([]time.Duration, 0, calls)
				wg.Go(func() {
					for k := range calls {
						begin := time.Now()
						if failed[j] = c.run(c.does, from+k); failed[j] != nil {
							return
						}
						each[j] = append(each[j], time.Since(begin))
					}
				})
			}
			wg.Wait()
			if err := errors.Join(failed...); err != nil {
				b.Fatalf("%s: %v", s.name, err)
			}
			rate[s.name] = append(rate[s.name], clients*calls/time.Since(start).Seconds())
			took[s.name] = append(took[s.name], slices.Concat(each...)...)
			work[s.name] += s.at.worked(b) - before
			id += clients * calls
		}
	}
	p50 := map[string]float64{}
	for name, d := range took {
		p50[name] = median(d)
		b.ReportMetric(p50[name], name+"-p50-us")
	}
	b.ReportMetric(float64(took["ours"][len(took["ours"])*99/100])/1e3, "ours-p99-us")
	against := func(name string) float64 {
		var r []float64
		for i, n := range rate["ours"] {
			r = append(r, n/rate[name][i])
		}
		return middle(r)
	}
	b.ReportMetric(p50["ours"]/p50["sdk"], name+"-p50-ratio")
	b.ReportMetric(against("sdk"), name+"-calls-ratio")
	b.ReportMetric(against("node"), name+"-calls-node-ratio")
	for name, r := range rate {
		b.ReportMetric(middle(r), name+"-calls/s")
		b.ReportMetric(float64(work[name].Microseconds())/float64(len(took[name])), name+"-cpu-us")
	}
}

// worked is how long the processors have worked for the server. Unlike the rest it does not depend on what else the
// machine does.
func (s *site) worked(b *testing.B) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		b.Skip("processor time is read from /proc: ", err)
	}
	_, rest, _ := strings.Cut(string(data), ") ") // the name of the program may hold blanks
	fields := strings.Fields(rest)
	var ticks int
	for _, f := range fields[11:13] { // utime, stime: fields 14 and 15 of proc(5)
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ
}

// middle is the median.
func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkHTTPMemory: what 1,000 sessions take of a new process's resident memory, and what they take with a GET stream
// each. Each iteration is one process of each kind; the figures are medians.
func BenchmarkHTTPMemory(b *testing.B) {
	const sessions = 1000
	got := map[string][]float64{}
	for b.Loop() {
		for _, s := range []struct {
			name string
			open func(*testing.B) *site
		}{{"ours", openOurs}, {"sdk", func(b *testing.B) *site { return openGo(b) }}, {"node", openNode}} {
			at := s.open(b)
			base, idle, streaming := weigh(b, at, sessions)
			got[s.name+"-MB"] = append(got[s.name+"-MB"], base/1e6)
			got[s.name+"-idle-kB"] = append(got[s.name+"-idle-kB"], (idle-base)/1e3/sessions)
			got[s.name+"-stream-kB"] = append(got[s.name+"-stream-kB"], (streaming-base)/1e3/sessions)
			at.end()
		}
	}
	for name, v := range got {
		b.ReportMetric(middle(v), name)
	}
}

// weigh returns the resident memory of a server, in bytes, after its first calls, with n more sessions, and when each of
// them has an open stream.
func weigh(b *testing.B, at *site, n int) (base, idle, streaming float64) {
	b.Helper()
	rss := func() float64 { return (&contender{cmd: at.cmd}).rss(b) * 1024 }
	first := hire(b, at, "")
	for i := range 200 {
		if err := first.run(first.does, 100+i); err != nil {
			b.Fatal(err)
		}
	}
	base = rss()
	var headers []string
	for range n {
		first.session = ""
		if err := first.open(); err != nil {
			b.Fatal(err)
		}
		headers = append(headers, first.session)
	}
	idle = rss()
	for _, h := range headers {
		c, err := dialSite(at)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.conn.Close() })
		if err := c.send("GET", h, nil); err != nil {
			b.Fatal(err)
		}
		if at.late {
			continue
		}
		if length, err := c.head(); err != nil || length != -1 {
			b.Fatalf("a stream does not open: length %d, %v", length, err)
		}
	}
	if at.late { // a session has one stream, so a second one is refused when the first is there
		for _, h := range headers {
			if err := first.send("GET", h, nil); err != nil {
				b.Fatal(err)
			}
			if _, err := first.head(); err == nil || !strings.Contains(err.Error(), "409 Conflict") {
				b.Fatalf("a stream is not open: %v", err)
			}
		}
	}
	return base, idle, rss()
}
