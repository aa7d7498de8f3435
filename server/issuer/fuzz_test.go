package issuer

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// For any token, what was accepted has each name once and in one spelling, so that a later reader, as go-oidc, sees the
// same claims.
func FuzzParseToken(f *testing.F) {
	for _, two := range [][2]string{{`{"alg":"RS256","typ":"at+jwt","kid":"a"}`, `{"iss":"https://i","aud":["a"],"exp":1e9,"sub":"x"}`},
		{`{"alg":"none","Alg":"RS256"}`, `{"iss":"a","iss":"b"}`}, {`{"a":{"b":[{}]}}`, `null`}} {
		f.Add(two[0], two[1])
	}
	f.Fuzz(func(t *testing.T, header, payload string) {
		part := base64.RawURLEncoding.EncodeToString
		j, err := parse(part([]byte(header)) + "." + part([]byte(payload)) + ".c2ln")
		if err != nil {
			return
		}
		for text, c := range map[string]claims{header: j.header, payload: j.claims} {
			var plain map[string]json.RawMessage
			if err := json.Unmarshal([]byte(text), &plain); err != nil || len(plain) != len(c) {
				t.Fatalf("%q: %d claims, %v", text, len(c), err)
			}
			for name := range c {
				for _, r := range registered {
					if name != r && strings.EqualFold(name, r) {
						t.Fatalf("%q has %q", text, name)
					}
				}
				c.text(name)
				if list, ok := c.texts(name); !ok && len(list) > 0 {
					t.Fatalf("%q: %q is no list and has %q", text, name, list)
				}
				if at, ok := c.moment(name); ok && at.Unix() < 0 {
					t.Fatalf("%q: %q is at %v", text, name, at)
				}
			}
		}
	})
}
