package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

const envelopeHead = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`

func TestEnvelopeFields(t *testing.T) {
	t.Parallel()
	msg := `{"params":{"_meta":{"progressToken":"p\u0031","io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/logLevel":"debug","codehand/session":"s","codehand/call":"c","threadId":"t","x-codex-turn-metadata":{"model":"m"},"other":{"a":[1]}},` +
		`"arguments":{"a":"\ud83d\ude00","A":1},"name":"read\u005ffile","uri":"u","requestId":-7,"reason":"r"},` +
		`"method":"tools/call","jsonrpc":"2.0","id":"last\n"}`
	e, bad := Scan([]byte(msg))
	if bad != nil {
		t.Fatal(bad.Message)
	}
	got := []string{
		string(e.ID), e.Method, e.Name, e.URI, string(e.Arguments), string(e.ProgressToken), string(e.RequestID), e.Reason,
		e.Version, e.Session, e.Call, e.ThreadID, string(e.Turn),
	}
	want := []string{
		`"last\n"`, "tools/call", "read_file", "u", `{"a":"\ud83d\ude00","A":1}`, `"p\u0031"`, "-7", "r",
		"2026-07-28", "s", "c", "t", `{"model":"m"}`,
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("field %d: got %s, want %s", i, got[i], want[i])
		}
	}
	if at := e.ArgumentsAt; !strings.HasPrefix(msg[at:], string(e.Arguments)) || at != strings.Index(msg, `{"a":`+`"\ud83d`) {
		t.Errorf("the arguments begin at %d", at)
	}
	if e.IDKind != IDString || !e.HasSession || !e.HasCall || !e.HasThreadID || e.HasResult || e.HasError {
		t.Errorf("wrong flags: %+v", e)
	}
}

// TestEnvelopeOpenAI: ChatGPT's id of a conversation, whatever its form, is an id like others.
func TestEnvelopeOpenAI(t *testing.T) {
	t.Parallel()
	of := func(meta string) Envelope {
		e, bad := Scan([]byte(envelopeHead + `{"name":"x","_meta":{` + meta + `}}}`))
		if bad != nil {
			t.Fatal(bad.Message)
		}
		return e
	}
	one, two := of(`"openai/session":"v1/a+b=="`), of(`"openai/session":"v1/a+b="`)
	if !one.HasThreadID || len(one.ThreadID) != len("openai:")+32 || one.ThreadID == two.ThreadID || strings.Contains(one.ThreadID, "a+b") {
		t.Errorf("%q and %q", one.ThreadID, two.ThreadID)
	}
	if e := of(`"openai/session":""`); e.HasThreadID {
		t.Error("an empty one counts")
	}
	if e := of(`"openai/session":5`); e.HasThreadID {
		t.Error("a number counts")
	}
}

func TestEnvelopeKinds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		msg  string
		kind IDKind
		id   string
	}{
		{`{"jsonrpc":"2.0","method":"x"}`, IDNone, ""},
		{`{"jsonrpc":"2.0","method":"x","id":""}`, IDString, `""`},
		{`{"jsonrpc":"2.0","method":"x","id":0}`, IDInteger, `0`},
		{`{"jsonrpc":"2.0","method":"x","id":-123456789012345678901234567890}`, IDInteger, `-123456789012345678901234567890`},
		{"\t{ \"jsonrpc\" : \"2.0\" , \"id\" : 5 , \"result\" : { } }\r\n ", IDInteger, `5`},
		{`{"jsonrpc":"2.\u0030","id":"s-1","error":{"code":1,"Code":2}}`, IDString, `"s-1"`},
	}
	for _, tt := range tests {
		e, bad := Scan([]byte(tt.msg))
		if bad != nil || e.IDKind != tt.kind || string(e.ID) != tt.id {
			t.Errorf("%s: got %v %s, error %+v", tt.msg, e.IDKind, e.ID, bad)
		}
	}
	// Only a call has arguments; a value of another type is there, but empty.
	e, bad := Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":7,"arguments":{},"requestId":1.5,"_meta":{"codehand/session":5,"progressToken":null}}}`))
	if bad != nil || e.Arguments != nil || e.Name != "" || e.RequestID != nil || e.ProgressToken != nil || !e.HasSession || e.Session != "" {
		t.Errorf("got %+v, error %+v", e, bad)
	}
}

