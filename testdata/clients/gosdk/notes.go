package main

import (
	"strconv"
	"sync"

	"codehand/testdata/clients/checks"
)

// notes brings progress to the call that wants it. Safe for concurrent use.
type notes struct {
	mu sync.Mutex
	to map[any]func(checks.Progress) // by token
}

// add returns the token for a call.
func (n *notes) add(note func(checks.Progress)) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	token := "call-" + strconv.Itoa(len(n.to))
	n.to[token] = note
	return token
}

func (n *notes) deliver(token any, p checks.Progress) {
	n.mu.Lock()
	note := n.to[token]
	n.mu.Unlock()
	if note != nil {
		note(p)
	}
}
