package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"codehand/server/config"
)

// ListenMetrics binds metrics.listen. ok is false if there is no such address. The error is as that of Listen.
func ListenMetrics(ctx context.Context, c config.Config) (l Listener, ok bool, err error) {
	if c.Metrics.Listen == "" {
		return Listener{}, false, nil
	}
	a, err := parseAddress(c.Metrics.Listen)
	if err != nil {
		return Listener{}, false, err
	}
	if a.network == "systemd" {
		return Listener{}, false, misconfigured("", "metrics.listen: the sockets of systemd are for http.listen")
	}
	bound, err := bind(ctx, a, c.HTTP.UnixMode)
	if err != nil {
		return Listener{}, false, err
	}
	// Whoever scrapes needs few connections, and must not be kept out by those who call tools.
	return describe(bound, newSlots(maxScrapers), nil, nil), true, nil
}

// maxScrapers bounds the connections to metrics.listen.
const maxScrapers = 16

// ServeMetrics answers GET /metrics, and nothing else, to whoever reaches l, until ctx ends. It closes l. The error is
// that of the listener.
func (s *Server) ServeMetrics(ctx context.Context, l Listener) error {
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
