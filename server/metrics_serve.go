package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"codehand/server/listen"
)

// ServeMetrics answers GET /metrics, and nothing else, to whoever reaches l, until ctx ends. It closes l. The error is
// that of the listener.
func (s *Server) ServeMetrics(ctx context.Context, l listen.Listener) error {
	if s.team == nil {
		return errors.New("this server was not made to serve HTTP")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.team.metrics.handler())
	h := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: bodyTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = h.Close() // nothing is lost: who scrapes comes again
		close(closed)
	})
	err := h.Serve(l.Listener)
	if stop() { // it ended by itself
		return err
	}
	<-closed
	return nil
}
