package once

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/server/state"
	"codehand/tools/session"
	"codehand/tools/tool"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// called is a request for a call.
func called(t *testing.T, meta, arguments string) request.Request {
	t.Helper()
	env, bad := jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":` + arguments +
		`,"_meta":{` + meta + `}}}`))
	if bad != nil {
		t.Fatal(bad.Message)
	}
	return request.Request{Envelope: env, Session: session.Key{Principal: "ann", Session: "s"}}
}

func key(t *testing.T, id, arguments string) Key {
	t.Helper()
	k, ok := KeyOf(called(t, `"codehand/call":"`+id+`"`, arguments))
	if !ok {
		t.Fatal("no key")
	}
	return k
}

// TestKeyOf: an id names a call, but for what a model may have counted.
func TestKeyOf(t *testing.T) {
	t.Parallel()
	for meta, want := range map[string]bool{
		``:                    false,
		`"progressToken":7`:   false,
		`"codehand/call":""`:  false,
		`"codehand/call":7`:   false,
		`"codehand/call":"1"`: true,
		`"codehand/call":"` + strings.Repeat("a", maxID) + `"`:     true,
		`"codehand/call":"` + strings.Repeat("a", maxID+1) + `"`:   false,
		`"claudecode/toolUseId":"toolu_015VkqhXfsGcgKFkGkSsTnMq"`:  true,
		`"claudecode/toolUseId":"toolu_1"`:                         true,
		`"claudecode/toolUseId":"call_0"`:                          false,
		`"claudecode/toolUseId":"functions.run_shell:12"`:          false,
		`"claudecode/toolUseId":"D681PevKs"`:                       true,
		`"callId":"call_6nkzXs1oXvRzjUzHMy5MBYFu"`:                 true,
		`"callId":"call_41382964"`:                                 true,
		`"callId":"call_12"`:                                       false,
		`"callId":"0"`:                                             false,
		`"callId":"exec-2f6c1f5e-6c3d-4f0b-9d8e-0a1b2c3d4e5f"`:     true,
		`"x-codex-turn-metadata":{"turn_id":"01a2260c-a618-7960"}`: false, // names a turn of many calls
	} {
		if _, ok := KeyOf(called(t, meta, "{}")); ok != want {
			t.Errorf("%s: %t", meta, ok)
		}
	}
	relayed := called(t, `"callId":"call_12"`, "{}")
	relayed.Relayed = "1"
	if _, ok := KeyOf(relayed); !ok {
		t.Error("a call that a node named has no key")
	}
	first := key(t, "a", "{}")
	seen := map[string]bool{first.store: true}
	for _, r := range []request.Request{
		called(t, `"codehand/call":"b"`, "{}"), called(t, `"callId":"a"`, "{}"), called(t, `"claudecode/toolUseId":"a"`, "{}"),
		{Envelope: called(t, `"codehand/call":"a"`, "{}").Envelope, Session: session.Key{Principal: "bo", Session: "s"}},
		{Envelope: called(t, `"codehand/call":"a"`, "{}").Envelope, Session: session.Key{Principal: "ann", Session: "r"}},
	} {
		k, _ := KeyOf(r)
		if seen[k.store] {
			t.Errorf("%+v has the key of another call", r.Session)
		}
		seen[k.store] = true
	}
	if other := key(t, "a", `{"b":1}`); other.store != first.store || other.sum == first.sum {
		t.Error("other arguments are not told apart under the same key")
	}
}

// A site is Records with what a caller of it does.
type site struct {
	*Records
	store state.Store
	dir   string

	mu      sync.Mutex
	made    int
	settled []string
	asides  chan struct{} // gets one when a request begins to wait
	entries []journal.Entry
}

func newSite(t *testing.T, store state.Store) *site {
	t.Helper()
	s := &site{store: store, dir: leaktest.Dir(t), asides: make(chan struct{}, 100)}
	s.restart()
	t.Cleanup(func() { s.Close() })
	return s
}

// restart is what a killed process leaves to the next one: the Store and the directory.
func (s *site) restart() { s.Records = New(s.store, s.dir, slog.New(slog.DiscardHandler)) }

