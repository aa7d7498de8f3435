package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Token is one line of the tokens file. The secret itself is nowhere.
type Token struct {
	ID        string
	Principal string
	Values    Values // without Enabled and Seed, which a token does not have
	Created   time.Time
	Expires   time.Time // zero: never
	Revoked   time.Time // zero: it is not
	Note      string
}

// State is what a token is at a time: revoked, expired or active.
func (t Token) State(now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked"
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return "expired"
	}
	return "active"
}

// A TokenFile is the file that holds the tokens. Its writers are processes of codehand; they take turns. It is safe for
// concurrent use.
type TokenFile struct {
	path string
	now  func() time.Time
}

// OpenTokenFile names the file; it need not exist.
func OpenTokenFile(path string) *TokenFile { return &TokenFile{path, time.Now} }

// The text of a token: chd_<id>_<secret>. The id is not secret: it finds the line. The secret may have a `_`, too, so
// the parts are found by their lengths.
const (
	tokenPrefix = "chd_"
	idLength    = 10 // of a-z2-7
	keyBytes    = 32 // random bytes of the secret
	tokenLength = len(tokenPrefix) + idLength + 1 + (keyBytes*8+5)/6
)

// parseToken returns the id of a token, if text has the form of one.
func parseToken(text string) (id string, ok bool) {
	at := len(tokenPrefix) + idLength
	if len(text) != tokenLength || !strings.HasPrefix(text, tokenPrefix) || text[at] != '_' {
		return "", false
	}
	for _, c := range []byte(text[at+1:]) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return "", false
		}
	}
	id = text[len(tokenPrefix):at]
	return id, isTokenID(id)
}

func isTokenID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// newToken makes an id and the text of a token.
func newToken() (id, text string) {
	id = strings.ToLower(rand.Text()[:idLength]) // base 32
	var key [keyBytes]byte
	_, _ = rand.Read(key[:]) // never fails
	return id, tokenPrefix + id + "_" + base64.RawURLEncoding.EncodeToString(key[:])
}

// New makes a token from t, without its ID and Created, and returns it with its ID, and the secret text that is shown
// once. Times have whole seconds.
func (f *TokenFile) New(t Token) (made Token, text string, err error) {
	if t.Values.Enabled != nil || t.Values.Seed != nil {
		return Token{}, "",
			errors.New("a token cannot set enabled or seed; set them for the principal in the configuration")
	}
	t.Created, t.Expires, t.Revoked = second(f.now()), second(t.Expires), second(t.Revoked)
	if err := t.check(); err != nil {
		return Token{}, "", err
	}
	err = f.change(func(lines []*line) ([]*line, error) {
		taken := func(l *line) bool { return l.token.ID == t.ID }
		for t.ID, text = newToken(); slices.ContainsFunc(lines, taken); t.ID, text = newToken() {
		}
		l := &line{token: t, hash: sha256.Sum256([]byte(text))}
		if l.raw, err = l.encode(); err != nil {
			return nil, err
		}
		if len(l.raw) > maxLine/2 { // the rest is for what is added later
			return nil, fmt.Errorf("the token would need a line of %d bytes; at most %d are allowed", len(l.raw),
				maxLine/2)
		}
		return append(lines, l), nil
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, text, nil
}

func second(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}

// List returns all tokens in the order of the file. A file that is not there has none. The error names file and line.
func (f *TokenFile) List() ([]Token, error) {
	read, err := readTokens(f.path, ownerOrRoot)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, len(read.lines))
	for i, l := range read.lines {
		tokens[i] = l.token
	}
	return tokens, nil
}

// Revoke marks the tokens that match says, and returns those that were not revoked before. Without any the file stays
// as it is.
func (f *TokenFile) Revoke(match func(Token) bool) ([]Token, error) {
	var revoked []Token
	err := f.change(func(lines []*line) ([]*line, error) {
		now := second(f.now())
		for _, l := range lines {
			if !l.token.Revoked.IsZero() || !match(l.token) {
				continue
			}
			l.token.Revoked = now
			raw, err := l.encode()
			if err != nil {
				return nil, err
			}
			l.raw = raw
			revoked = append(revoked, l.token)
		}
		if len(revoked) == 0 {
			return nil, errUnchanged
		}
		return lines, nil
	})
	if err != nil {
		return nil, err
	}
	return revoked, nil
}

// errUnchanged says that there is nothing to write.
var errUnchanged = errors.New("unchanged")

// change takes the lock, reads the file, and writes what edit returns, unless that is an error.
func (f *TokenFile) change(edit func([]*line) ([]*line, error)) error {
	unlock, err := lockBeside(f.path, lockPatience)
	if err != nil {
		return err
	}
	defer unlock()
	read, err := readTokens(f.path, ownerOrRoot)
	if err != nil {
		return err
	}
	lines, err := edit(read.lines)
	if errors.Is(err, errUnchanged) {
		return nil
	} else if err != nil {
		return err
	}
	var text []byte
	for _, l := range lines {
		if len(l.raw) > maxLine {
			return fmt.Errorf("write %s: the line of token %s would be longer than %d bytes", f.path, l.token.ID,
				maxLine)
		}
		text = append(append(text, l.raw...), '\n')
	}
	if err := replaceFile(f.path, text, true); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}
