package mounts

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/mounts/upstream"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
)

// asServer is set where this test binary stands for a server that is mounted.
const asServer = "MOUNTS_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		serve(os.Stdin, os.Stdout, fake{
			tools: func() string { return echoTool + "," + strings.ReplaceAll(echoTool, `"echo"`, `"pid"`) },
			call: func(name, arguments string, _ func(string)) string {
				if name == "pid" {
					return `{"content":[{"type":"text","text":"` + strconv.Itoa(os.Getpid()) + `"}]}`
				}
				return `{"content":[{"type":"text","text":` + quoted(name+" "+arguments) + `}]}`
			},
		})
		os.Exit(0)
	}
	leaktest.Main(m)
}

// hang is the time after which a condition that does not come true is a failure.
const hang = 60 * time.Second

func reached(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(hang)
	for !condition() {
		select {
		case <-late:
			t.Fatal(what)
		case <-tick.C:
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A fake is how a server of the tests behaves.
type fake struct {
	tools  func() string                                          // JSON of its list; nil: one tool, echo
	call   func(name, arguments string, note func(string)) string // JSON of a result, or of an error with "code"; "": it ends
	modern bool                                                   // it speaks the newer era alone
	silent bool                                                   // it never answers

	asks string // JSON of the question that each call puts first; its result is the answer

	resources string                  // JSON of its list; "": it has none
	read      func(uri string) string // JSON of the contents, or of an error with "code"
}

const echoTool = `{"name":"echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}}`

// serve answers requests until the input or the server ends.
func serve(in io.Reader, out io.Writer, f fake) {
	var mu sync.Mutex
	say := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(out, text+"\n")
	}
	lines := bufio.NewReader(in)
	able := `"tools":{"listChanged":true}`
	if f.modern {
		able = `"tools":{}`
	}
	if f.resources != "" {
		able += `,"resources":{}`
	}
	var waits json.RawMessage // id of the call that asked
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var r struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Params struct {
				InputResponses json.RawMessage
				Name, URI      string
				Arguments      json.RawMessage
				Meta           struct{ ProgressToken json.RawMessage } `json:"_meta"`
			}
		}
		if json.Unmarshal([]byte(line), &r) != nil || r.ID == nil || f.silent {
			continue
		}
		if string(r.ID) == `"e1"` {
			say(`{"jsonrpc":"2.0","id":` + string(waits) + `,"result":{"content":[{"type":"text","text":` + quoted(string(r.Result)) + `}]}}`)
			continue
		}
		answer := func(result string) {
			kind := "result"
			if strings.HasPrefix(result, `{"code"`) {
				kind = "error"
			}
			say(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"` + kind + `":` + result + `}`)
		}
		switch {
		case r.Method == "initialize" && !f.modern:
			answer(`{"protocolVersion":"2025-06-18","capabilities":{` + able + `},"serverInfo":{"name":"fake","version":"1"}}`)
		case r.Method == "server/discover" && f.modern:
			answer(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{` + able + `},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}}}`)
		case r.Method == "tools/list":
			list := echoTool
			if f.tools != nil {
				list = f.tools()
			}
			if !strings.HasPrefix(list, "{\"tools") {
				list = `{"tools":[` + list + `]}`
			}
			answer(list)
		case r.Method == "resources/list" && f.resources != "":
			answer(`{"resources":[` + f.resources + `]}`)
		case r.Method == "resources/templates/list" && f.resources != "":
			answer(`{"resourceTemplates":[{"uriTemplate":"demo://{id}","name":"all"}]}`)
		case r.Method == "resources/read" && f.resources != "":
			answer(f.read(r.Params.URI))
		case r.Method == "tools/call" && f.asks != "" && !f.modern:
			waits = r.ID
			say(`{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":` + f.asks + `}`)
		case r.Method == "tools/call" && f.asks != "" && r.Params.InputResponses == nil:
			answer(`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":` + f.asks + `}},"requestState":"s"}`)
		case r.Method == "tools/call" && f.asks != "":
			answer(`{"content":[{"type":"text","text":` + quoted(string(r.Params.InputResponses)) + `}]}`)
		case r.Method == "tools/call":
			if f.call == nil {
				answer(`{"content":[{"type":"text","text":` + quoted(r.Params.Name+" "+string(r.Params.Arguments)) + `}]}`)
				continue
			}
			note := func(text string) {
				say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` +
					string(r.Params.Meta.ProgressToken) + `,"progress":1,"total":2,"message":` + quoted(text) + `}}`)
			}
			result := f.call(r.Params.Name, string(r.Params.Arguments), note)
			if result == "" {
				return
			}
			if result != "never" {
				answer(result)
			}
		default:
			answer(`{"code":-32601,"message":"there is no such method"}`)
		}
	}
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// over makes a server of the tests reachable over pipes of this process.
func over(f fake) func() (upstream.Options, error) {
	return func() (upstream.Options, error) {
		return upstream.Options{Stream: func() (io.ReadCloser, io.WriteCloser, error) {
			in, toServer := io.Pipe()
			fromServer, out := io.Pipe()
			go func() {
				serve(in, out, f)
				_ = out.Close()
				_ = in.Close()
			}()
			return fromServer, toServer, nil
		}}, nil
	}
}

// mounted mounts servers for the time of a test.
func mounted(t testing.TB, servers ...Remote) *Mounts {
	t.Helper()
	m := New(Options{Servers: servers, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	t.Cleanup(m.Close)
	return m
}

var testKey = session.Key{Principal: "local", Session: "test"}

// find starts the servers and returns a tool.
func find(t testing.TB, m *Mounts, name string) tool.Tool {
	t.Helper()
	m.Await(t.Context(), testKey, func(string) bool { return true })
	for _, x := range m.Tools() {
		if x.Spec.Name == name {
			return x
		}
	}
	t.Fatalf("there is no %s", name)
	return tool.Tool{}
}

// use makes one call.
func use(ctx context.Context, t testing.TB, r *tooltest.Session, x tool.Tool, input string) (tool.Result, error) {
	t.Helper()
	c, err := x.Bind(r.State, json.RawMessage(input))
	if err != nil {
		return tool.Result{}, err
	}
	return c.Run(ctx, r.Env(c))
}

func codeOf(err error) tool.Code {
	if r, ok := err.(*tool.Refusal); ok {
		return r.Code
	}
	return tool.Code(fmt.Sprint(err))
}

// inside is what stands between the marks of a result.
func inside(t *testing.T, text string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "--- untrusted content ")
	_, rest, _ = strings.Cut(rest, "\n")
	body, _, closed := strings.Cut(rest, "\n--- untrusted content ")
	if !ok || !closed {
		t.Fatalf("no marks: %q", text)
	}
	return body
}
