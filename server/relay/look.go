package relay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Sight is how a node says that it is.
type Sight struct {
	Version string    `json:"version"` // of codehand
	Time    time.Time `json:"time"`    // by its clock
	Volume  string    `json:"volume"`  // the mark of the directory that it shares with the others; "": it has none
}

// seen answers who asked how this node is.
func (h *Host) seen(m Message) {
	s := h.o.Sight()
	s.Time = time.Now()
	head, err := json.Marshal(s)
	if err != nil {
		return
	}
	_ = h.o.Wire.Send(m.Reply, m.Subject, frame{kind: frameLook, head: head}.encode()) // who asks gives up by itself
}

// Look asks a node how it is, on the way that requests take, and says how long that took. After an error the node does
// not answer within ctx, or not to us.
func Look(ctx context.Context, w Wire, prefix, node string) (s Sight, took time.Duration, err error) {
	back := prefix + ".back." + strings.ToLower(rand.Text()) + ".look"
	answers := make(chan Message, 1)
	stop, err := w.Listen(back, func(m Message) {
		select {
		case answers <- m:
		default: // the first one counts
		}
	})
	if err != nil {
		return s, 0, err
	}
	defer stop()
	began := time.Now()
	if err := w.Send(requests(prefix, node), back, frame{kind: frameLook}.encode()); err != nil {
		return s, 0, err
	}
	select {
	case <-ctx.Done():
		return s, 0, fmt.Errorf("no answer within %s", time.Since(began).Round(time.Millisecond))
	case m := <-answers:
		took = time.Since(began)
		if m.Nobody {
			return s, took, errNobody
		}
		f, err := decode(m.Data)
		if err != nil || f.kind != frameLook || json.Unmarshal(f.head, &s) != nil {
			return s, took, errors.New("it answers in another way: its version may be another one")
		}
		return s, took, nil
	}
}
