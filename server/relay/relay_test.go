package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A memoryWire is a Wire in this process.
type memoryWire struct {
	mu   sync.Mutex
	ears map[string]*ear
	lose func(Message) bool // nil: nothing is lost
}

// An ear gets the messages of one Listen.
type ear struct {
	mu    sync.Mutex
	queue []Message
	wake  chan struct{}
}

func newMemoryWire() *memoryWire { return &memoryWire{ears: map[string]*ear{}} }

func (w *memoryWire) Send(subject, reply string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := Message{Subject: subject, Reply: reply, Data: bytes.Clone(data)}
	if w.lose != nil && w.lose(m) {
		return nil
	}
	if e := w.hears(subject); e != nil {
		e.put(m)
	} else if back := w.hears(reply); back != nil {
		back.put(Message{Subject: reply, Nobody: true})
	}
	return nil
}

func (w *memoryWire) hears(subject string) *ear {
	if e := w.ears[subject]; e != nil {
		return e
	}
	return w.ears[subject[:strings.LastIndex(subject, ".")+1]+"*"]
}

func (e *ear) put(m Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = append(e.queue, m)
	token(e.wake)
}

func (w *memoryWire) Listen(subject string, got func(Message)) (func(), error) {
	e := &ear{wake: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ears[subject] = e
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-e.wake:
			}
			e.mu.Lock()
			queue := e.queue
			e.queue = nil
			e.mu.Unlock()
			for _, m := range queue {
				got(m)
			}
		}
	}()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.ears[subject] == e {
			delete(w.ears, subject)
		}
		close(stop)
	}, nil
}

// losing loses messages from now on that match.
func (w *memoryWire) losing(lose func(Message) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = lose
}

// A rig is a Caller and a Host of node b.
type rig struct {
	*testing.T
	wire   *memoryWire
	caller *Caller
	host   *Host
}

func here(context.Context, string, uint64) (bool, error) { return true, nil }

// inBubble runs a test with a clock of its own. serve serves what is sent to node b.
func inBubble(t *testing.T, serve http.HandlerFunc, test func(r rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWire()
		r := rig{T: t, wire: w, host: newTestHost(t, w, here, serve)}
		var err error
		if r.caller, err = NewCaller(w, "test"); err != nil {
			t.Fatal(err)
		}
		test(r)
		w.losing(nil)
		r.caller.Close()
		r.host.Close()
		if n := len(r.caller.links.all) + len(r.host.links.all); n != 0 {
			t.Errorf("%d links are left", n)
		}
	})
}

func newTestHost(t testing.TB, w Wire, here func(context.Context, string, uint64) (bool, error), serve http.HandlerFunc) *Host {
	h, err := NewHost(HostOptions{
		Wire: w, Prefix: "test", Node: "b", Here: here, Log: slog.New(slog.DiscardHandler),
		Sight: func() Sight { return Sight{Version: "v1", Volume: "mark"} },
		Serve: func(w http.ResponseWriter, r *http.Request, to Target) bool {
			r.Header.Set("Test-Pass", string(to.Pass)+" "+to.IP)
			serve(w, r)
			return true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var target = Target{Node: "b", Principal: "alice", Epoch: 7, Pass: json.RawMessage(`{"id":"alice"}`), IP: "192.0.2.1"}

func (r rig) do(ctx context.Context, body []byte) (*httptest.ResponseRecorder, error) {
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://tools.example/mcp?x=1", nil)
	req.Header.Set("Mcp-Session-Id", "s1")
	w := httptest.NewRecorder()
	return w, r.caller.Do(ctx, w, req, target, body)
}

// A request comes as it was sent, and so does its answer, of any size.
func TestWhole(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, maxPart - 1, maxPart, maxPart + 1, 5<<20 + 7} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			sent := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
			inBubble(t, func(w http.ResponseWriter, r *http.Request) {
				got, err := io.ReadAll(r.Body)
				if err != nil || r.ContentLength != int64(len(got)) {
					t.Errorf("the body has %d of %d bytes: %v", len(got), r.ContentLength, err)
				}
				if r.Method+r.Host+r.URL.String()+r.RequestURI != "POSTtools.example/mcp?x=1/mcp?x=1" ||
					r.Header.Get("Mcp-Session-Id") != "s1" || r.Header.Get("Test-Pass") != `{"id":"alice"} 192.0.2.1` ||
					r.RemoteAddr == "" {
					t.Errorf("it came as %+v", r)
				}
				w.Header().Set("Content-Length", fmt.Sprint(len(got)))
				w.Header().Set("Mcp-Session-Id", "s2")
				w.WriteHeader(http.StatusTeapot)
				if _, err := w.Write(got); err != nil {
					t.Error(err)
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
			}, func(r rig) {
				w, err := r.do(r.Context(), sent)
				if err != nil || w.Code != http.StatusTeapot || w.Header().Get("Mcp-Session-Id") != "s2" ||
					!bytes.Equal(w.Body.Bytes(), sent) {
					t.Errorf("answer %d with %d bytes, %v", w.Code, w.Body.Len(), err)
				}
			})
		})
	}
}

// What a handler flushes arrives at once, also after hours of silence.
func TestStream(t *testing.T) {
	t.Parallel()
	more := make(chan string)
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		for text := range more {
			_, _ = io.WriteString(w, text)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	}, func(r rig) {
		more = make(chan string)
		got := newSlow(0)
		var wg sync.WaitGroup
		wg.Go(func() {
			req := httptest.NewRequest(http.MethodGet, "/mcp", nil)
			if err := r.caller.Do(r.Context(), got, req, target, nil); err != nil {
				t.Error(err)
			}
		})
		for i := range 5 {
			time.Sleep(time.Hour)
			more <- fmt.Sprint(i)
			synctest.Wait()
			if want := "01234"[:i+1]; got.text() != want {
				t.Errorf("got %q, want %q", got.text(), want)
			}
		}
		close(more)
		wg.Wait()
	})
}

