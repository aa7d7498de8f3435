package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// metadata are the addresses at which clouds and their machines hand out credentials, keys or configuration.
var metadata = map[string]string{
	"AWS, Google, Azure, Oracle, Hetzner, DigitalOcean, OpenStack": "169.254.169.254", "AWS containers": "169.254.170.2", "AWS pods": "169.254.170.23",
	"AWS time": "169.254.169.123", "AWS by IPv6": "fd00:ec2::254", "AWS pods by IPv6": "fd00:ec2::23", "Google by IPv6": "fd20:ce::254",
	"Azure's wire server": "168.63.129.16", "Alibaba": "100.100.100.200", "Alibaba by its other address": "100.100.2.136", "Tencent": "169.254.0.23", "Oracle": "192.0.0.192",
	"Oracle by IPv6": "fd00:c1::a9fe:a9fe", "Scaleway": "169.254.42.42", "Scaleway by IPv6": "fd00:42::42", "OpenStack by IPv6": "fe80::a9fe:a9fe",
	"Kubernetes, usually": "10.96.0.1", "Docker's host": "172.17.0.1", "Docker's name server": "127.0.0.11", "systemd's name server": "127.0.0.53", "libvirt's host": "192.168.122.1",
	"a machine in its emulator": "10.0.2.2",
}

// spellings are the ways in which resolvers, browsers and libraries write one IPv4 address.
func spellings(a netip.Addr) map[string]string {
	b := a.As4()
	whole := uint64(b[0])<<24 | uint64(b[1])<<16 | uint64(b[2])<<8 | uint64(b[3])
	two, three := uint64(b[2])<<8|uint64(b[3]), whole&0xffffff
	wide := func(text string, from, to rune) string {
		return strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return from + (r - '0')
			}
			if r == '.' {
				return to
			}
			return r
		}, text)
	}
	circled := func(text string) string {
		return strings.NewReplacer("0", "⓪", "1", "①", "2", "②", "3", "③", "4", "④", "5", "⑤", "6", "⑥", "7", "⑦", "8", "⑧", "9", "⑨").Replace(text)
	}
	escaped := func(text string) (out string) {
		for i := range len(text) {
			out += fmt.Sprintf("%%%02x", text[i])
		}
		return out
	}
	plain := a.String()
	forms := map[string]string{
		"plain": plain, "final dot": plain + ".", "two final dots": plain + "..", "decimal": strconv.FormatUint(whole, 10), "decimal that overflows": strconv.FormatUint(whole+1<<32, 10),
		"hexadecimal": fmt.Sprintf("0x%x", whole), "upper hexadecimal": fmt.Sprintf("0X%X", whole), "octal": fmt.Sprintf("0%o", whole), "long octal": fmt.Sprintf("000%o", whole),
		"hexadecimal parts": fmt.Sprintf("0x%x.0x%x.0x%x.0x%x", b[0], b[1], b[2], b[3]), "octal parts": fmt.Sprintf("0%o.0%o.0%o.0%o", b[0], b[1], b[2], b[3]),
		"one octal part": fmt.Sprintf("0%o.%d.%d.%d", b[0], b[1], b[2], b[3]), "one hexadecimal part": fmt.Sprintf("%d.%d.%d.0x%x", b[0], b[1], b[2], b[3]),
		"leading zeros": fmt.Sprintf("%03d.%03d.%03d.%03d0", b[0], b[1], b[2], b[3]), "padded": fmt.Sprintf("0%d.0%d.0%d.0%d", b[0], b[1], b[2], b[3]),
		"two parts": fmt.Sprintf("%d.%d", b[0], three), "three parts": fmt.Sprintf("%d.%d.%d", b[0], b[1], two), "two hexadecimal parts": fmt.Sprintf("0x%x.0x%x", b[0], three),
		"mixed parts": fmt.Sprintf("%d.0x%x.0%o", b[0], b[1], two), "parts that overflow": fmt.Sprintf("%d.%d.%d.%d", int(b[0])+256, b[1], b[2], b[3]), "five parts": plain + ".0",
		"full width": wide(plain, '０', '．'), "ideographic full stop": wide(plain, '0', '。'), "half width full stop": wide(plain, '0', '｡'), "mathematical digits": wide(plain, '𝟎', '.'),
		"double-struck digits": wide(plain, '𝟘', '.'), "circled": circled(plain), "Arabic digits": wide(plain, '٠', '.'), "Devanagari digits": wide(plain, '०', '.'), "superscript": strings.NewReplacer("1", "¹", "2", "²").Replace(plain) + ".",
		"escaped": escaped(plain), "escaped dots": strings.ReplaceAll(plain, ".", "%2e"), "escaped twice": strings.ReplaceAll(plain, ".", "%252e"), "zero width": strings.Replace(plain, ".", ".\u200b", 1),
		"soft hyphen": strings.Replace(plain, ".", "\u00ad.", 1), "tab": strings.Replace(plain, ".", "\t.", 1), "line end": plain + "\n", "NUL": plain + "\x00.example.com", "escaped NUL": plain + "%00.example.com",
		"escaped slash": plain + "%2f.example.com", "escaped at": "example.com%40" + plain, "user": "example.com@" + plain, "user and password": "a:b@" + plain, "empty user": "@" + plain,
		"backslash": plain + "\\@example.com", "backslash before": "example.com\\@" + plain, "port of a service": plain + ":6379", "port zero": plain + ":0", "port with a sign": plain + ":+80",
		"empty port": plain + ":", "port with zeros": plain + ":080", "brackets": "[" + plain + "]", "mapped": "[::ffff:" + plain + "]", "mapped in hexadecimal": fmt.Sprintf("[::ffff:%02x%02x:%02x%02x]", b[0], b[1], b[2], b[3]),
		"mapped in full": fmt.Sprintf("[0:0:0:0:0:ffff:%02x%02x:%02x%02x]", b[0], b[1], b[2], b[3]), "compatible": "[::" + plain + "]", "translated": "[::ffff:0:" + plain + "]", "NAT64": "[64:ff9b::" + plain + "]",
		"local NAT64": fmt.Sprintf("[64:ff9b:1::%02x%02x:%02x%02x]", b[0], b[1], b[2], b[3]), "6to4": fmt.Sprintf("[2002:%02x%02x:%02x%02x::1]", b[0], b[1], b[2], b[3]),
		"Teredo": fmt.Sprintf("[2001:0:%02x%02x:%02x%02x::]", b[0], b[1], b[2], b[3]), "Teredo's client": fmt.Sprintf("[2001::%02x%02x:%02x%02x]", ^b[0], ^b[1], ^b[2], ^b[3]),
		"zone": "[::ffff:" + plain + "%25eth0]", "plain zone": "[fe80::1%lo]", "IPv6 without brackets": "::ffff:" + plain, "half a bracket": "[::ffff:" + plain,
	}
	return forms
}