func TestEnvelopeChecks(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name, msg string
		want      string // code and message
		id        string
	}{
		{"empty", ``, "-32700 parse error at byte 0", ""},
		{"garbage behind", `{} x`, "-32700 parse error at byte 3", ""},
		{"two values", `{}{}`, "-32700 parse error at byte 2", ""},
		{"not UTF-8", "{\"a\":\"\xff\"}", "-32700 parse error at byte 6", ""},
		{"overlong UTF-8", "{\"a\":\"\xc0\xaf\"}", "-32700 parse error at byte 6", ""},
		{"raw surrogate", "{\"a\":\"\xed\xa0\x80\"}", "-32700 parse error at byte 6", ""},
		{"control", "{\"a\":\"\n\"}", "-32700 parse error at byte 6", ""},
		{"open string", `{"a":"b`, "-32700 parse error at byte 7", ""},
		{"bad escape", `{"a":"\x"}`, "-32700 parse error at byte 7", ""},
		{"bad hex", `{"a":"\u12g4"}`, "-32700 parse error at byte 10", ""},
		{"leading zero", `{"a":01}`, "-32700 parse error at byte 6", ""},
		{"bare minus", `{"a":-}`, "-32700 parse error at byte 6", ""},
		{"trailing comma", `{"a":1,}`, "-32700 parse error at byte 7", ""},
		{"word", `{"a":nul}`, "-32700 parse error at byte 8", ""},
		{"mark", "\xef\xbb\xbf{}", "-32700 parse error at byte 0", ""},
		{"wrong end", `{"a":[1}}`, "-32700 parse error at byte 7", ""},
		{"syntax before all else", `{"id":1,"id":1,"x":}`, "-32700 parse error at byte 19", ""},

		{"batch", `[{"jsonrpc":"2.0","id":1}]`, "-32600 batch requests are not supported", ""},
		{"number", `42`, "-32600 the message must be an object", ""},

		{"depth", `{"jsonrpc":"2.0","method":"x","params":{"a":` + deep(63) + `},"id":9}`, "-32600 nested deeper than 64", "9"},
		{"depth before duplicate", `{"id":9,"a":1,"a":` + deep(64) + `}`, "-32600 nested deeper than 64", "9"},

		{"duplicate", `{"jsonrpc":"2.0","id":9,"x":{"a":1,"b":2,"\u0061":3}}`, `-32600 duplicate key "a"`, "9"},
		{"duplicate id", `{"jsonrpc":"2.0","id":9,"id":10}`, `-32600 duplicate key "id"`, "9"},
		{"duplicate in result", `{"jsonrpc":"2.0","id":9,"result":{"a":1,"a":2}}`, `-32600 duplicate key "a"`, "9"},
		{"duplicate of quotes", `{"jsonrpc":"2.0","id":9,"\"\n":1,"\"\n":2}`, `-32600 duplicate key "\"\n"`, "9"},
		{"duplicate before version", `{"id":9,"a":1,"a":2}`, `-32600 duplicate key "a"`, "9"},
		{"duplicate in arguments of a prompt", `{"jsonrpc":"2.0","id":9,"method":"prompts/get","params":{"arguments":{"a":1,"a":2}}}`, `-32600 duplicate key "a"`, "9"},

		{"ambiguous", `{"jsonrpc":"2.0","id":9,"x":[{"key":1,"Key":2}]}`, `-32600 ambiguous key "Key"`, "9"},
		{"ambiguous beyond ASCII", `{"jsonrpc":"2.0","id":9,"x":{"k\u00e9":1,"\u212aÉ":2}}`, "-32600 ambiguous key \"\u212aÉ\"", "9"},
		{"ambiguous long s", `{"jsonrpc":"2.0","id":9,"x":{"s":1,"ſ":2}}`, `-32600 ambiguous key "ſ"`, "9"},
		{"ambiguous in meta", `{"jsonrpc":"2.0","id":9,"params":{"_meta":{"x":1,"X":2}}}`, `-32600 ambiguous key "X"`, "9"},
		{"ambiguous before near", `{"jsonrpc":"2.0","id":9,"method":"x","Method":"y"}`, `-32600 ambiguous key "Method"`, "9"},

		{"near top", `{"jsonrpc":"2.0","id":9,"Method":"x"}`, `-32600 unknown key "Method", did you mean "method"`, "9"},
		{"near params", `{"jsonrpc":"2.0","id":9,"params":{"requestid":1}}`, `-32600 unknown key "requestid", did you mean "requestId"`, "9"},
		{"near folded", `{"jsonrpc":"2.0","id":9,"paramſ":{}}`, `-32600 unknown key "paramſ", did you mean "params"`, "9"},
		{"near meta", `{"jsonrpc":"2.0","id":9,"params":{"_meta":{"Codehand/session":"x"}}}`, `-32600 unknown key "Codehand/session", did you mean "codehand/session"`, "9"},

		{"no version", `{"id":9,"method":"x"}`, `-32600 jsonrpc must be "2.0"`, "9"},
		{"number version", `{"jsonrpc":2.0,"id":9,"method":"x"}`, `-32600 jsonrpc must be "2.0"`, "9"},

		{"null id", `{"jsonrpc":"2.0","id":null}`, "-32600 invalid id", ""},
		{"fraction id", `{"jsonrpc":"2.0","id":1.0}`, "-32600 invalid id", ""},
		{"exponent id", `{"jsonrpc":"2.0","id":1e3}`, "-32600 invalid id", ""},
		{"bool id", `{"jsonrpc":"2.0","id":true}`, "-32600 invalid id", ""},
		{"object id", `{"jsonrpc":"2.0","id":{}}`, "-32600 invalid id", ""},

		{"high surrogate", `{"jsonrpc":"2.0","id":9,"method":"\ud800"}`, "-32600 unpaired surrogate", "9"},
		{"low surrogate", `{"jsonrpc":"2.0","id":9,"x":["\udc00"]}`, "-32600 unpaired surrogate", "9"},
		{"two high", `{"jsonrpc":"2.0","id":9,"x":"\ud800\ud800"}`, "-32600 unpaired surrogate", "9"},
		{"high and escape", `{"jsonrpc":"2.0","id":9,"x":"\ud800\n"}`, "-32600 unpaired surrogate", "9"},
		{"surrogate key", `{"jsonrpc":"2.0","id":9,"\ud800":1,"\ud801":1}`, "-32600 unpaired surrogate", "9"},

		{"in arguments: depth", envelopeHead + `{"arguments":{"a":` + deep(62) + `}}}`, "arguments -32600 nested deeper than 64", "1"},
		{"in arguments: duplicate", envelopeHead + `{"name":"n","arguments":{"a":1,"a":1}}}`, `arguments -32600 duplicate key "a"`, "1"},
		{"in arguments: surrogate", envelopeHead + `{"arguments":{"a":"\ud800"}}}`, "arguments -32600 unpaired surrogate", "1"},
		{"in arguments, the method last", `{"id":1,"params":{"arguments":{"a":1,"a":1}},"jsonrpc":"2.0","method":"tools/call"}`, `arguments -32600 duplicate key "a"`, "1"},
		{"in arguments and outside", `{"params":{"arguments":{"a":1,"a":1}},"method":"tools/call","id":1}`, `-32600 jsonrpc must be "2.0"`, "1"},
		{"arguments elsewhere", `{"jsonrpc":"2.0","id":1,"method":"tools/call","arguments":{"a":1,"a":1}}`, `-32600 duplicate key "a"`, "1"},
	}
	for _, tt := range tests {
		e, bad := Scan([]byte(tt.msg))
		if got := showFault(bad); got != tt.want || string(e.ID) != tt.id {
			t.Errorf("%s: got %s with id %q, want %s with id %q", tt.name, got, e.ID, tt.want, tt.id)
		}
	}
}

