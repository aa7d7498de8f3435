package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/tools/session"
)

// A fakePeer notes what it is told.
type fakePeer struct {
	mu   sync.Mutex
	told []string
	gone chan struct{}
}

func (p *fakePeer) Notify(method string, _ any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, method)
	return nil
}

func (p *fakePeer) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, jsonrpc.ErrNoCalls
}

func (p *fakePeer) Gone() <-chan struct{} { return p.gone }

// A client makes one call again and again.
type client struct {
	t     *testing.T
	table *Calls
	peer  *fakePeer
	asked map[string]Asked // of the last answer
	state string
	at    session.Key
}

const life = 10 * time.Minute

func newClient(t *testing.T) *client {
	c := &client{t: t, peer: &fakePeer{gone: make(chan struct{})}, at: session.Key{Principal: "ann", Session: "s"}}
	c.table = New(life, func(asked map[string]Asked, state string) request.Answer {
		c.asked, c.state = asked, state
		return request.Answer{Result: json.RawMessage(`"asked"`)}
	})
	return c
}

// request is the call, as it is sent first.
func (c *client) request() request.Request {
	r := request.Request{Session: c.at, Peer: c.peer}
	r.Name, r.Arguments = "tool", json.RawMessage(`{"a":1,"b":2}`)
	return r
}

// begin makes the call.
func (c *client) begin(ctx context.Context, work func(ctx context.Context, peer *Call) string) request.Answer {
	c.state = ""
	x := c.table.Begin(c.request())
	return x.Run(ctx, func(ctx context.Context) request.Answer {
		return request.Answer{Result: json.RawMessage(work(ctx, x))}
	})
}

// again sends the call again with the same answer to all questions.
func (c *client) again(ctx context.Context, answer string) (request.Answer, error) {
	r := c.request()
	r.RequestState, _ = json.Marshal(c.state)
	all := map[string]json.RawMessage{}
	for id := range c.asked {
		all[id] = json.RawMessage(answer)
	}
	r.InputResponses, _ = json.Marshal(all)
	c.state = ""
	work, err := c.table.Resume(r)
	if err != nil {
		return request.Answer{}, err
	}
	return work(ctx), nil
}

func (c *client) close() { <-c.table.Close() }

// A question ends the request, and the answer of the next one goes on with the work.
func TestAsksAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		defer c.close()
		a := c.begin(t.Context(), func(ctx context.Context, x *Call) string {
			first, err := x.Call(ctx, "m", map[string]int{"n": 1})
			if err != nil {
				t.Error(err)
			}
			if err := x.Notify("n", nil); err != nil {
				t.Error(err)
			}
			second, err := x.Call(ctx, "m", map[string]int{"n": 2})
			if err != nil {
				t.Error(err)
			}
			return string(first) + string(second)
		})
		if string(a.Result) != `"asked"` || len(c.asked) != 1 || string(c.asked["q1"].Params) != `{"n":1}` || !strings.HasPrefix(c.state, "w1.") {
			t.Fatalf("%s %v %s", a.Result, c.asked, c.state)
		}
		if a, err := c.again(t.Context(), `10`); err != nil || string(a.Result) != `"asked"` || string(c.asked["q2"].Params) != `{"n":2}` {
			t.Fatalf("%v %s %v", err, a.Result, c.asked)
		}
		if a, err := c.again(t.Context(), `20`); err != nil || string(a.Result) != `1020` {
			t.Errorf("%v %s", err, a.Result)
		}
		synctest.Wait()
		if len(c.table.calls)+len(c.table.of)+len(c.table.works) > 0 || !slices.Equal(c.peer.told, []string{"n"}) {
			t.Errorf("%+v; told %v", c.table, c.peer.told)
		}
	})
}

// What is asked at the same time is asked in one round, and each question gets its own answer.
func TestGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		defer c.close()
		a := c.begin(t.Context(), func(ctx context.Context, x *Call) string {
			var all sync.WaitGroup
			for n := range 3 {
				all.Go(func() {
					time.Sleep(time.Duration(n) * gather / 4)
					if got, err := x.Call(ctx, "m", n); err != nil || string(got) != fmt.Sprint(n) {
						t.Errorf("%d is answered with %s, %v", n, got, err)
					}
				})
			}
			all.Wait()
			return `"all"`
		})
		if string(a.Result) != `"asked"` || len(c.asked) != 3 {
			t.Fatalf("%s %v", a.Result, c.asked)
		}
		r := c.request()
		r.RequestState, _ = json.Marshal(c.state)
		answers := map[string]json.RawMessage{}
		for id, q := range c.asked {
			answers[id] = q.Params
		}
		r.InputResponses, _ = json.Marshal(answers)
		work, err := c.table.Resume(r)
		if err != nil {
			t.Fatal(err)
		}
		if a := work(t.Context()); string(a.Result) != `"all"` {
			t.Errorf("%s", a.Result)
		}
	})
}

