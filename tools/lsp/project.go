package lsp

import "sync"

// A project is whether a server has read what it works on, as far as it tells: the notification
// experimental/serverStatus, which rust-analyzer made up. A server that never tells has read it.
type project struct {
	mu   sync.Mutex
	wait chan struct{} // closed when the server has read it; nil: it never said that it does
}

// closed is closed.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// says takes what a server told.
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
