package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/jsonrpc"
	"codehand/server/request"
)

// A client of legacy SSE that declared elicitation was never asked, since some of them never answer. Now it is; one that
// answers nothing, not even a ping, costs one call ten seconds, and one that leaves a question open is asked no more.
func TestSSEAsks(t *testing.T) {
	for name, c := range map[string]struct {
		pong, answer string // "": it says nothing
		after        []time.Duration
		got          string
		muted        bool
		errs         int
	}{
		"answers":              {`"result":{}`, `"result":{"action":"accept"}`, []time.Duration{0, 0}, `{"action":"accept"}`, false, 0},
		"knows no ping":        {`"error":{"code":-32601,"message":"no"}`, `"result":{"action":"accept"}`, []time.Duration{0, 0}, `{"action":"accept"}`, false, 0},
		"refuses questions":    {`"result":{}`, `"error":{"code":-32601,"message":"no"}`, []time.Duration{0, 0}, "", false, 0},
		"answers nothing":      {"", "", []time.Duration{pingWait, 0}, "", true, 1},
		"leaves it unanswered": {`"result":{}`, "", []time.Duration{thinking, 0}, "", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			type round struct {
				got   string
				err   error
				muted bool
				after time.Duration
			}
			var rounds chan round // of the bubble
			x := newSite(t, setup{call: func(ctx context.Context, r request.Request) request.Answer {
				late, cancel := context.WithTimeout(ctx, thinking)
				defer cancel()
				began := time.Now()
				got, err := r.Peer.Call(late, "elicitation/create", map[string]any{})
				rounds <- round{string(got), err, r.Client.Muted, time.Since(began)}
				return request.Answer{Result: json.RawMessage(`{}`)}
			}})
			synctest.Test(t, func(t *testing.T) {
				rounds = make(chan round, 1)
				w := newFirstWriter()
				var s *insideStream
				var asked atomic.Int32
				w.each = func(event string) { // what the client gets
					var m struct {
						ID     json.RawMessage
						Method string
					}
					_, data, ok := strings.Cut(event, "\ndata: ")
					if !ok || json.Unmarshal([]byte(data), &m) != nil {
						return
					}
					say := ""
					switch m.Method {
					case "ping":
						say = c.pong
					case "elicitation/create":
						asked.Add(1)
						say = c.answer
					}
					if say != "" {
						go s.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, say))
					}
				}
				s = streamInto(t, x, w, w.first)
				s.post(t, initializeLine)
				synctest.Wait()
				errs := 0
				for i, after := range c.after {
					s.post(t, strings.Replace(callLine, `"id":1`, fmt.Sprintf(`"id":%d`, i+2), 1))
					got := <-rounds
					if got.got != c.got || got.muted != (c.muted && i > 0) || got.after != after {
						t.Errorf("call %d: %+v", i, got)
					}
					if errors.Is(got.err, jsonrpc.ErrNoCalls) {
						errs++
					}
				}
				if errs != c.errs {
					t.Errorf("%d calls could not ask, want %d", errs, c.errs)
				}
				s.leave()
				<-s.ended
			})
		})
	}
}

const (
	thinking = 10 * time.Minute // that a person has
	pingWait = 10 * time.Second // that a client has to show that it answers
)
