package replaytest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// An HTTPClient is one client of a httpSite. The zero session is none.
type HTTPClient struct {
	T       testing.TB
	URL     string
	Token   string
	Session string
	Modern  bool
	Info    string            // clientInfo.name; "": http-test
	Extra   map[string]string // headers
}

// Hello begins a legacy session.
func (c *HTTPClient) Hello() *HTTPClient {
	c.T.Helper()
	name := cmp.Or(c.Info, "http-test")
	r := c.Post(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + name + `","version":"1"}}}`)
	defer r.Body.Close()
	if c.Session = r.Header.Get("Mcp-Session-Id"); r.StatusCode != http.StatusOK || c.Session == "" {
		c.T.Fatalf("initialize: %s", r.Status)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return c
}

// Of2026 makes the client one of the modern era, and returns it.
func (c *HTTPClient) Of2026() *HTTPClient {
	c.Modern = true
	return c
}

// Request makes a request as this client makes them.
func (c *HTTPClient) Request(ctx context.Context, method, url, body string) *http.Request {
	c.T.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Session != "" {
		r.Header.Set("Mcp-Session-Id", c.Session)
	}
	if c.Modern {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", MethodOf(body))
		var m struct{ Params struct{ Name string } }
		if _ = json.Unmarshal([]byte(body), &m); m.Params.Name != "" { // a body may be none
			r.Header.Set("Mcp-Name", m.Params.Name)
		}
	}
	for k, v := range c.Extra {
		r.Header.Set(k, v)
	}
	return r
}

// CallBody is a tools/call. meta is what _meta has besides what the era needs, with a comma before it.
func (c *HTTPClient) CallBody(id, name, args, meta string) string {
	own := `"x":1`
	if c.Modern {
		own = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"http-test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s%s}}}`, id, name, args, own, meta)
}

// Call makes a call and reads the whole answer.
func (c *HTTPClient) Call(id, name, args, meta string) HTTPReply {
	c.T.Helper()
	return c.Do(c.Request(context.Background(), http.MethodPost, c.URL, c.CallBody(id, name, args, meta)))
}

// Do sends a request and reads the whole answer.
func (c *HTTPClient) Do(q *http.Request) HTTPReply {
	c.T.Helper()
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		c.T.Fatal(err)
	}
	defer r.Body.Close()
	return ReadReply(c.T, r)
}

// Post posts a message. The caller closes the body of the answer.
func (c *HTTPClient) Post(body string) *http.Response {
	c.T.Helper()
	r, err := http.DefaultClient.Do(c.Request(context.Background(), http.MethodPost, c.URL, body))
	if err != nil {
		c.T.Fatal(err)
	}
	return r
}

// Ask is the request of a client of Streamable HTTP.
func (c *HTTPClient) Ask(t *testing.T, method string, params map[string]any) (notes []string, result json.RawMessage) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": c.Params(params)})
	must(t, err)
	got := c.Do(c.Request(t.Context(), http.MethodPost, c.URL, string(body)))
	var r Reply
	if err := json.Unmarshal([]byte(got.Answer), &r); err != nil || r.Error != nil || got.Status != http.StatusOK {
		t.Fatalf("%s: %d %s", method, got.Status, got.Answer)
	}
	for _, n := range got.Notes {
		notes = append(notes, MethodOf(n))
	}
	return notes, r.Result
}

// Params are those of a request, with what the era wants in them.
func (c *HTTPClient) Params(params map[string]any) map[string]any {
	if params == nil {
		params = map[string]any{}
	}
	if c.Modern {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": c.Info, "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
	}
	return params
}

// Does makes a call and returns its text, with `! ` before that of an error.
func (c *HTTPClient) Does(name, args string) string {
	c.T.Helper()
	got := c.Call("1", name, args, "")
	text, failed := got.Text()
	if got.Status != http.StatusOK {
		c.T.Fatalf("%s: %d %s", name, got.Status, got.Answer)
	}
	if failed {
		return "! " + text
	}
	return text
}

