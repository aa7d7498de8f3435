// Command mcpgo-signin runs the checks of sign-in with the client of mcp-go.
package main

import (
	"context"
	"net/url"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"codehand/testdata/clients/signin"
)

func main() { signin.Main(start) }

type caller struct {
	url    string
	config client.OAuthConfig
	store  *client.MemoryTokenStore
	open   func(string) (url.Values, error)
}

func start(o signin.Options, open func(string) (url.Values, error)) signin.Client {
	c := &caller{url: o.URL, store: transport.NewMemoryTokenStore(), open: open}
	c.config = client.OAuthConfig{ClientID: o.Document, RedirectURI: o.Redirect, TokenStore: c.store, PKCEEnabled: true, TokenEndpointAuthMethod: "none"}
	return c
}

func (c *caller) Tools(ctx context.Context) ([]string, error) {
	names, err := c.list(ctx)
	if client.IsOAuthAuthorizationRequiredError(err) {
		if err := c.authorize(ctx, client.GetOAuthHandler(err)); err != nil {
			return nil, err
		}
		return c.list(ctx)
	}
	return names, err
}

func (c *caller) list(ctx context.Context) ([]string, error) {
	mcpgo, err := client.NewOAuthStreamableHttpClient(c.url, c.config)
	if err != nil {
		return nil, err
	}
	defer mcpgo.Close()
	if err := mcpgo.Start(ctx); err != nil {
		return nil, err
	}
	var req mcp.InitializeRequest
	req.Params.ClientInfo = mcp.Implementation{Name: "mcp-go", Version: "1.2.1"}
	req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	if _, err := mcpgo.Initialize(ctx, req); err != nil {
		return nil, err
	}
	result, err := mcpgo.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range result.Tools {
		names = append(names, t.Name)
	}
	return names, nil
}

// authorize does what mcp-go leaves to whoever uses it.
func (c *caller) authorize(ctx context.Context, h *transport.OAuthHandler) error {
	verifier, err := client.GenerateCodeVerifier()
	if err != nil {
		return err
	}
	state, err := client.GenerateState()
	if err != nil {
		return err
	}
	if h.GetClientID() == "" {
		if err := h.RegisterClient(ctx, "mcp-go"); err != nil {
			return err
		}
		c.config.ClientID = h.GetClientID()
	}
	authorize, err := h.GetAuthorizationURL(ctx, state, client.GenerateCodeChallenge(verifier))
	if err != nil {
		return err
	}
	back, err := c.open(authorize)
	if err != nil {
		return err
	}
	return h.ProcessAuthorizationResponse(ctx, back.Get("code"), back.Get("state"), verifier)
}

func (c *caller) Tokens() (access, refresh string) {
	t, err := c.store.GetToken(context.Background())
	if err != nil {
		panic(err)
	}
	return t.AccessToken, t.RefreshToken
}

func (c *caller) Expire() {
	t, err := c.store.GetToken(context.Background())
	if err != nil {
		panic(err)
	}
	old := *t
	old.ExpiresAt = time.Now().Add(-time.Minute)
	if err := c.store.SaveToken(context.Background(), &old); err != nil {
		panic(err)
	}
}