// Work whose client does not come back ends after the life of a question, and its name is forgotten.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		defer c.close()
		ended := make(chan error, 1)
		c.begin(t.Context(), func(ctx context.Context, x *Call) string {
			got, err := x.Call(ctx, "m", nil)
			if got != nil || err != nil {
				t.Errorf("%s %v", got, err)
			}
			ended <- context.Cause(ctx)
			return ``
		})
		time.Sleep(life - time.Second)
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("the work has ended too early")
		}
		time.Sleep(time.Second)
		if err := <-ended; !errors.Is(err, errAbandoned) {
			t.Error(err)
		}
		if _, err := c.again(t.Context(), `1`); !errors.Is(err, ErrOver) || len(c.table.calls)+len(c.table.of) > 0 {
			t.Errorf("%v %+v", err, c.table)
		}
	})
}

// Work that ends while no request waits for it keeps its answer for the client that comes back.
func TestAnswerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		defer c.close()
		c.begin(t.Context(), func(ctx context.Context, x *Call) string {
			late, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if got, err := x.Call(late, "m", nil); got != nil || err != nil {
				t.Errorf("%s %v", got, err)
			}
			return `"too late"`
		})
		time.Sleep(2 * time.Minute)
		if a, err := c.again(t.Context(), `1`); err != nil || string(a.Result) != `"too late"` {
			t.Errorf("%v %s", err, a.Result)
		}
	})
}

// The end of the request that waits ends the work; that of one that was answered does not.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		defer c.close()
		first, cancelFirst := context.WithCancelCause(t.Context())
		second, cancelSecond := context.WithCancelCause(t.Context())
		c.begin(first, func(ctx context.Context, x *Call) string {
			_, _ = x.Call(ctx, "m", nil)
			select {
			case <-time.After(time.Hour):
				return `"not cancelled"`
			case <-ctx.Done():
				return fmt.Sprintf("%q", context.Cause(ctx))
			}
		})
		cancelFirst(jsonrpc.ErrClosed)
		time.AfterFunc(time.Minute, func() { cancelSecond(jsonrpc.ErrCancelled) })
		if a, err := c.again(second, `1`); err != nil || string(a.Result) != fmt.Sprintf("%q", jsonrpc.ErrCancelled) {
			t.Errorf("%v %s", err, a.Result)
		}
	})
}

// Questions that are open when the table closes end, and so does their work.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		ended := make(chan error, 1)
		c.begin(t.Context(), func(ctx context.Context, x *Call) string {
			_, _ = x.Call(ctx, "m", nil)
			ended <- context.Cause(ctx)
			return ``
		})
		c.close()
		if err := <-ended; !errors.Is(err, jsonrpc.ErrClosed) {
			t.Error(err)
		}
		if _, err := c.again(t.Context(), `1`); !errors.Is(err, ErrOver) {
			t.Error(err)
		}
		a := c.begin(t.Context(), func(ctx context.Context, _ *Call) string { return fmt.Sprintf("%q", context.Cause(ctx)) })
		if string(a.Result) != fmt.Sprintf("%q", jsonrpc.ErrClosed) {
			t.Errorf("after the end: %s", a.Result)
		}
	})
}

// A client is asked so often and no more, and one that was asked before its work began less often.
func TestRounds(t *testing.T) {
	for _, before := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t)
			defer c.close()
			r := c.request()
			want := mostRounds
			if before {
				r.RequestState, want = json.RawMessage(`"v1.x"`), mostRounds-roundsBefore
			}
			x := c.table.Begin(r)
			x.Run(t.Context(), func(ctx context.Context) request.Answer {
				for n := 0; ; n++ {
					if _, err := x.Call(ctx, "m", nil); err != nil {
						return request.Answer{Result: json.RawMessage(fmt.Sprintf(`"%d %v"`, n, err))}
					}
				}
			})
			for {
				a, err := c.again(t.Context(), `1`)
				if err != nil {
					t.Fatal(err)
				}
				if c.state != "" {
					continue
				}
				if got := string(a.Result); got != fmt.Sprintf(`"%d %v"`, want, ErrSpent) {
					t.Error(got)
				}
				return
			}
		})
	}
}

// Of one principal so many calls wait at once, and others have their own. What is too large is not asked.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		defer c.close()
		ask := func(ctx context.Context, x *Call) string {
			_, err := x.Call(ctx, "m", nil)
			return fmt.Sprintf("%q", fmt.Sprint(err))
		}
		for range mostOfOne {
			if c.begin(t.Context(), ask); c.state == "" {
				t.Fatal("it was not asked")
			}
		}
		if a := c.begin(t.Context(), ask); c.state != "" || string(a.Result) != fmt.Sprintf("%q", jsonrpc.ErrNoCalls) {
			t.Errorf("one more: %s", a.Result)
		}
		c.at.Principal = "bob"
		if c.begin(t.Context(), ask); c.state == "" {
			t.Error("another principal was not asked")
		}
		a := c.begin(t.Context(), func(ctx context.Context, x *Call) string {
			_, err := x.Call(ctx, "m", strings.Repeat("x", maxQuestion))
			return fmt.Sprintf("%q", err)
		})
		if string(a.Result) != fmt.Sprintf("%q", ErrTooLarge) {
			t.Errorf("a large question: %s", a.Result)
		}
	})
}

// The client of the request that waits may leave.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		defer c.close()
		time.AfterFunc(time.Second, func() { close(c.peer.gone) })
		if a := c.begin(t.Context(), func(_ context.Context, x *Call) string {
			<-x.Gone()
			return `"left"`
		}); string(a.Result) != `"left"` {
			t.Errorf("%s", a.Result)
		}
	})
}
