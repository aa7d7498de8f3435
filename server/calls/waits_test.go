package calls

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/jsonrpc"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/tools/tool"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestResumeOver: answers for a call that waits no more are refused, also where no call can wait; the model is told to
// look before it calls again.
func TestResumeOver(t *testing.T) {
	t.Parallel()
	h := &Handler{Parts: Parts{
		Replies:  replies.Replies{Protocol: replies.Protocol{Versions: []string{"2026-07-28"}}, Log: slog.New(slog.DiscardHandler)},
		Observed: func(_ request.Request, w request.Work) request.Work { return w },
	}}
	work, changes := h.Serve(request.Request{
		Client: request.Client{Modern: true},
		Envelope: jsonrpc.Envelope{Method: "tools/call",
			Params: jsonrpc.Params{Name: "look", RequestState: json.RawMessage(`"w1.nothing"`)},
			Meta:   jsonrpc.Meta{Version: "2026-07-28"}},
	})
	a := work(t.Context())
	if !changes || a.Err != nil || a.Tool != "look" || !strings.Contains(string(a.Result), string(tool.Interrupted)) ||
		!strings.Contains(string(a.Result), "This call is over") {
		t.Errorf("changes %t: %+v\n%s", changes, a.Err, a.Result)
	}
}
