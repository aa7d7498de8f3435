package people

import (
	"strings"
	"testing"
)

// What a file may say of a password never asks for more than a machine has, and never stops the server.
func FuzzParseHash(f *testing.F) {
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=-1,t=2,p=300$$")
	f.Fuzz(func(t *testing.T, hash string) {
		p, salt, key, err := parseHash(hash)
		if err != nil {
			if len(hash) > 20 && strings.Contains(err.Error(), hash) {
				t.Error("the error repeats the hash")
			}
			return
		}
		if p.Memory > maxMemory || p.Passes > maxPasses || p.Passes == 0 || p.Threads == 0 || len(salt) < 8 || len(key) < 16 {
			t.Errorf("%q gives %+v", hash, p)
		}
	})
}

// A file that is damaged is an error and nothing else.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"people":[{"id":"owner","handle":"AAAA","password":"x","epoch":1,"changed":"2026-11-23T10:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := parse(text); err == nil && r.Version != 1 {
			t.Errorf("version %d", r.Version)
		}
	})
}