func showFault(e *Fault) string {
	if e == nil {
		return "none"
	}
	text := fmt.Sprintf("%d %s", e.Code, e.Message)
	if e.InArguments {
		return "arguments " + text
	}
	return text
}

// What the checks must not refuse.
func TestEnvelopeAccepts(t *testing.T) {
	t.Parallel()
	for _, msg := range []string{
		envelopeHead + `{"arguments":{"path":"a","Path":"b","x":[{"K":1,"k":2}]}}}`,
		envelopeHead + `{"arguments":{"a":` + strings.Repeat("[", 61) + strings.Repeat("]", 61) + `}}}`,
		envelopeHead + `{"arguments":[{"a":1},{"a":1}]}}`,
		envelopeHead + `{"arguments":{"a":{"a":{"a":1}},"b":{"a":1}}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":1,"A":1},"error":{"b":1,"B":1}}`,
		`{"jsonrpc":"2.0","method":"x","params":[1,2]}`,
		`{"jsonrpc":"2.0","method":"x","params":{"_meta":null,"Foo":1}}`,
		`{"jsonrpc":"2.0","method":"x","params":{"x":{"Method":1}}}`,
	} {
		if _, bad := Scan([]byte(msg)); bad != nil {
			t.Errorf("%s: %s", msg, bad.Message)
		}
	}
}

