package blackbox

import (
	"cmp"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"
)

// A person sits in front of a browser without script: it follows redirects and fills in forms. It is safe for
// concurrent use only if each walk has a person of its own.
type person struct {
	t        testing.TB
	origin   string // of the server; what leaves it is the client's
	password string
	fill     func(f *webForm) // chooses more than the defaults of the form that approves; nil: nothing
	button   *regexp.Regexp

	client *http.Client

	mu    sync.Mutex
	pages []page // all that was shown, in order
	name  string // what it signs in as; "": the page asks for none
}

// A page is an answer that the browser saw.
type page struct {
	method, url string
	status      int
	header      http.Header
	body        string
}

// A webForm is a form of a page, with the values that it would send as it stands.
type webForm struct {
	method, action string
	values         url.Values
	kinds          map[string]string   // type by name
	options        map[string][]string // what may be chosen by name
	buttons        []button
}

type button struct{ name, value, text, action string }

// allows is the button that approves, and refuses the one that does not.
var (
	allows  = regexp.MustCompile(`(?i)\b(allow|approve|authori[sz]e|yes|connect)\b`)
	signsIn = regexp.MustCompile(`(?i)sign in|log in|continue`)
)

func newPerson(t testing.TB, origin, password string) *person {
	jar, err := cookiejar.New(nil)
	must(t, err)
	p := &person{t: t, origin: origin, password: password, button: allows}
	p.client = &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return p
}

// send makes one request as a browser does that was on the page from. The answer is kept.
func (p *person) send(method, target, from string, values url.Values) page {
	p.t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(values.Encode())
	} else if values != nil {
		u, err := url.Parse(target)
		must(p.t, err)
		u.RawQuery = values.Encode()
		target = u.String()
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, target, body)
	must(p.t, err)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("Sec-Fetch-Dest", "document")
	r.Header.Set("Sec-Fetch-Site", "none")
	if from != "" {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", p.origin)
	}
	resp, err := p.client.Do(r)
	must(p.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(p.t, err)
	got := page{method: method, url: target, status: resp.StatusCode, header: resp.Header, body: string(text)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages = append(p.pages, got)
	return got
}

// walk opens start and does what the pages want, until the browser is sent elsewhere. It returns that URL.
func (p *person) walk(start string) string {
	p.t.Helper()
	last := p.send(http.MethodGet, start, "", nil)
	for range 16 {
		if last.status >= 300 && last.status < 400 {
			next := p.resolve(last.url, last.header.Get("Location"))
			if !strings.HasPrefix(next, p.origin+"/") {
				return next
			}
			last = p.send(http.MethodGet, next, last.url, nil)
			continue
		}
		if last.status != http.StatusOK {
			p.t.Fatalf("%s %s: %d\n%.3000s", last.method, last.url, last.status, last.body)
		}
		f, b := p.next(last)
		for k, v := range map[string]string{b.name: b.value} {
			if k != "" {
				f.values.Set(k, v)
			}
		}
		last = p.send(f.method, p.resolve(last.url, cmp.Or(b.action, f.action)), last.url, f.values)
	}
	p.t.Fatalf("the pages never end; the last is %s\n%.3000s", last.url, last.body)
	return ""
}

// next is the form of a page that leads on, and the button to press.
func (p *person) next(at page) (*webForm, button) {
	p.t.Helper()
	forms := formsOf(p.t, at.body)
	for _, f := range forms {
		for name, kind := range f.kinds {
			if kind != "password" {
				continue
			}
			f.values.Set(name, p.password)
			if p.name != "" {
				f.values.Set("name", p.name)
			}
			i := slices.IndexFunc(f.buttons, func(b button) bool { return signsIn.MatchString(b.text) })
			if i < 0 {
				i = 0
			}
			if len(f.buttons) == 0 {
				return f, button{}
			}
			return f, f.buttons[i]
		}
	}
	for _, f := range forms {
		for _, b := range f.buttons {
			if p.button.MatchString(b.text + " " + b.value) {
				if p.fill != nil {
					p.fill(f)
				}
				return f, b
			}
		}
	}
	p.t.Fatalf("no form of %s leads on:\n%.6000s", at.url, at.body)
	return nil, button{}
}

func (p *person) resolve(base, ref string) string {
	p.t.Helper()
	b, err := url.Parse(base)
	must(p.t, err)
	u, err := b.Parse(ref)
	must(p.t, err)
	return u.String()
}

// formsOf reads the forms of a page.
func formsOf(t testing.TB, body string) (forms []*webForm) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	must(t, err)
	var walk func(n *html.Node, in *webForm)
	walk = func(n *html.Node, in *webForm) {
		if n.Type == html.ElementNode {
			switch {
			case n.Data == "form":
				in = &webForm{method: strings.ToUpper(cmp.Or(attr(n, "method"), "get")), action: attr(n, "action"), values: url.Values{},
					kinds: map[string]string{}, options: map[string][]string{}}
				forms = append(forms, in)
			case in == nil || has(n, "disabled"):
			case n.Data == "input":
				in.input(n)
			case n.Data == "button" && cmp.Or(attr(n, "type"), "submit") == "submit":
				in.buttons = append(in.buttons, button{attr(n, "name"), attr(n, "value"), textOf(n), attr(n, "formaction")})
			case n.Data == "select":
				in.selects(n)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, in)
		}
	}
	walk(doc, nil)
	return forms
}

func (f *webForm) input(n *html.Node) {
	name, kind := attr(n, "name"), cmp.Or(strings.ToLower(attr(n, "type")), "text")
	value := attr(n, "value")
	switch kind {
	case "submit":
		f.buttons = append(f.buttons, button{name, value, value, attr(n, "formaction")})
	case "button", "reset", "image":
	case "radio", "checkbox":
		f.kinds[name] = kind
		value = cmp.Or(value, "on")
		f.options[name] = append(f.options[name], value)
		if has(n, "checked") {
			f.values.Add(name, value)
		}
	default:
		if name != "" {
			f.kinds[name] = kind
			f.values.Add(name, value)
		}
	}
}

func (f *webForm) selects(n *html.Node) {
	name, chosen := attr(n, "name"), ""
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Data != "option" {
			continue
		}
		value := cmp.Or(attr(c, "value"), textOf(c))
		f.options[name] = append(f.options[name], value)
		if chosen == "" || has(c, "selected") {
			chosen = value
		}
	}
	f.kinds[name] = "select"
	f.values.Set(name, chosen)
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
