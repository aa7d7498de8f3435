package places

import (
	"sync"

	"codehand/server/auth/limits"
	"codehand/server/pipeline"
	"codehand/server/request"
	"codehand/server/toolset"
	"codehand/tools/tool"
)

// A Desk gives places to calls. Its fields are set once. It is safe for concurrent use.
type Desk struct {
	Pipe  *pipeline.Pipeline
	Tools *toolset.Set
	// Kept is told the directory in which a call that another one made may have kept an output.
	Kept func(dir string)

	arrival sync.Mutex // of a call in all its queues
}

// Places are what one call holds until it is over. The zero value holds nothing.
type Places struct {
	Visit  *pipeline.Visit
	Queues []*limits.Turn // of the principal, in the order in which its turns must come
}

// Take takes places in all queues for a call of a tool. That is one step: over HTTP several calls arrive at once, and
// two queues taken separately can deadlock, when a call that is first in one is second in the other.
func (d *Desk) Take(t *request.Turn, to tool.Tool) Places {
	d.arrival.Lock()
	defer d.arrival.Unlock()
	var p Places
	if l := t.Req.Caller.Limits; l != nil {
		p.Queues = append(p.Queues, l.Arrive())
		if to.Spec.Scope == tool.ScopeShell {
			p.Queues = append(p.Queues, l.Shell())
		}
	}
	p.Visit = d.Pipe.Arrive(t.State)
	return p
}

// LeaveQueues gives back the places among the calls of the principal, but not that at the gate. The second time it does
// nothing.
func (p Places) LeaveQueues() {
	for _, q := range p.Queues {
		q.Leave()
	}
}

// Leave gives all places back.
func (p Places) Leave() {
	if p.Visit != nil {
		p.Visit.Leave()
		p.LeaveQueues()
	}
}
