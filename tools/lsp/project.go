package lsp

import (
	"encoding/json"
	"sync"
)

// A project is whether a server has read what it works on, as far as it tells: the notification
// experimental/serverStatus, which rust-analyzer made up. A server that never tells has read it.
type project struct {
	mu   sync.Mutex
	wait chan struct{} // closed when the server has read it; nil: it does not say that it reads
	last string        // message about its health
}

// closed is closed.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// told takes the notification. It returns what the server says of its health if that is new.
func (p *project) told(params json.RawMessage) (message string, news bool) {
	var status struct {
		Quiescent *bool
		Message   string
	}
	if json.Unmarshal(params, &status) != nil {
		return "", false
	}
	if status.Quiescent != nil {
		p.says(*status.Quiescent)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	news = status.Message != "" && status.Message != p.last
	p.last = status.Message
	return status.Message, news
}

// says takes whether the server has read the project.
func (p *project) says(read bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reading := p.wait != nil
	switch {
	case read && reading:
		close(p.wait)
		p.wait = nil
	case !read && !reading:
		p.wait = make(chan struct{})
	}
}

// read is closed when the server has read the project.
func (p *project) read() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wait == nil {
		return closed
	}
	return p.wait
}
