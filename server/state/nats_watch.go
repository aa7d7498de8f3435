package state

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// watchPause is the time until a Watch that could not begin tries again.
const watchPause = 250 * time.Millisecond

// A natsWatch collects what consumers and notes of deletes tell.
type natsWatch struct {
	mu sync.Mutex
	watcher
}

func (w *natsWatch) tell(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(key)
}

func (w *natsWatch) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := w.pending
	w.pending = nil
	clear(w.queued)
	return keys
}

// Watch follows the stream of the family. While nothing can be reached it waits, and begins anew after each reconnect.
func (s *natsStore) Watch(ctx context.Context, prefix string, changed func(key string)) error {
	if err := s.plan.prefix(prefix); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	if s.isClosed() {
		return ErrClosed
	}
	w := &natsWatch{watcher: watcher{prefix: prefix, queued: map[string]bool{}, wake: make(chan struct{}, 1)}}
	inner, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { s.follow(inner, w) })
	defer following.Wait()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.stop:
			return ErrClosed
		case <-w.wake:
		}
		for _, key := range w.take() {
			if ctx.Err() != nil {
				return nil
			}
			changed(key)
		}
	}
}

// follow tells w what happens, until ctx or the Store ends.
func (s *natsStore) follow(ctx context.Context, w *natsWatch) {
	for {
		again := s.afresh()
		stop, err := s.consume(ctx, w)
		if err != nil {
			select {
			case <-ctx.Done():
				return
			case <-s.stop:
				return
			case <-time.After(watchPause):
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.stop:
		case <-again:
			stop()
			continue
		}
		stop()
		return
	}
}

// consume begins with every key that exists. stop returns when no callback runs any more.
func (s *natsStore) consume(ctx context.Context, w *natsWatch) (stop func(), err error) {
	f := family(w.prefix)
	gone, err := s.conn.Subscribe(s.goneSubject(w.prefix)+".>", func(m *nats.Msg) {
		w.tell(m.Subject[len(s.goneSubject("")):])
	})
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	consumer, err := s.js.OrderedConsumer(within, s.bucket(f), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{s.subject(w.prefix) + ".>"}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
		HeadersOnly: true,
	})
	var reading jetstream.ConsumeContext
	if err == nil {
		reading, err = consumer.Consume(func(m jetstream.Msg) { w.tell(s.keyOf(f, m.Subject())) })
	}
	if err != nil {
		_ = gone.Unsubscribe() // the connection is gone, and with it the subscription
		return nil, err
	}
	return func() {
		_ = gone.Unsubscribe()
		reading.Stop()
		<-reading.Closed()
	}, nil
}
