package state

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// attempts is how often an operation may go without an answer until its time is up.
	attempts = 4

	// attemptPause is the time before the next attempt.
	attemptPause = 20 * time.Millisecond
)

// A settled error ends an operation, which is not tried again.
type settled struct{ error }

func (e settled) Unwrap() error { return e.error }

// run carries out an operation, with attempts until one gets an answer or the time is up. It returns the last error.
// try is told how long one attempt may last.
func (s *natsStore) run(ctx context.Context, write bool, try func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosed() {
		return ErrClosed
	}
	if err := s.breaker.check(); err != nil {
		return err
	}
	return s.runAnyway(ctx, write, try)
}

// runAnyway is run with the breaker open, too.
func (s *natsStore) runAnyway(ctx context.Context, write bool, try func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	unsure := false
	for {
		part, done := context.WithTimeout(within, s.timeout/attempts)
		err := try(part)
		done()
		if err == nil {
			s.breaker.succeeded()
			return nil
		}
		if end, ok := errors.AsType[settled](err); ok {
			return end.error
		}
		if errors.Is(err, ErrFull) {
			return err
		}
		unsure = unsure || write && errors.Is(err, ErrUnsure)
		ended := ErrDown
		if unsure {
			ended = ErrUnsure
		}
		select {
		case <-s.stop:
			return fmt.Errorf("%w: %w", ended, ErrClosed)
		case <-within.Done():
			if ctx.Err() != nil { // the caller gave up, which says nothing about the servers
				return fmt.Errorf("%w: %w", ended, ctx.Err())
			}
			err = fmt.Errorf("%w: no answer for %v: %s", ended, s.timeout, plain(err))
			s.breaker.failed(err)
			return err
		case <-time.After(attemptPause):
		}
	}
}

// plain is what an error says beside that it is one of a Store.
func plain(err error) string {
	text := err.Error()
	for _, kind := range []error{ErrDown, ErrUnsure} {
		text = strings.TrimPrefix(text, kind.Error()+": ")
	}
	return text
}

func newMessage(subject string, value []byte) (m *nats.Msg, id string) {
	m, id = nats.NewMsg(subject), rand.Text()
	m.Header.Set(writeHeader, id)
	m.Data = value
	return m, id
}

func (s *natsStore) last(ctx context.Context, key string) (stored, error) {
	return s.message(ctx, s.bucket(family(key)), lastOf{s.subject(key)})
}

func (s *natsStore) Get(ctx context.Context, key string) (value []byte, rev uint64, err error) {
	if _, err := s.plan.key(key); err != nil {
		return nil, 0, err
	}
	err = s.run(ctx, false, s.read(key, &value, &rev))
	return value, rev, err
}

// read makes the attempts of one Get.
func (s *natsStore) read(key string, value *[]byte, rev *uint64) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := s.last(ctx, key)
		*value, *rev = got.Data, got.Seq
		return err
	}
}

// GetAll reads all keys, and again until nothing has changed between two readings: then all of it was so at one moment
// between them, since no revision comes twice.
func (s *natsStore) GetAll(ctx context.Context, keys ...string) ([][]byte, []uint64, error) {
	for _, key := range keys {
		if _, err := s.plan.key(key); err != nil {
			return nil, nil, err
		}
	}
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	values, revs, err := s.collect(ctx, keys)
	for len(keys) > 1 && err == nil {
		before := revs
		if values, revs, err = s.collect(ctx, keys); err != nil || slices.Equal(before, revs) {
			break
		}
		if within.Err() != nil && ctx.Err() == nil {
			return nil, nil, fmt.Errorf("%w: the values changed for %v while they were read", ErrDown, s.timeout)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return values, revs, nil
}

// collect reads keys beside each other.
func (s *natsStore) collect(ctx context.Context, keys []string) ([][]byte, []uint64, error) {
	values, revs, errs := make([][]byte, len(keys)), make([]uint64, len(keys)), make([]error, len(keys))
	if len(keys) == 0 {
		return values, revs, s.run(ctx, false, func(context.Context) error { return nil })
	}
	var reading sync.WaitGroup
	for i, key := range keys[1:] {
		reading.Go(func() { values[i+1], revs[i+1], errs[i+1] = s.Get(ctx, key) })
	}
	values[0], revs[0], errs[0] = s.Get(ctx, keys[0])
	reading.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, nil, err
		}
	}
	return values, revs, nil
}

func (s *natsStore) Set(ctx context.Context, key string, value []byte) error {
	if err := s.writable(key, value); err != nil {
		return err
	}
	m, id := newMessage(s.subject(key), value)
	m.Header.Set(nats.MsgIdHdr, id) // the second of two is dropped
	return s.run(ctx, true, func(ctx context.Context) error { return s.publish(ctx, m) })
}

func (s *natsStore) writable(key string, value []byte) error {
	if _, err := s.plan.key(key); err != nil {
		return err
	}
	return checkValue(value, maxValue)
}

