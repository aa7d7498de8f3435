package calls

import (
	"context"
	"strings"
	"time"

	"codehand/server/asking"
	"codehand/server/pipeline"
	"codehand/tools/session"
)

// unheard is how long a call without a progress token waits for the page: many clients give such a call up after 60 s,
// and then its model never learns why.
const unheard = 45 * time.Second

// pageFor is where a person answers about this call, if its client cannot ask. A web page that nobody listed would
// bring its person to answer for it, and who calls in this process has no page.
func (t *turn) pageFor(client session.Client) pipeline.WebPage {
	if client.CanAsk && !t.Req.Client.Muted || t.Req.Caller.From.Page || t.inProcess() {
		return pipeline.WebPage{}
	}
	url, open := t.h.Desk.Page(t.Req.Session.Principal)
	page := pipeline.WebPage{URL: url, Open: open}
	if url == "" && t.h.Desk != nil {
		page.Start = t.h.Desk.Start
	}
	return page
}

// asked is the state of a call as a question about it sees its client.
func (t *turn) asked(onPage bool) *session.State {
	if onPage {
		return asking.OnPage(t.State)
	}
	return t.State
}

// askOnPage lets the question of a round wait on the page, and returns the round with its answer.
func (t *toolCall) askOnPage(ctx context.Context, now round) round {
	next := now.next()
	life := t.h.Asks.Life
	if t.note != nil {
		t.note(0, 0, "waiting for approval at "+t.page.URL)
	} else if t.Req.Child == nil {
		life = min(life, unheard)
	}
	w := asking.Waiting{
		Principal: t.Req.Session.Principal, Session: asking.ShortName(t.Req.Session),
		Client: strings.TrimSpace(t.client.Name + " " + t.client.Version), Tool: now.put.Tool, Call: now.put.Call,
		Question: now.put.Question,
	}
	if t.Req.Child != nil {
		w.Agent = t.Req.Child.Type
	}
	if next.said = t.h.Desk.Put(ctx, w, life, t.Req.Peer.Gone()); next.said == nil {
		next.silent, next.said = true, asking.Cancelled()
		url, _ := t.h.Desk.Page(t.Req.Session.Principal)
		next.stopped = url == ""
	}
	return next
}
