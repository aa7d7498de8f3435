package bridge

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/jsonrpc"
	"codehand/server/stdio"
)

// forgetful answers like legacy, but knows only its newest session, and forgets that when it is told to.
type forgetful struct {
	mu       sync.Mutex
	sessions int
	lost     bool
	next     func(w http.ResponseWriter, m posted)
}

func (f *forgetful) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = true
}

func (f *forgetful) serve(w http.ResponseWriter, m posted) {
	f.mu.Lock()
	if m.what() == "initialize" {
		f.sessions++
		f.lost = false
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("session-%d", f.sessions))
		f.mu.Unlock()
		answerJSON(w, 200, welcome)
		return
	}
	known := !f.lost && m.header.Get("Mcp-Session-Id") == fmt.Sprintf("session-%d", f.sessions)
	f.mu.Unlock()
	if !known {
		http.Error(w, "Invalid session ID", http.StatusNotFound)
		return
	}
	legacy(welcome, f.next)(w, m)
}

// TestSessionLost: when the endpoint has forgotten the session, the client's initialize is sent again, its answer
// is swallowed, and the requests are repeated in the new session: also a call, which was not begun.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{next: echo}
		b := startBridge(t, Options{}, f.serve)
		b.open(welcome)
		for range 2 {
			f.forget()
			b.send(callLine(5, "a", "{}", ""), ping("6"), ping("7"))
			got := []string{b.receive(), b.receive(), b.receive()}
			slices.Sort(got)
			if !slices.Equal(got, []string{pong("5"), pong("6"), pong("7")}) {
				t.Errorf("got %s", got)
			}
			synctest.Wait()
		}
		// a notification, too
		f.forget()
		b.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		synctest.Wait()
		// no request waits for the answer of a session that is gone
		f.forget()
		b.send(`{"jsonrpc":"2.0","id":"s-1","result":{}}`)
		b.done()
		if n := len(b.only("initialize")); n != 4 {
			t.Errorf("%d times initialize, want 4: %s", n, b.whats())
		}
		if n := len(b.only("notifications/initialized")); n != 4 {
			t.Errorf("%d times initialized, want 4: %s", n, b.whats())
		}
		for _, p := range b.only("initialize") {
			if p.body != helloLine || p.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("initialize was %s with %v", p.body, p.header)
			}
		}
		if d := b.only(http.MethodDelete); len(d) != 1 || d[0].header.Get("Mcp-Session-Id") != "session-4" {
			t.Errorf("deleted: %+v", d)
		}
	})
}

// TestSessionKeepsGettingLost: a request is repeated once. What comes then is its answer.
func TestSessionKeepsGettingLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{}, legacy(welcome, func(w http.ResponseWriter, _ posted) {
			http.Error(w, "Invalid session ID", http.StatusNotFound)
		}))
		b.open(welcome)
		b.send(ping("5"))
		b.want(`{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"127.0.0.1:7433 answered 404 Not Found: Invalid session ID"}}`)
		b.done()
		if got := b.whats(); strings.Count(got, "initialize ") != 2 || strings.Count(got, "ping") != 2 {
			t.Errorf("sent: %s", got)
		}
	})
}

// TestStreamIsReopened: the GET stream is opened again when it breaks, and after a session was lost.
func TestStreamIsReopened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{next: echo}
		gets := 0
		b := startBridge(t, Options{}, func(w http.ResponseWriter, m posted) {
			f.mu.Lock()
			known := !f.lost
			f.mu.Unlock()
			if m.verb != http.MethodGet || !known {
				f.serve(w, m)
				return
			}
			gets++
			write := answerStream(w)
			write(fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/n%d\"}\n\n", gets))
			switch gets {
			case 1: // broken at once
			case 2: // broken after a while
				time.Sleep(time.Hour)
				panic(http.ErrAbortHandler)
			case 3: // forgotten
				time.Sleep(time.Hour)
				f.forget()
			case 4: // silent
				write(": comment\n\n")
				<-m.ctx.Done()
			default:
				<-m.ctx.Done()
			}
		})
		began := time.Now()
		b.open(welcome)
		for i, at := range []time.Duration{0, 250 * time.Millisecond, time.Hour + 500*time.Millisecond,
			2*time.Hour + 750*time.Millisecond, 2*time.Hour + 61*time.Second} {
			b.want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/n%d"}`, i+1))
			if took := time.Since(began); took != at {
				t.Errorf("stream %d came after %s, want %s", i+1, took, at)
			}
		}
		b.done()
		if n := len(b.only("initialize")); n != 2 {
			t.Errorf("%d times initialize, want 2: %s", n, b.whats())
		}
	})
}

