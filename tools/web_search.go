package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/web/search"
	"codehand/tools/wording"
)

//go:embed web_search.md
var webSearchText string

type webSearchInput struct {
	Query   string   `json:"query" jsonschema:"words, as for a search engine" rule:"minlen=2 maxrunes=400"`
	Allowed []string `json:"allowed_domains,omitempty" jsonschema:"only hosts like example.com, with all below" rule:"maxitems=20 maxlen=253"`
	Blocked []string `json:"blocked_domains,omitempty" jsonschema:"no such hosts; not with allowed_domains" rule:"maxitems=20 maxlen=253"`
}

// webSearch has the host of the endpoint as its target, so that it is asked about as whatever reaches the network: a
// query can carry anything that the model has read.
func webSearch(engine *search.Engine) tool.Tool {
	answers := ""
	if engine != nil {
		answers = "Searches go to " + engine.Name() + "."
	}
	return tool.Define(tool.Def[webSearchInput]{
		Spec: tool.Spec{
			Name: "web_search", Aliases: []string{"WebSearch"}, Title: "Search the web", Description: webSearchText,
			Hint:     "search the web, the internet, for current information",
			Deferred: true, Backed: true, MaxRunes: 20_000, Scope: tool.ScopeWeb, Family: permission.FamilyNone,
			Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true},
			ForAgents: tool.AllAgents,
			Answers:   answers,
			Elsewhere: []string{"web", "websearch", "google_web_search"},
			Example:   `{"query":"go 1.26 release notes"}`,
			Finds: []string{
				"web search", "search the web", "search internet", "look up online", "current information",
				"search engine", "find latest version online", "WebSearch", "search for news",
				"internet search results", "search documentation online",
			},
		},
		Accept: map[string]string{"q": "query", "search_query": "query"},
		Available: func(*session.State) string {
			if engine == nil {
				return "the operator has configured no search endpoint (web.search.kind)."
			}
			return ""
		},
		Targets: func(*session.State, webSearchInput) []permission.Target {
			if engine == nil {
				return nil
			}
			return []permission.Target{{Kind: permission.Domain, Value: engine.Host()}}
		},
		Activity: func(in webSearchInput) string { return "Searching for " + wording.LineOf(in.Query, 30) },
		Check: func(in webSearchInput) error {
			_, err := in.domains()
			return err
		},
		Run: func(ctx context.Context, env tool.Env, in webSearchInput) (tool.Result, error) {
			return runWebSearch(ctx, env, engine, in)
		},
	})
}

// domains reads both lists.
func (in webSearchInput) domains() (q search.Query, err error) {
	if len(in.Allowed) > 0 && len(in.Blocked) > 0 {
		return q, tool.Invalid("web_search", `give "allowed_domains" or "blocked_domains", not both`)
	}
	for _, list := range []struct {
		name  string
		texts []string
		to    *[]search.Domain
	}{{"allowed_domains", in.Allowed, &q.Allowed}, {"blocked_domains", in.Blocked, &q.Blocked}} {
		for i, text := range list.texts {
			d, err := search.ParseDomain(text)
			if err != nil {
				return q, tool.Invalid("web_search", fmt.Sprintf(`"%s[%d]": write only a host, such as example.com`,
					list.name, i))
			}
			*list.to = append(*list.to, d)
		}
	}
	return q, nil
}

// searchBudget is how many requests to the endpoint a session has.
const searchBudget = 200

func runWebSearch(ctx context.Context, env tool.Env, engine *search.Engine, in webSearchInput) (tool.Result, error) {
	q, err := in.domains()
	if err != nil {
		return tool.Result{}, err
	}
	if engine == nil {
		return tool.Result{}, tool.Refuse(tool.ToolDisabled, "web_search is not available: there is no endpoint.")
	}
	q.Text = strings.Join(strings.Fields(in.Query), " ")
	q.Spend = func(ctx context.Context) error { return spendSearch(ctx, env.Searches) }
	hits, err := engine.Search(ctx, q)
	if bad, ok := errors.AsType[*search.Error](err); ok {
		return tool.Result{}, &tool.Refusal{Code: tool.SearchFailed, Text: bad.Text, Cause: bad.Cause}
	}
	if err != nil {
		return tool.Result{}, err
	}
	if len(hits) == 0 {
		return tool.Result{Text: "No results. Try other or fewer words" + narrowed(q) + "."}, nil
	}
	var b strings.Builder
	for i, h := range hits {
		fmt.Fprintf(&b, "%d. %s\n%s\n", i+1, h.Title, h.URL)
		if h.Text != "" {
			b.WriteString(h.Text + "\n")
		}
		b.WriteByte('\n')
	}
	return tool.Result{Text: wording.Plural(len(hits), "result", "results") + " from " + engine.Name() +
		". Give the sources that you use.\n" + results.Fence(b.String())}, nil
}

func narrowed(q search.Query) string {
	if len(q.Allowed)+len(q.Blocked) > 0 {
		return ", or leave out the list of domains"
	}
	return ""
}

// spendSearch takes one request from the session's budget. What the Store does not count is not made.
func spendSearch(ctx context.Context, spent session.Cell[int]) error {
	errSpent := tool.Refuse(tool.SearchLimit, "This session has made its %d requests to the search endpoint. Go on "+
		"with what was found, or fetch pages by their address.", searchBudget)
	_, err := spent.Change(ctx, func(n int) (int, error) {
		if n >= searchBudget {
			return n, errSpent
		}
		return n + 1, nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errSpent):
		return errSpent
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &tool.Refusal{Code: tool.StateUnavailable, Cause: err,
		Text: "The state store does not answer, so the search could not be counted. Nothing was searched. Try again."}
}
