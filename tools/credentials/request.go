package credentials

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// maxRequest is the most bytes of what git asks a helper, or of what a helper answers.
const maxRequest = 8 << 10

// A request is whose password git wants. Its fields have no control characters.
type request struct {
	protocol, host string // as in the URL, in lower case; host may have a port
	path, user     string // ""; git did not say
}

// hosts matches a host of a URL, with a port.
var hosts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$`)
})

// parse reads what git says to a helper: lines of key=value. What is not known is left out.
func parse(text string) (r request, err error) {
	if len(text) > maxRequest {
		return request{}, errors.New("the request is too long")
	}
	said, err := pairs(text)
	if err != nil {
		return request{}, err
	}
	r = request{protocol: strings.ToLower(said["protocol"]), host: strings.ToLower(said["host"]), path: said["path"],
		user: said["username"]}
	switch {
	case r.protocol != "https" && r.protocol != "http":
		return request{}, errors.New("only passwords for https and http are handed out")
	case !hosts().MatchString(r.host):
		return request{}, errors.New("the request names no host")
	}
	return r, nil
}

// pairs reads lines of key=value, up to the first empty one. Of two with a key the later one counts.
func pairs(text string) (map[string]string, error) {
	all := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			break
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.ContainsFunc(line, unicode.IsControl) {
			return nil, errors.New("a line is not key=value")
		}
		all[key] = value
	}
	return all, nil
}

// text is the request as git writes it.
func (r request) text() string {
	text := fmt.Sprintf("protocol=%s\nhost=%s\n", r.protocol, r.host)
	if r.path != "" {
		text += "path=" + r.path + "\n"
	}
	if r.user != "" {
		text += "username=" + r.user + "\n"
	}
	return text + "\n"
}

// site is what a person knows of the request, such as https://example.com.
func (r request) site() string { return siteOf(r.protocol, r.host) }

// Site reads what an operator writes of a host: github.com, gitlab.example:8443, or with http:// before it. The error
// says what to write.
func Site(text string) (string, error) {
	whole := text
	if !strings.Contains(text, "://") {
		whole = "https://" + text
	}
	at, err := url.Parse(strings.TrimSuffix(whole, "/"))
	found := sites([]string{whole}, nil)
	if err == nil && len(found) == 1 && *at == (url.URL{Scheme: at.Scheme, Host: at.Host}) {
		return found[0], nil
	}
	return "", fmt.Errorf("%q: write a host, as github.com, gitlab.example:8443 or http://10.0.0.7", text)
}

func siteOf(protocol, host string) string {
	return protocol + "://" + strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[protocol])
}

// sites returns the sites of URLs of remotes by http and https, each once. insteadOf rewrites beginnings, as the
// person's own configuration says; nil: it does not.
func sites(urls []string, insteadOf map[string]string) (all []string) {
	for _, u := range urls {
		at, err := url.Parse(rewritten(u, insteadOf))
		if err != nil {
			continue
		}
		protocol, host := strings.ToLower(at.Scheme), strings.ToLower(at.Host)
		if protocol != "https" && protocol != "http" || !hosts().MatchString(host) {
			continue
		}
		if site := siteOf(protocol, host); !slices.Contains(all, site) {
			all = append(all, site)
		}
	}
	return all
}

// rewritten puts what stands for the longest known beginning of a URL in its place, as git does.
func rewritten(u string, insteadOf map[string]string) string {
	longest := ""
	for from := range insteadOf {
		if strings.HasPrefix(u, from) && len(from) > len(longest) {
			longest = from
		}
	}
	if longest == "" {
		return u
	}
	return insteadOf[longest] + strings.TrimPrefix(u, longest)
}
