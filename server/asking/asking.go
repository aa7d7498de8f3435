// Package asking puts questions to the user through the client. A modern client gets the question as the result of its
// call, and sends the call again with the answer. A legacy client gets elicitation/create while its call waits.
//
// A question waits in the Store under a signed name, so any replica can take the answer. An answer counts once, and
// only for the principal, session, tool and input that the question was about. The package decides nothing: it passes
// the user's answer to server/pipeline.
package asking

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/pipeline"
	"codehand/server/state"
	"codehand/tools/session"
	"codehand/tools/tool"
)

const (
	// Most is how many questions one legacy request puts: for permission, the tool's own, and one of them again.
	Most = 3
	// questionID names the one question of an answer that asks.
	questionID = "answer"
	// maxLife is how long a question waits for its answer at most: the life of its family in the Store.
	maxLife = 10 * time.Minute
)

// An Asker keeps the questions that wait for a person. It is safe for concurrent use.
type Asker struct {
	// Life is how long a question waits for its answer.
	Life time.Duration

	store state.Store
	event func(name string, fields map[string]any)
	log   *slog.Logger
	now   func() time.Time
}

// New makes an Asker whose questions wait for timeout, at most 10 minutes, which 0 means, too. event takes what the
// audit records.
func New(store state.Store, timeout time.Duration, event func(string, map[string]any), log *slog.Logger) *Asker {
	if timeout <= 0 {
		timeout = maxLife
	}
	return &Asker{Life: min(timeout, maxLife), store: store, event: event, log: log, now: time.Now}
}

// A Question is one that was kept and is ready to be put.
type Question struct {
	Token string // the requestState that names it
	Form  mcp.ElicitationParams
}

// Ask keeps a question of a call of st. The error is a refusal: the Store does not answer.
func (a *Asker) Ask(ctx context.Context, st *session.State, q pipeline.Asking) (*Question, error) {
	q.Question.Fields = fieldsFor(st.Client, q.Question.Fields)
	nonce, token, err := a.keep(ctx, st.Key, q, st.Client.Revision)
	if err != nil {
		return nil, &tool.Refusal{
			Code: tool.StateUnavailable, Cause: err,
			Text: "The state store does not answer, so codehand cannot ask the user. Nothing was done. Try again.",
		}
	}
	a.event("ask", map[string]any{"p": st.Key.Principal, "sk": st.Key.Session, "call": q.Call, "tool": q.Tool,
		"ask": nonce})
	return &Question{Token: token, Form: form(q.Question, st.Client.Revision)}, nil
}

// Result is the answer to a modern request that asks.
func (q *Question) Result() *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Result: mcp.Result{ResultType: mcp.ResultTypeInputRequired},
		MultiRoundTripResult: mcp.MultiRoundTripResult{
			InputRequests: mcp.InputRequests{questionID: mcp.NewElicitationInputRequest(q.Form)}, RequestState: q.Token,
		},
	}
}

// Answered returns what a modern client says to the question of the request before, nil for nothing, and the token that
// names the question, "" for none. responses and requestState are those of its request, nil where it has none. The
// error says that they cannot be read.
func Answered(responses, requestState json.RawMessage) (said *Elicited, token string, err error) {
	if requestState != nil {
		if err := json.Unmarshal(requestState, &token); err != nil {
			return nil, "", err
		}
	}
	if responses == nil {
		return nil, token, nil
	}
	var all mcp.InputResponses
	if err := json.Unmarshal(responses, &all); err != nil {
		return nil, "", err
	}
	if r, ok := all[questionID]; ok && (r.Elicitation != nil || decodes(&r)) {
		said = r.Elicitation
	}
	return said, token, nil
}

// decodes reads what a client sent as the answer to a question. What cannot be read counts as no answer.
func decodes(r *mcp.InputResponse) bool { return r.DecodeFor(mcp.MethodElicitationCreate) == nil }

// Parse reads a legacy client's answer to elicitation/create. nil: there is none, or none that can be read.
func Parse(answer json.RawMessage) *Elicited {
	e := &Elicited{}
	if answer == nil || json.Unmarshal(answer, e) != nil {
		return nil
	}
	return e
}

// Cancelled is the answer of a client of which none came.
func Cancelled() *Elicited {
	e := &Elicited{}
	e.Action = mcp.ElicitationResponseActionCancel
	return e
}

// Reply is what a request of a session brings as the answer to an earlier question about a call of the tool name; nil:
// nothing that counts. silent says that the person was asked and did not answer. ErrForged: token was not made for this
// principal, session and tool. What comes without a token, for a question that is over, or a second time is no answer,
// and the person is asked anew.
func (a *Asker) Reply(
	ctx context.Context, st *session.State, name, token string, said *Elicited, silent bool,
) (*pipeline.Reply, error) {
	if token == "" {
		return nil, nil
	}
	key := st.Key
	event := map[string]any{"p": key.Principal, "sk": key.Session, "tool": name}
	nonce, err := a.open(ctx, key, name, token)
	if errors.Is(err, ErrForged) {
		event["outcome"] = "forged"
		a.event("answer", event)
		return nil, err
	}
	var kept *keptAsk
	if err == nil {
		event["ask"] = nonce
		kept, err = a.take(ctx, nonce)
	}
	switch {
	case err != nil: // the next question will say that the Store does not answer
		a.log.WarnContext(ctx, "an answer cannot be looked up", "tool", name, "err", err)
		return nil, nil
	case kept == nil:
		event["outcome"] = "gone"
		a.event("answer", event)
		return nil, nil
	}
	answer := fit(kept.Fields, said)
	answer.Silent = silent || nobody(answer, st.Client, a.now().Sub(kept.At))
	event["outcome"] = outcomeName(answer)
	if said := answer.Values[kept.Decides]; answer.Outcome == tool.Accepted && len(said) == 1 {
		addDecision(event, kept.Decides, said[0])
	}
	a.event("answer", event)
	return &pipeline.Reply{Digest: kept.Digest, Answer: answer, Before: kept.Before}, nil
}

// reading is less time than any person takes to read a question.
const reading = 300 * time.Millisecond

// nobody reports that an answer is no person's; after is how long it took. Closing a question without a choice is no
// answer. Some clients without a person decline by themselves, and at once.
func nobody(a tool.Answer, c session.Client, after time.Duration) bool {
	return a.Outcome == tool.Cancelled || a.Outcome == tool.Declined && c.Forms.DeclinesAlone && after < reading
}

// addDecision adds to an event what a person decided, as one word: "deny", "allow-once". field "": that is not for the
// audit.
func addDecision(event map[string]any, field, choice string) {
	if field != "" && choice != "" {
		event["decision"] = strings.ReplaceAll(choice, " ", "-")
	}
}

func outcomeName(a tool.Answer) string {
	switch {
	case a.Silent:
		return "none"
	case a.Outcome == tool.Accepted:
		return "accept"
	case a.Outcome == tool.Cancelled:
		return "cancel"
	}
	return "decline"
}
