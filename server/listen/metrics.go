package listen

import (
	"context"

	"codehand/server/config"
)

// OpenMetrics binds metrics.listen. ok is false if there is no such address. The error is as that of Open.
func OpenMetrics(ctx context.Context, c config.Config) (l Listener, ok bool, err error) {
	if c.Metrics.Listen == "" {
		return Listener{}, false, nil
	}
	a, err := parseAddress(c.Metrics.Listen)
	if err != nil {
		return Listener{}, false, err
	}
	if a.network == "systemd" {
		return Listener{}, false, misconfigured("", "metrics.listen: sockets of systemd are only for http.listen")
	}
	bound, err := bind(ctx, a, c.HTTP.UnixMode, "metrics.listen")
	if err != nil {
		return Listener{}, false, err
	}
	// A scraper needs few connections, and callers of tools must not keep it out.
	return describe(bound, newSlots(maxScrapers), nil, nil), true, nil
}

// maxScrapers bounds the connections to metrics.listen.
const maxScrapers = 16