// TestNoStream: an endpoint without a GET stream is not asked again, whatever it says.
func TestNoStream(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 202, 400, 404, 405, 501} {
		synctest.Test(t, func(t *testing.T) {
			serve := legacy(welcome, echo)
			b := startBridge(t, Options{}, func(w http.ResponseWriter, m posted) {
				if m.verb == http.MethodGet {
					w.WriteHeader(status)
					return
				}
				serve(w, m)
			})
			b.open(welcome)
			time.Sleep(24 * time.Hour)
			b.done()
			if got := b.whats(); got != "initialize notifications/initialized GET DELETE" {
				t.Errorf("%d: sent %s", status, got)
			}
			if log := b.log.String(); strings.Contains(log, "WARN") || strings.Contains(log, "ERROR") {
				t.Errorf("%d: %s", status, log)
			}
		})
	}
}

const listenID = "9007199254740993"

// TestListen: a listen that breaks is posted again, and the client sees one acknowledgement. At the end of the
// input it is completed.
func TestListen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		const ack = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}`
		b := startBridge(t, Options{}, func(w http.ResponseWriter, m posted) {
			n++
			write := answerStream(w)
			write("data: "+ack+"\n\n", fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/n%d\"}\n\n",
				n))
			switch n {
			case 1:
				panic(http.ErrAbortHandler)
			case 2:
				time.Sleep(time.Hour)
			default:
				<-m.ctx.Done()
			}
		})
		b.send(listenLine(listenID, "{}"))
		b.want(ack, `{"jsonrpc":"2.0","method":"notifications/n1"}`, `{"jsonrpc":"2.0","method":"notifications/n2"}`,
			`{"jsonrpc":"2.0","method":"notifications/n3"}`)
		began := time.Now()
		rest := b.finish()
		if took := time.Since(began); took > lingers {
			t.Errorf("the end took %s", took)
		}
		if len(rest) != 1 || !strings.HasPrefix(rest[0], `{"jsonrpc":"2.0","id":`+listenID+`,"result":{`) ||
			!strings.Contains(rest[0], `"resultType":"complete"`) ||
			!strings.Contains(rest[0], `"io.modelcontextprotocol/subscriptionId":`+listenID) {
			t.Errorf("at the end: %s", rest)
		}
	})
}

// TestListenGivesUp: a listen whose endpoint does not come back is answered.
func TestListenGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{}, func(w http.ResponseWriter, _ posted) {
			write := answerStream(w)
			write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"}\n\n")
		})
		b.send(listenLine("1", "{}"))
		b.receive()
		began := time.Now()
		b.refuse(-1)
		b.drop()
		if got := b.receive(); !strings.Contains(got, `"id":1,"error":{"code":-32603`) ||
			!strings.Contains(got, "connection refused") {
			t.Errorf("got %s", got)
		}
		if took := time.Since(began); took != retryFor {
			t.Errorf("it took %s", took)
		}
		b.done()
	})
}

func cancelLine(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"enough"}}`
}

// TestCancel: a cancelled request gets no answer. In the legacy era the endpoint is told and may end the stream
// itself; in the modern one the stream is closed, and the endpoint is told before if it keeps calls.
func TestCancel(t *testing.T) {
	t.Parallel()
	discover := `{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{` + modernMeta + `}}}`
	for _, c := range []struct {
		name   string
		modern bool
		hello  string
		stuck  bool // the endpoint does not end the stream
		late   bool // it answers all the same
		took   time.Duration
		told   bool
	}{
		{name: "legacy", hello: welcome, told: true},
		{name: "legacy, answered all the same", hello: welcome, late: true, told: true},
		{name: "legacy, stuck", hello: welcome, stuck: true, took: stdio.CancelGrace, told: true},
		{name: "modern", modern: true, hello: welcome, stuck: true},
		{name: "modern, kept", modern: true, hello: keeps, stuck: true, told: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				told, closed := make(chan struct{}), make(chan time.Time, 1)
				serve := legacy(c.hello, func(w http.ResponseWriter, m posted) {
					switch m.Method {
					case "server/discover":
						answerJSON(w, 200, c.hello)
						return
					case "tools/call":
					default:
						echo(w, m)
						return
					}
					write := answerStream(w)
					write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/begun\"}\n\n")
					if c.stuck {
						<-m.ctx.Done()
						closed <- time.Now()
						return
					}
					<-told
					write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/more\"}\n\n")
					if c.late {
						write("data: " + pong("5") + "\n\n")
					}
				})
				b := startBridge(t, Options{}, func(w http.ResponseWriter, m posted) {
					serve(w, m)
					if m.Method == "notifications/cancelled" {
						close(told)
					}
				})
				meta := ""
				if c.modern {
					meta = modernMeta
					b.send(discover)
					b.want(c.hello)
				} else {
					b.open(c.hello)
				}
				b.send(callLine(5, "a", "{}", meta))
				b.want(`{"jsonrpc":"2.0","method":"notifications/begun"}`)
				began := time.Now()
				b.send(cancelLine("99"), cancelLine("5"), cancelLine("5"))
				if c.stuck {
					if took := (<-closed).Sub(began); took != c.took {
						t.Errorf("the stream was closed after %s, want %s", took, c.took)
					}
				}
				// its id is free
				b.send(strings.Replace(ping("5"), `}`, `,"params":{}}`, 1))
				b.want(pong("5"))
				b.send(cancelLine("5"))
				b.done()
				cancels := b.only("notifications/cancelled")
				if !c.told {
					if len(cancels) > 0 {
						t.Errorf("posted: %+v", cancels)
					}
					return
				}
				if len(cancels) != 1 {
					t.Fatalf("%d cancels were posted, want 1", len(cancels))
				}
				got, key := cancels[0], ""
				if c.modern {
					env, _ := jsonrpc.Scan([]byte(b.only("tools/call")[0].body))
					if key = env.Call; key == "" {
						t.Error("the call has no key")
					}
					if v := got.header.Get("Mcp-Protocol-Version"); v != "2026-07-28" {
						t.Errorf("posted with version %q", v)
					}
				}
				env, bad := jsonrpc.Scan([]byte(got.body))
				if bad != nil || env.Call != key || string(env.RequestID) != "5" || env.Reason != "enough" ||
					!c.modern && got.body != cancelLine("5") {
					t.Errorf("posted %s, want key %q", got.body, key)
				}
			})
		})
	}
}