func TestEnvelopeLargeObject(t *testing.T) {
	t.Parallel()
	object := func(n int, last string) string {
		var b strings.Builder
		b.WriteString(envelopeHead + `{"arguments":{`)
		for i := range n {
			fmt.Fprintf(&b, `"k%d":{"k%d":0},`, i, i)
		}
		return b.String() + `"` + last + `":0}}}`
	}
	for _, n := range []int{15, 16, 63, 64, 65, 200, 50_000} {
		if _, bad := Scan([]byte(object(n, "last"))); bad != nil {
			t.Errorf("%d keys: %s", n, bad.Message)
		}
		for _, i := range []int{0, n / 2, n - 1} {
			key := fmt.Sprintf("k%d", i)
			if _, bad := Scan([]byte(object(n, key))); bad == nil || bad.Message != `duplicate key "`+key+`"` {
				t.Errorf("%d keys: %s again was not found: %+v", n, key, bad)
			}
		}
	}
	// Equal keys without end must cost no more than different ones.
	msg := envelopeHead + `{"arguments":{` + strings.Repeat(`"a":0,`, 500_000) + `"b":0}}}`
	if _, bad := Scan([]byte(msg)); bad == nil || !bad.InArguments {
		t.Errorf("got %+v", bad)
	}
}

func TestEnvelopeAllocations(t *testing.T) {
	var keys strings.Builder
	for i := range 16 {
		fmt.Fprintf(&keys, `"key%d":{"a":[true,null,1.5e3]},`, i)
	}
	big := strings.Repeat("x\\n", 7<<20)
	msg := []byte(envelopeHead + `{"arguments":{` + keys.String() + `"content":"` + big + `"}}}`)
	n := 3.0
	for tries := 0; n > 2 && tries < 20; tries++ { // what other tests have left running allocates, too
		n = testing.AllocsPerRun(5, func() {
			if _, bad := Scan(msg); bad != nil {
				t.Fatal(bad.Message)
			}
		})
	}
	// The scan itself and the method.
	if n > 2 {
		t.Errorf("%v allocations, want at most 2", n)
	}
}

