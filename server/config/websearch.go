package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"codehand/tools/keys"
	"codehand/tools/web/search"
)

// WebSearch is the endpoint that web_search asks.
type WebSearch struct {
	Kind    string // off, or as search.Options have it
	URL     string
	KeyEnv  string // name of a variable; not with KeyFile
	KeyFile string // absolute

	// Of a template.
	Header, Body            string
	List, Title, Link, Text string

	lookup func(name string) string // of the environment that the settings were made from
}

// searchOff is the value of web.search.kind with which there is no web_search.
const searchOff = "off"

// searchKey is the setting that says which endpoint there is.
const searchKey = "web.search.kind"

// webSearchTable is about the endpoint that web_search asks.
func webSearchTable(c *Config) []setting {
	w := &c.Web.Search
	return []setting{
		{searchKey, "search endpoint of the tool web_search: searxng, brave, tavily, template (any other one that " +
			"answers in JSON) or off (no such tool)", operatorOnly,
			choice{&w.Kind, []string{searchOff, search.SearXNG, search.Brave, search.Tavily, search.Template}}},
		{"web.search.url", "address of the search endpoint; brave and tavily have a usual one; in a template " +
			"{query}, {page} and {count} are filled in", operatorOnly, text{&w.URL}},
		{"web.search.key_env", "environment variable with the key of the search endpoint; no command gets it",
			operatorOnly, term{&w.KeyEnv, readKeyEnv}},
		{"web.search.key_file", "file with that key, which only its owner may read (mode 0600)", operatorOnly,
			term{&w.KeyFile, absolute}},
		{"web.search.header", "header of a template that carries the key; empty: Authorization: Bearer {key}",
			operatorOnly, text{&w.Header}},
		{"web.search.body", `JSON that a template posts, such as {"q": "{query}"}; empty: it is fetched`, operatorOnly,
			text{&w.Body}},
		{"web.search.list", "where the results are in the answer of a template, as data.items; . for the answer " +
			"itself; empty: results", operatorOnly, text{&w.List}},
		{"web.search.title", "where the title is in a result of a template; empty: title", operatorOnly,
			text{&w.Title}},
		{"web.search.link", "where the address is in a result of a template; empty: url", operatorOnly,
			text{&w.Link}},
		{"web.search.text", "where the text is in a result of a template; empty: content", operatorOnly,
			text{&w.Text}},
	}
}

// readKeyEnv reads the name of a variable that holds a key. No command gets that variable, so it must not be one that
// commands need.
func readKeyEnv(s string, _ input) (string, error) {
	if err := checkEnvPattern(s); err != nil || strings.HasSuffix(s, "*") {
		return "", errors.New("must be the name of an environment variable, such as BRAVE_API_KEY; the key itself " +
			"does not belong here")
	}
	return s, nil
}

// On says whether there is an endpoint.
func (w WebSearch) On() bool { return w.Kind != searchOff && w.Kind != "" }

// SearchEndpoint is what the room that asks it needs. The error is about the file of certificates.
func (c Config) SearchEndpoint() (search.Options, error) {
	o := c.Web.Search.options()
	o.UserAgent = c.Web.UserAgent
	var err error
	if c.Web.Proxy != "" {
		if o.Proxy, err = url.Parse(c.Web.Proxy); err != nil {
			return o, fmt.Errorf("web.proxy: %w", err)
		}
	}
	o.Roots, err = c.WebRoots()
	return o, err
}

func (w WebSearch) options() search.Options {
	return search.Options{Kind: w.Kind, URL: w.URL, Key: keys.Source{Env: w.KeyEnv, Lookup: w.lookup, File: w.KeyFile},
		Header: w.Header, Body: w.Body, List: w.List, Title: w.Title, Link: w.Link, Text: w.Text}
}

// checkWebSearch says what is wrong with the settings about the endpoint, read together; "": nothing.
func (c *Config) checkWebSearch() (key, wrong string) {
	w := c.Web.Search
	if !w.On() {
		for _, s := range webSearchTable(c) {
			if s.key != searchKey && c.Said(s.key) && s.at.text() != "" {
				return s.key, "counts only with web.search.kind"
			}
		}
		return "", ""
	}
	if _, err := search.New(w.options()); err != nil {
		return searchKey, err.Error()
	}
	return "", ""
}

// KeyEnvs are the variables that hold the operator's keys: no command and no hook gets one, whatever is configured.
func (c Config) KeyEnvs() []string {
	variables, _ := c.mountReferences()
	return present(append(variables, c.Web.Search.KeyEnv, c.Tools.Agent.API.KeyEnv)...)
}

// KeyFiles are the files that hold the operator's keys: no command reads one, and no call changes one.
func (c Config) KeyFiles() []string {
	_, files := c.mountReferences()
	return present(append(files, c.Web.Search.KeyFile, c.Tools.Agent.API.KeyFile)...)
}

// present are those that are not empty; nil: none is.
func present(names ...string) (some []string) {
	for _, name := range names {
		if name != "" {
			some = append(some, name)
		}
	}
	return some
}