// No spelling of an address of this machine, of its network or of its cloud is asked for, whatever some program would
// read in it: each is no URL, or the address that is blocked before a look-up and again when it is dialed (SEC-30).
func TestSEC30Attacks(t *testing.T) {
	t.Parallel()
	addresses := slices.Clone(private)
	for _, a := range metadata {
		if !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	g := New(Options{})
	kinds, tried := map[string]bool{}, 0
	refused := func(kind, text string) {
		t.Helper()
		kinds[kind] = true
		tried++
		u, err := URL(text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) || u != nil {
				t.Errorf("%s: %q: %v, %v", kind, text, u, err)
			}
			return
		}
		host := strings.TrimSuffix(u.Host, ":"+u.Port())
		if err := g.Host(host); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %q is asked for as %s: %v", kind, text, u, err)
		}
	}
	for _, text := range addresses {
		if err := dialed(g, text, "443"); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s can be dialed: %v", text, err)
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			t.Fatal(err)
		}
		if a.Is6() {
			for _, scheme := range []string{"http://", "https://"} {
				refused("IPv6", scheme+"["+text+"]/")
				refused("IPv6 in full", scheme+"["+a.StringExpanded()+"]/")
				refused("IPv6 in upper case", scheme+"["+strings.ToUpper(text)+"]:443/")
			}
			continue
		}
		for kind, host := range spellings(a) {
			refused(kind, "http://"+host+"/latest/meta-data/")
			refused(kind, "HTTPS://"+host)
		}
	}
	if len(addresses) < 60 || len(kinds) < 40 {
		t.Errorf("%d addresses, %d kinds of spellings: want at least 60 and 40", len(addresses), len(kinds))
	}
	t.Logf("%d addresses in %d kinds of spellings, %d URLs: none is asked for", len(addresses), len(kinds), tried)
}

// What an operator opens opens neither this machine nor the services of its cloud, in no spelling.
func TestSEC30AttacksOnOpened(t *testing.T) {
	t.Parallel()
	open := Options{NAT64: true, Ports: []uint16{6379, 8080}}
	for _, p := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"} {
		n := netip.MustParsePrefix(p)
		if err := CheckPrivate(n); err != nil {
			t.Fatal(err)
		}
		open.Private = append(open.Private, n)
	}
	g := New(open)
	for name, text := range metadata {
		a := netip.MustParseAddr(text)
		if slices.ContainsFunc(open.Private, func(p netip.Prefix) bool { return p.Contains(a) }) && !slices.ContainsFunc(never, func(p netip.Prefix) bool { return p.Contains(a) }) {
			continue // it is an ordinary address of that network, and the operator opened it
		}
		if err := dialed(g, text, "80"); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %s can be dialed: %v", name, text, err)
		}
		if a.Is6() {
			continue
		}
		b := a.As4()
		for _, carried := range []string{
			fmt.Sprintf("64:ff9b::%02x%02x:%02x%02x", b[0], b[1], b[2], b[3]), fmt.Sprintf("::ffff:%s", text), fmt.Sprintf("2002:%02x%02x:%02x%02x::1", b[0], b[1], b[2], b[3]),
			fmt.Sprintf("64:ff9b:1::%02x%02x:%02x%02x", b[0], b[1], b[2], b[3]),
		} {
			if err := dialed(g, carried, "80"); !errors.Is(err, ErrBlocked) {
				t.Errorf("%s: %s can be dialed: %v", name, carried, err)
			}
		}
	}
}