func TestEnvelopeTooLong(t *testing.T) {
	t.Parallel()
	fill := strings.Repeat("x", MaxMessage)
	e, bad := Scan([]byte(`{"jsonrpc":"2.0","params":{"id":1,"a":"` + fill + `"},"id":"z"}`))
	if bad == nil || bad.Message != "message exceeds 33554432 bytes" || string(e.ID) != `"z"` || e.IDKind != IDString {
		t.Errorf("got %+v, id %s", bad, e.ID)
	}
	exact := `{"jsonrpc":"2.0","method":"` + fill
	if _, bad = Scan([]byte(exact[:MaxMessage-2] + `"}`)); bad != nil {
		t.Errorf("a message of exactly the limit: %s", bad.Message)
	}
}

func TestIDFinder(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", maxFoundID)
	tests := []struct{ msg, id string }{
		{`{"id":7}`, `7`},
		{` { "a" : [ {"id":1} , "id" ] , "b":"\"id\":2", "\u0069d" : "x\"}" , "id":3}`, `"x\"}"`},
		{`{"params":{"id":1},"id":-5}`, `-5`},
		{`{"params":{"id":1},"id":-5`, ``}, // its value may go on
		{`{"id":null}`, ``},
		{`{"id":1.0}`, ``},
		{`{"id":[1]}`, ``},
		{`{"id":{"id":1}}`, ``},
		{`{"id":1 2}`, ``},
		{`{"a":"id","b":4}`, ``},
		{`[{"id":1}]`, ``},
		{`{"id":` + long + `}`, long},
		{`{"id":` + long + `1}`, ``},
		{`{"` + long + long + `":1,"id":2}`, `2`},
		{`"id":1`, ``},
		{`{"id":"` + "\xff" + `"}`, ``},
		{`{"x"} {"id":1}`, ``},
		{`}}}`, ``},
	}
	for _, tt := range tests {
		for _, step := range []int{1, 3, len(tt.msg)} {
			var f idFinder
			for at := 0; at < len(tt.msg); at += step {
				_, _ = f.Write([]byte(tt.msg[at:min(at+step, len(tt.msg))]))
			}
			if got := string(f.ID()); got != tt.id {
				t.Errorf("%.60s in steps of %d: got %.60s, want %.60s", tt.msg, step, got, tt.id)
			}
		}
	}
}

// FuzzEnvelope compares the scan with encoding/json: the same messages are well-formed, and what the
// envelope says is what a decoder finds.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		``, `[]`, `{}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"n","arguments":{"a":[1,-0.5e+3,true,null,"\ud83d\ude00\n"]}}}`,
		`{"jsonrpc":"2.0","id":"x","result":{"a":"é"}}`, `{"a":1,"A":2}`, `{"a":1,"\u0061":2}`, `{"a":"\ud800"}`, `{"Id":1}`,
		`{"jsonrpc":"2.0","id":null}`, `[[[[[[[[[[]]]]]]]]]]`, `{"a":"` + "\xc3\x28" + `"}`, ` {"a" :	[ ] } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		e, bad := Scan(msg)
		wellFormed := json.Valid(msg) && utf8.Valid(msg)
		if broken := bad != nil && bad.Code == CodeParseError; broken == wellFormed && !tooDeepForOracle(msg) {
			t.Fatalf("well-formed %v, but the scan says %+v", wellFormed, bad)
		}
		if !wellFormed {
			return
		}
		checkRules(t, msg, bad)
		if bad != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method json.RawMessage `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(msg, &m); err != nil {
			t.Fatalf("accepted, but: %v", err)
		}
		var method string
		_ = json.Unmarshal(m.Method, &method) // another type: ""
		if !bytes.Equal(m.ID, e.ID) || method != e.Method {
			t.Fatalf("got id %s and method %q, want %s and %q", e.ID, e.Method, m.ID, method)
		}
		var params struct {
			Arguments json.RawMessage `json:"arguments"`
		}
		if method == "tools/call" && json.Unmarshal(m.Params, &params) == nil && !bytes.Equal(params.Arguments, e.Arguments) {
			t.Fatalf("got arguments %s, want %s", e.Arguments, params.Arguments)
		}
		var finder idFinder
		_, _ = finder.Write(msg)
		if len(e.ID) <= maxFoundID && !bytes.Equal(finder.ID(), e.ID) {
			t.Fatalf("the finder got %s, want %s", finder.ID(), e.ID)
		}
	})
}

