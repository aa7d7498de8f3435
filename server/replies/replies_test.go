package replies

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/tools/tool"
)

// made returns the replies of a server that speaks these versions, and its log.
func made(versions ...string) (Replies, *bytes.Buffer) {
	log := new(bytes.Buffer)
	return Replies{
		Protocol: Protocol{Versions: versions, Implementation: mcp.Implementation{Name: "codehand", Version: "test"}},
		Log:      slog.New(slog.NewTextHandler(log, nil)),
	}, log
}

func scan(t *testing.T, line string) jsonrpc.Envelope {
	t.Helper()
	env, bad := jsonrpc.Scan([]byte(line))
	if bad != nil {
		t.Fatal(bad.Message)
	}
	return env
}

const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`

func TestUnserved(t *testing.T) {
	all := mcp.ValidProtocolVersions
	legacy := slices.DeleteFunc(slices.Clone(all), func(v string) bool { return v == mcp.ProtocolVersion20260728 })
	for name, c := range map[string]struct {
		versions []string
		line     string
		code     int // 0: it is served
	}{
		"a modern call":                 {all, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modern + `}}`, 0},
		"modern, only legacy is spoken": {legacy, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modern + `}}`, -32022},
		"a handshake":                   {legacy, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, 0},
		"a handshake, only modern is spoken": {[]string{mcp.ProtocolVersion20260728},
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, mcp.METHOD_NOT_FOUND},
		"a cursor that was never given": {all, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"eA=="}}`, mcp.INVALID_PARAMS},
		"a cursor of another method":    {all, `{"jsonrpc":"2.0","id":1,"method":"x/list","params":{"cursor":"eA=="}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := made(c.versions...)
			code := 0
			if e := r.Unserved(scan(t, c.line)); e != nil {
				code = e.Code
			}
			if code != c.code {
				t.Errorf("code %d, want %d", code, c.code)
			}
		})
	}
	r, _ := made(all...)
	if got := r.LegacyVersions(); !slices.Equal(got, legacy) {
		t.Errorf("legacy versions %v, want %v", got, legacy)
	}
	if e := r.Unsupported("1999-01-01"); e.Code != unsupportedVersion || !strings.Contains(e.Message, "1999-01-01") {
		t.Errorf("an unknown version: %d %s", e.Code, e.Message)
	}
}

// What does not fit the wire becomes an answer that does, and says so.
func TestTooLarge(t *testing.T) {
	r, log := made(mcp.ValidProtocolVersions...)
	call := scan(t, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","arguments":{}}}`)
	large := strings.Repeat("x", jsonrpc.MaxResponse)
	for name, c := range map[string]struct {
		text   string
		failed string
	}{"fits": {"x", ""}, "too large": {large, "tool_error"}} {
		a := r.Finish(t.Context(), call, false, mcp.NewToolResultText(c.text))
		line := a.Line(call.ID)
		if a.Failed != c.failed || len(line) > jsonrpc.MaxResponse {
			t.Errorf("%s: failed %q in %d bytes", name, a.Failed, len(line))
		}
		if refused := bytes.Contains(line, []byte(tool.ResultTooLarge)); refused != (c.failed != "") {
			t.Errorf("%s: refused is %v", name, refused)
		}
	}
	if a := r.Result(t.Context(), call.ID, large); a.Err == nil || len(a.Line(call.ID)) > jsonrpc.MaxResponse {
		t.Errorf("a result that is no call's: %+v", a.Err)
	}
	if a := r.Result(t.Context(), call.ID, "x"); a.Err != nil || string(a.Result) != `"x"` {
		t.Errorf("a small result: %s %+v", a.Result, a.Err)
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log)
	}
}

// A client sees a reference of what went wrong inside; the log has the rest.
func TestInternal(t *testing.T) {
	r, log := made(mcp.ValidProtocolVersions...)
	e := r.Internal(t.Context(), "resources", errors.New("disk on fire"))
	_, ref, _ := strings.Cut(strings.TrimSuffix(e.Message, ")"), "(ref ")
	if e.Code != mcp.INTERNAL_ERROR || len(ref) != 8 || strings.Contains(e.Message, "fire") {
		t.Errorf("%d %s", e.Code, e.Message)
	}
	if got := log.String(); !strings.Contains(got, "ref="+ref) || !strings.Contains(got, "disk on fire") {
		t.Errorf("the log has %q", got)
	}
	if a := r.Result(t.Context(), json.RawMessage("1"), func() {}); a.Err == nil {
		t.Error("a result that is no JSON was sent")
	}
}

// A bridge refuses in the words of a server.
func TestRefusals(t *testing.T) {
	refuse := Refusals("test")
	call := scan(t, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","arguments":{}}}`)
	_, bad := jsonrpc.Scan([]byte(
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","arguments":{"a":1,"a":2}}}`))
	if bad == nil || !bad.InArguments {
		t.Fatal("a key that stands twice in the arguments is usable")
	}
	for _, c := range []struct {
		bad  *jsonrpc.Fault
		code string
	}{{nil, string(tool.Busy)}, {bad, string(tool.InputInvalid)}} {
		line := refuse(call, c.bad)
		var m struct {
			ID     int
			Result struct{ IsError bool }
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if m.ID != 7 || !m.Result.IsError || !bytes.Contains(line, []byte(c.code)) {
			t.Errorf("want %s in %s", c.code, line)
		}
	}
}
