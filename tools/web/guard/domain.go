package guard

import (
	"fmt"
	"strconv"
	"strings"
)

// A Domain is an entry of a list of allowed hosts. Domains are equal if they mean the same.
type Domain struct {
	name  string // as Host returns it
	below bool   // all hosts below name, at any depth, and not name itself
	port  uint16 // 0: 80 and 443
}

// ParseDomain reads `example.com`, `*.npmjs.org` or `example.com:8443`. The error is about what a person wrote in a
// configuration.
func ParseDomain(text string) (Domain, error) {
	wrong := func(why string) (Domain, error) { return Domain{}, fmt.Errorf("%q: %s", text, why) }
	if strings.ContainsAny(text, "/@?#") {
		return wrong("write only the host, as example.com, *.example.com or example.com:8443")
	}
	var d Domain
	name, port, hasPort := strings.Cut(text, ":")
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return wrong("write a host name, and behind a colon its port if it is not 80 or 443")
		}
		d.port = uint16(n)
	}
	name, d.below = strings.CutPrefix(name, "*.")
	if strings.Contains(name, "*") {
		return wrong("a star can only stand for all names below a host, as in *.example.com")
	}
	var err error
	if d.name, err = Host(name); err != nil {
		return wrong("is not a host name")
	}
	if _, ok := literal(d.name); ok {
		return wrong("is an address; only host names can be allowed")
	}
	// A name of a single label is such a name, so *.com is refused, too.
	if err := New(Options{}).Host(d.name); err != nil {
		return wrong("is a name of this machine or of a local network, or a whole top level; it is never opened")
	}
	return d, nil
}

// String returns d as ParseDomain reads it.
func (d Domain) String() string {
	text := d.name
	if d.below {
		text = "*." + text
	}
	if d.port != 0 {
		text += ":" + strconv.Itoa(int(d.port))
	}
	return text
}

// Port returns the only port that d allows; 0: it allows 80 and 443.
func (d Domain) Port() uint16 { return d.port }

// Allows says whether d allows a port of a host, which is as Host returns it. Whole labels are compared.
func (d Domain) Allows(host string, port uint16) bool {
	return port != 0 && d.covers(Domain{name: host}) && (d.port == port || d.port == 0 && usual(port))
}

// Meet returns what both d and o allow; ok is false if that is nothing.
func (d Domain) Meet(o Domain) (both Domain, ok bool) {
	switch {
	case d.covers(o):
		both = o
	case o.covers(d):
		both = d
	default:
		return Domain{}, false
	}
	both.port = max(d.port, o.port)
	return both, d.port == o.port || min(d.port, o.port) == 0 && usual(both.port)
}

// covers says whether d allows every name that o allows.
func (d Domain) covers(o Domain) bool {
	return d.below && strings.HasSuffix(o.name, "."+d.name) || d.below == o.below && d.name == o.name
}

func usual(port uint16) bool { return port == 80 || port == 443 }
