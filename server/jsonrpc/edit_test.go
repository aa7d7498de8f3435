package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestWithCall(t *testing.T) {
	t.Parallel()
	const pair = `"codehand/call":"KEY"`
	for _, c := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{` + pair + `,"x":1}}}`},
		{`{"params":{"_meta":{ }}}`, `{"params":{"_meta":{` + pair + ` }}}`},
		{`{"params":{"name":"a"}}`, `{"params":{"_meta":{` + pair + `},"name":"a"}}`},
		{`{"params":{}}`, `{"params":{"_meta":{` + pair + `}}}`},
		{`{"id":1}`, `{"params":{"_meta":{` + pair + `}},"id":1}`},
		{` { "id" : 1 , "params" : { "_meta" : { "a" : [ { "_meta" : { } } ] } } } `,
			` { "id" : 1 , "params" : { "_meta" : {` + pair + `, "a" : [ { "_meta" : { } } ] } } } `},
		// the same keys elsewhere, numbers that no float holds, and escapes
		{`{"id":9007199254740993,"x":{"params":{}},"params":{"arguments":{"_meta":{},"n":1.10},"\u005fmeta":{"p":1e400}}}`,
			`{"id":9007199254740993,"x":{"params":{}},"params":{"arguments":{"_meta":{},"n":1.10},"\u005fmeta":{` + pair + `,"p":1e400}}}`},
		// nothing can be added
		{`{"params":[1]}`, ""},
		{`{"params":{"_meta":null}}`, ""},
		{`{"params":{"_meta":"{"}}`, ""},
	} {
		got, ok := WithCall([]byte(c.in), "KEY")
		if want := c.want; ok != (want != "") || ok && string(got) != want || !ok && string(got) != c.in {
			t.Errorf("%s: %t, got\n%s, want\n%s", c.in, ok, got, want)
		}
	}
}

// FuzzWithCall: a message that passed the scan passes it with the key, too, and is the same without it.
func FuzzWithCall(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"_meta":{}},"_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		`{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{"_meta":{ } } }`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":[]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		msg = bytes.Clone(bytes.Trim(msg, " \t\r\n"))
		env, bad := Scan(msg)
		if bad != nil || env.HasCall {
			return
		}
		out, ok := WithCall(msg, "KEY")
		if !ok {
			if !bytes.Equal(out, msg) {
				t.Fatalf("changed: %s", out)
			}
			return
		}
		again, bad := Scan(out)
		if bad != nil || again.Call != "KEY" || !bytes.Equal(again.ID, env.ID) || again.Method != env.Method || !bytes.Equal(again.Arguments, env.Arguments) {
			t.Fatalf("%+v: %s", bad, out)
		}
		extra := len(out) - len(msg)
		at := 0
		for at < len(msg) && out[at] == msg[at] {
			at++
		}
		found := false
		for from := at; from >= 0 && !found; from-- { // what was inserted may begin like what stood there
			found = bytes.Equal(out[:from], msg[:from]) && bytes.Equal(out[from+extra:], msg[from:])
		}
		if !found {
			t.Fatalf("more than an insertion:\n%s\n%s", msg, out)
		}
	})
}

func TestWithID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, id, want string }{
		{`{"jsonrpc":"2.0","id":null,"error":{}}`, `9007199254740993`, `{"jsonrpc":"2.0","id":9007199254740993,"error":{}}`},
		{`{"jsonrpc":"2.0","result":{"id":1},"id" : 12 }`, `"a"`, `{"jsonrpc":"2.0","result":{"id":1},"id" : "a" }`},
		{`{"error":{"id":4}}`, `5`, `{"id":5,"error":{"id":4}}`},
	} {
		if got := WithID([]byte(c.in), json.RawMessage(c.id)); string(got) != c.want {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
	}
}

func TestSameID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent, got string
		want      bool
	}{
		{`1`, `1`, true}, {`1`, `2`, false}, {`1`, `"1"`, false}, {`"1"`, `1`, false}, {`1`, ``, true},
		{`9007199254740993`, `9007199254740992`, true}, {`"\u0061"`, `"a"`, true}, {`"a"`, `"b"`, false}, {`007`, `7`, true},
	} {
		if got := SameID(json.RawMessage(c.sent), nilIfEmpty(c.got)); got != c.want {
			t.Errorf("%s, %s: %t", c.sent, c.got, got)
		}
	}
}

func nilIfEmpty(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(strings.Clone(s))
}
