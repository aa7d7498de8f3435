package auth

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// hashOf is a hash as it stands in a line.
var hashOf = hashPrefix + strings.Repeat("9f", 32)

// full is the line of the documentation.
var full = `{"v":1,"id":"k3v7q2mzpa","hash":"` + hashOf + `","principal":"dev-7","roots":["/srv/ws/{principal}"],"mode":"acceptEdits","max_mode":"acceptEdits",` +
	`"profile":"readonly","scopes":["mcp:read"],"allow":[],"deny":[],"quota":{"calls_per_minute":300},"admin":false,` +
	`"created":"2026-11-20T10:00:00Z","expires":"2027-02-18T10:00:00Z","revoked":"","note":"laptop"}`

// least has only what must be there.
var least = `{"v":1,"id":"k3v7q2mzpa","hash":"` + hashOf + `","principal":"dev-7"}`

func TestParseLine(t *testing.T) {
	t.Parallel()
	onUnix(t)
	l, err := parseLine([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	v := l.token.Values
	if l.token.ID != "k3v7q2mzpa" || l.token.Principal != "dev-7" || l.token.Note != "laptop" || !l.token.Revoked.IsZero() ||
		!l.token.Created.Equal(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)) || !l.token.Expires.Equal(time.Date(2027, 2, 18, 10, 0, 0, 0, time.UTC)) ||
		l.hash[0] != 0x9f || l.hash[31] != 0x9f {
		t.Errorf("got %+v", l.token)
	}
	if !slices.Equal(v.Roots, []string{"/srv/ws/{principal}"}) || *v.Mode != "acceptEdits" || *v.MaxMode != "acceptEdits" || *v.Profile != "readonly" ||
		!slices.Equal(v.Scopes, []string{"mcp:read"}) || v.Allow == nil || v.Deny == nil || v.Quota["calls_per_minute"] != "300" || *v.Admin {
		t.Errorf("got %+v", v)
	}
	if raw, err := l.encode(); err != nil || string(raw) != full {
		t.Errorf("written again it is\n%s (%v), want\n%s", raw, err, full)
	}
	if l, err = parseLine([]byte(least)); err != nil {
		t.Fatal(err)
	}
	v = l.token.Values
	if v.Roots != nil || v.Mode != nil || v.MaxMode != nil || v.Profile != nil || v.Scopes != nil || v.Allow != nil || v.Deny != nil || v.Quota != nil || v.Admin != nil {
		t.Errorf("absent fields say %+v", v)
	}
}

// A line that is not exactly right is refused: each of these would make a token worth more than it says, or hide a
// mistake.
func TestParseLineRefuses(t *testing.T) {
	t.Parallel()
	onUnix(t)
	if _, err := parseLine([]byte(least)); err != nil {
		t.Fatal(err)
	}
	with := func(field string) string { return strings.TrimSuffix(least, "}") + "," + field + "}" }
	for _, c := range []struct{ line, want string }{
		{``, "not a JSON object"}, {`[]`, "not a JSON object"}, {`null`, "not a JSON object"}, {`"x"`, "not a JSON object"},
		{least + ` {}`, "after the object"}, {least + `x`, "after the object"}, {least[:len(least)-1], "does not end"}, {strings.Replace(least, `1,`, `1,,`, 1), "not valid JSON"},
		{with(`"scope":["mcp:read"]`), `unknown field "scope"; the fields are v, id, `}, {with(`"Roots":["/a"]`), "unknown field"}, {with(`"enabled":false`), "unknown field"},
		{with(`"REVOKED":""`), "unknown field"}, {with(`"principal":"root"`), "given twice"}, {with(`"note":"a","note":"b"`), "given twice"},
		{with(`"roots":null`), "null"}, {with(`"revoked":null`), "null"}, {with(`"quota":{"burst":null}`), "null"}, {with(`"deny":[null]`), "list of texts"},
		{with(`"quota":{"burst":1,"burst":0}`), "given twice"}, {with(`"quota":{"bursts":1}`), "unknown quota"}, {with(`"quota":{"burst":-1}`), "whole number"},
		{with(`"quota":{"burst":1e9}`), "whole number"}, {with(`"quota":{"burst":true}`), "whole number"}, {with(`"quota":{"burst":"many"}`), "quota burst"}, {with(`"quota":[]`), "quota"},
		{with(`"roots":"/a"`), "list of texts"}, {with(`"roots":[]`), "roots is empty"}, {with(`"roots":["a"]`), "absolute"}, {with(`"roots":["/a/{user}"]`), "braces"},
		{with(`"mode":"edit"`), "unknown mode"}, {with(`"mode":""`), "unknown mode"}, {with(`"max_mode":1`), "must be a text"}, {with(`"profile":"x"`), "unknown profile"},
		{with(`"scopes":["mcp:al"]`), "unknown scope"}, {with(`"scopes":"mcp:all"`), "list of texts"}, {with(`"allow":[""]`), "is not a rule"},
		{with(`"admin":"yes"`), "true or false"}, {with(`"expires":"tomorrow"`), "must be a time"}, {with(`"expires":"2027-02-18"`), "must be a time"},
		{with(`"revoked":"0001-01-01T00:00:00Z"`), "must be a time"}, {with(`"expires":1}`), "must be a text"}, {with(`"note":7`), "must be a text"},
		{with(`"note":"` + "\xff" + `"`), "not UTF-8"},
		{strings.Replace(least, `"v":1`, `"v":2`, 1), "newer codehand"}, {strings.Replace(least, `"v":1`, `"v":0`, 1), "must be 1"}, {strings.Replace(least, `"v":1`, `"v":"1"`, 1), "must be a number"},
		{strings.Replace(least, `"v":1,`, ``, 1), `"v" is missing`}, {strings.Replace(least, `,"principal":"dev-7"`, ``, 1), `"principal" is missing`},
		{strings.Replace(least, `"id":"k3v7q2mzpa",`, ``, 1), `"id" is missing`}, {strings.Replace(least, `"hash":"`+hashOf+`",`, ``, 1), `"hash" is missing`},
		{strings.Replace(least, "k3v7q2mzpa", "k3v7q2mzp", 1), "id must be"}, {strings.Replace(least, "k3v7q2mzpa", "k3v7q2mzp1", 1), "id must be"}, {strings.Replace(least, "k3v7q2mzpa", "K3V7Q2MZPA", 1), "id must be"},
		{strings.Replace(least, "sha256:9f", "sha256:", 1), "hash must be"}, {strings.Replace(least, "sha256:", "", 1), "hash must be"}, {strings.Replace(least, "sha256:9f", "sha256:xx", 1), "hash must be"},
		{strings.Replace(least, "dev-7", "", 1), "no name"}, {strings.Replace(least, "dev-7", `a\n`, 1), "not printable"}, {strings.Replace(least, "dev-7", `\ud800`, 1), "not UTF-8"},
	} {
		_, err := parseLine([]byte(c.line))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.line, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "9f9f") {
			t.Errorf("%s: the error repeats the hash: %v", c.line, err)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range []string{full, least, `{}`, `{"v":1,"v":1}`, strings.Replace(full, `300`, `"1KiB"`, 1), strings.Replace(full, `"note":"laptop"`, `"note":"<&\u2028\ud83d\ude00"`, 1)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := parseLine(raw)
		if err != nil {
			if l != nil {
				t.Error("a refused line has a token")
			}
			return
		}
		// A slow and lenient reader finds the same fields, and none besides.
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatalf("taken, although it is not JSON: %v", err)
		}
		for key := range fields {
			if !slices.Contains(lineFields, key) {
				t.Fatalf("taken with the field %q", key)
			}
		}
		var id, principal string
		if json.Unmarshal(fields["id"], &id) != nil || id != l.token.ID || json.Unmarshal(fields["principal"], &principal) != nil || principal != l.token.Principal {
			t.Fatalf("id %q and principal %q are read as %+v", id, principal, l.token)
		}
		// What is written again is read again, and means the same.
		written, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseLine(written)
		if err != nil {
			t.Fatalf("%s\nis written as\n%s\nwhich is refused: %v", raw, written, err)
		}
		a, x := Resolve(l.token.Principal, "", l.token.Values)
		b, y := Resolve(again.token.Principal, "", again.token.Values)
		if !a.sameRights(b) || a.Quota != b.Quota || x != y || again.hash != l.hash || again.token.Note != l.token.Note ||
			!again.token.Created.Equal(l.token.Created) || !again.token.Expires.Equal(l.token.Expires) || !again.token.Revoked.Equal(l.token.Revoked) {
			t.Fatalf("%s\nis written as\n%s", raw, written)
		}
		if twice, err := again.encode(); err != nil || string(twice) != string(written) {
			t.Fatalf("%s\nis written again as\n%s (%v)", written, twice, err)
		}
	})
}
