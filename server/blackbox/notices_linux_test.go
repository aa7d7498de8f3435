package blackbox

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/server/replaytest"
)

// A hearer is a client that hears what answers none of its requests.
type hearer struct {
	t      *testing.T
	work   string
	c      *replaytest.HTTPClient
	next   func() string            // the next of what it hears, which there is
	does   func(body string) string // makes a request and returns the answer
	modern bool
}

// hears begins to listen with the resources that it names, and to log messages.
func hears(t *testing.T, k wireKind, uris string) *hearer {
	t.Helper()
	listen := `{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":[` + uris + `]},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/logLevel":"info","codehand/session":"the-listener"}}}`
	h := &hearer{t: t, modern: k.era == "modern"}
	if k.transport == "stdio" {
		work, c, begin := noting(t, k)
		h.work, h.c = work, c
		var heard []string
		answers := func(next func() string) string {
			for {
				m := next()
				if replaytest.MethodOf(m) == "" {
					return m
				}
				heard = append(heard, m)
			}
		}
		receive := begin("")
		h.does = func(body string) string { begin(body); return answers(receive) }
		h.next = func() string {
			if len(heard) > 0 {
				m := heard[0]
				heard = heard[1:]
				return m
			}
			return receive()
		}
		if h.modern {
			begin(listen)
			if m := h.next(); !strings.Contains(m, "acknowledged") {
				t.Fatal(m)
			}
		}
		h.subscribes("subscribe", uris)
		return h
	}
	d := deploy(t)
	via := over(t, d.address, nil)
	x := d.talk(d.serve().url, via, k)
	h.work, h.c = d.work, x.HTTPClient
	h.does = func(body string) string {
		a := x.start(body)
		for {
			if m := a.must(); replaytest.MethodOf(m) == "" {
				_, _ = a.next() // the end, so that the connection is used again
				return m
			}
		}
	}
	h.subscribes("subscribe", uris)
	var stream *coming
	if h.modern {
		stream = x.start(listen)
		if m := stream.must(); !strings.Contains(m, "acknowledged") {
			t.Fatal(m)
		}
	} else {
		r, err := via.Do(x.Request(t.Context(), http.MethodGet, x.URL, ""))
		must(t, err)
		t.Cleanup(func() { _ = r.Body.Close() }) // only read
		stream = &coming{t: t, r: r, lines: newEvents(r.Body)}
	}
	h.next = stream.must
	return h
}

// subscribes subscribes a legacy client to resources, or ends that.
func (h *hearer) subscribes(verb, uris string) {
	h.t.Helper()
	for _, uri := range strings.Split(uris, ",") {
		body := `{"jsonrpc":"2.0","id":"` + verb + `","method":"resources/` + verb + `","params":{"uri":` + uri + `}}`
		if h.modern {
			return
		}
		if m := h.does(body); !strings.Contains(m, `"result":{}`) {
			h.t.Fatalf("%s: %s", body, m)
		}
	}
}

func (h *hearer) call(tool, args string) string {
	h.t.Helper()
	meta := ""
	if h.modern {
		meta = `,"codehand/session":"the-listener"`
	}
	m := h.does(h.c.CallBody("5", tool, args, meta))
	if strings.Contains(m, `"isError":true`) || !strings.Contains(m, `"result"`) {
		h.t.Fatalf("%s %s: %s", tool, args, m)
	}
	return m
}

// hears wants what comes next to hold all of words.
func (h *hearer) hears(words ...string) {
	h.t.Helper()
	m := h.next()
	for _, w := range words {
		if !strings.Contains(m, w) {
			h.t.Fatalf("it hears %s, want %q", m, words)
		}
	}
	if h.modern != strings.Contains(m, `"io.modelcontextprotocol/subscriptionId":"listen"`) {
		h.t.Errorf("tagged: %s", m)
	}
}

const (
	jobsURI  = `"codehand://jobs"`
	todosURI = `"codehand://todos"`
	isUpdate = `"method":"notifications/resources/updated"`
)