// caller is a request whose call is made by run.
func (s *site) caller(run func(ctx context.Context, a *Attempt) request.Answer) Caller {
	return Caller{
		Make: func(ctx context.Context, a *Attempt) request.Answer {
			s.mu.Lock()
			s.made++
			s.mu.Unlock()
			return run(ctx, a)
		},
		Tell: func(_ context.Context, r tool.Result, err error) request.Answer {
			text := r.Text
			if err != nil {
				text = err.Error()
			}
			body, _ := json.Marshal(map[string]any{"text": text, "files": r.Meta.Files, "isError": err != nil})
			return request.Answer{Result: body}
		},
		Aside: func() { s.asides <- struct{}{} }, Back: func() {}, Admit: func() error { return nil },
		History: func(_ context.Context, q journal.Query) (found []journal.Entry, err error) {
			for _, e := range s.entries {
				if q.Fits(e) {
					found = append(found, e)
				}
			}
			return found, nil
		},
		Settled: func(call, tool, became string) { s.settled = append(s.settled, call+" "+tool+" "+became) },
	}
}

const answered = `{"_meta":{"codehand/ms":3},"content":[{"type":"text","text":"made <once>"}]}`

// makes begins the call and answers it.
func makes(t *testing.T, fate Fate) func(context.Context, *Attempt) request.Answer {
	return func(ctx context.Context, a *Attempt) request.Answer {
		if err := a.Begin(ctx, "call1", "x", fate); err != nil {
			t.Errorf("begin: %v", err)
		}
		return request.Answer{Result: json.RawMessage(answered)}
	}
}

// dies begins the call in a process that is killed then.
func (s *site) dies(t *testing.T, k Key, fate Fate) {
	t.Helper()
	s.Do(t.Context(), k, s.caller(func(ctx context.Context, a *Attempt) request.Answer {
		must(t, a.Begin(ctx, "call1", "x", fate))
		return request.Answer{Err: &jsonrpc.Error{}}
	}))
	s.restart()
}

// do is the answer to a call that is made now, as far as it comes to that.
func (s *site) do(t *testing.T, k Key) string {
	t.Helper()
	return string(s.Do(t.Context(), k, s.caller(makes(t, Unknown))).Result)
}

// TestRepeated: what was made is not made again, in this process and in the next, and its answer is the first one, with a
// mark. When that is not kept, the answer says so.
func TestRepeated(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	store, err := state.Open(t.Context(), state.OnDisk, state.Options{Dir: dir})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	s := newSite(t, store)
	k := key(t, "a", `{"planted":1}`)
	if got := s.do(t, k); got != answered {
		t.Errorf("at first: %s", got)
	}
	const replay = `{"_meta":{"codehand/data":{"replayed":true},"codehand/ms":3},"content":[{"type":"text","text":"made <once>"}]}`
	for range 2 {
		if got := s.do(t, k); got != replay {
			t.Errorf("again: %s", got)
		}
		must(t, s.store.Close()) // the next process has what is on the disk
		if s.store, err = state.Open(t.Context(), state.OnDisk, state.Options{Dir: dir}); err != nil {
			t.Fatal(err)
		}
		store = s.store
		s.restart()
	}
	must(t, os.RemoveAll(filepath.Join(s.dir, "calls")))
	if got := s.do(t, k); !strings.Contains(got, "already made by an earlier attempt, and is done") {
		t.Errorf("without the answer: %s", got)
	}
	if got := s.do(t, key(t, "a", `{"planted":2}`)); !strings.Contains(got, "INPUT_INVALID: Nothing was done") {
		t.Errorf("with other arguments: %s", got)
	}
	if s.made != 1 || len(s.settled) != 0 {
		t.Errorf("made %d times; cut off: %q", s.made, s.settled)
	}
	keys, err := store.Keys(t.Context(), state.Key(state.Call, state.Hash("ann")))
	must(t, err)
	value, _, err := store.Get(t.Context(), keys[0])
	must(t, err)
	if len(keys) != 1 || strings.Contains(string(value), "made") || strings.Contains(string(value), "planted") {
		t.Errorf("%d records; the Store holds %s", len(keys), value)
	}
}

