package permission

import (
	"errors"
	"fmt"
	"strings"
)

// A hostPattern is the pattern of a rule about hosts.
type hostPattern struct {
	all    bool
	below  bool    // the first label was `*`: any number of labels, at least one, stand before the others
	labels []*glob // each within one label
}

// readDomain reads `domain:HOST`.
func (r *rule) readDomain(spec string) error {
	host, ok := strings.CutPrefix(spec, "domain:")
	if !ok {
		return fmt.Errorf("want %s(domain:HOST)", r.name)
	}
	p := &hostPattern{}
	host = plainHost(host)
	switch {
	case host == "*":
		p.all = true
		r.host = p
		return nil
	case host == "":
		return errors.New("it names no host")
	}
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', strings.IndexByte("-_.*", c) >= 0:
		case strings.IndexByte("[]:", c) >= 0 && strings.HasPrefix(host, "["):
		case c >= 0x80:
			return errors.New("write the host in letters of ASCII (xn--…), as it is asked for")
		default:
			return fmt.Errorf("it can never match: a host has no %q; leave out scheme, port and path", string(c))
		}
	}
	labels := strings.Split(host, ".")
	if labels[0] == "*" {
		p.below, labels = true, labels[1:]
	}
	for _, label := range labels {
		if label == "" {
			return errors.New("it can never match: a label of the host is empty")
		}
		p.labels = append(p.labels, newGlob(label))
	}
	r.host = p
	return nil
}

// plainHost is a host without letter case and without its final dot.
func plainHost(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// match says whether the pattern covers a host, which plainHost has seen.
func (p *hostPattern) match(host string) bool {
	if p.all || host == "" {
		return p.all
	}
	for i := len(p.labels) - 1; i >= 0; i-- {
		at := strings.LastIndexByte(host, '.')
		if !p.labels[i].match(host[at+1:]) {
			return false
		}
		if at < 0 {
			return i == 0 && !p.below
		}
		host = host[:at]
	}
	return p.below && host != ""
}
