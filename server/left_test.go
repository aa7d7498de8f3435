package server

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/jsonrpc"
	"codehand/server/replaytest"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/team"
	"codehand/tools/tool"
)

// inSession names the session of a call, whatever it comes by.
const inSession = `,"codehand/session":"session-1"`

// readFirst begins a session that has read a file, in which an edit can be made any number of times.
func (x *httpSite) readFirst(t *testing.T) (c *replaytest.HTTPClient, file, edit string) {
	t.Helper()
	file = filepath.Join(x.work, "a.txt")
	must(t, os.WriteFile(file, []byte("one\n"), 0o600))
	c = x.client("").Hello()
	if text, failed := c.Call("1", "read_file", `{"file_path":"`+file+`"}`, inSession).Text(); failed {
		t.Fatalf("read_file: %s", text)
	}
	return c, file, `{"file_path":"` + file + `","old_string":"one","new_string":"one more"}`
}

// mustRead checks that an edit is refused, since the client has not seen the file as it is.
func mustRead(t *testing.T, r replaytest.HTTPReply) {
	t.Helper()
	if text, failed := r.Text(); !failed || !strings.HasPrefix(text, "FILE_NOT_READ") {
		t.Errorf("what nobody was told of counts as seen; the same edit again: %q", text)
	}
}

// A leaver is a peer whose client leaves when the channel is closed, and to whom nothing can be sent.
type leaver chan struct{}

func (leaver) Notify(string, any) error { return jsonrpc.ErrAnswered }

func (leaver) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, jsonrpc.ErrNoCalls
}

func (l leaver) Gone() <-chan struct{} { return l }

// into gives the server the request of a client, as a transport does, and returns its answer.
func (x *httpSite) into(t *testing.T, body string, peer request.Peer) request.Answer {
	t.Helper()
	env, bad := jsonrpc.Scan([]byte(body))
	if bad != nil {
		t.Fatal(bad.Message)
	}
	who := team.LocalPrincipal(x.server.cfg)
	at, err := x.server.team.Tenants.Of(who)
	must(t, err)
	key, err := sessions.HTTPKey(who, env, "", "")
	must(t, err)
	work, changes := x.server.calls.Serve(request.Request{
		Envelope: env, Message: []byte(body), Tenant: at, Session: key, Peer: peer,
		Caller: request.Caller{Limits: x.server.team.Porter.Limits(who)},
	})
	if !changes {
		t.Error("the call does not count as one that changes something")
	}
	return work(t.Context())
}

// TestLeftUntold: an edit ends after its client has left. It counted as seen, so that the client, which sends it again, got
// it twice.
func TestLeftUntold(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	c, file, edit := x.readFirst(t)
	gone := make(leaver)
	close(gone)
	x.into(t, c.CallBody("2", "edit_file", edit, inSession), gone)
	if got, err := os.ReadFile(file); err != nil || string(got) != "one more\n" {
		t.Fatalf("the edit of a client that left: %q, %v", got, err)
	}
	mustRead(t, c.Call("3", "edit_file", edit, inSession))
}

// TestLeftMeanwhile: a client leaves while its call changes a file.
func TestLeftMeanwhile(t *testing.T) {
	t.Parallel()
	gone := make(leaver)
	x := serveHTTP(t, siteSetup{make: allAnd(fixtureTool("late", tool.Traits{Private: true, Local: true}, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
		close(gone)
		return tool.Result{Text: "done", Meta: tool.Meta{Files: []tool.FileChange{{Path: in.Text, Op: "change"}}}}, nil
	}))})
	c, file, edit := x.readFirst(t)
	x.into(t, c.CallBody("2", "late", `{"text":"`+file+`"}`, inSession), gone)
	mustRead(t, c.Call("3", "edit_file", edit, inSession))
}
