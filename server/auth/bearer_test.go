package auth

import (
	"net/url"
	"strings"
	"testing"
)

func TestBearer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		headers []string
		token   string
		want    presented
	}{
		{nil, "", noCredentials},
		{[]string{"Bearer abc"}, "abc", oneToken},
		{[]string{"bearer abc"}, "abc", oneToken},
		{[]string{"BEARER   a-b._~+/= "}, "a-b._~+/=", oneToken},
		{[]string{""}, "", noCredentials},
		{[]string{"abc"}, "", noCredentials},
		{[]string{"Basic YTpi"}, "", noCredentials},
		{[]string{"Bearerx abc"}, "", noCredentials},
		{[]string{"Bearer"}, "", badCredentials},
		{[]string{"Bearer  "}, "", badCredentials},
		{[]string{"Bearer a b"}, "", badCredentials},
		{[]string{"Bearer a,b"}, "", badCredentials},
		{[]string{"Bearer a, Bearer a"}, "", badCredentials},
		{[]string{"Bearer \"a\""}, "", badCredentials},
		{[]string{"Bearer a\x00"}, "", badCredentials},
		{[]string{"Bearer é"}, "", badCredentials},
		{[]string{"Bearer abc", "Bearer abc"}, "", badCredentials},
		{[]string{"Basic YTpi", "Bearer abc"}, "", badCredentials},
		{[]string{"", "Bearer abc"}, "", badCredentials},
	} {
		token, got := bearer(c.headers)
		if token != c.token || got != c.want {
			t.Errorf("%q: got %q, %v; want %q, %v", c.headers, token, got, c.token, c.want)
		}
	}
}

func FuzzBearer(f *testing.F) {
	for _, s := range []string{"", "Bearer abc", "bearer  a=", "Basic abc", "Bearer a b", "Bearer\tabc", "Bearer \xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		token, got := bearer([]string{value})
		// What is right is told from its words, which is not how bearer reads.
		words := strings.Split(value, " ")
		var full []string
		for _, w := range words {
			if w = strings.Trim(w, "\t"); w != "" {
				full = append(full, w)
			}
		}
		if got == oneToken {
			if len(full) != 2 || !strings.EqualFold(full[0], "bearer") || full[1] != token || strings.ContainsAny(token, " \t,\"") {
				t.Fatalf("%q has the token %q", value, token)
			}
		} else if token != "" {
			t.Fatalf("%q is refused with the token %q", value, token)
		}
		if _, twice := bearer([]string{value, value}); twice != badCredentials {
			t.Fatalf("%q twice: %v", value, twice)
		}
		if id, ok := parseToken(token); ok && token != tokenPrefix+id+"_"+token[len(token)-43:] {
			t.Fatalf("%q has the id %q", token, id)
		}
	})
}

func TestTokenInQuery(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{
		"": false, "sessionId=x": false, "tokens=x": false, "my_token=x": false, "a=token": false, "a=b&c": false,
		"token=x": true, "access_token=x": true, "token": true, "token=": true, "a=b&token=x": true, "a=b;token=x": true, "TOKEN=x": true,
		"%74oken=x": true, "access%5Ftoken=x": true, "%zz=1&token=x": true, "token=%zz": true, "&&token=x": true,
	} {
		if got := tokenInQuery(query); got != want {
			t.Errorf("%q: got %v, want %v", query, got, want)
		}
	}
}

func FuzzTokenInQuery(f *testing.F) {
	for _, s := range []string{"token=x", "a=b&access_token", "a;b", "%74oken", "=token"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, _ := url.ParseQuery(query) // with what it understands
		for key := range values {
			if (strings.EqualFold(key, "token") || strings.EqualFold(key, "access_token")) && !tokenInQuery(query) {
				t.Fatalf("%q has the key %q", query, key)
			}
		}
	})
}

func TestParseToken(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("aB-_9", 8) + "xyz"
	good := "chd_k3v7q2mzpa_" + secret
	if id, ok := parseToken(good); !ok || id != "k3v7q2mzpa" {
		t.Errorf("%q: got %q, %v", good, id, ok)
	}
	for _, bad := range []string{
		"", "chd_", good[1:], good + "a", good[:len(good)-1], "chd-" + good[4:], "chd_K3v7q2mzpa_" + secret, "chd_k3v7q2mzp1_" + secret,
		"chd_k3v7q2mzpa-" + secret, "chd_k3v7q2mzpa_" + secret[:42] + "+", "CHD_k3v7q2mzpa_" + secret,
	} {
		if id, ok := parseToken(bad); ok {
			t.Errorf("%q has the id %q", bad, id)
		}
	}
	for range 200 {
		id, text := newToken()
		if got, ok := parseToken(text); !ok || got != id {
			t.Fatalf("%q: got %q, %v; want %q", text, got, ok, id)
		}
	}
}