// TestCutOff: a call that began in a process which died is made again only if twice is the same as once, or if it did
// nothing to files. The journal says what it did.
func TestCutOff(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	changed := journal.Entry{By: journal.By{Call: "call1"}, Files: []journal.EntryFile{{Path: "/w/f", Op: "update", After: sum, Added: 2}}}
	others, open, undone := changed, changed, changed
	others.By.Call, open.Open, undone.Undone = "call2", true, true
	for name, c := range map[string]struct {
		fate    Fate
		entries []journal.Entry
		want    string
		became  string
	}{
		"command":       {Unknown, nil, "OUTCOME_UNKNOWN: An earlier attempt", "unknown"},
		"idempotent":    {Again, nil, answered, "again"},
		"no change":     {Files, []journal.Entry{others}, answered, "again"},
		"changed":       {Files, []journal.Entry{others, changed}, `change /w/f +2 -0\nIt was not made again`, "done"},
		"undone":        {Files, []journal.Entry{undone}, `/w/f +2 -0 (undone since)`, "done"},
		"half finished": {Files, []journal.Entry{open}, "OUTCOME_UNKNOWN: An earlier attempt of this call was cut off while it changed /w/f", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := newSite(t, state.NewMemory(state.MemoryOptions{})), key(t, "a", "{}")
			s.dies(t, k, c.fate)
			s.entries, s.made = c.entries, 0
			if got := s.do(t, k); !strings.Contains(got, c.want) {
				t.Errorf("got %s", got)
			}
			if want := "call1 x " + c.became; len(s.settled) != 1 || s.settled[0] != want {
				t.Errorf("told %q, want %q", s.settled, want)
			}
			if again := c.became == "again"; again != (s.made == 1) {
				t.Errorf("made %d times", s.made)
			}
			if name == "changed" && !strings.Contains(s.do(t, k), `"After":"abababababab"`) {
				t.Error("the second repeat is not told the version")
			}
		})
	}
}

// TestTogether: of requests that come at once one makes the call, and all get its answer. A cancel counts for all, a lost
// connection for nobody else.
func TestTogether(t *testing.T) {
	t.Parallel()
	const many = 8
	type cause struct{ first, others error }
	for name, c := range map[string]struct {
		end  cause
		want string
	}{
		"all stay":             {cause{}, answered},
		"the first is lost":    {cause{first: jsonrpc.ErrClosed}, answered},
		"the first is stopped": {cause{first: jsonrpc.ErrCancelled}, "stopped"},
		"all are lost":         {cause{jsonrpc.ErrClosed, jsonrpc.ErrClosed}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := newSite(t, state.NewMemory(state.MemoryOptions{})), key(t, "a", "{}")
			runs, goOn, cut := make(chan *Attempt, 1), make(chan struct{}), make(chan struct{})
			lead := s.caller(func(ctx context.Context, a *Attempt) request.Answer {
				must(t, a.Begin(ctx, "call1", "x", Unknown))
				runs <- a
				select {
				case <-goOn:
					return request.Answer{Result: json.RawMessage(answered)}
				case <-ctx.Done():
					close(cut)
					return request.Answer{Result: json.RawMessage(`"stopped"`), Interrupted: true}
				}
			})
			var wg sync.WaitGroup
			answers := make([]string, many)
			ends := make([]context.CancelCauseFunc, many)
			begin := func(i int, c Caller) {
				ctx, end := context.WithCancelCause(t.Context())
				ends[i] = end
				wg.Go(func() { answers[i] = string(s.Do(ctx, k, c).Result) })
			}
			begin(0, lead)
			a := <-runs
			for i := 1; i < many; i++ {
				begin(i, s.caller(makes(t, Unknown)))
				<-s.asides
			}
			if !a.Followed() {
				t.Error("nobody follows")
			}
			if got := s.do(t, key(t, "a", `{"other":1}`)); !strings.Contains(got, "INPUT_INVALID") {
				t.Errorf("with other arguments: %s", got)
			}
			if c.end.others != nil {
				for _, end := range ends[1:] {
					end(c.end.others)
				}
			}
			if c.end.first != nil {
				ends[0](c.end.first)
			}
			if c.end.others != nil || errors.Is(c.end.first, jsonrpc.ErrCancelled) {
				<-cut
			} else {
				close(goOn)
			}
			wg.Wait()
			if errors.Is(c.end.first, jsonrpc.ErrCancelled) { // its id is free
				if got := s.do(t, key(t, "a", `{"other":1}`)); got != answered {
					t.Errorf("after it was taken back: %s", got)
				}
				s.made--
			}
			for i, got := range answers[1:] {
				if c.end.others == nil && !strings.Contains(got, c.want) {
					t.Errorf("request %d: %s", i+1, got)
				}
			}
			if s.made != 1 {
				t.Errorf("made %d times", s.made)
			}
			for _, end := range ends {
				end(nil)
			}
		})
	}
}

