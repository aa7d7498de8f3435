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
	w := asking.Waiting{Tool: now.put.Tool, Call: now.put.Call, Question: now.put.Question}
	if said := t.put(ctx, t.page.URL, w); said != nil {
		next.said = &said.Elicited
		return next
	}
	next.silent, next.said = true, asking.Cancelled()
	url, _ := t.h.Desk.Page(t.Req.Session.Principal)
	next.stopped = url == ""
	return next
}

// put lets a question about this call wait on the page at url, as long as the client can be kept waiting. nil: nobody
// answered.
func (t *toolCall) put(ctx context.Context, url string, w asking.Waiting) *asking.Said {
	life := t.h.Asks.Life
	if t.note != nil {
		t.note(0, 0, "waiting for approval at "+url)
	} else if t.Req.Child == nil {
		life = min(life, unheard)
	}
	w.Principal, w.Session = t.Req.Session.Principal, asking.ShortName(t.Req.Session)
	w.Client = strings.TrimSpace(t.client.Name + " " + t.client.Version)
	if t.Req.Child != nil {
		w.Agent = t.Req.Child.Type
	}
	return t.h.Desk.Put(ctx, w, life, t.Req.Peer.Gone())
}
