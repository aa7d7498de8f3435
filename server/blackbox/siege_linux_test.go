package blackbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// A siege is one attack on an endpoint, from a loopback address of its own: what one network may do at once is limited,
// and an attack must not be refused for what the one before it did.
type siege struct {
	*door
	t    *testing.T
	via  *http.Client
	from string
}

var besiegers atomic.Int64

func (d *door) besieged(t *testing.T) *siege {
	n := besiegers.Add(1)
	return d.besiegedFrom(t, fmt.Sprintf("127.0.%d.%d", 1+n/250, 1+n%250))
}

func (d *door) besiegedFrom(t *testing.T, from string) *siege {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return &siege{door: d, t: t, from: from, via: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// owner is the owner in front of a new browser, at the attacker's address.
func (x *siege) owner() *person {
	p := newPerson(x.t, x.s.url, x.password)
	p.client.Transport = x.via.Transport
	return p
}

// issued finds what no attack may get.
var issued = regexp.MustCompile(`ch[arc]_[0-9A-Za-z_-]{43,}`)

// said sends a request and says in few words what came of it: the status, and the error that it names. `back` stands
// for a redirect to the client, `page` for an answer that a person reads.
func (x *siege) said(r *http.Request) string {
	x.t.Helper()
	resp, err := x.via.Do(r)
	if err != nil {
		return "no answer: " + err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	must(x.t, err)
	return x.outcome(resp, string(body))
}

var jsonError = regexp.MustCompile(`"(?:error|code)":"([a-z_]+)"`)

func (x *siege) outcome(resp *http.Response, body string) string {
	x.t.Helper()
	location := resp.Header.Get("Location")
	if got := issued.FindString(body + " " + location); got != "" {
		x.t.Errorf("the attacker has got %s", got)
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		u, err := resp.Request.URL.Parse(location)
		must(x.t, err)
		if u.Host == x.address {
			return "to " + strings.Split(u.Path, "/")[1]
		}
		return "back " + u.Query().Get("error")
	}
	if m := jsonError.FindStringSubmatch(body); m != nil {
		return fmt.Sprintf("%d %s", resp.StatusCode, m[1])
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/") {
		return fmt.Sprintf("%d page", resp.StatusCode)
	}
	return fmt.Sprint(resp.StatusCode)
}

// get asks for a path.
func (x *siege) get(target string, header ...string) string {
	x.t.Helper()
	return x.said(x.request(http.MethodGet, target, "", header...))
}

// request makes a request; header is names and values in turn.
func (x *siege) request(method, target, body string, header ...string) *http.Request {
	x.t.Helper()
	if strings.HasPrefix(target, "/") {
		target = x.s.url + target
	}
	r, err := http.NewRequestWithContext(x.t.Context(), method, target, strings.NewReader(body))
	must(x.t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// form posts parameters.
func (x *siege) form(target string, values url.Values, header ...string) string {
	x.t.Helper()
	return x.said(x.request(http.MethodPost, target, values.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...))
}

// json posts JSON.
func (x *siege) json(target, body string, header ...string) string {
	x.t.Helper()
	return x.said(x.request(http.MethodPost, target, body, append([]string{"Content-Type", "application/json"}, header...)...))
}

// raw writes bytes to the server and says how it answers.
func (x *siege) raw(text string) string {
	x.t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(x.from)}}).DialContext(context.WithoutCancel(x.t.Context()), "tcp", x.address)
	must(x.t, err)
	defer c.Close()
	_, err = io.WriteString(c, text)
	must(x.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), x.request(http.MethodPost, "/", ""))
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16)) // as much as there is
	return x.outcome(resp, string(body))
}

// changed is a copy of values in which name has value; "-": it is not there.
func changed(values url.Values, pairs ...string) url.Values {
	all := url.Values{}
	for k, v := range values {
		all[k] = append([]string(nil), v...)
	}
	for i := 0; i < len(pairs); i += 2 {
		if all.Del(pairs[i]); pairs[i+1] != "-" {
			all.Set(pairs[i], pairs[i+1])
		}
	}
	return all
}