// TestNotBegun: a request that ends before the call begins, as one that a person must allow, leaves it to the next.
func TestNotBegun(t *testing.T) {
	t.Parallel()
	s, k := newSite(t, state.NewMemory(state.MemoryOptions{})), key(t, "a", "{}")
	asks, goOn := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		s.Do(t.Context(), k, s.caller(func(context.Context, *Attempt) request.Answer {
			close(asks)
			<-goOn
			return request.Answer{Result: json.RawMessage(`"a question"`)}
		}))
	})
	<-asks
	var second string
	wg.Go(func() { second = s.do(t, k) })
	<-s.asides
	close(goOn)
	wg.Wait()
	if second != answered || s.made != 2 {
		t.Errorf("made %d times; the second: %s", s.made, second)
	}
}

// TestPanic: a call that panics is one that was cut off, and keeps nobody waiting.
func TestPanic(t *testing.T) {
	t.Parallel()
	s, k := newSite(t, state.NewMemory(state.MemoryOptions{})), key(t, "a", "{}")
	func() {
		defer func() { _ = recover() }()
		s.Do(t.Context(), k, s.caller(func(ctx context.Context, a *Attempt) request.Answer {
			must(t, a.Begin(ctx, "call1", "x", Unknown))
			panic("planted")
		}))
	}()
	if got := s.do(t, k); !strings.Contains(got, "OUTCOME_UNKNOWN") {
		t.Errorf("got %s", got)
	}
}

// TestTwoProcesses: of two processes that both see no record one makes the call. The other, and one whose record was taken
// meanwhile, change nothing of it.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	s, k := newSite(t, state.NewMemory(state.MemoryOptions{})), key(t, "a", "{}")
	other := newSite(t, s.store)
	var lost string
	got := s.Do(t.Context(), k, s.caller(func(ctx context.Context, a *Attempt) request.Answer {
		must(t, a.Begin(ctx, "call1", "x", Again))
		// the owner of the principal changed: the next one takes over, and is done first
		if got := string(other.Do(ctx, k, other.caller(func(ctx context.Context, b *Attempt) request.Answer {
			must(t, b.Begin(ctx, "call2", "x", Again))
			return request.Answer{Result: json.RawMessage(answered)}
		})).Result); got != answered {
			t.Errorf("the next one: %s", got)
		}
		if err := (&Attempt{r: s.Records, key: k}).Begin(ctx, "call3", "x", Again); err != nil {
			lost = err.Error()
		}
		return request.Answer{Result: json.RawMessage(`"late"`)}
	}))
	if string(got.Result) != `"late"` || !strings.HasPrefix(lost, "BUSY: ") {
		t.Errorf("got %s; %s", got.Result, lost)
	}
	if got := s.do(t, k); !strings.Contains(got, "already made by an earlier attempt") { // the other has the answer
		t.Errorf("the record is not that of the second: %s", got)
	}
	if got := other.do(t, k); !strings.Contains(got, "made <once>") {
		t.Errorf("at the second: %s", got)
	}
}

// A failing Store does not answer from a number of operations on.
type failing struct {
	state.Store
	left int
}

func (f *failing) fails() error {
	if f.left--; f.left < 0 {
		return state.ErrDown
	}
	return nil
}

func (f *failing) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := f.fails(); err != nil {
		return nil, 0, err
	}
	return f.Store.Get(ctx, key)
}

func (f *failing) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	if err := f.fails(); err != nil {
		return false, err
	}
	return f.Store.Swap(ctx, key, value, rev)
}

// TestStoreDown: without the Store nothing begins. A call that is done when it fails answers all the same, and a repeat
// of it is not made.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	for left, want := range []string{
		"STATE_UNAVAILABLE", "STATE_UNAVAILABLE", answered, answered,
	} {
		f := &failing{state.NewMemory(state.MemoryOptions{}), left}
		s, k := newSite(t, f), key(t, "a", "{}")
		ran := false
		got := s.Do(t.Context(), k, s.caller(func(ctx context.Context, a *Attempt) request.Answer {
			if err := a.Begin(ctx, "call1", "x", Unknown); err != nil {
				body, _ := json.Marshal(err.Error())
				return request.Answer{Result: body}
			}
			ran = true
			return request.Answer{Result: json.RawMessage(answered)}
		}))
		if !strings.Contains(string(got.Result), want) || ran != (want == answered) {
			t.Errorf("after %d operations: ran: %t, %s", left, ran, got.Result)
		}
		f.left = 100
		if again := s.do(t, k); ran != strings.Contains(again, "OUTCOME_UNKNOWN") {
			t.Errorf("after %d operations, again: %s", left, again)
		}
	}
}

