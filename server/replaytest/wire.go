package replaytest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Wire is a client on a pair of pipes, speaking plain JSON-RPC lines.
type Wire struct {
	In     io.WriteCloser
	Lines  chan []byte
	Modern bool
	Client string
	Caps   map[string]any // capabilities; nil: none
	next   int
	heard  []string     // methods of the notifications that requests passed over
	Tap    func([]byte) // receives a copy of every received line; nil: none
}

// NewWire starts to read at once, and reads on while the test looks at what came: a client that does not read loses
// progress notes.
func NewWire(in io.WriteCloser, out io.Reader, client string, modern bool) *Wire {
	w := &Wire{In: in, Lines: make(chan []byte, 1<<14), Modern: modern, Client: client}
	go func() {
		defer close(w.Lines)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			l, err := r.ReadBytes('\n')
			if len(l) > 0 {
				w.Lines <- l
			}
			if err != nil {
				return
			}
		}
	}()
	return w
}

// Send writes one line.
func (w *Wire) Send(l string) error {
	_, err := io.WriteString(w.In, l+"\n")
	return err
}

// Receive returns the next line, or io.EOF.
func (w *Wire) Receive() ([]byte, error) {
	select {
	case l, ok := <-w.Lines:
		if !ok {
			return nil, io.EOF
		}
		if w.Tap != nil {
			w.Tap(l)
		}
		return l, nil
	case <-time.After(HangAfter):
		return nil, errors.New("no line within " + HangAfter.String())
	}
}

// A Reply is an answer as it stands on the wire.
type Reply struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// Request sends a request and returns its answer; notifications before it are passed over.
func (w *Wire) Request(method string, params map[string]any) (Reply, error) {
	w.next++
	id := strconv.Itoa(w.next)
	if params == nil {
		params = map[string]any{}
	}
	if w.Modern {
		meta, _ := params["_meta"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
		meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": w.Client, "version": "1"}
		meta["io.modelcontextprotocol/clientCapabilities"] = w.Capabilities()
		params["_meta"] = meta
	}
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": w.next, "method": method, "params": params})
	if err != nil {
		return Reply{}, err
	}
	if err := w.Send(string(b)); err != nil {
		return Reply{}, err
	}
	for {
		l, err := w.Receive()
		if err != nil {
			return Reply{}, err
		}
		var r Reply
		if err := json.Unmarshal(l, &r); err != nil {
			return Reply{}, fmt.Errorf("not JSON on the wire: %q", l)
		}
		if r.Method == "" && string(r.ID) == id {
			return r, nil
		}
		w.heard = append(w.heard, r.Method)
	}
}

// Capabilities are those that the client declares.
func (w *Wire) Capabilities() map[string]any {
	if w.Caps == nil {
		return map[string]any{}
	}
	return w.Caps
}

// Hello does what a client of its era does first.
func (w *Wire) Hello() error {
	if w.Modern {
		_, err := w.Request("server/discover", nil)
		return err
	}
	_, err := w.Request("initialize", map[string]any{
		"protocolVersion": "2025-11-25",
		"capabilities":    w.Capabilities(),
		"clientInfo":      map[string]any{"name": w.Client, "version": "1"},
	})
	if err != nil {
		return err
	}
	return w.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// Call calls a tool and returns what a session file shows of the answer.
func (w *Wire) Call(name string, args json.RawMessage) (string, error) {
	r, err := w.Request("tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return "", err
	}
	if r.Error != nil {
		return fmt.Sprintf("!! %d %s\n", r.Error.Code, r.Error.Message), nil
	}
	var result struct {
		Content []struct {
			Type, Text, MimeType, Data string
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal(r.Result, &result); err != nil {
		return "", err
	}
	var text strings.Builder
	for _, c := range result.Content {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		if c.Type == "text" {
			text.WriteString(c.Text)
		} else {
			fmt.Fprintf(&text, "[%s %s, %d characters]", c.Type, c.MimeType, len(c.Data))
		}
	}
	said := confinement.ReplaceAllString(text.String(), "")
	if !result.IsError {
		return said, nil
	}
	return "! " + strings.ReplaceAll(said, "\n", "\n! "), nil
}

// Must calls a tool, drops what depends on the machine, and fails the test if that does not go through. An isError answer begins with "! ".
func (w *Wire) Must(t *testing.T, name, args string) string {
	t.Helper()
	text, err := w.Call(name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	return text
}

// Ask is the request of a client on standard input and output.
func (w *Wire) Ask(t *testing.T, method string, params map[string]any) (notes []string, result json.RawMessage) {
	t.Helper()
	w.heard = nil
	r, err := w.Request(method, params)
	if err != nil || r.Error != nil {
		t.Fatalf("%s: %v %+v", method, err, r.Error)
	}
	return w.heard, r.Result
}

// Calls makes a client of which many goroutines may make calls at once. It takes over all that is received.
func (w *Wire) Calls() func(tool, args string) (string, error) {
	var mu sync.Mutex // covers waiting
	waiting, next := map[int]chan string{}, 1_000_000
	go func() {
		for l := range w.Lines {
			var r struct {
				ID     int
				Error  json.RawMessage
				Result struct {
					Content []struct{ Text string }
					IsError bool
				}
			}
			if json.Unmarshal(l, &r) != nil || r.ID == 0 {
				continue
			}
			text := "!! " + string(r.Error)
			if len(r.Result.Content) > 0 {
				text = r.Result.Content[0].Text
				if r.Result.IsError {
					text = "! " + text
				}
			}
			mu.Lock()
			answer := waiting[r.ID]
			delete(waiting, r.ID)
			mu.Unlock()
			if answer != nil {
				answer <- text
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, answer := range waiting {
			close(answer)
		}
	}()
	return func(tool, args string) (string, error) {
		answer := make(chan string, 1)
		mu.Lock()
		next++
		id := next
		waiting[id] = answer
		mu.Unlock()
		err := w.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`,
			id, tool, args))
		if err != nil {
			return "", err
		}
		text, ok := <-answer
		if !ok {
			return "", fmt.Errorf("the program ended")
		}
		return text, nil
	}
}

// Tool is must with arguments that JSON must escape.
func (w *Wire) Tool(t *testing.T, name string, args map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(args)
	must(t, err)
	return w.Must(t, name, string(raw))
}

// CallLine is a tools/call as a client writes it. meta is put into params._meta.
func CallLine(id any, name, args, meta string) string {
	if meta != "" {
		meta = `,"_meta":{` + meta + `}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id,
		name, args, meta)
}

// JobID finds the id of a background job.
var JobID = regexp.MustCompile(`job_[a-z2-7]{12}`)