// tooDeepForOracle says that encoding/json gives up on msg for its depth alone.
func tooDeepForOracle(msg []byte) bool {
	return bytes.Count(msg, []byte("["))+bytes.Count(msg, []byte("{")) > 10_000
}

// checkRules finds equal keys and depth with a token decoder, slowly, and compares the answer.
func checkRules(t *testing.T, msg []byte, bad *Fault) {
	type frame struct {
		keys map[string]bool
		key  bool // a key comes next
	}
	var stack []frame
	deep, double := false, false
	d := json.NewDecoder(bytes.NewReader(msg))
	d.UseNumber()
	for {
		tok, err := d.Token()
		if err != nil {
			break
		}
		top := len(stack) - 1
		if text, ok := tok.(string); ok && top >= 0 && stack[top].keys != nil && stack[top].key {
			double = double || stack[top].keys[text]
			stack[top].keys[text] = true
			stack[top].key = false
			continue
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, frame{keys: map[string]bool{}, key: true})
		case json.Delim('['):
			stack = append(stack, frame{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
		}
		deep = deep || len(stack) > maxNest
		if n := len(stack) - 1; n >= 0 && tok != json.Delim('{') && tok != json.Delim('[') {
			stack[n].key = true
		}
	}
	// The decoder turns every unpaired surrogate into the same character, so that keys may seem equal.
	surrogate := bytes.Contains(bytes.ToLower(msg), []byte(`\ud`))
	if bad == nil && (deep || double && !surrogate) {
		t.Fatalf("accepted, but deep %v, double %v", deep, double)
	}
	if bad != nil && strings.HasPrefix(bad.Message, "nested") && !deep {
		t.Fatal("refused for its depth without reason")
	}
	if bad != nil && strings.HasPrefix(bad.Message, "duplicate") && !double {
		t.Fatalf("refused without reason: %s", bad.Message)
	}
}

func BenchmarkEnvelope(b *testing.B) {
	var records, text, code strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&records, `{"id":%d,"name":"name of %d","flags":[true,false,null],"price":1.25e3},`, i, i)
		fmt.Fprintf(&text, "Zeile %d: größer als 日本語 ", i)
		fmt.Fprintf(&code, `\tif err != nil {\n\t\treturn fmt.Errorf(\"line %d: %%w\", err)\n\t}\n`, i)
	}
	for _, bm := range []struct{ name, arguments string }{
		{"call", `{"file_path":"/home/user/project/internal/server/main.go","offset":120,"limit":400}`},
		{"records", `{"items":[` + strings.TrimSuffix(records.String(), ",") + `]}`},
		{"text", `{"content":"` + text.String() + `"}`},
		{"code", `{"content":"` + code.String() + `"}`},
		{"plain", `{"content":"` + strings.Repeat("a", 20<<20) + `"}`},
	} {
		msg := []byte(envelopeHead + `{"name":"write_file","arguments":` + bm.arguments + `,"_meta":{"progressToken":17}}}`)
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(msg)))
			b.ReportAllocs()
			for b.Loop() {
				if _, bad := Scan(msg); bad != nil {
					b.Fatal(bad.Message)
				}
			}
		})
	}
}
