package seen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/disk"
)

// save notes that a path was seen whole.
func save(t *testing.T, r *Records, path string) {
	t.Helper()
	if err := r.Save(t.Context(), &Record{Path: path, Hash: disk.DigestOf([]byte(path)), Spans: []Span{}}); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, r *Records, path string) bool {
	t.Helper()
	rec, err := r.Load(t.Context(), path)
	if err != nil || rec != nil && rec.Path != path {
		t.Fatalf("the record of %s is %+v, %v", path, rec, err)
	}
	return rec != nil
}

// The file that is not used for longest is forgotten, and only that one.
func TestForgetsTheOldest(t *testing.T) {
	t.Parallel()
	m := &processMemory{values: make(map[string][]byte)}
	r := NewRecords(m)
	for _, path := range []string{"a", "b", "a"} {
		save(t, r, path)
	}
	for i := range maxFiles - 1 {
		save(t, r, fmt.Sprint(i))
	}
	if got := len(m.values); got != maxFiles {
		t.Errorf("%d files are remembered, want %d", got, maxFiles)
	}
	if has(t, r, "b") || !has(t, r, "a") || !has(t, r, "0") {
		t.Error("it is not the oldest that was forgotten")
	}
	// What an earlier process noted is older than all that this one does.
	later := NewRecords(m)
	save(t, later, "0")
	save(t, later, "new")
	if len(m.values) != maxFiles || !has(t, later, "0") || !has(t, later, "new") {
		t.Errorf("%d files are remembered in a later process, or the newest is not", len(m.values))
	}
}

// What is stored outlives this program, so its form does not change: the literals are what sessions have.
func TestStoredForm(t *testing.T) {
	t.Parallel()
	if got := keyOf("/w/a.go"); got != "seen.2311324b5b9b22b91344765382e0ac8d" {
		t.Errorf("the key is %s", got)
	}
	for name, text := range map[string]string{
		"of spans": `{"path":"/w/a.go","hash":"e52af72a70fb8b6dc74ad0761c5a2e7674096e956e7dcc3cfe1309e939b1145a","size":19,` +
			`"spans":[{"From":0,"To":5},{"From":12,"To":19}],"stamp":{"Dev":65024,"Ino":10460620,"Nlink":1,"Size":19,` +
			`"Mtime":1795250039360467014,"Ctime":1795250039362860716,"Racy":true},"view":"-","again":0,` +
			`"own":["1309e5bc87339e14c9b557d8b500beb73b41a2469fcf00ceae184e0508b2e5c6"],` +
			`"ranges":[{"Version":"r0d7f162fdff5:0-7","From":0,"To":5}]}`,
		"of parts": `{"path":"/w/a.go","hash":"0000000000000000000000000000000000000000000000000000000000000000",` +
			`"parts":[{"From":0,"To":7,"Hash":"447d3501df247856fbc3efc0199d501938990a67158fe6c32052cfe7ee8656fa"}],"size":21,` +
			`"spans":[{"From":0,"To":7}],"stamp":{"Dev":65024,"Ino":10460617,"Nlink":1,"Size":21,` +
			`"Mtime":1795250039364499047,"Ctime":1795250039364499047,"Racy":false},"view":"d92080f7400cb52a","again":1,"own":null}`,
	} {
		rec := new(Record)
		if err := json.Unmarshal([]byte(text), rec); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(rec); string(again) != text || err != nil {
			t.Errorf("a record %s is written as\n%s, %v, want\n%s", name, again, err, text)
		}
	}
	if name := ViewOf(21, Span{14, 30}).name(); name != "d92080f7400cb52a" {
		t.Errorf("the view is named %s", name)
	}
}

var errAway = errors.New("store is away")

// A lame memory fails in one of its methods.
type lameMemory struct {
	*processMemory
	fails string
}

func (m lameMemory) err(method string) error {
	if m.fails == method {
		return errAway
	}
	return nil
}

func (m lameMemory) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	value, rev, _ := m.processMemory.Get(ctx, key)
	return value, rev, m.err("Get")
}

func (m lameMemory) Set(ctx context.Context, key string, value []byte) error {
	return errors.Join(m.processMemory.Set(ctx, key, value), m.err("Set"))
}

func (m lameMemory) Delete(ctx context.Context, key string) error {
	return errors.Join(m.processMemory.Delete(ctx, key), m.err("Delete"))
}

func (m lameMemory) Keys(ctx context.Context, prefix string) ([]string, error) {
	keys, _ := m.processMemory.Keys(ctx, prefix)
	return keys, m.err("Keys")
}

