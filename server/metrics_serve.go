package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/listen"
)

// measuredMethods are the methods with labels of their own: those that a client may send to a server. What mcp-go
// does not know by itself is missing on purpose.
var measuredMethods = []string{
	string(mcp.MethodToolsCall), string(mcp.MethodToolsList), string(mcp.MethodInitialize), string(mcp.MethodServerDiscover),
	string(mcp.MethodPing), string(mcp.MethodSubscriptionsListen), string(mcp.MethodNotificationInitialized),
	string(mcp.MethodNotificationCancelled), string(mcp.MethodNotificationProgress), string(mcp.MethodSetLogLevel),
	string(mcp.MethodResourcesList), string(mcp.MethodResourcesTemplatesList), string(mcp.MethodResourcesRead),
	string(mcp.MethodResourcesSubscribe), string(mcp.MethodResourcesUnsubscribe), string(mcp.MethodPromptsList),
	string(mcp.MethodPromptsGet), string(mcp.MethodCompletionComplete), methodSkillsList, methodSkillsGet, methodDirectoryRead,
	"notifications/roots/list_changed",
}

// ServeMetrics answers GET /metrics, and nothing else, to whoever reaches l, until ctx ends. It closes l. The error is
// that of the listener.
func (s *Server) ServeMetrics(ctx context.Context, l listen.Listener) error {
	if s.team == nil {
		return errors.New("this server was not made to serve HTTP")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.team.metrics.Handler())
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
