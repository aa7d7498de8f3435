package public

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
)

// Path is where a challenge is answered: Path, and then a nonce. It stands below the path of the public URL.
const Path = "/.well-known/codehand/"

// nonceBytes is how many random bytes a nonce has. In a path they are base64url without padding.
const nonceBytes = 32

// maxProof is the longest answer to a challenge, in bytes. The public URL in it is the only part of variable length.
const maxProof = 8 << 10

// A Prover answers challenges for one process. It is safe for concurrent use.
type Prover struct {
	url    string
	key    ed25519.PrivateKey
	opened atomic.Bool
}

// NewProver makes a Prover for http.public_url, with a key of its own. It is not open.
func NewProver(url string) *Prover {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // rand.Reader never fails
	}
	return &Prover{url: url, key: key}
}

// Open lets the endpoint serve.
func (p *Prover) Open() { p.opened.Store(true) }

// Opened says whether the endpoint may serve. Until then it answers challenges, and nothing else.
func (p *Prover) Opened() bool { return p.opened.Load() }

// Instance names this process in a log and in the answer to a challenge. It is no secret.
func (p *Prover) Instance() string { return instance(p.key.Public().(ed25519.PublicKey)) }

func instance(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:10])
}

// A wireProof is the answer to a challenge. Key and Signature are base64url.
type wireProof struct {
	URL       string `json:"public_url"`
	Key       string `json:"key"`
	Signature string `json:"signature"`
}

// Answer is the JSON that answers a challenge; ok is false if nonce is not one.
func (p *Prover) Answer(nonce string) (body []byte, ok bool) {
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(nonce); err != nil || len(raw) != nonceBytes {
		return nil, false
	}
	body, err := json.Marshal(wireProof{
		URL: p.url, Key: base64.RawURLEncoding.EncodeToString(p.key.Public().(ed25519.PublicKey)),
		Signature: base64.RawURLEncoding.EncodeToString(ed25519.Sign(p.key, signed(p.url, nonce))),
	})
	return body, err == nil
}

// signed is what the signature is about. Nothing else of codehand signs a text that begins so.
func signed(url, nonce string) []byte {
	return []byte("codehand public challenge\n" + nonce + "\n" + url)
}

// NewNonce makes the nonce of a challenge.
func NewNonce() string {
	raw := make([]byte, nonceBytes)
	_, _ = rand.Read(raw) // it never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// A Proof is an answer to a challenge whose signature is right: some codehand made it for this very nonce.
type Proof struct {
	URL      string // http.public_url of that codehand
	Instance string // of its process, as Prover.Instance
}

var errNoProof = errors.New("not the answer of a codehand to this challenge")

// Verify reads the answer to a challenge. The error says that it is none, or an answer to another one.
func Verify(body []byte, nonce string) (Proof, error) {
	var w wireProof
	if len(body) > maxProof || json.Unmarshal(body, &w) != nil {
		return Proof{}, errNoProof
	}
	key, err := base64.RawURLEncoding.DecodeString(w.Key)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return Proof{}, errNoProof
	}
	signature, err := base64.RawURLEncoding.DecodeString(w.Signature)
	if err != nil || !ed25519.Verify(key, signed(w.URL, nonce), signature) {
		return Proof{}, errNoProof
	}
	return Proof{URL: w.URL, Instance: instance(key)}, nil
}