// TestNotices: a client that subscribed to resources of its session gets a notice when a call or the end of a job
// changes them, and a log message for the end of a job. It gets no other notices, and no other client gets these.
func TestNotices(t *testing.T) {
	t.Parallel()
	for _, k := range []wireKind{{"stdio", "legacy"}, {"stdio", "modern"}, {"http", "legacy"}, {"http", "modern"}} {
		t.Run(k.transport+"/"+k.era, func(t *testing.T) {
			t.Parallel()
			h := hears(t, k, jobsURI+","+todosURI+`,"test://no-such-resource"`)
			held := filepath.Join(h.work, "held")
			replaytest.WriteFile(t, held, nil)
			t.Cleanup(func() { _ = os.Remove(held) }) // it may be gone

			h.call("todo_write", `{"todos":[{"content":"Listen","status":"pending","activeForm":"Listening"}]}`)
			h.hears(isUpdate, `"uri":`+todosURI)
			started := h.call("run_shell", `{"command":"echo one; while [ -e held ]; do sleep 0.02; done; echo two","run_in_background":true}`)
			h.hears(isUpdate, `"uri":`+jobsURI)
			h.call("list_files", `{"pattern":"*"}`) // changes nothing
			must(t, os.Remove(held))
			job := replaytest.JobID.FindString(started)
			h.hears(`"method":"notifications/message"`, `"level":"info"`, `"logger":"codehand"`, `"data":"job `+job+` finished: exit 0, `, ` s, 2 lines"`)
			h.hears(isUpdate, `"uri":`+jobsURI)
			if m := h.call("list_files", `{"pattern":"*"}`); strings.Count(m, "[job "+job+" finished: exit 0, ") != 1 {
				t.Errorf("the next result: %s", m)
			}
			if h.modern {
				return
			}

			// What is not wanted any more does not come.
			h.subscribes("unsubscribe", todosURI+`,"test://never-subscribed"`)
			if m := h.does(`{"jsonrpc":"2.0","id":"level","method":"logging/setLevel","params":{"level":"warning"}}`); !strings.Contains(m, `"result":{}`) {
				t.Fatal(m)
			}
			h.call("todo_write", `{"todos":[]}`)
			replaytest.WriteFile(t, held, nil)
			h.call("run_shell", `{"command":"while [ -e held ]; do sleep 0.02; done","run_in_background":true}`)
			h.hears(isUpdate, `"uri":`+jobsURI)
			must(t, os.Remove(held))
			h.hears(isUpdate, `"uri":`+jobsURI)
		})
	}
}

// TestNoticesRestart: a client whose server was started again is told, once it listens and calls, what changed.
func TestNoticesRestart(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	via := over(t, d.address, nil)
	s := d.serve()
	x := d.talk(s.url, via, wireKind{"http", "legacy"})
	for i := range 100 {
		if m := x.start(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"codehand://jobs%.*s"}}`, i, strings.Repeat("s", i))).must(); !strings.Contains(m, `"result":{}`) {
			t.Fatal(m)
		}
	}
	if m := x.start(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"codehand://plan"}}`).must(); !strings.Contains(m, `"code":-32602`) {
		t.Errorf("one more: %s", m)
	}
	text, _ := x.say("2", "run_shell", `{"command":"sleep 600","run_in_background":true}`, "")
	s.told(t, syscall.SIGTERM)
	s.exit()
	d.serve()
	via.CloseIdleConnections()
	r, err := via.Do(x.Request(t.Context(), http.MethodGet, x.URL, ""))
	must(t, err)
	t.Cleanup(func() { _ = r.Body.Close() }) // only read
	stream := &coming{t: t, r: r, lines: newEvents(r.Body)}
	want := "[job " + replaytest.JobID.FindString(text) + " finished: ended with its server, "
	if text, _ := x.say("3", "list_files", `{"pattern":"*"}`, ""); !strings.Contains(text, want) {
		t.Errorf("the first result: %s", text)
	}
	if m := stream.must(); !strings.Contains(m, isUpdate) || !strings.Contains(m, `"uri":`+jobsURI) {
		t.Errorf("it hears %s", m)
	}
}
