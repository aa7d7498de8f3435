package guard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// private are addresses that no default opens: the first and last of each range, and what clouds put there.
var private = strings.Fields(`
0.0.0.0 0.255.255.255 10.0.0.0 10.1.2.3 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.0.0.53
127.255.255.255 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192
192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.168.255.255 192.175.48.1 198.18.0.1 198.19.255.255
198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
:: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:7f00:1 64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::a00:1 100::1
2001::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::1 2620:4f:8000::1 3fff::1 4000::1 5f00::1 fc00::1
fd00::1 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 fe80::1 fe80::1%1 fec0::1 ff02::1`)

// public are addresses on the Internet, several of them beside a range that is none.
var public = strings.Fields(`
1.0.0.1 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 168.63.129.15
168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.1 192.167.255.255 192.169.0.0 198.17.255.255
198.20.0.0 223.255.255.255 2003::1 2400:cb00::1 2606:4700:4700::1111 2a00:1450:4001:800::200e 2c0f::1`)

// dialed is what Control says about one address.
func dialed(g *Guard, address, port string) error {
	network := "tcp4"
	if strings.Contains(address, ":") {
		network = "tcp6"
	}
	return g.Control(network, net.JoinHostPort(address, port), nil)
}

// A page or a package that a model asks for is on the Internet, never on this machine or in its network (SEC-30).
func TestSEC30Addresses(t *testing.T) {
	t.Parallel()
	g := New(Options{})
	if len(private) < 47 {
		t.Errorf("%d addresses, want at least 47", len(private))
	}
	for _, a := range private {
		if err := dialed(g, a, "443"); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v, want it blocked", a, err)
		}
	}
	for _, a := range public {
		if err := dialed(g, a, "80"); err != nil {
			t.Errorf("%s: %v, want it open", a, err)
		}
	}
	for _, c := range [][2]string{
		{"tcp4", "1.1.1.1:22"}, {"tcp", "1.1.1.1:443"}, {"udp4", "1.1.1.1:443"}, {"unix", "/run/docker.sock"}, {"tcp4", "1.1.1.1"},
		{"tcp4", "one.one:443"}, {"tcp4", ""},
	} {
		if err := g.Control(c[0], c[1], nil); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s %s: %v, want it blocked", c[0], c[1], err)
		}
	}
}

// A range that the operator opens is open; the ranges inside that no operator can open stay closed.
func TestOpened(t *testing.T) {
	t.Parallel()
	ranges := func(text string) (list []netip.Prefix) {
		for f := range strings.FieldsSeq(text) {
			list = append(list, netip.MustParsePrefix(f))
		}
		return list
	}
	all := Options{Private: ranges("10.1.0.0/16 100.64.0.0/10 192.0.0.0/8 168.0.0.0/8 127.0.0.0/7 0.0.0.0/8 fd00::/8 ::/7 64:ff9b::/96 2000::/7")}
	for _, c := range []struct {
		o            Options
		open, closed string
	}{
		{Options{Private: ranges("10.1.0.0/16 fd12:3456::/32")}, "10.1.0.1 10.1.255.255 fd12:3456::1 1.1.1.1 2003::1", "10.0.255.255 10.2.0.0 192.168.0.1 fd12:3457::1 ::ffff:10.1.0.1"},
		{all, "10.1.0.1 100.64.0.1 192.168.1.1 fd00::1 fd00:ec3::1",
			"127.0.0.1 0.0.0.0 100.100.100.200 192.0.0.192 168.63.129.16 ::1 :: ::ffff:127.0.0.1 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 64:ff9b::7f00:1 64:ff9b::808:808 2002:7f00:1::1 2001::1 169.254.169.254"},
		{Options{NAT64: true}, "64:ff9b::808:808 1.1.1.1", "64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::a00:1 64:ff9b::a83f:8110 64:ff9b::ffff:808:808 64:ff9b:1::808:808"},
		{Options{NAT64: true, Private: ranges("10.0.0.0/8")}, "64:ff9b::a00:1", "64:ff9b::7f00:1 64:ff9b::c0a8:1"},
	} {
		g := New(c.o)
		for a := range strings.FieldsSeq(c.open) {
			if err := dialed(g, a, "443"); err != nil {
				t.Errorf("%+v: %s: %v, want it open", c.o, a, err)
			}
		}
		for a := range strings.FieldsSeq(c.closed) {
			if err := dialed(g, a, "443"); !errors.Is(err, ErrBlocked) {
				t.Errorf("%+v: %s: %v, want it blocked", c.o, a, err)
			}
		}
	}
	if err := dialed(New(Options{Ports: []uint16{8443}}), "1.1.1.1", "8443"); err != nil {
		t.Errorf("a port that the operator opened: %v", err)
	}
}

