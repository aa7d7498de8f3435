package oauth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
)

// What is handed out names its grant, which is no secret and finds the record, and then has the secret. Parts are found
// by their lengths, since a secret may have a `_`, too.
const (
	accessPrefix  = "cha_"
	refreshPrefix = "chr_"
	codePrefix    = "chc_"

	idLetters  = "abcdefghijklmnopqrstuvwxyz234567"
	grantBytes = 12 // of idLetters
	secretSize = 43 // base64url of 32 random bytes
	familySize = 22 // base64url of 16 random bytes
)

// A digest is the SHA-256 of a secret. The zero digest is that of no secret.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// is compares in constant time. The zero digest is equal to none.
func (d digest) is(o digest) bool {
	return subtle.ConstantTimeCompare(d[:], o[:]) == 1 && d != digest{}
}

// mark tells tokens of one grant apart. It is no secret.
func (d digest) mark() string { return hex.EncodeToString(d[:8]) }

// MarshalText is for the Store.
func (d digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

// UnmarshalText is the reverse.
func (d *digest) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(d) {
		return errors.New("a digest has 64 hex digits")
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// newSecret returns n random bytes in base64url.
func newSecret(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// newID returns n random letters and digits in lower case, of five bits each; n is at most 26.
func newID(n int) string { return strings.ToLower(rand.Text()[:n]) }

// cut takes the grant's id and the secret out of a text with a prefix; ok is false if it does not have that form.
func cut(text, prefix string, size int) (grant, secret string, ok bool) {
	at := len(prefix) + grantBytes
	if len(text) != at+1+size || !strings.HasPrefix(text, prefix) || text[at] != '_' {
		return "", "", false
	}
	grant, secret = text[len(prefix):at], text[at+1:]
	return grant, secret, strings.Trim(grant, idLetters) == "" && isBase64URL(secret)
}

func isBase64URL(text string) bool {
	for _, c := range []byte(text) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// A refreshToken is a refresh token in its parts. The part of the family is the same in all tokens of a grant: it tells
// a rotated token from an invented one, without a list of all that there ever were.
type refreshToken struct{ grant, family, rest string }

func parseRefresh(text string) (t refreshToken, ok bool) {
	grant, secret, ok := cut(text, refreshPrefix, familySize+secretSize)
	if !ok {
		return refreshToken{}, false
	}
	return refreshToken{grant, secret[:familySize], secret[familySize:]}, true
}

func (t refreshToken) String() string { return refreshPrefix + t.grant + "_" + t.family + t.rest }

// ReadObject decodes one JSON object and nothing behind it. It refuses a name that stands there twice, also in another
// case: of such names readers take the first or the last, and the one who checks may see another than the one who uses.
func ReadObject(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("it is not one object")
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return errors.New("it cannot be read")
		}
		same := strings.ToLower(strings.ToUpper(name.(string))) // as encoding/json matches them, and a little wider
		if seen[same] {
			return errors.New("a name stands there twice")
		}
		seen[same] = true
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return errors.New("it cannot be read")
		}
	}
	if json.Unmarshal(text, into) != nil {
		return errors.New("it cannot be read")
	}
	return nil
}

// line makes what a stranger says fit for a page, a log and the audit: one line of at most most runes.
func line(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ") {
		if n == most {
			b.WriteString("…")
			break
		}
		if isShown(r) {
			b.WriteRune(r)
			n++
		}
	}
	return b.String()
}