// A slow is a ResponseWriter of a client that reads after most bytes no more, until its deadline; 0: it reads all.
type slow struct {
	most   int
	header http.Header

	mu    sync.Mutex
	got   []byte
	until time.Time
}

func newSlow(most int) *slow                       { return &slow{most: most, header: http.Header{}} }
func (s *slow) Header() http.Header                { return s.header }
func (s *slow) WriteHeader(int)                    {}
func (s *slow) Flush()                             {}
func (s *slow) SetWriteDeadline(t time.Time) error { s.until = t; return nil }

func (s *slow) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && len(s.got)+len(p) > s.most {
		time.Sleep(time.Until(s.until))
		return 0, errors.New("timeout")
	}
	s.got = append(s.got, p...)
	return len(p), nil
}

func (s *slow) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.got)
}

// A client that does not read stops the handler before much is on its way, and counts as gone after a while.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	var written int
	var left bool
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		for {
			_ = control.SetWriteDeadline(time.Now().Add(time.Second))
			n, err := w.Write(make([]byte, 100<<10))
			if err == nil {
				err = control.Flush()
			}
			if err != nil {
				break
			}
			written += n
		}
		<-r.Context().Done()
		left = true
	}, func(r rig) {
		req := httptest.NewRequest(http.MethodGet, "/mcp", nil)
		if err := r.caller.Do(r.Context(), newSlow(1<<20), req, target, nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !left || written > 1<<20+window+maxPart {
			t.Errorf("it wrote %d bytes; the client left: %v", written, left)
		}
	})
}

// The handler learns that a client left, that a node died, and that the node that answers ends.
func TestEnds(t *testing.T) {
	t.Parallel()
	waits := func(ended *time.Time) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			*ended = time.Now()
		}
	}
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		var ended time.Time
		inBubble(t, waits(&ended), func(r rig) {
			ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			w, err := r.do(ctx, nil)
			synctest.Wait()
			if err != nil || w.Body.String() != "begun" || ended.Sub(began) != time.Hour {
				t.Errorf("%q, %v; the handler ended after %v", w.Body, err, ended.Sub(began))
			}
		})
	})
	for _, kill := range []string{"caller", "host"} {
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			var ended time.Time
			inBubble(t, waits(&ended), func(r rig) {
				began := time.Now()
				time.AfterFunc(time.Hour, func() {
					r.wire.losing(func(m Message) bool { // what it sends, and what is sent to it
						return strings.Contains(m.Subject, ".back.") == (kill == "host")
					})
				})
				w, err := r.do(r.Context(), nil)
				if kill == "caller" {
					synctest.Wait()
				}
				lost, ok := errors.AsType[*LostError](err)
				if !ok || !lost.Sent || lost.Status != http.StatusOK || w.Body.String() != "begun" {
					t.Errorf("%q, %v", w.Body, err)
				}
				time.Sleep(lostAfter + lookEvery)
				synctest.Wait()
				if took := ended.Sub(began) - time.Hour; took < 0 || took > 2*(lostAfter+lookEvery) {
					t.Errorf("the handler ended %v after the loss", took)
				}
			})
		})
	}
	t.Run("host is gone", func(t *testing.T) { // its server of NATS knows that nobody listens there
		t.Parallel()
		inBubble(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(r rig) {
			time.AfterFunc(time.Second, r.host.unhear)
			began := time.Now()
			_, err := r.do(r.Context(), nil)
			if lost, ok := errors.AsType[*LostError](err); !ok || !lost.Sent {
				t.Errorf("a request that ran: %v", err)
			}
			if took := time.Since(began); took > beatEvery+lookEvery {
				t.Errorf("it was noticed after %v", took)
			}
			r.host.unhear = func() {}
		})
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		var ended time.Time
		inBubble(t, waits(&ended), func(r rig) {
			time.AfterFunc(time.Hour, r.caller.links.close)
			_, err := r.do(r.Context(), nil)
			if lost, ok := errors.AsType[*LostError](err); !ok || !lost.Sent {
				t.Error(err)
			}
			synctest.Wait()
			if ended.IsZero() {
				t.Error("the handler runs on")
			}
			r.caller.links = newLinks() // for the end of the test
		})
	})
}

