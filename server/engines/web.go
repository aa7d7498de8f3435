package engines

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"codehand/tools/web"
	"codehand/tools/web/guard"
	websearch "codehand/tools/web/search"
)

// web makes the client that fetches pages for all sessions; nil: the operator switched it off.
func (o Options) web() (*web.Client, error) {
	cfg := o.Config
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
		UserAgent: cmp.Or(cfg.Web.UserAgent, "codehand/"+cmp.Or(o.Version, "devel")),
		NoUpgrade: !cfg.Web.Upgrade, Roots: roots, Proxy: proxy,
	}), nil
}

// webSearch makes what asks the operator's search endpoint; nil: there is none. A key that cannot be read costs only
// the searches.
func (o Options) webSearch() (*websearch.Engine, error) {
	if !o.Config.Web.Search.On() {
		return nil, nil
	}
	at, err := o.Config.SearchEndpoint()
	if err != nil {
		return nil, err
	}
	at.UserAgent = cmp.Or(at.UserAgent, "codehand/"+cmp.Or(o.Version, "devel"))
	engine, err := websearch.New(at)
	if err != nil {
		return nil, err
	}
	if err := engine.Key(); err != nil {
		o.Log.Warn("web_search cannot work: the key of the search endpoint cannot be read", "cause", err)
	}
	return engine, nil
}
