package endpoint

import (
	"context"
	"log/slog"
	"net/http"

	"codehand/server/listen"
)

// ServeMetrics answers GET /metrics with page, and nothing else, to all that reach l, until ctx ends. It closes l. The
// error is that of the listener.
func ServeMetrics(ctx context.Context, l listen.Listener, page http.Handler, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", page)
	h := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: bodyTime,
		IdleTimeout:    idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = h.Close() // nothing is lost: a scraper comes again
		close(closed)
	})
	err := h.Serve(l.Listener)
	if stop() { // it ended by itself
		return err
	}
	<-closed
	return nil
}
