package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codehand/tools/permission"
	"codehand/tools/web/guard"
)

// Web is how pages are fetched.
type Web struct {
	Enabled     bool
	TimeoutMS   int
	Upgrade     bool
	UserAgent   string // "": the program and its version
	Preapproved []guard.Domain
	Proxy       string // of the operator; "": none
	CAFile      string // absolute; "": none
	Ports       []uint16
	Sampling    bool // the client's model may answer questions about pages
	Search      WebSearch
}

const (
	preapprovedKey = "web.preapproved"
	caFileKey      = "web.ca_file"
)

// webTable is about fetching pages.
func webTable(c *Config) []setting {
	w := &c.Web
	return []setting{
		{"web.enabled", "whether web_fetch exists", narrower, toggle{&w.Enabled}},
		{"web.timeout_ms", "most milliseconds for one page, with redirects", narrower,
			number{&w.TimeoutMS, second, 45 * second, false}},
		{"web.upgrade", "ask for http addresses by https first", operatorOnly, toggle{&w.Upgrade}},
		{"web.user_agent", "what web_fetch says that it is; empty: codehand and its version", operatorOnly,
			term{&w.UserAgent, readAgent}},
		{preapprovedKey, "hosts that are no question of web_fetch, where new ones are: go.dev, or *.python.org for " +
			"all below; serve defaults to none", operatorOnly, hostNames{domains{&w.Preapproved}}},
		{"web.proxy", "HTTP or SOCKS proxy that all pages go through; it must itself refuse private addresses, " +
			"because names are looked up there", operatorOnly, term{&w.Proxy, readProxy}},
		{caFileKey, "file with certificates (PEM) to trust besides those of the system", operatorOnly,
			term{&w.CAFile, absolute}},
		{"web.prompt_sampling", "whether the client's own model answers the prompt of web_fetch about the page, if " +
			"the client offers it (sampling)", operatorOnly, toggle{&w.Sampling}},
		{"web.ports", "ports that an address may name besides 80 and 443", operatorOnly, portList{&w.Ports}},
	}
}

// documentation are hosts on which only their owners publish, and which have what programmers look up.
const documentation = "docs.python.org go.dev pkg.go.dev doc.rust-lang.org docs.rs " +
	"developer.mozilla.org nodejs.org www.typescriptlang.org react.dev docs.oracle.com " +
	"learn.microsoft.com en.cppreference.com kubernetes.io docs.docker.com www.postgresql.org www.sqlite.org " +
	"git-scm.com man7.org www.rfc-editor.org datatracker.ietf.org www.w3.org html.spec.whatwg.org " +
	"docs.djangoproject.com modelcontextprotocol.io"

// preapproved are the default of web.preapproved, read once: Load makes several Configs.
var preapproved = sync.OnceValue(func() (all []guard.Domain) {
	for host := range strings.FieldsSeq(documentation) {
		d, _ := guard.ParseDomain(host) // a test reads them all
		all = append(all, d)
	}
	return all
})

func defaultWeb() Web {
	return Web{
		Enabled: true, TimeoutMS: 30 * second, Upgrade: true, Preapproved: slices.Clone(preapproved()),
		Search: WebSearch{Kind: searchOff},
	}
}

// PreapprovedRules are the rules that web.preapproved stands for.
func (c Config) PreapprovedRules() (rules []permission.Rule) {
	for _, d := range c.Web.Preapproved {
		rules = append(rules,
			permission.Rule{Text: "WebFetch(domain:" + d.String() + ")", Origin: c.Origin(preapprovedKey)})
	}
	return rules
}

// WebRoots are the certificates to trust; nil: those of the system alone. The error is about the file.
func (c Config) WebRoots() (*x509.CertPool, error) {
	if c.Web.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.Web.CAFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", caFileKey, err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM form", caFileKey, c.Web.CAFile)
	}
	return roots, nil
}

// hostNames are domains without ports.
type hostNames struct{ domains }

func (v hostNames) set(in input) error {
	was := *v.p
	if err := v.domains.set(in); err != nil {
		return err
	}
	if i := slices.IndexFunc(*v.p, func(d guard.Domain) bool { return d.Port() != 0 }); i >= 0 {
		err := fmt.Errorf("%s: write the host without a port", (*v.p)[i])
		*v.p = was
		return err
	}
	return nil
}

// readAgent reads what a client calls itself.
func readAgent(s string, _ input) (string, error) {
	if len(s) > 200 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errors.New("must be at most 200 printable characters of ASCII")
	}
	return s, nil
}

// readProxy reads the address of a proxy. A password would stand in the list of settings.
func readProxy(s string, _ input) (string, error) {
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		return "", errors.New("must be like http://proxy.example:3128, https://… or socks5://…")
	case u.User != nil:
		return "", errors.New("must not contain a user name or password")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("must end behind the port")
	}
	return u.Scheme + "://" + u.Host, nil
}

// portList is a list of ports, of a file as numbers or texts.
type portList struct{ p *[]uint16 }

func (v portList) set(in input) error {
	if raw, ok := in.raw.([]any); ok {
		texts := make([]any, len(raw))
		for i, e := range raw {
			switch e.(type) {
			case string, int64, float64:
				texts[i] = fmt.Sprint(e)
			default:
				return errors.New("must be a list of ports, such as [8443]")
			}
		}
		in.raw = texts
	}
	list, bad := each(in, func(s string, _ input) (uint16, error) {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return 0, fmt.Errorf("%q: must be a port from 1 to 65535", s)
		}
		return uint16(n), nil
	})
	if len(bad) > 0 {
		return bad
	}
	*v.p = list
	return nil
}

func (v portList) text() string {
	texts := make([]string, len(*v.p))
	for i, n := range *v.p {
		texts[i] = strconv.Itoa(int(n))
	}
	return strings.Join(texts, ",")
}
