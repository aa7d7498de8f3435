package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"codehand/server/listen"
	"codehand/server/stdio"
)

// shutdownTime is how long connections get to close after the last answer.
const shutdownTime = 2 * time.Second

// drain ends the endpoint: balancers are told first, then nothing new is taken, streams are ended, calls may finish,
// and what is left is cancelled.
func (e *httpEndpoint) drain(servers []*http.Server, ls []listen.Listener) {
	cfg := e.s.cfg.HTTP
	e.t.health.Drain()
	if wait := lameDuck(cfg.LameDuck, ls); wait > 0 {
		for _, h := range servers {
			h.SetKeepAlivesEnabled(false) // each answer says that the connection ends
		}
		t := time.NewTimer(wait)
		<-t.C
	}
	drained := e.work.close()
	e.sessions.unask()
	e.work.endStreams(errDraining)
	if !stdio.Within(drained, cfg.Drain) {
		e.stop(errDraining)
		stdio.Within(drained, stdio.CancelGrace)
	}
	e.stop(errDraining)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, h := range servers {
		wg.Go(func() {
			if err := h.Shutdown(ctx); err != nil {
				_ = h.Close() // what is left had its time
			}
		})
	}
	wg.Wait()
}

// lameDuck is how long the server still takes work after it said that it ends: none if only this machine reaches it.
func lameDuck(configured time.Duration, ls []listen.Listener) time.Duration {
	if configured >= 0 {
		return configured
	}
	for _, l := range ls {
		if !l.Loopback && !l.Unix {
			return 5 * time.Second
		}
	}
	return 0
}
