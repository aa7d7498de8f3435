package people

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
)

// cheap is what a hash costs where a test is not about the cost.
var cheap = Cost{Memory: 64, Passes: 1, Threads: 1}

func hashed(t *testing.T, password string) string {
	t.Helper()
	hash, err := NewHasher(cheap).Hash(context.Background(), password)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestHash(t *testing.T) {
	h, ctx := NewHasher(Cost{}), context.Background()
	hash, err := h.Hash(ctx, "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`).MatchString(hash) {
		t.Errorf("hash %s", hash)
	}
	if argon2.Version != 19 {
		t.Errorf("argon2 version %d", argon2.Version)
	}
	for _, c := range []struct {
		password string
		right    bool
	}{{"correct horse battery", true}, {"correct horse batterz", false}, {"", false}, {"correct horse battery ", false},
		{"\uff43orrect horse battery", true}} { // a wide c is the same letter under NFKC
		right, stale, err := h.Check(ctx, hash, c.password)
		if err != nil || right != c.right || stale {
			t.Errorf("%q: right %t, stale %t, %v", c.password, right, stale, err)
		}
	}
	if other, _ := h.Hash(ctx, "correct horse battery"); other == hash {
		t.Error("two hashes of one password are the same: no salt")
	}
}

// A check for a person without a password costs as much as one for a person with one, and always fails.
func TestHashOfNobody(t *testing.T) {
	h := NewHasher(cheap)
	for _, password := range []string{"", "anything", strings.Repeat("x", 5000)} {
		before := h.Runs()
		right, _, err := h.Check(context.Background(), "", password)
		if right || err != nil || h.Runs() != before+1 {
			t.Errorf("%.10q: right %t, %v, %d runs", password, right, err, h.Runs()-before)
		}
	}
}

func TestHashStale(t *testing.T) {
	old := hashed(t, "correct horse battery")
	right, stale, err := NewHasher(Cost{Memory: 64, Passes: 2, Threads: 1}).Check(context.Background(), old, "correct horse battery")
	if !right || !stale || err != nil {
		t.Errorf("right %t, stale %t, %v", right, stale, err)
	}
}

func TestBrokenHash(t *testing.T) {
	t.Parallel()
	for _, hash := range []string{"x", "$argon2i$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=16$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=99999999,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=64,t=0,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=64,t=1,p=0$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=64,t=1,p=1$$AAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$",
	} {
		right, _, err := NewHasher(cheap).Check(context.Background(), hash, "anything")
		if right || err == nil || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: right %t, %v", hash, right, err)
		}
	}
}

