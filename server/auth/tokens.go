package auth

import "time"

// A Token is one line of the tokens file. The secret itself is nowhere.
type Token struct {
	ID        string
	Principal string
	Values    Values
	Created   time.Time
	Expires   time.Time // zero: never
	Revoked   time.Time // zero: it is not
	Note      string
}

// A TokenFile is the file that holds the tokens. Its writers are processes of codehand; they take turns.
type TokenFile struct{ path string }

// OpenTokenFile names the file; it need not exist.
func OpenTokenFile(path string) *TokenFile { return &TokenFile{path} }

// New makes a token from t, without its ID and Created, and returns it with its ID, and the secret text that is shown
// once.
func (f *TokenFile) New(t Token) (made Token, text string, err error) { return t, "", nil }

// List returns all tokens in the order of the file.
func (f *TokenFile) List() ([]Token, error) { return nil, nil }

// Revoke marks the tokens that match says, and returns those that were not revoked before.
func (f *TokenFile) Revoke(match func(Token) bool) ([]Token, error) { return nil, nil }
