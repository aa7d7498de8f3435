package server

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
)

// TestPromptsChangedEarly: over HTTP there were other prompts when a listen was open and not acknowledged yet. It was noted
// that its client was told, but nothing was sent.
func TestPromptsChangedEarly(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	e, by := x.host()
	body := listenLine("7", `{"promptsListChanged":true}`)
	env, bad := jsonrpc.Scan([]byte(body))
	if bad != nil {
		t.Fatal(bad)
	}
	w := httptest.NewRecorder()
	r := e.newResponder(w, &record{env: env, limits: by.limits, modern: true}, &jsonrpc.Flight{}, true, func() {})
	r.announce(mcp.MethodNotificationPromptsListChanged)
	r.announce(mcp.MethodNotificationPromptsListChanged)
	if w.Body.Len() > 0 {
		t.Errorf("before the acknowledgement: %s", w.Body)
	}
	r.Header().Set("Content-Type", "text/event-stream")
	r.WriteHeader(200)
	_, err := r.Write([]byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"}\n\n"))
	must(t, err)
	_, after, acknowledged := strings.Cut(w.Body.String(), "acknowledged")
	if !acknowledged || strings.Count(after, "prompts/list_changed") != 1 || !strings.Contains(after, `"io.modelcontextprotocol/subscriptionId":7`) {
		t.Errorf("the stream: %s", w.Body)
	}
	r.end(t.Context())
}
