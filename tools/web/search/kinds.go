package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// An ask is one request to the endpoint.
type ask struct {
	text    string
	page    int      // from 0
	allowed []Domain // for an endpoint that knows lists of domains
	blocked []Domain
}

// plan returns the requests of a query, in order. A list of allowed domains is asked for with `site:`, in as many parts
// as there are requests; else the next pages follow, if there is a way to ask for them.
func (e *Engine) plan(q Query) []ask {
	if e.o.Kind == Tavily {
		return []ask{{text: q.Text, allowed: q.Allowed, blocked: q.Blocked}}
	}
	var asks []ask
	if n := len(q.Allowed); n > 0 {
		parts := min(n, MaxRequests)
		for i := range parts {
			var sites []string
			for _, d := range q.Allowed[i*n/parts : (i+1)*n/parts] {
				sites = append(sites, "site:"+string(d))
			}
			asks = append(asks, ask{text: q.Text + " " + strings.Join(sites, " OR ")})
		}
		return asks
	}
	pages := 1
	if e.pages() {
		pages = MaxRequests
	}
	for page := range pages {
		asks = append(asks, ask{text: q.Text, page: page})
	}
	return asks
}

// pages says whether the endpoint has a second page.
func (e *Engine) pages() bool {
	return e.o.Kind != Template || strings.Contains(e.o.URL+e.o.Body, "{page}")
}

// A headerForm is the header that carries the key.
type headerForm struct{ name, value string }

// read checks the options and makes of them what requests need.
func (e *Engine) read() error {
	if e.o.Key.Env != "" && e.o.Key.File != "" {
		return errors.New("give the key in a variable or in a file, not both")
	}
	e.header = headerForm{"Authorization", "Bearer {key}"}
	switch e.o.Kind {
	case SearXNG:
		e.form = usualForm()
	case Brave:
		e.header = headerForm{"X-Subscription-Token", "{key}"}
		e.form = form{list: []string{"web", "results"}, title: []string{"title"}, link: []string{"url"},
			text: []string{"description"}, missing: true}
		e.usual("https://api.search.brave.com/res/v1/web/search")
	case Tavily:
		e.form = usualForm()
		e.usual("https://api.tavily.com/search")
	case Template:
		if err := e.readTemplate(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("there is no kind %q of search endpoints", e.o.Kind)
	}
	if (e.o.Kind == Brave || e.o.Kind == Tavily) && !e.o.Key.Set() {
		return fmt.Errorf("the kind %s needs a key", e.o.Kind)
	}
	if e.o.Kind != Template && e.o.Header+e.o.Body+e.o.List+e.o.Title+e.o.Link+e.o.Text != "" {
		return errors.New("only the kind template has a header, a body and paths of its own")
	}
	return e.readURL()
}

// usualForm is that of SearXNG and Tavily.
func usualForm() form {
	return form{list: []string{"results"}, title: []string{"title"}, link: []string{"url"}, text: []string{"content"}}
}

func (e *Engine) usual(address string) {
	if e.o.URL == "" {
		e.o.URL = address
	}
}

// readURL checks the address of the endpoint. A template may have its marks anywhere behind the host.
func (e *Engine) readURL() error {
	u, err := url.Parse(strings.NewReplacer("{query}", "q", "{page}", "1", "{count}", "10").Replace(e.o.URL))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return errors.New("the address must begin with http:// or https:// and name a host")
	case u.User != nil:
		return errors.New("the address must not hold a user or a password: a key belongs into a variable or a file")
	case strings.Contains(e.o.URL, "{key}"):
		return errors.New("the key must not stand in the address, which others log; it goes into a header")
	case u.Fragment != "" || e.o.Kind != Template && u.RawQuery != "":
		return errors.New("the address must have neither a fragment nor a query of its own")
	case strings.Contains(before(e.o.URL), "{"):
		return errors.New("the host must not hold a mark such as {query}")
	}
	e.at = u
	if e.o.Kind == SearXNG && !strings.HasSuffix(u.Path, "/search") {
		e.at = u.JoinPath("search")
	}
	return nil
}

// before returns scheme and host of an address.
func before(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	return scheme + host
}

func (e *Engine) readTemplate() error {
	if !strings.Contains(e.o.URL+e.o.Body, "{query}") {
		return errors.New("a template needs {query} in its address or in its body")
	}
	if e.o.Header != "" {
		name, value, ok := strings.Cut(e.o.Header, ":")
		value = strings.TrimSpace(value)
		if !ok || !headerName(name) || strings.Count(value, "{key}") != 1 ||
			strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return errors.New("the header must be as X-Api-Key: {key}")
		}
		e.header = headerForm{name, value}
	}
	if e.o.Body != "" && !json.Valid([]byte(fill(e.o.Body, ask{text: `a"b`}, inJSON))) {
		return errors.New("the body must be JSON, with {query} inside quotes, and {page} and {count} as numbers")
	}
	for _, p := range []struct {
		to          *[]string
		said, usual string
	}{
		{&e.form.list, e.o.List, "results"}, {&e.form.title, e.o.Title, "title"},
		{&e.form.link, e.o.Link, "url"}, {&e.form.text, e.o.Text, "content"},
	} {
		if p.said == "" {
			p.said = p.usual
		}
		if p.said == "." { // the answer itself is the list
			continue
		}
		*p.to = strings.Split(p.said, ".")
		for _, part := range *p.to {
			if part == "" {
				return fmt.Errorf("%q is no path; write names with dots between them, such as data.items", p.said)
			}
		}
	}
	return nil
}

// headerName says whether a name is that of a header which may carry a key.
func headerName(name string) bool {
	return name != "" && !strings.EqualFold(name, "Host") && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	})
}

// fill puts a query into a template.
func fill(template string, a ask, escape func(string) string) string {
	return strings.NewReplacer("{query}", escape(a.text), "{page}", strconv.Itoa(a.page+1),
		"{count}", strconv.Itoa(asked)).Replace(template)
}

// asked is how many hits a request asks for: more than are shown, since some are filtered.
const asked = 20

func inJSON(text string) string {
	b, _ := json.Marshal(text) // of a string, so it cannot fail
	return string(b[1 : len(b)-1])
}

// request makes the request without the key.
func (e *Engine) request(a ask) (*http.Request, error) {
	at, body := *e.at, ""
	values := url.Values{}
	switch e.o.Kind {
	case SearXNG:
		values = url.Values{"q": {a.text}, "format": {"json"}, "pageno": {strconv.Itoa(a.page + 1)}}
	case Brave:
		values = url.Values{"q": {a.text}, "count": {strconv.Itoa(asked)}, "offset": {strconv.Itoa(a.page)}}
	case Tavily:
		b, err := json.Marshal(tavilyAsk{a.text, asked, a.allowed, a.blocked})
		if err != nil {
			return nil, err
		}
		body = string(b)
	case Template:
		u, err := url.Parse(fill(e.o.URL, a, url.QueryEscape))
		if err != nil || u.Host != e.at.Host {
			return nil, errors.New("the query does not fit into the template")
		}
		at, body = *u, fill(e.o.Body, a, inJSON)
	}
	if e.o.Kind != Template {
		at.RawQuery = values.Encode()
	}
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, at.String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	agent := e.o.UserAgent
	if agent == "" {
		agent = "codehand"
	}
	req.Header.Set("User-Agent", agent)
	return req, nil
}

type tavilyAsk struct {
	Query   string   `json:"query"`
	Max     int      `json:"max_results"`
	Include []Domain `json:"include_domains,omitempty"`
	Exclude []Domain `json:"exclude_domains,omitempty"`
}
