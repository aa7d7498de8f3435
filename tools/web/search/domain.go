package search

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"codehand/tools/web/guard"
)

// A Domain is a host with all below it, in the one form of guard.Host.
type Domain string

// ParseDomain reads `example.com`; `*.example.com` means the same. Case, a final dot and spellings of IDNA do not
// count. The error says what to write.
func ParseDomain(text string) (Domain, error) {
	name := strings.TrimPrefix(strings.TrimSpace(text), "*.")
	if strings.ContainsAny(name, "/?#@:*") {
		return "", errors.New("write only the host, such as example.com")
	}
	host, err := guard.Host(name)
	if err != nil {
		return "", fmt.Errorf("is no host name: %w", err)
	}
	return Domain(host), nil
}

// covers says whether a host, as guard.Host returns it, is d or below d. Whole labels are compared.
func (d Domain) covers(host string) bool {
	return host == string(d) || strings.HasSuffix(host, "."+string(d))
}

// A collected list is the hits that may be shown, by the request that they came from.
type collected struct {
	hits []Hit
	seen map[string]bool
	runs []int // where the hits of each request begin
}

// add takes the hits that the query wants, and none twice. It says whether any has not come before.
func (c *collected) add(hits []Hit, q Query) (fresh bool) {
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.runs = append(c.runs, len(c.hits))
	for _, h := range hits {
		host := hostOf(h.URL)
		if host == "" || c.seen[h.URL] {
			continue
		}
		c.seen[h.URL], fresh = true, true
		if wanted(host, q) {
			c.hits = append(c.hits, h)
		}
	}
	return fresh
}

// best returns the first hits of each request by turns, so that no part of a list of domains hides the others.
func (c *collected) best() []Hit {
	var all []Hit
	for rank := 0; len(all) < min(MaxHits, len(c.hits)); rank++ {
		for i, from := range c.runs {
			to := len(c.hits)
			if i+1 < len(c.runs) {
				to = c.runs[i+1]
			}
			if from+rank < to && len(all) < MaxHits {
				all = append(all, c.hits[from+rank])
			}
		}
	}
	return all
}

func wanted(host string, q Query) bool {
	for _, d := range q.Blocked {
		if d.covers(host) {
			return false
		}
	}
	if len(q.Allowed) == 0 {
		return true
	}
	for _, d := range q.Allowed {
		if d.covers(host) {
			return true
		}
	}
	return false
}

// hostOf returns the host of a hit in its one form; "": the hit is no page that web_fetch could fetch, or its address
// hides something.
func hostOf(link string) string {
	if len(link) > maxLink || strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return ""
	}
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" {
		return ""
	}
	name := u.Host
	if port := u.Port(); port != "" {
		name = strings.TrimSuffix(name, ":"+port)
	}
	host, err := guard.Host(name)
	if err != nil {
		return ""
	}
	return host
}