func (s *natsStore) Swap(ctx context.Context, key string, value []byte, rev uint64) (ok bool, err error) {
	if err := s.writable(key, value); err != nil {
		return false, err
	}
	err = s.run(ctx, true, s.swap(key, value, rev, &ok))
	return ok, err
}

// swap makes the attempts of one Swap.
func (s *natsStore) swap(key string, value []byte, rev uint64, ok *bool) func(context.Context) error {
	m, id := newMessage(s.subject(key), value)
	m.Header.Set(nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(rev, 10))
	unanswered := false // one attempt may have been carried out
	return func(ctx context.Context) error {
		err := s.publish(ctx, m)
		if !hasCode(err, codeLostOne, codeLostThree) {
			*ok = err == nil
			unanswered = unanswered || errors.Is(err, ErrUnsure)
			return err
		}
		if !unanswered {
			*ok = false
			return nil
		}
		// Did it lose against itself?
		switch got, err := s.last(ctx, key); {
		case err != nil:
			return fmt.Errorf("%w: %s", ErrUnsure, plain(err))
		case got.wrote(id):
			*ok = true
			return nil
		}
		return settled{fmt.Errorf("%w: no answer came, and the value has changed since", ErrUnsure)}
	}
}

// Delete removes the message that it finds. One that comes meanwhile stays: then the key was deleted before it came.
func (s *natsStore) Delete(ctx context.Context, key string) error {
	if _, err := s.plan.key(key); err != nil {
		return err
	}
	return s.run(ctx, true, s.remove(key))
}

func (s *natsStore) remove(key string) func(context.Context) error {
	found := uint64(0) // by an attempt that may have been carried out
	return func(ctx context.Context) error {
		got, err := s.last(ctx, key)
		if err != nil {
			return fmt.Errorf("%w: %s", ErrDown, plain(err))
		}
		if got.Seq != 0 && (found == 0 || got.Seq == found) {
			err := s.api(ctx, "MSG.DELETE", s.bucket(family(key)), deletion{got.Seq, true}, nil)
			if err != nil && !hasCode(err, codeNoMessage, codeNotDeleted) {
				found = got.Seq
				return err
			}
			found = got.Seq
		}
		if found != 0 {
			_ = s.conn.Publish(s.goneSubject(key), nil) // without a connection every Watch begins anew
		}
		return nil
	}
}

// Keys are the subjects that the stream has. The server that leads it answers, so none is missing.
func (s *natsStore) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	if err := s.plan.prefix(prefix); err != nil {
		return nil, err
	}
	f := family(prefix)
	err = s.run(ctx, false, func(ctx context.Context) error {
		keys = nil
		for {
			got, err := s.info(ctx, s.bucket(f), s.subject(prefix)+".>", len(keys))
			if err != nil {
				return err
			}
			for subject := range got.State.Names {
				keys = append(keys, s.keyOf(f, subject))
			}
			if len(got.State.Names) == 0 || len(keys) >= got.Total {
				return nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	return keys[:min(len(keys), maxKeys)], nil
}

func (s *natsStore) Append(ctx context.Context, name string, value []byte) error {
	if _, err := s.plan.stream(name); err != nil {
		return err
	}
	if err := checkValue(value, maxStreamValue); err != nil {
		return err
	}
	m, id := newMessage(s.outputSubject(name), value)
	m.Header.Set(nats.MsgIdHdr, id)
	return s.run(ctx, true, func(ctx context.Context) error { return s.publish(ctx, m) })
}

func (s *natsStore) Tail(ctx context.Context, name string, after uint64, most int) (
	values [][]byte, last uint64, err error,
) {
	if _, err := s.plan.stream(name); err != nil {
		return nil, after, err
	}
	last = after
	if most <= 0 {
		return nil, after, s.run(ctx, false, func(context.Context) error { return nil })
	}
	for len(values) < most {
		var got stored
		err := s.run(ctx, false, func(ctx context.Context) (err error) {
			got, err = s.message(ctx, s.output(family(name)), nextOf{last + 1, s.outputSubject(name)})
			return err
		})
		if err != nil {
			return values, last, err
		}
		if got.Seq == 0 {
			break
		}
		values, last = append(values, got.Data), got.Seq
	}
	return values, last, nil
}

// A patientNATS is a natsStore whose Get, Swap and Delete are tried while the breaker is open, too.
type patientNATS struct{ *natsStore }

func (s patientNATS) Get(ctx context.Context, key string) (value []byte, rev uint64, err error) {
	err = s.runAnyway(ctx, false, s.read(key, &value, &rev))
	return value, rev, err
}

func (s patientNATS) Swap(ctx context.Context, key string, value []byte, rev uint64) (ok bool, err error) {
	err = s.runAnyway(ctx, true, s.swap(key, value, rev, &ok))
	return ok, err
}

func (s patientNATS) Delete(ctx context.Context, key string) error {
	return s.runAnyway(ctx, true, s.remove(key))
}