// TestUnreadable: a record of a newer codehand, or a broken one, refuses the call.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	s, k := newSite(t, state.NewMemory(state.MemoryOptions{})), key(t, "a", "{}")
	for value, want := range map[string]string{`{"v":2}`: "newer codehand", `{`: "cannot be read"} {
		must(t, s.store.Set(t.Context(), k.store, []byte(value)))
		if got := s.do(t, k); !strings.Contains(got, "STATE_UNAVAILABLE") || !strings.Contains(got, want) || s.made > 0 {
			t.Errorf("%s: %s", value, got)
		}
	}
}

// TestKept: answers are kept up to a size and a number, and go with their time.
func TestKept(t *testing.T) {
	t.Parallel()
	k := newKept(filepath.Join(leaktest.Dir(t), "calls"))
	now := time.Unix(1e9, 0)
	k.now = func() time.Time { return now }
	body := []byte(`"answer"`)
	first, err := k.write("call.ann.a", body)
	must(t, err)
	if got := k.read(first); string(got) != string(body) {
		t.Errorf("read %q", got)
	}
	if p, err := k.write("call.ann.b", make([]byte, maxKept+1)); p != nil || err != nil {
		t.Errorf("a large one: %v, %v", p, err)
	}
	for range keptOfOne {
		_, err = k.write("call.ann.c", body)
		must(t, err)
	}
	if p, err := k.write("call.ann.d", body); p != nil || err != nil {
		t.Errorf("one more: %v, %v", p, err)
	}
	if p, err := k.write("call.bo.d", body); p == nil || err != nil {
		t.Errorf("one of another: %v, %v", p, err)
	}
	must(t, os.WriteFile(k.path(*first), body[:3], 0o600))
	if got := k.read(first); got != nil {
		t.Errorf("a torn one: %q", got)
	}
	must(t, os.WriteFile(k.path(*first), body, 0o600))
	for buckets := range 4 {
		now = time.Unix(1e9, 0).Add(time.Duration(buckets) * bucketLife)
		k.sweep(k.bucketNow())
		if kept := k.read(first) != nil; kept != (buckets < 3) {
			t.Errorf("after %d buckets it is kept: %t", buckets, kept)
		}
	}
	now = time.Unix(1e9, 0).Add(2 * bucketLife)
	again, err := k.write("call.ann.e", body) // a new bucket has room again
	must(t, err)
	k.sweeps.Wait()
	if k.read(again) == nil {
		t.Error("a new bucket keeps nothing")
	}
}

// TestReplayed: a result keeps what it has, and only its _meta gets the mark.
func TestReplayed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"content":[]}`: `{"content":[]}`,
		`{"_meta":{"codehand/data":{"exitCode":1}},"content":[],"isError":true}`: `{"_meta":{"codehand/data":{"exitCode":1,"replayed":true}},"content":[],"isError":true}`,
	} {
		if got := string(replayed([]byte(body))); got != want {
			t.Errorf("%s: %s", body, got)
		}
		if failed := failure([]byte(body)); (failed != "") != strings.Contains(body, "isError") {
			t.Errorf("%s: %q", body, failed)
		}
	}
}

// BenchmarkDo is what a call costs besides what it does: a look, two writes to a Store on the disk, and its answer in a
// file.
func BenchmarkDo(b *testing.B) {
	store, err := state.Open(b.Context(), state.OnDisk, state.Options{Dir: leaktest.Dir(b), Sync: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	r := New(store, leaktest.Dir(b), slog.New(slog.DiscardHandler))
	defer r.Close()
	s := &site{Records: r}
	c := s.caller(func(ctx context.Context, a *Attempt) request.Answer {
		if err := a.Begin(ctx, "call1", "x", Unknown); err != nil {
			b.Fatal(err)
		}
		return request.Answer{Result: json.RawMessage(answered)}
	})
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		r.Do(b.Context(), Key{store: state.Key(state.Call, state.Hash(strconv.Itoa(n/200)), state.Hash(strconv.Itoa(n))), sum: "x"}, c)
	}
}
