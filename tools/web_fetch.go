package tools

import (
	"context"
	_ "embed"
	"net/url"

	"codehand/tools/browsing"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/web"
	"codehand/tools/wording"
)

//go:embed web_fetch.md
var webFetchText string

type webFetchInput struct {
	URL       string `json:"url" jsonschema:"absolute, http or https" rule:"minlen=1 maxlen=2000"`
	Prompt    string `json:"prompt,omitempty" jsonschema:"what to look for" rule:"maxrunes=2000"`
	MaxLength int    `json:"max_length,omitempty" jsonschema:"characters" rule:"min=1 max=100000 default=50000"`
	Offset    int    `json:"offset,omitempty" jsonschema:"character to continue from" rule:"min=0"`

	Host string `json:"-"` // in its one form, for rules
}

// webFetch wants to be asked about for each host that no rule and no web.preapproved allows, because an address can
// carry out whatever a model has read. Who is asked is the pipeline's: with permissions.ask_fallback = "client" it is
// the client's own dialog, and since the tool is published as read-only, many clients show none.
func webFetch(client *web.Client) tool.Tool {
	return tool.Define(tool.Def[webFetchInput]{
		Spec: tool.Spec{
			Name: "web_fetch", Aliases: []string{"WebFetch"}, Title: "Fetch web page", Description: webFetchText,
			Hint: "fetch, open, download, read a web page by url, link", Deferred: true, MaxRunes: 50_000,
			Scope: tool.ScopeWeb, Family: permission.FamilyNone,
			Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true},
			ForAgents: tool.AllAgents,
			Elsewhere: []string{"webfetch", "fetch", "web"},
			Example:   `{"url":"https://example.com/"}`,
			Finds: []string{
				"web fetch", "fetch url", "fetch a web page", "open a website", "download documentation page",
				"read web page", "get web page", "web page to markdown", "WebFetch", "url", "scrape web page",
				"download a url",
				"open link",
			},
		},
		Available: func(*session.State) string {
			if client == nil {
				return "the operator switched the web off (web.enabled)."
			}
			return ""
		},
		Traits: func(s *session.State, in webFetchInput) tool.Traits {
			// An answer to the prompt can take as long as a person thinks.
			return tool.Traits{Ungated: s.PageModel && in.Prompt != ""}
		},
		Targets: func(_ *session.State, in webFetchInput) []permission.Target {
			return []permission.Target{{Kind: permission.Domain, Value: in.Host}}
		},
		Complete: func(_ context.Context, _ *session.State, in *webFetchInput) (err error) {
			if client == nil {
				return errWebOff
			}
			in.Host, err = client.Host(in.URL)
			return browsing.Refusal(err)
		},
		Activity: func(in webFetchInput) string {
			if u, err := url.Parse(in.URL); err == nil && u.Hostname() != "" {
				return "Fetching from " + wording.LineOf(u.Hostname(), 30)
			}
			return "Fetching a page"
		},
		Run: func(ctx context.Context, env tool.Env, in webFetchInput) (tool.Result, error) {
			return runWebFetch(ctx, env, client, in)
		},
	})
}

var errWebOff = tool.Refuse(tool.ToolDisabled, "web_fetch is not available: the operator switched the web off.")

func runWebFetch(ctx context.Context, env tool.Env, client *web.Client, in webFetchInput) (tool.Result, error) {
	if client == nil {
		return tool.Result{}, errWebOff
	}
	done := wording.TellIfSlow(env, "fetching from "+in.Host)
	defer done()
	page, err := client.Fetch(ctx, web.Request{URL: in.URL, Principal: env.Key.Principal,
		Follow: func(host string) bool { return browsing.MayFollow(env.Rules, host) }})
	if err != nil {
		return tool.Result{}, browsing.Refusal(err)
	}
	return browsing.Show(ctx, env, page, browsing.Want{Tool: "web_fetch", Prompt: in.Prompt, Offset: in.Offset,
		Length: in.MaxLength})
}