// Nothing is done where nobody serves the principal, and the caller knows that.
func TestNothingDone(t *testing.T) {
	t.Parallel()
	never := func(http.ResponseWriter, *http.Request) { t.Error("it is served") }
	inBubble(t, never, func(r rig) {
		r.host.o.Here = func(_ context.Context, who string, epoch uint64) (bool, error) {
			if who != "alice" || epoch != 7 {
				t.Errorf("asked for %s since %d", who, epoch)
			}
			return false, nil
		}
		if w, err := r.do(r.Context(), nil); !errors.Is(err, ErrMoved) || w.Body.Len() > 0 {
			t.Errorf("a node that does not serve it: %v", err)
		}
		r.host.o.Here = func(context.Context, string, uint64) (bool, error) { return true, errors.New("no store") }
		if _, err := r.do(r.Context(), nil); !errors.Is(err, ErrMoved) {
			t.Errorf("a node that does not know: %v", err)
		}
		r.host.o.Here = here
		serve := r.host.o.Serve
		r.host.o.Serve = func(http.ResponseWriter, *http.Request, Target) bool { return false }
		if w, err := r.do(r.Context(), nil); !errors.Is(err, ErrMoved) || w.Body.Len() > 0 {
			t.Errorf("a node that ends: %v", err)
		}
		r.host.o.Serve = serve
		r.host.unhear()
		began := time.Now()
		_, err := r.do(r.Context(), nil)
		if lost, ok := errors.AsType[*LostError](err); !ok || lost.Sent || time.Since(began) > 0 {
			t.Errorf("no such node, after %v: %v", time.Since(began), err)
		}
		r.host.unhear, err = r.wire.Listen("test.node.b.request", r.host.got)
		if err != nil {
			t.Fatal(err)
		}
	})
}

// An answer of which a frame was lost is never taken for a whole one.
func TestLostFrame(t *testing.T) {
	t.Parallel()
	for lose := range 5 {
		t.Run(fmt.Sprint(lose), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(w http.ResponseWriter, r *http.Request) {
				for range 4 {
					_, _ = io.WriteString(w, "part ")
					_ = http.NewResponseController(w).Flush()
				}
			}, func(r rig) {
				seen := 0
				r.wire.losing(func(m Message) bool {
					if !strings.Contains(m.Subject, ".back.") {
						return false
					}
					seen++
					return seen == lose+1
				})
				w, err := r.do(r.Context(), nil)
				lost, ok := errors.AsType[*LostError](err)
				if !ok || !lost.Sent || strings.Count(w.Body.String(), "part") != lose {
					t.Errorf("%q, %v", w.Body, err)
				}
			})
		})
	}
}

// A handler that panics ends its request alone.
func TestPanic(t *testing.T) {
	t.Parallel()
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 0 {
			panic("a bug")
		}
		_, _ = io.WriteString(w, "fine")
	}, func(r rig) {
		if _, err := r.do(r.Context(), []byte("x")); err == nil {
			t.Error("it has an answer")
		}
		if w, err := r.do(r.Context(), nil); err != nil || w.Body.String() != "fine" {
			t.Errorf("%q, %v", w.Body, err)
		}
	})
}

// A deadline that is moved counts as it was set last.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDeadline()
		passed := func() bool {
			synctest.Wait()
			select {
			case <-d.passed():
				return true
			default:
				return false
			}
		}
		d.set(time.Now().Add(time.Second))
		d.set(time.Now().Add(time.Minute))
		time.Sleep(time.Second)
		if passed() {
			t.Error("it passed when it was set first")
		}
		waiting := d.passed()
		d.set(time.Now())
		<-waiting
		d.set(time.Time{})
		time.Sleep(time.Hour)
		if passed() {
			t.Error("it passed though there is none")
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(frame{kind: frameOpen, number: 1, head: []byte("{}"), body: []byte("x")}.encode())
	f.Add([]byte{frameAck, 0, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, err := decode(b); err == nil && !bytes.Equal(x.encode(), b) {
			t.Errorf("%q becomes %q", b, x.encode())
		}
	})
}
