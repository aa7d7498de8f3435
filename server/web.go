package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"codehand/server/config"
	"codehand/tools/web"
	"codehand/tools/web/guard"
	websearch "codehand/tools/web/search"
)

// newWeb makes the client that fetches pages for all sessions; nil: the operator switched it off.
func newWeb(cfg config.Config, version string) (*web.Client, error) {
	if !cfg.Web.Enabled {
		return nil, nil
	}
	roots, err := cfg.WebRoots()
	if err != nil {
		return nil, err
	}
	var proxy *url.URL
	if cfg.Web.Proxy != "" {
		if proxy, err = url.Parse(cfg.Web.Proxy); err != nil {
			return nil, fmt.Errorf("web.proxy: %w", err)
		}
	}
	open := cfg.Sandbox.Addresses
	open.Ports = cfg.Web.Ports
	return web.New(web.Options{
		Guard: guard.New(open), Ports: cfg.Web.Ports,
		Caps:      web.Caps{Time: time.Duration(cfg.Web.TimeoutMS) * time.Millisecond},
		UserAgent: cmp.Or(cfg.Web.UserAgent, "codehand/"+cmp.Or(version, "devel")),
		NoUpgrade: !cfg.Web.Upgrade, Roots: roots, Proxy: proxy,
	}), nil
}

// newWebSearch makes what asks the operator's search endpoint; nil: there is none. A key that cannot be read costs only
// the searches.
func newWebSearch(cfg config.Config, version string, log *slog.Logger) (*websearch.Engine, error) {
	if !cfg.Web.Search.On() {
		return nil, nil
	}
	o, err := cfg.SearchEndpoint()
	if err != nil {
		return nil, err
	}
	o.UserAgent = cmp.Or(o.UserAgent, "codehand/"+cmp.Or(version, "devel"))
	engine, err := websearch.New(o)
	if err != nil {
		return nil, err
	}
	if err := engine.Key(); err != nil {
		log.Warn("web_search cannot work: the key of the search endpoint cannot be read", "cause", err)
	}
	return engine, nil
}
