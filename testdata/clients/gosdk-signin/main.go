// Command gosdk-signin runs the checks of sign-in with the client of the official Go SDK.
package main

import (
	"context"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"codehand/testdata/clients/signin"
)

func main() { signin.Main(start) }

type client struct {
	url     string
	config  auth.AuthorizationCodeHandlerConfig
	handler *auth.AuthorizationCodeHandler
	oauth   *oauth2.Config
	source  oauth2.TokenSource
	failed  error // of the browser: the SDK does not hand it on
}

func start(o signin.Options, open func(string) (url.Values, error)) signin.Client {
	c := &client{url: o.URL}
	c.config = auth.AuthorizationCodeHandlerConfig{
		RedirectURL: o.Redirect, RequestRefreshToken: true,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			back, err := open(args.URL)
			if err != nil {
				c.failed = err
				return nil, err
			}
			return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
		},
		NewTokenSource: func(ctx context.Context, cfg *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			c.oauth, c.source = cfg, cfg.TokenSource(ctx, t)
			return c.source, nil
		},
	}
	if o.Document != "" {
		c.config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: o.Document}
	} else {
		c.config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Go SDK", RedirectURIs: []string{o.Redirect}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	}
	c.renew()
	return c
}

// renew makes a handler with the tokens that there are.
func (c *client) renew() {
	c.config.InitialTokenSource = c.source
	config := c.config
	h, err := auth.NewAuthorizationCodeHandler(&config)
	if err != nil {
		panic(err)
	}
	c.handler = h
}

func (c *client) Tools(ctx context.Context) ([]string, error) {
	sdk := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1.8.0"}, nil)
	session, err := sdk.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: c.url, OAuthHandler: c.handler}, nil)
	if err != nil {
		if c.failed != nil {
			return nil, c.failed
		}
		return nil, err
	}
	defer session.Close()
	var names []string
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, t.Name)
	}
	return names, nil
}

func (c *client) token() *oauth2.Token {
	t, err := c.source.Token()
	if err != nil {
		panic(err)
	}
	return t
}

func (c *client) Tokens() (access, refresh string) {
	t := c.token()
	return t.AccessToken, t.RefreshToken
}

func (c *client) Expire() {
	t := *c.token()
	t.Expiry = time.Now().Add(-time.Minute)
	c.source = c.oauth.TokenSource(context.Background(), &t)
	c.renew()
}
