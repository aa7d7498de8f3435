package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// headerRoom is what a message may have beside its value.
	headerRoom = 8 << 10

	// smallStream is the size of a stream that holds little.
	smallStream = 64 << 20

	// provideTime is how long one attempt to make a stream may take.
	provideTime = 5 * time.Second

	// maxDuplicates is how long NATS knows the ids of writes.
	maxDuplicates = 2 * time.Minute
)

// prepare checks the server, and makes or checks the streams.
func (s *natsStore) prepare(ctx context.Context) error {
	version := s.conn.ConnectedServerVersion()
	if !atLeast(version, oldestServer) {
		return fmt.Errorf("its nats-server is %s; %s or newer is needed, since older ones can lose what they "+
			"acknowledged", version, oldestServer)
	}
	replicas := 1
	if s.conn.ConnectedClusterName() != "" {
		replicas = 3
	}
	s.mu.Lock()
	s.stats.Server, s.stats.Copies = version, replicas
	s.mu.Unlock()
	for _, want := range s.wanted(replicas) {
		for {
			err := s.provide(ctx, want)
			if err == nil {
				break
			}
			if !passing(err) {
				return err
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(500 * time.Millisecond):
			}
		}
	}
	return nil
}

// passing says whether an error may be one of servers that have just begun: they have no leader yet, or not found each
// other.
func passing(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrTimeout) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.Code == 503 || api.ErrorCode == codeNoPeers || api.ErrorCode == codeFewPeers)
}

// atLeast compares versions as 2.12.3; what follows a dash is ignored.
func atLeast(version, least string) bool {
	numbers := func(v string) (out [3]int) {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
		for i, part := range strings.SplitN(v, ".", 3) {
			out[i], _ = strconv.Atoi(part) // 0 is older than anything
		}
		return out
	}
	have, need := numbers(version), numbers(least)
	return slices.Compare(have[:], need[:]) >= 0
}

// wanted are all streams as they must be.
func (s *natsStore) wanted(replicas int) (all []jetstream.StreamConfig) {
	for _, name := range slices.Sorted(maps.Keys(s.plan.families)) {
		f := s.plan.families[name]
		size := int64(smallStream)
		switch name {
		case Session:
			size = s.most / 2
		case Call, Job, Kept:
			size = s.most / 16
		}
		all = append(all, jetstream.StreamConfig{
			Name: s.bucket(name), Subjects: []string{s.subject(name) + ".>"}, Description: "codehand: " + name,
			MaxMsgsPerSubject: 1, MaxAge: f.Life, MaxBytes: size, Discard: jetstream.DiscardNew,
			MaxMsgSize: maxValue + headerRoom, Duplicates: duplicates(f.Life), Replicas: replicas,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(s.plan.streams)) {
		f := s.plan.streams[name]
		size := int64(smallStream)
		if name == Job {
			size = s.most / 4
		}
		all = append(all, jetstream.StreamConfig{
			Name: s.output(name), Subjects: []string{s.outputSubject(name) + ".>"},
			Description:       "codehand: rows of " + name,
			MaxMsgsPerSubject: int64(f.length), MaxAge: f.life, MaxBytes: size, Discard: jetstream.DiscardOld,
			MaxMsgSize: maxStreamValue + headerRoom, Duplicates: duplicates(f.life), Replicas: replicas,
		})
	}
	return all
}

// duplicates is how long ids of writes are known: no longer than what was written lives, or NATS refuses it.
func duplicates(life time.Duration) time.Duration {
	if life > 0 && life < maxDuplicates {
		return life
	}
	return maxDuplicates
}

// provide makes a stream if it is missing. One that is there is brought to our limits, and refused if what decides
// about safety is another.
func (s *natsStore) provide(ctx context.Context, want jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, provideTime)
	defer cancel()
	is, err := s.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		is, err = s.js.CreateStream(ctx, want)
	}
	if err != nil {
		return explained(want, err)
	}
	have := is.CachedInfo().Config
	if found := differences(have, want); len(found) > 0 {
		return fmt.Errorf("the stream %s is not as it must be: %s; fix it with the program nats, or give this server "+
			"another store.nats.prefix", want.Name, strings.Join(found, ", "))
	}
	if have.MaxAge == want.MaxAge && have.MaxBytes == want.MaxBytes && have.Duplicates == want.Duplicates {
		return nil
	}
	have.MaxAge, have.MaxBytes, have.Duplicates = want.MaxAge, want.MaxBytes, want.Duplicates
	if _, err := s.js.UpdateStream(ctx, have); err != nil {
		return explained(want, err)
	}
	return nil
}

// explained says what to do about a stream that could not be made.
func explained(want jetstream.StreamConfig, err error) error {
	api, _ := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("its servers or this account have no JetStream: add jetstream {} to nats.conf: %w", err)
	case api != nil && want.Replicas > 1 && (api.ErrorCode == codeNoPeers || api.ErrorCode == codeFewPeers):
		return fmt.Errorf("the stream %s needs three servers of the cluster with JetStream: %w", want.Name, err)
	case api != nil && hasCode(&apiError{Code: int(api.ErrorCode)}, fullCodes...):
		return fmt.Errorf("the stream %s needs %d MiB on each server; raise max_file_store in nats.conf, or lower "+
			"store.max_bytes: %w", want.Name, want.MaxBytes>>20, err)
	}
	return fmt.Errorf("the stream %s: %w", want.Name, err)
}

// differences are what makes a stream unsafe, each as NAME is VALUE, not VALUE.
func differences(have, want jetstream.StreamConfig) (found []string) {
	add := func(name string, have, want any) {
		if fmt.Sprint(have) != fmt.Sprint(want) {
			found = append(found, fmt.Sprintf("%s is %v, not %v", name, have, want))
		}
	}
	add("num_replicas", have.Replicas, want.Replicas)
	add("allow_direct", have.AllowDirect, false) // any server would answer a Get, also one that lags behind
	add("storage", have.Storage, want.Storage)
	add("persist_mode", have.PersistMode, want.PersistMode)
	add("retention", have.Retention, want.Retention)
	add("discard", have.Discard, want.Discard)
	add("discard_new_per_subject", have.DiscardNewPerSubject, false)
	add("max_msgs_per_subject", have.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	add("max_msgs", max(have.MaxMsgs, 0), 0)
	add("subjects", have.Subjects, want.Subjects)
	add("no_ack", have.NoAck, false)
	add("sealed", have.Sealed, false)
	add("deny_delete", have.DenyDelete, false)
	add("mirror or sources", have.Mirror != nil || len(have.Sources) > 0, false)
	add("subject_transform", have.SubjectTransform != nil, false)
	if have.MaxMsgSize >= 0 && have.MaxMsgSize < want.MaxMsgSize {
		add("max_msg_size", have.MaxMsgSize, want.MaxMsgSize)
	}
	return found
}
