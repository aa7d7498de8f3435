package relay

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

// A Message is what a Wire brings.
type Message struct {
	Subject string
	Reply   string // where answers go
	Data    []byte
	Nobody  bool // nobody listens where the message was sent that had this subject as its Reply
}

// A Wire carries messages of at most 512 KiB between nodes, those of one sender to one subject in order. It may lose
// some. It is safe for concurrent use.
type Wire interface {
	// Send sends a message. After an error nobody got it.
	Send(subject, reply string, data []byte) error
	// Listen calls got for each message that comes to subject, one at a time, until stop. A last token * stands for
	// any.
	Listen(subject string, got func(Message)) (stop func(), err error)
}

// NATS is the Wire over a connection.
func NATS(conn *nats.Conn) Wire { return natsWire{conn} }

type natsWire struct{ conn *nats.Conn }

func (w natsWire) Send(subject, reply string, data []byte) error {
	if !w.conn.IsConnected() { // else what is written might be sent after a reconnect
		return nats.ErrConnectionReconnecting
	}
	return w.conn.PublishRequest(subject, reply, data)
}

func (w natsWire) Listen(subject string, got func(Message)) (func(), error) {
	sub, err := w.conn.Subscribe(subject, func(m *nats.Msg) {
		nobody := len(m.Data) == 0 && m.Header.Get("Status") == "503"
		got(Message{Subject: m.Subject, Reply: m.Reply, Data: m.Data, Nobody: nobody})
	})
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil { // windows bound what is under way
		return nil, fmt.Errorf("relay: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // the connection may be gone, and with it the subscription
}