// Whatever of a memory fails, the caller is told so with the cause.
func TestMemoryFails(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *Records) error{
		"Load":      func(ctx context.Context, r *Records) error { _, err := r.Load(ctx, "a"); return err },
		"Save":      func(ctx context.Context, r *Records) error { return r.Save(ctx, &Record{Path: "b"}) },
		"Forget":    func(ctx context.Context, r *Records) error { return r.Forget(ctx, "a") },
		"ForgetAll": func(ctx context.Context, r *Records) error { _, err := r.ForgetAll(ctx); return err },
		"All":       func(ctx context.Context, r *Records) error { _, err := r.All(ctx); return err },
		"Paths":     func(ctx context.Context, r *Records) error { _, err := r.Paths(ctx, 1); return err },
	}
	needs := map[string]string{
		"Load": "Get", "Save": "Set Keys", "Forget": "Delete", "ForgetAll": "Keys Delete", "All": "Keys Get", "Paths": "Keys Get",
	}
	for call, do := range calls {
		for _, method := range []string{"", "Get", "Set", "Delete", "Keys"} {
			m := &processMemory{values: make(map[string][]byte)}
			save(t, NewRecords(m), "a")
			err := do(t.Context(), NewRecords(lameMemory{m, method}))
			if want := method != "" && slices.Contains(strings.Fields(needs[call]), method); want != (err != nil) {
				t.Errorf("%s without %q: %v", call, method, err)
			}
			if err != nil && (!errors.Is(err, ErrMemory) || !errors.Is(err, errAway)) {
				t.Errorf("%s without %s: %v, want ErrMemory and the cause", call, method, err)
			}
		}
	}
}

// Records without a Memory are those of one ledger.
func TestOwnMemory(t *testing.T) {
	t.Parallel()
	r := NewRecords(nil)
	for _, path := range []string{"b", "c", "a"} {
		save(t, r, path)
	}
	all, err := r.All(t.Context())
	if err != nil || len(all) != 3 || all[0].Path != "a" || all[1].Path != "b" || all[2].Path != "c" {
		t.Errorf("all are %v, %v", all, err)
	}
	if paths, err := r.Paths(t.Context(), 2); err != nil || !slices.Equal(paths, []string{"a", "c"}) {
		t.Errorf("used last are %v, %v", paths, err)
	}
	if n, err := r.ForgetAll(t.Context()); n != 3 || err != nil || has(t, r, "a") {
		t.Errorf("%d were forgotten, %v", n, err)
	}
	if has(t, NewRecords(nil), "b") {
		t.Error("two ledgers share what they have seen")
	}
}

// A countingMemory counts how often it is asked for a value.
type countingMemory struct {
	processMemory
	gets int
}

func (m *countingMemory) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	m.gets++
	return m.processMemory.Get(ctx, key)
}

// TestLoadAgain: a Look stands in for a Load as long as nobody else has held the lock, and only then.
func TestLoadAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		meanwhile func(t *testing.T, r *Records)
		gets      int  // of LoadAgain
		found     bool // the record
	}{
		{"nothing happened", func(*testing.T, *Records) {}, 0, true},
		{"another record was looked at", func(t *testing.T, r *Records) { r.Look(t.Context(), "a") }, 0, true},
		{"it was forgotten", func(t *testing.T, r *Records) {
			defer r.Lock("a")()
			if err := r.Forget(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}, 1, false},
		{"all were forgotten", func(t *testing.T, r *Records) {
			if _, err := r.ForgetAll(t.Context()); err != nil {
				t.Error(err)
			}
		}, 1, false},
		{"the lock was held", func(_ *testing.T, r *Records) { r.Lock("a")() }, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &countingMemory{processMemory: processMemory{values: make(map[string][]byte)}}
			r := NewRecords(m)
			save(t, r, "a")
			look := r.Look(t.Context(), "a")
			if rec := look.Record; rec == nil || rec.Path != "a" {
				t.Fatalf("found %+v", rec)
			}
			c.meanwhile(t, r)
			defer r.Lock("a")()
			m.gets = 0
			rec, err := r.LoadAgain(t.Context(), "a", look)
			if err != nil || (rec != nil) != c.found || m.gets != c.gets {
				t.Errorf("got %+v, %v after %d questions, want %d", rec, err, m.gets, c.gets)
			}
		})
	}
}

// TestLoadAgainOfOneBeingChanged: who changes a record before the Look has asked for it, and lets go of the lock afterwards, may
// have changed it after the Memory answered.
func TestLoadAgainOfOneBeingChanged(t *testing.T) {
	t.Parallel()
	r := NewRecords(nil)
	save(t, r, "a")
	unlock := r.Lock("a")
	look := r.Look(t.Context(), "a")
	if err := r.Forget(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	unlock()
	defer r.Lock("a")()
	if rec, err := r.LoadAgain(t.Context(), "a", look); rec != nil || err != nil {
		t.Errorf("got %+v, %v of a record that was forgotten", rec, err)
	}
}

// TestLookFails: a Look that found nothing out is no record that is not there.
func TestLookFails(t *testing.T) {
	t.Parallel()
	m := &processMemory{values: make(map[string][]byte)}
	save(t, NewRecords(m), "a")
	look := NewRecords(lameMemory{m, "Get"}).Look(t.Context(), "a")
	r := NewRecords(m)
	defer r.Lock("a")()
	if rec, err := r.LoadAgain(t.Context(), "a", look); rec == nil || err != nil || look.Record != nil {
		t.Errorf("got %+v, %v", rec, err)
	}
}