func TestCheckPrivate(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"10.1.0.0/16": true, "10.0.0.0/8": true, "192.168.1.1/32": true, "100.64.0.0/10": true, "fd00::/8": true, "fc00::/7": true,
		"127.0.0.0/8": false, "127.0.0.1/32": false, "169.254.0.0/16": false, "169.254.169.254/32": false, "168.63.129.16/32": false,
		"0.0.0.0/8": false, "0.0.0.0/0": false, "::/0": false, "::1/128": false, "fd00:ec2::254/128": false, "fd00:ec2::/32": false,
		"fe80::/10": false, "2002::/16": false, "10.0.0.0/7": false, "64:ff9b::/96": false,
	} {
		if err := CheckPrivate(netip.MustParsePrefix(text)); (err == nil) != ok {
			t.Errorf("%s: %v, want it accepted: %v", text, err, ok)
		}
	}
}

// A nameserver answers each query about any name with the next set of its answers, over UDP on loopback.
type nameserver struct {
	mu      sync.Mutex
	answers [][]string
	address string
}

// next returns the answers for the next query; the last ones are repeated.
func (n *nameserver) next() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.answers[0]
	if len(n.answers) > 1 {
		n.answers = n.answers[1:]
	}
	return now
}

func newNameserver(t *testing.T, answers ...[]string) *nameserver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nameserver{answers: answers, address: conn.LocalAddr().String()}
	var served sync.WaitGroup
	served.Go(func() {
		b := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:size]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			q := m.Questions[0]
			if q.Type == dnsmessage.TypeA {
				for _, a := range n.next() {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
						Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
					})
				}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	})
	t.Cleanup(func() { conn.Close(); served.Wait() })
	return n
}

// A name server that answers with a public address first, and with a private one when the connection is made, or with
// both at once, gains nothing: what counts is the address that is dialed (SEC-30).
func TestSEC30Rebinding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answers [][]string
		want    []string // what each dial may have reached
	}{
		{[][]string{{"93.184.216.34"}, {"127.0.0.1"}, {"169.254.169.254"}, {"10.0.0.1"}}, []string{"93.184.216.34", "", "", ""}},
		{[][]string{{"127.0.0.1", "1.1.1.1", "10.0.0.1", "8.8.8.8", "168.63.129.16"}}, []string{"1.1.1.1 8.8.8.8"}},
		{[][]string{{"192.168.1.1", "127.0.0.1"}}, []string{""}},
	} {
		n := newNameserver(t, c.answers...)
		g := New(Options{})
		errOpen := errors.New("would be dialed")
		for _, want := range c.want {
			var mu sync.Mutex
			var open []string
			d := net.Dialer{
				Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "udp4", n.address)
				}},
				Control: func(network, address string, c syscall.RawConn) error {
					if err := g.Control(network, address, c); err != nil {
						return err
					}
					mu.Lock()
					defer mu.Unlock()
					host, _, _ := net.SplitHostPort(address)
					open = append(open, host)
					return errOpen
				},
			}
			_, err := d.DialContext(t.Context(), "tcp", "rebind.example.com.:443")
			slices.Sort(open)
			if got := strings.Join(open, " "); got != want || !errors.Is(err, errOpen) && !errors.Is(err, ErrBlocked) {
				t.Errorf("%v: dialed %q with %v, want %q", c.answers, got, err, want)
			}
		}
	}
}
