package signin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"codehand/server/people"
)

// An authenticator is one that lies when a test wants it to.
type authenticator struct {
	key     *ecdsa.PrivateKey
	id      []byte
	handle  []byte
	counter uint32
	flags   byte   // user present and verified
	origin  string // of the page
	host    string // of the relying party
}

func newAuthenticator(t *testing.T, origin string) *authenticator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &authenticator{key: key, id: []byte(rand.Text()), flags: 0x05, origin: origin, host: "localhost", counter: 1}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (a *authenticator) data(extra byte) []byte {
	host := sha256.Sum256([]byte(a.host))
	out := append(host[:], a.flags|extra)
	return binary.BigEndian.AppendUint32(out, a.counter)
}

func (a *authenticator) clientData(kind, challenge string) []byte {
	text, _ := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false})
	return text
}

// create answers navigator.credentials.create with attestation none.
func (a *authenticator) create(t *testing.T, challenge string) string {
	t.Helper()
	public, err := a.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	data := append(a.data(0x40), make([]byte, 16)...)
	data = binary.BigEndian.AppendUint16(data, uint16(len(a.id)))
	data = append(data, a.id...)
	data = append(data, 0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20)
	data = append(data, public[1:33]...)
	data = append(append(data, 0x22, 0x58, 0x20), public[33:]...)
	object := append([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"), byte(len(data)))
	object = append(object, data...)
	text, _ := json.Marshal(map[string]any{"id": b64(a.id), "rawId": b64(a.id), "type": "public-key",
		"response": map[string]any{"clientDataJSON": b64(a.clientData("webauthn.create", challenge)), "attestationObject": b64(object)}})
	return string(text)
}

// get answers navigator.credentials.get.
func (a *authenticator) get(t *testing.T, challenge string) string {
	t.Helper()
	data, client := a.data(0), a.clientData("webauthn.get", challenge)
	sum := sha256.Sum256(client)
	signed := sha256.Sum256(append(append([]byte(nil), data...), sum[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, signed[:])
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(map[string]any{"id": b64(a.id), "rawId": b64(a.id), "type": "public-key",
		"response": map[string]any{"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature),
			"userHandle": b64(a.handle)}})
	return string(text)
}

// json posts what the script would.
func (b *browser) json(path string, body map[string]any) page {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.send("POST", "/signin/passkey/"+path, "application/json", string(text))
}

type begun struct {
	PublicKey struct {
		Challenge string
		RPID      string `json:"rpId"`
		RP        struct{ ID string }
		User      struct{ ID, Name string }
		UV        string `json:"userVerification"`
		Selection struct {
			ResidentKey      string `json:"residentKey"`
			UserVerification string `json:"userVerification"`
		} `json:"authenticatorSelection"`
		Attestation string
	}
}

func (b *browser) begin(kind, token string) (begun, page) {
	b.t.Helper()
	p := b.json("begin", map[string]any{"csrf": token, "kind": kind})
	var got begun
	if p.status == 200 {
		if err := json.Unmarshal([]byte(p.body), &got); err != nil {
			b.t.Fatal(err)
		}
	}
	return got, p
}

// register adds the passkey of a.
func (b *browser) register(a *authenticator, kind, page string) page {
	b.t.Helper()
	token := b.get(page).token()
	options, p := b.begin(kind, token)
	if p.status != 200 {
		return p
	}
	a.handle, _ = base64.RawURLEncoding.DecodeString(options.PublicKey.User.ID)
	return b.json("finish", map[string]any{"csrf": token, "kind": kind, "name": "My key",
		"credential": json.RawMessage(a.create(b.t, options.PublicKey.Challenge))})
}

// passkeyLogin signs in with it.
func (b *browser) passkeyLogin(a *authenticator) page {
	b.t.Helper()
	token := b.get("/signin/").token()
	options, p := b.begin(toLogin, token)
	if p.status != 200 {
		return p
	}
	return b.json("finish", map[string]any{"csrf": token, "kind": toLogin, "ask": askID,
		"credential": json.RawMessage(a.get(b.t, options.PublicKey.Challenge))})
}

// local is a browser that knows the server as localhost.
func (s *site) local() *browser {
	b := s.browser()
	b.base = strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	return b
}

func TestPasskey(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.local()
	a := newAuthenticator(t, b.base)
	b.login("alice", planted)
	options, _ := b.begin(toRegister, b.get("/signin/").token())
	if o := options.PublicKey; o.RP.ID != "localhost" || o.User.Name != "alice" || o.Selection.ResidentKey != "required" ||
		o.Selection.UserVerification != "required" || o.Attestation != "none" && o.Attestation != "" {
		t.Errorf("options %+v", o)
	}
	b.register(a, toRegister, "/signin/").want(t, 200, `"next":""`)
	b.get("/signin/").want(t, 200, "My key")
	again := s.local()
	options, _ = again.begin(toLogin, again.get("/signin/").token())
	if o := options.PublicKey; o.RPID != "localhost" || o.UV != "required" {
		t.Errorf("options %+v", o)
	}
	a.counter = 7
	again.passkeyLogin(a).want(t, 200, `"next":"ask/`+askID+`"`)
	if !again.signedIn() {
		t.Error("not signed in")
	}
	a.counter = 7 // a copy of the authenticator would have it, too
	s.local().passkeyLogin(a).want(t, 401, "not accepted")
	a.counter = 8
	s.local().passkeyLogin(a).want(t, 200, "next")
	b.post("/signin/passkey/remove", b.get("/signin/").token(), "key", b64(a.id)).location(t, "../")
	a.counter = 9
	s.local().passkeyLogin(a).want(t, 401, "not accepted")
}

// An answer of an authenticator, or of an attacker in between, is compared with the question.
func TestForgedPasskeys(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.local()
	a := newAuthenticator(t, b.base)
	b.login("alice", planted)
	b.register(a, toRegister, "/signin/").want(t, 200, "next")
	s.disabled["mallory"] = true
	for name, change := range map[string]func(*authenticator){
		"another page":        func(a *authenticator) { a.origin = "http://evil.example" },
		"another port":        func(a *authenticator) { a.origin = "http://localhost:1" },
		"another party":       func(a *authenticator) { a.host = "evil.example" },
		"nobody verified":     func(a *authenticator) { a.flags = 0x01 },
		"nobody present":      func(a *authenticator) { a.flags = 0x04 },
		"another key":         func(a *authenticator) { a.key = newAuthenticator(t, a.origin).key },
		"another id":          func(a *authenticator) { a.id = []byte("another") },
		"another person":      func(a *authenticator) { a.handle = make([]byte, 32) },
		"no person":           func(a *authenticator) { a.handle = nil },
		"the counter is back": func(a *authenticator) { a.counter = 0 },
	} {
		forged := *a
		forged.counter = 10
		change(&forged)
		other := s.local()
		other.passkeyLogin(&forged).want(t, 401, "This passkey was not accepted.")
		if other.signedIn() {
			t.Errorf("%s: signed in", name)
		}
	}
	// Nothing is accepted twice, late, for another purpose, from another browser, or unasked.
	one, two := s.local(), s.local()
	token, token2 := one.get("/signin/").token(), two.get("/signin/").token()
	options, _ := one.begin(toLogin, token)
	a.counter = 20
	credential := json.RawMessage(a.get(t, options.PublicKey.Challenge))
	finish := func(b *browser, token, kind string) page {
		return b.json("finish", map[string]any{"csrf": token, "kind": kind, "credential": credential})
	}
	finish(two, token2, toLogin).want(t, 409, "too long")
	finish(one, token2, toLogin).want(t, 403, "open for too long")
	finish(one, token, toRegister).want(t, 409, "too long")
	finish(one, token, toLogin).want(t, 409, "too long") // the attempt before used it up
	options, _ = one.begin(toLogin, token)
	credential = json.RawMessage(a.get(t, options.PublicKey.Challenge))
	s.move(ceremonyLife)
	finish(one, token, toLogin).want(t, 409, "too long")
	options, _ = one.begin(toLogin, token)
	credential = json.RawMessage(a.get(t, options.PublicKey.Challenge))
	finish(one, token, toLogin).want(t, 200, "next")
	if strings.Contains(s.log.String(), b64(a.handle)) {
		t.Error("the log has a handle")
	}
}

func TestPasskeyNeeds(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.local()
	_, p := b.begin(toRegister, b.get("/signin/").token())
	p.want(t, 403, "sign out and in") // no person has signed in
	_, p = b.begin(toAccept, b.get("/signin/").token())
	p.want(t, 410, "invitation")
	_, p = b.begin("other", b.get("/signin/").token())
	p.want(t, 400, "cannot be read")
	b.login("alice", planted)
	s.move(freshLife)
	_, p = b.begin(toRegister, b.get("/signin/").token())
	p.want(t, 403, "sign out and in") // too long ago
	byAddress := s.browser()
	_, p = byAddress.begin(toLogin, byAddress.get("/signin/").token())
	p.want(t, 409, "host name")
	if body := byAddress.get("/signin/").body; strings.Contains(body, "<script") {
		t.Error("an address offers passkeys")
	}
}

func TestInvitation(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	_, code, err := s.book.Invite("carol")
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	b.get("/signin/invite").want(t, 410, "does not exist")
	b.get("/signin/invite/"+code).location(t, "../invite")
	form := b.get("/signin/invite").want(t, 200, "carol")
	b.post("/signin/invite", form.token(), "password", "short", "again", "short").want(t, 422, "too short")
	b.post("/signin/invite", form.token(), "password", planted, "again", planted+"x").want(t, 422, "differ")
	b.post("/signin/invite", form.token(), "password", planted, "again", planted).location(t, "./")
	b.get("/signin/").want(t, 200, "carol")
	late := s.browser()
	late.get("/signin/invite/" + code)
	late.get("/signin/invite").want(t, 410, "was used")
	s.browser().login("carol", planted).location(t, "./")
}

func TestInvitationWithPasskey(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	_, code, err := s.book.Invite("carol")
	if err != nil {
		t.Fatal(err)
	}
	b, slow := s.local(), s.local()
	a, other := newAuthenticator(t, b.base), newAuthenticator(t, b.base)
	b.get("/signin/invite/" + code)
	slow.get("/signin/invite/" + code)
	token := slow.get("/signin/invite").token()
	options, _ := slow.begin(toAccept, token)
	b.register(a, toAccept, "/signin/invite").want(t, 200, "next")
	b.get("/signin/").want(t, 200, "carol")
	slow.json("finish", map[string]any{"csrf": token, "kind": toAccept, "credential": json.RawMessage(other.create(t, options.PublicKey.Challenge))}).
		want(t, 410, "was used")
	a.counter++
	s.local().passkeyLogin(a).want(t, 200, "next")
	b.post("/signin/passkey/remove", b.get("/signin/").token(), "key", b64(a.id)).want(t, 409, "only way")
	s.browser().login("carol", "").want(t, 401, "wrong") // there is no password
	person, err := s.book.Find("carol")
	if err != nil || person.Password != "" || len(person.Passkeys) != 1 {
		t.Errorf("%+v, %v", person, err)
	}
}

// Where the owner is alone, no other person signs in, whatever the file knows.
func TestOthersThanTheOwner(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.local()
	a := newAuthenticator(t, b.base)
	b.login("alice", planted)
	b.register(a, toRegister, "/signin/").want(t, 200, "next")
	s.pages.o.Alone = true
	if b.signedIn() {
		t.Error("alice is still signed in")
	}
	a.counter++
	s.local().passkeyLogin(a).want(t, 401, "not accepted")
	_, code, _ := s.book.Invite("dave")
	c := s.browser()
	c.get("/signin/invite/" + code)
	c.post("/signin/invite", c.get("/signin/invite").token(), "password", planted, "again", planted).want(t, 403, "cannot sign in")
	if c.signedIn() || people.Owner != "owner" {
		t.Error("dave is signed in")
	}
}
