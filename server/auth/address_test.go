package auth

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestClientIP(t *testing.T) {
	t.Parallel()
	p := &Porter{o: Options{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("127.0.0.1/32")}}}
	for _, c := range []struct {
		remote  string
		forward []string
		want    string // "": none
	}{
		{"192.0.2.7:4711", nil, "192.0.2.7"},
		{"192.0.2.7:4711", []string{"1.2.3.4"}, "192.0.2.7"}, // any client can send the header
		{"[2001:db8::1]:80", nil, "2001:db8::1"},
		{"[::ffff:192.0.2.7]:80", nil, "192.0.2.7"},
		{"[fe80::1%eth0]:80", nil, "fe80::1"},
		{"@", nil, ""}, {"", []string{"1.2.3.4"}, ""}, {"/run/x.sock", nil, ""}, {"@17", nil, ""},
		{"10.0.0.1:1", nil, "10.0.0.1"},
		{"10.0.0.1:1", []string{"1.2.3.4"}, "1.2.3.4"},
		{"[::ffff:10.0.0.1]:1", []string{"1.2.3.4"}, "1.2.3.4"},
		{"10.0.0.1:1", []string{"6.6.6.6, 1.2.3.4"}, "1.2.3.4"}, // the client wrote the first one
		{"10.0.0.1:1", []string{"6.6.6.6", "1.2.3.4"}, "1.2.3.4"},
		{"10.0.0.1:1", []string{"6.6.6.6, 1.2.3.4, 10.0.0.2,fd00::1"}, "1.2.3.4"},
		{"10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"10.0.0.1:1", []string{"1.2.3.4, nonsense"}, "10.0.0.1"},
		{"10.0.0.1:1", []string{"1.2.3.4, nonsense, 10.0.0.2"}, "10.0.0.2"},
		{"10.0.0.1:1", []string{""}, "10.0.0.1"},
		{"10.0.0.1:1", []string{"1.2.3.4:5678"}, "1.2.3.4"},
		{"10.0.0.1:1", []string{"[2001:db8::1]:5678"}, "2001:db8::1"},
		{"10.0.0.1:1", []string{"2001:db8::1"}, "2001:db8::1"},
		{"10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
	} {
		got := p.ClientIP(&http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.forward}})
		var want netip.Addr
		if c.want != "" {
			want = netip.MustParseAddr(c.want)
		}
		if got != want {
			t.Errorf("%s, %q: got %v, want %v", c.remote, c.forward, got, want)
		}
	}
}