// TestCancelBeforeSent: a request that waits for its turn is not sent when it is cancelled, nor is its cancel; one
// that waits for its next attempt is not sent again.
func TestCancelBeforeSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		serve := legacy(welcome, func(w http.ResponseWriter, _ posted) { w.WriteHeader(503) })
		b := startBridge(t, Options{}, func(w http.ResponseWriter, m posted) {
			if m.what() == "initialize" {
				<-release
			}
			serve(w, m)
		})
		b.send(helloLine, ping("1"), cancelLine("0"), cancelLine("1"))
		synctest.Wait()
		close(release)
		b.want(welcome)
		b.send(bridgeReady, ping("2"))
		time.Sleep(100 * time.Millisecond) // its first attempt failed
		b.send(cancelLine("2"))
		time.Sleep(time.Hour)
		b.done()
		var ids []string
		for _, p := range b.only("ping") {
			ids = append(ids, string(p.ID))
		}
		if !slices.Equal(ids, []string{"2"}) || len(b.only("notifications/cancelled")) != 1 {
			t.Errorf("sent: %v, %s", ids, b.whats())
		}
	})
}

// TestOrder: messages begin in the order in which they came, each when the one before is written; nothing begins
// before initialize is answered, and before notifications/initialized is taken.
func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type started struct {
			what  string
			write func()
			reply chan string // JSON; "": 202
		}
		begun := make(chan started)
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			if r.Method != http.MethodPost {
				return &http.Response{StatusCode: 405, Body: http.NoBody, Header: http.Header{}}, nil
			}
			env, _ := jsonrpc.Scan(body)
			s := started{env.Method + string(env.ID), func() { trace.WroteRequest(httptrace.WroteRequestInfo{}) },
				make(chan string)}
			begun <- s
			select {
			case text := <-s.reply:
				resp := &http.Response{StatusCode: 202, Body: http.NoBody, Header: http.Header{}}
				if text != "" {
					resp.StatusCode, resp.Body = 200, io.NopCloser(strings.NewReader(text))
					resp.Header.Set("Content-Type", "application/json")
				}
				return resp, nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
		in, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- Run(t.Context(), Options{URL: "http://127.0.0.1/mcp", Base: base, EOFGrace: time.Hour}, in, io.Discard)
		}()
		lines := helloLine + "\n" + bridgeReady + "\n" + ping("1") + "\n" + callLine(2, "a", "{}", "") + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}` + "\n" + ping("3") + "\n"
		if _, err := io.WriteString(out, lines); err != nil {
			t.Fatal(err)
		}
		var answers []func()
		for _, c := range []struct {
			what  string
			waits bool // for its end
			reply string
		}{
			{"initialize0", true, welcome},
			{"notifications/initialized", true, ""},
			{"ping1", false, pong("1")},
			{"tools/call2", false, pong("2")},
			{"notifications/roots/list_changed", false, ""},
			{"ping3", false, pong("3")},
		} {
			s := <-begun
			if s.what != c.what {
				t.Fatalf("%s began, want %s", s.what, c.what)
			}
			synctest.Wait()
			select {
			case early := <-begun:
				t.Fatalf("%s began before %s was written", early.what, s.what)
			default:
			}
			s.write()
			if !c.waits {
				answers = append(answers, func() { s.reply <- c.reply })
				continue
			}
			synctest.Wait()
			select {
			case early := <-begun:
				t.Fatalf("%s began before the end of %s", early.what, s.what)
			default:
			}
			s.reply <- c.reply
		}
		_ = out.Close()
		for _, answer := range answers { // all four were open at the same time
			answer()
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestEnd: at the end of the input running requests get their grace and are answered; what is still running then
// is not, and the session is deleted in any case.
func TestEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		takes time.Duration
		want  []string
		took  time.Duration
	}{
		{"nothing runs", 0, nil, 0},
		{"in time", 4 * time.Second, []string{pong("5")}, 4 * time.Second},
		{"too late", time.Hour, nil, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := startBridge(t, Options{}, legacy(welcome, func(w http.ResponseWriter, m posted) {
					select {
					case <-time.After(c.takes):
						echo(w, m)
					case <-m.ctx.Done():
					}
				}))
				b.open(welcome)
				if c.takes > 0 {
					b.send(ping("5"))
				}
				began := time.Now()
				rest := b.finish()
				if took := time.Since(began); took != c.took || !slices.Equal(rest, c.want) {
					t.Errorf("after %s: %q", took, rest)
				}
				if n := len(b.only(http.MethodDelete)); n != 1 {
					t.Errorf("%d times DELETE", n)
				}
			})
		})
	}
}

// TestEndOfPipedInput: everything that was piped in is answered, also the last line, which has no newline.
func TestEndOfPipedInput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{}, legacy(welcome, func(w http.ResponseWriter, m posted) {
			time.Sleep(20 * time.Millisecond)
			echo(w, m)
		}))
		lines := helloLine + "\n" + bridgeReady
		for i := range 50 {
			lines += "\n" + ping(fmt.Sprint(i+1))
		}
		if _, err := io.WriteString(b.in, "\xef\xbb\xbf"+lines); err != nil {
			t.Fatal(err)
		}
		if rest := b.finish(); len(rest) != 51 {
			t.Errorf("%d answers, want 51", len(rest))
		}
	})
}

// TestSignal: a signal ends the bridge while a read blocks, with two seconds for what runs.
func TestSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{}, legacy(welcome, func(w http.ResponseWriter, m posted) {
			if string(m.ID) == "1" {
				time.Sleep(time.Second)
				echo(w, m)
				return
			}
			<-m.ctx.Done()
		}))
		b.open(welcome)
		b.send(ping("1"), ping("2"))
		synctest.Wait()
		began := time.Now()
		b.stop()
		b.want(pong("1"))
		if err := <-b.ended; err != nil {
			t.Errorf("Bridge: %v", err)
		}
		if took := time.Since(began); took != stdio.SignalGrace {
			t.Errorf("it took %s", took)
		}
		if n := len(b.only(http.MethodDelete)); n != 1 {
			t.Errorf("%d times DELETE", n)
		}
	})
}

// TestWriteError: a client that is gone ends the bridge at once.
func TestWriteError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			_ = r.Body.Close()
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(pong("1")))}, nil
		})
		ended := make(chan error, 1)
		go func() {
			ended <- Run(t.Context(), Options{URL: "http://127.0.0.1/mcp", Base: base, EOFGrace: time.Hour}, in, brokenWriter{})
		}()
		if _, err := io.WriteString(out, ping("1")+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = out.Close()
	})
}

// A brokenWriter is a pipe without a reader.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestSignalAfterEndOfInput: a signal during the grace after the end of the input is heeded, as by the server.
func TestSignalAfterEndOfInput(t *testing.T) {
	t.Parallel()
	for _, e := range []struct{ signal, cancelled time.Duration }{
		{500 * time.Millisecond, stdio.SignalGrace},
		{stdio.SignalGrace, stdio.SignalGrace},
		{3 * time.Second, 3 * time.Second},
		{time.Hour, 5 * time.Second},
	} {
		t.Run(fmt.Sprint(e.signal), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := startBridge(t, Options{},
					legacy(welcome, func(_ http.ResponseWriter, m posted) { <-m.ctx.Done() }))
				b.open(welcome)
				b.send(ping("5"))
				synctest.Wait()
				began := time.Now()
				if err := b.in.Close(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				defer time.AfterFunc(e.signal, b.stop).Stop()
				if err := <-b.ended; err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != e.cancelled {
					t.Errorf("ended after %s, want %s", took, e.cancelled)
				}
			})
		})
	}
}