// Few hash at once, some wait, and the rest is told to come later.
func TestHashesAreBounded(t *testing.T) {
	h := NewHasher(cheap)
	if n := cap(h.slots); n < 1 || n > 2 || runtime.GOMAXPROCS(0) == 2 && n != 1 {
		t.Errorf("%d at once", n)
	}
	for range cap(h.slots) {
		h.slots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for range maxWaiting {
		h.waiting.Add(1) // as one that waits
	}
	if _, err := h.Hash(ctx, "x"); !errors.Is(err, ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	h.waiting.Add(-maxWaiting)
	waiting.Go(func() {
		if _, err := h.Hash(ctx, "x"); !errors.Is(err, context.Canceled) {
			t.Errorf("one whose browser went away: %v", err)
		}
	})
	cancel()
	waiting.Wait()
	if h.Runs() != 0 || h.waiting.Load() != 0 {
		t.Errorf("%d runs, %d waiting", h.Runs(), h.waiting.Load())
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	for password, want := range map[string]string{
		"twelve chars": "", "elevenchars": "too short", "": "too short", "zwölf Zeichen": "",
		strings.Repeat("x", 1024): "", strings.Repeat("x", 1025): "too long", "with\x00zero byte": "control",
		"not UTF-8 \xff at all": "UTF-8",
	} {
		err := CheckPassword(password)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", password, err, want)
		}
	}
}

func TestNewPassword(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		p := NewPassword()
		if !regexp.MustCompile(`^([a-km-np-z2-9]{4}-){5}[a-km-np-z2-9]{4}$`).MatchString(p) || seen[p] || CheckPassword(p) != nil {
			t.Fatalf("password %s", p)
		}
		seen[p] = true
	}
}

// at is a Book whose clock stands still.
func at(t *testing.T) (*Book, *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	return Open(t.TempDir(), func() time.Time { return now }), &now
}

func TestBook(t *testing.T) {
	t.Parallel()
	b, _ := at(t)
	if _, err := b.Find(Owner); !errors.Is(err, ErrUnknown) {
		t.Fatalf("an empty book knows the owner: %v", err)
	}
	must(t, b.SetPassword(Owner, "one", false))
	must(t, b.AddPasskey(Owner, Passkey{ID: "k1", Name: " My\x1b[31m  phone ", Record: json.RawMessage(`{}`)}))
	p, err := b.Find(Owner)
	if err != nil || p.Password != "one" || p.Epoch != 1 || len(p.Handle) != 32 || len(p.Passkeys) != 1 ||
		p.Passkeys[0].Name != "My [31m phone" {
		t.Errorf("%+v, %v", p, err)
	}
	if q, err := b.ByHandle(p.Handle); err != nil || q.ID != Owner {
		t.Errorf("by handle: %+v, %v", q, err)
	}
	if _, err := b.ByHandle(nil); !errors.Is(err, ErrUnknown) {
		t.Errorf("by no handle: %v", err)
	}
	if err := b.AddPasskey(Owner, Passkey{ID: "k1", Record: json.RawMessage(`{}`)}); err == nil {
		t.Error("one passkey twice")
	}
	must(t, b.Rehash(Owner, "zero", "lost"))
	must(t, b.Rehash(Owner, "one", "two"))
	if p, _ := b.Find(Owner); p.Password != "two" || p.Epoch != 1 {
		t.Errorf("rehashed: %+v", p)
	}
	if err := b.RemovePasskey(Owner, "k2"); err == nil {
		t.Error("removed what is not there")
	}
	other := Open(filepath.Dir(b.file.Path()), nil) // as another process
	must(t, other.SetPassword(Owner, "three", true))
	if p, _ := b.Find(Owner); p.Password != "three" || p.Epoch != 2 || len(p.Passkeys) != 0 {
		t.Errorf("after another process wrote: %+v", p)
	}
	if err := b.SetPassword("bad\nname", "x", false); err == nil {
		t.Error("a name that is none")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLastWayStays(t *testing.T) {
	t.Parallel()
	b, _ := at(t)
	_, code, err := b.Invite("alice")
	must(t, err)
	_, err = b.Accept(code, "", &Passkey{ID: "k", Record: json.RawMessage(`{}`)}, []byte("handle"))
	must(t, err)
	if err := b.RemovePasskey("alice", "k"); err == nil {
		t.Error("nobody can sign in any more")
	}
}

func TestInvites(t *testing.T) {
	t.Parallel()
	b, now := at(t)
	made, code, err := b.Invite("alice")
	must(t, err)
	if !regexp.MustCompile(`^chi_[\w-]{43}$`).MatchString(code) || made.State(*now) != "open" {
		t.Errorf("code %s, %+v", code, made)
	}
	text, err := os.ReadFile(b.file.Path())
	must(t, err)
	if strings.Contains(string(text), code) || strings.Contains(string(text), code[4:]) {
		t.Error("the code is in the file")
	}
	for name, change := range map[string]func(*testing.T, *Book, *time.Time) string{
		"unknown": func(*testing.T, *Book, *time.Time) string { return "chi_" + strings.Repeat("A", 43) },
		"empty":   func(*testing.T, *Book, *time.Time) string { return "" },
		"the hash": func(t *testing.T, b *Book, _ *time.Time) string {
			made, _, err := b.Invite("bob")
			must(t, err)
			return made.Hash
		},
		"expired": func(t *testing.T, b *Book, now *time.Time) string {
			_, code, err := b.Invite("bob")
			must(t, err)
			*now = now.Add(inviteLife)
			return code
		},
		"revoked": func(t *testing.T, b *Book, _ *time.Time) string {
			made, code, err := b.Invite("bob")
			must(t, err)
			ended, err := b.RevokeInvites(func(i Invite) bool { return i.ID == made.ID })
			if len(ended) != 1 {
				t.Errorf("ended %v", ended)
			}
			must(t, err)
			return code
		},
		"a later one": func(t *testing.T, b *Book, _ *time.Time) string {
			_, code, err := b.Invite("bob")
			must(t, err)
			_, _, err = b.Invite("bob")
			must(t, err)
			return code
		},
		"used": func(t *testing.T, b *Book, _ *time.Time) string {
			_, code, err := b.Invite("bob")
			must(t, err)
			_, err = b.Accept(code, "hash", nil, nil)
			must(t, err)
			return code
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, now := at(t)
			code := change(t, b, now)
			if _, err := b.Invited(code); !errors.Is(err, ErrInvite) {
				t.Errorf("shown: %v", err)
			}
			if _, err := b.Accept(code, "other", nil, nil); !errors.Is(err, ErrInvite) {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}

func TestInviteReplaces(t *testing.T) {
	t.Parallel()
	b, now := at(t)
	must(t, b.SetPassword("alice", "old", false))
	must(t, b.AddPasskey("alice", Passkey{ID: "k", Record: json.RawMessage(`{}`)}))
	_, code, err := b.Invite("alice")
	must(t, err)
	p, err := b.Accept(code, "new", nil, nil)
	if err != nil || p.Password != "new" || len(p.Passkeys) != 0 || p.Epoch != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	all, err := b.Invites()
	if err != nil || len(all) != 1 || all[0].State(*now) != "used" {
		t.Errorf("%+v, %v", all, err)
	}
	*now = now.Add(inviteLife + inviteMemory + time.Hour)
	must(t, b.SetPassword("bob", "x", false))
	if all, _ := b.Invites(); len(all) != 0 {
		t.Errorf("old ones stay: %+v", all)
	}
}

// Of many who accept at once, one wins.
func TestInviteRace(t *testing.T) {
	t.Parallel()
	b, _ := at(t)
	_, code, err := b.Invite("alice")
	must(t, err)
	var won, lost int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := Open(filepath.Dir(b.file.Path()), b.now).Accept(code, "hash", nil, nil)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if errors.Is(err, ErrInvite) {
				lost++
			}
		})
	}
	all.Wait()
	if won != 1 || lost != 7 {
		t.Errorf("%d won, %d lost", won, lost)
	}
}

func TestPasskeyUse(t *testing.T) {
	t.Parallel()
	b, _ := at(t)
	must(t, b.SetPassword("alice", "x", false))
	must(t, b.AddPasskey("alice", Passkey{ID: "k", Record: json.RawMessage(`1`)}))
	wrong := errors.New("wrong")
	if err := b.UsePasskey("alice", "k", func(json.RawMessage) (json.RawMessage, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Error(err)
	}
	must(t, b.UsePasskey("alice", "k", func(r json.RawMessage) (json.RawMessage, error) {
		if string(r) != "1" {
			t.Errorf("record %s", r)
		}
		return json.RawMessage(`2`), nil
	}))
	if p, _ := b.Find("alice"); string(p.Passkeys[0].Record) != "2" || p.Passkeys[0].Used.IsZero() {
		t.Errorf("%+v", p.Passkeys)
	}
	for _, who := range [][2]string{{"alice", "other"}, {"bob", "k"}} {
		if err := b.UsePasskey(who[0], who[1], nil); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v: %v", who, err)
		}
	}
}

func TestDamagedBook(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{": "damaged", `{"v":2,"people":[]}`: "newer", `{"v":1,"persons":[]}`: "damaged",
	} {
		b, _ := at(t)
		must(t, os.WriteFile(b.file.Path(), []byte(text), 0o600))
		if _, err := b.Find(Owner); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if err := b.SetPassword(Owner, "x", false); err == nil {
			t.Errorf("%s was replaced", text)
		}
	}
}

func TestBookThatOthersCanRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("mode bits say nothing there")
	}
	b, _ := at(t)
	must(t, b.SetPassword(Owner, "x", false))
	info, err := os.Stat(b.file.Path())
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %04o", info.Mode().Perm())
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o620} {
		must(t, os.Chmod(b.file.Path(), mode))
		if _, err := b.Find(Owner); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%04o: %v", mode, err)
		}
		if err := b.SetPassword(Owner, "x", false); err == nil {
			t.Errorf("%04o was written", mode)
		}
	}
}
