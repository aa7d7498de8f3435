package team

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/endpoint"
	"codehand/server/listen"
	"codehand/server/resources"
)

// measuredMethods are the methods with labels of their own: those that a client may send to a server. What mcp-go
// does not know by itself is missing on purpose.
var measuredMethods = []string{
	string(mcp.MethodToolsCall), string(mcp.MethodToolsList), string(mcp.MethodInitialize),
	string(mcp.MethodServerDiscover),
	string(mcp.MethodPing), string(mcp.MethodSubscriptionsListen), string(mcp.MethodNotificationInitialized),
	string(mcp.MethodNotificationCancelled), string(mcp.MethodNotificationProgress), string(mcp.MethodSetLogLevel),
	string(mcp.MethodResourcesList), string(mcp.MethodResourcesTemplatesList), string(mcp.MethodResourcesRead),
	string(mcp.MethodResourcesSubscribe), string(mcp.MethodResourcesUnsubscribe), string(mcp.MethodPromptsList),
	string(mcp.MethodPromptsGet), string(mcp.MethodCompletionComplete), resources.MethodSkillsList,
	resources.MethodSkillsGet, resources.MethodDirectoryRead, "notifications/roots/list_changed",
}

// ServeMetrics answers GET /metrics, and nothing else, to all that reach l, until ctx ends. It closes l. The error is
// that of the listener.
func (t *Team) ServeMetrics(ctx context.Context, l listen.Listener) error {
	return endpoint.ServeMetrics(ctx, l, t.Metrics.Handler(), t.o.Log)
}