// Listed are the names of tools/list.
func (c *HTTPClient) Listed() []string {
	c.T.Helper()
	var a struct {
		Result struct{ Tools []struct{ Name string } }
	}
	got := c.Do(c.Request(c.T.Context(), http.MethodPost, c.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err := json.Unmarshal([]byte(got.Answer), &a); err != nil || got.Status != http.StatusOK {
		c.T.Fatalf("tools/list: %d %s", got.Status, got.Answer)
	}
	var names []string
	for _, t := range a.Result.Tools {
		names = append(names, t.Name)
	}
	return names
}

// Chooses sets an option.
func (c *HTTPClient) Chooses(key, value string) {
	c.T.Helper()
	got := c.Does("session_config", fmt.Sprintf(`{"key":%q,"value":%q}`, key, value))
	if !strings.HasPrefix(got, key+" = "+value+", chosen in this session (") {
		c.T.Fatalf("%s = %s: %q", key, value, got)
	}
}

// Has checks an option.
func (c *HTTPClient) Has(key, want string) {
	c.T.Helper()
	got := c.Does("session_config", fmt.Sprintf(`{"key":%q}`, key))
	value, _, _ := strings.Cut(strings.TrimPrefix(got, key+" = "), " (")
	if value, _, _ = strings.Cut(value, ","); value != want {
		c.T.Errorf("%s of %s is %q, want %s", key, c.Info, got, want)
	}
}

// Launch makes a call whose request lives as long as ctx.
func (c *HTTPClient) Launch(ctx context.Context, id, name, mark, meta string) <-chan HTTPReply {
	c.T.Helper()
	args := fmt.Sprintf(`{"text":%q}`, mark)
	return Async(c.Request(ctx, http.MethodPost, c.URL, c.CallBody(id, name, args, meta+`,"progressToken":"p-`+mark+`"`)))
}

// Async sends a request and reads its answer beside the test. Status 0 is one that broke off.
func Async(q *http.Request) <-chan HTTPReply {
	done := make(chan HTTPReply, 1)
	go func() {
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			done <- HTTPReply{}
			return
		}
		defer r.Body.Close()
		out := HTTPReply{Status: r.StatusCode, Kind: r.Header.Get("Content-Type")}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			out.Status = 0
		}
		for line := range strings.Lines(string(body)) {
			data, isData := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !isData && strings.HasPrefix(out.Kind, "text/event-stream") {
				continue
			}
			if MethodOf(data) == "" {
				out.Answer = data
			} else {
				out.Notes = append(out.Notes, data)
			}
		}
		done <- out
	}()
	return done
}

// Cancel posts notifications/cancelled. meta is what its _meta has besides what the era needs, with a comma before it.
func (c *HTTPClient) Cancel(id, meta string) int {
	c.T.Helper()
	own := `"x":1`
	if c.Modern {
		own = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"_meta":{%s%s}}}`, id, own, meta)
	return c.Do(c.Request(context.Background(), http.MethodPost, c.URL, body)).Status
}

// Delete ends the client's session and returns the status.
func (c *HTTPClient) Delete() int {
	c.T.Helper()
	return c.Do(c.Request(context.Background(), http.MethodDelete, c.URL, "")).Status
}

// A HTTPReply is what came back for one request.
type HTTPReply struct {
	Status int
	Kind   string
	Notes  []string // data of the events before the answer
	Answer string
}

// Text is the text of a tool result, without what depends on the machine; failed says that it is an error.
func (r HTTPReply) Text() (text string, failed bool) {
	var a struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	_ = json.Unmarshal([]byte(r.Answer), &a)
	for _, c := range a.Result.Content {
		text += c.Text
	}
	return confinement.ReplaceAllString(text, ""), a.Result.IsError
}

// ReadReply reads an answer to its end, one JSON body or a stream of events.
func ReadReply(t testing.TB, r *http.Response) HTTPReply {
	t.Helper()
	out := HTTPReply{Status: r.StatusCode, Kind: r.Header.Get("Content-Type")}
	if !strings.HasPrefix(out.Kind, "text/event-stream") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		out.Answer = strings.TrimSpace(string(body))
		return out
	}
	events := bufio.NewScanner(r.Body)
	events.Buffer(nil, 16<<20)
	for events.Scan() {
		data, ok := strings.CutPrefix(events.Text(), "data: ")
		if !ok {
			continue
		}
		if MethodOf(data) == "" {
			out.Answer = data
		} else {
			out.Notes = append(out.Notes, data)
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// MethodOf is the method of a message; "": it is an answer, or no message.
func MethodOf(message string) string {
	var m struct{ Method string }
	_ = json.Unmarshal([]byte(message), &m) // "" it is
	return m.Method
}
