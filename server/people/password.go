package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Limits of a password that a person chooses.
const (
	minPassword = 12   // characters
	maxPassword = 1024 // bytes
)

// A Cost is what one hash of argon2id takes.
type Cost struct {
	Memory  uint32 // KiB
	Passes  uint32
	Threads uint8
}

// usual is the least that OWASP's cheat sheet of 2025 asks for: each sign-in costs 19 MiB and some 25 ms, which a small
// server has to spare.
var usual = Cost{Memory: 19 << 10, Passes: 2, Threads: 1}

const (
	saltBytes = 16
	keyBytes  = 32
	// What a file may ask of us: its owner wrote it, but a slip must not take the machine's memory.
	maxMemory = 256 << 10 // KiB
	maxPasses = 16
)

// CheckPassword refuses what cannot be chosen as a password: it has at least 12 characters and at most 1,024 bytes, and
// no control characters.
func CheckPassword(text string) error {
	switch {
	case !utf8.ValidString(text):
		return errors.New("the password is not UTF-8")
	case utf8.RuneCountInString(norm.NFKC.String(text)) < minPassword:
		return fmt.Errorf("the password is too short: use at least %d characters", minPassword)
	case len(text) > maxPassword:
		return fmt.Errorf("the password is too long: use at most %d bytes", maxPassword)
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("the password has a control character")
	}
	return nil
}

// passwordLetters are 32 that are hard to mistake for each other, all on one level of a keyboard.
const passwordLetters = "abcdefghijkmnpqrstuvwxyz23456789"

// NewPassword makes one of 120 random bits, in 6 groups of 4.
func NewPassword() string {
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // never fails
	var b strings.Builder
	for i, c := range raw {
		if i > 0 && i%4 == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(passwordLetters[c%32])
	}
	return b.String()
}

// ErrBusy says that too many passwords wait for being hashed. The caller can try again in some seconds.
var ErrBusy = errors.New("too many people are signing in at once")

// A Hasher hashes passwords, few at a time, so that memory stays flat and other work gets its share of the processors.
// It is safe for concurrent use.
type Hasher struct {
	cost    Cost
	slots   chan struct{}
	waiting atomic.Int32
	runs    atomic.Int64
}

const (
	maxHashing = 2  // at once
	maxWaiting = 32 // those that wait for a slot
)

// NewHasher makes a Hasher that leaves one processor to others, if there are several. The zero Cost is the usual one;
// tests have a smaller one.
func NewHasher(cost Cost) *Hasher {
	if cost == (Cost{}) {
		cost = usual
	}
	return &Hasher{cost: cost, slots: make(chan struct{}, min(maxHashing, max(1, runtime.GOMAXPROCS(0)-1)))}
}

// Runs is how often argon2id has run: what a guess costs the one who guesses.
func (h *Hasher) Runs() int64 { return h.runs.Load() }

// Hash returns a password in the PHC string format. The error is ErrBusy or that of ctx.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	var salt [saltBytes]byte
	_, _ = rand.Read(salt[:]) // never fails
	key, err := h.derive(ctx, password, salt[:], h.cost, keyBytes)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.cost.Memory, h.cost.Passes,
		h.cost.Threads,
		base64.RawStdEncoding.EncodeToString(salt[:]), base64.RawStdEncoding.EncodeToString(key)), nil
}

// Check says whether password is that of hash, a PHC string, and whether it should be hashed anew, since the cost has
// changed. An empty hash is right for no password, and takes as long. The error is ErrBusy, that of ctx, or a broken
// hash.
func (h *Hasher) Check(ctx context.Context, hash, password string) (right, stale bool, err error) {
	p, salt, want := h.cost, make([]byte, saltBytes), make([]byte, keyBytes)
	if hash != "" {
		if p, salt, want, err = parseHash(hash); err != nil {
			return false, false, err
		}
	}
	if len(password) > maxPassword {
		password = "" // no longer one was ever accepted
	}
	key, err := h.derive(ctx, password, salt, p, uint32(len(want)))
	if err != nil {
		return false, false, err
	}
	same := subtle.ConstantTimeCompare(key, want) == 1
	return same && hash != "" && password != "", p != h.cost || len(want) != keyBytes, nil
}

// derive waits for a slot.
func (h *Hasher) derive(ctx context.Context, password string, salt []byte, p Cost, length uint32) ([]byte, error) {
	defer h.waiting.Add(-1)
	if h.waiting.Add(1) > maxWaiting {
		return nil, ErrBusy
	}
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.slots }()
	h.runs.Add(1)
	return argon2.IDKey([]byte(norm.NFKC.String(password)), salt, p.Passes, p.Memory, p.Threads, length), nil
}

// parseHash reads a PHC string of argon2id. Its error repeats nothing of it.
func parseHash(hash string) (p Cost, salt, key []byte, err error) {
	broken := errors.New("the hash of a password is broken; to make a new one: codehand owner new, or codehand " +
		"invite NAME")
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return p, nil, nil, broken
	}
	version := 0
	if n, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || n != 1 || version != argon2.Version {
		return p, nil, nil, broken
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.Memory, &p.Passes, &p.Threads); err != nil || n != 3 ||
		p.Memory < 8 || p.Memory > maxMemory || p.Passes < 1 || p.Passes > maxPasses || p.Threads < 1 {
		return p, nil, nil, broken
	}
	salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil || len(salt) < 8 || len(salt) > 64 {
		return p, nil, nil, broken
	}
	key, err = base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(key) < 16 || len(key) > 64 {
		return p, nil, nil, broken
	}
	return p, salt, key, nil
}
