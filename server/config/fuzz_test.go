package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Nothing in a file is passed over: whatever the decoder finds is an entry or lies in one, and each entry has a
// place in the file.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a = 1\n", "[log]\nlevel = 'info'\n", "log = {level = 'info', size = 3}\n", "log.level.x = 1\n", "[[mcp]]\nname = 'x'\n[mcp.y]\nz = 1\n",
		"\"log.level\" = 3\n", "[principals.\"corp/1\"]\nroots = ['a',\n'b']\n", "principals.x = {roots = [], y = {z = 1}}\n", "[principals]\nx.admin = true\n",
		"[principals.groups.devs]\nadmin = true\n", "[[principals.x]]\nadmin = true\n[[principals.x]]\n", "[quota]\ndefault = {burst = 1}\n", "[http]\nlisten = [\n[1],\n{a = 1}]\n",
		"principals = 3\n", "principals = []\n", "[a.b]\n[a]\n", "log = {}\n[x]\n", "a = 2026-01-01\nb = 1e3\nc = inf\n", "[[hooks.PreToolUse]]\ncommand = []\na.b = 1\n[[hooks.PreToolUse]]\n[hooks.PreToolUse.x]\n", "hooks.A = [{b = 1}, 2]\nhooks.B = []\n[hooks.C]\nd = 1\n", "hooks = {A = [{}], b = 1}\n", "[[hooks.A.B]]\nc = 1\n", "[log]\n[log.level]\n[principals.x.roots]\n",
		"[[auth.oidc]]\nname = 'a'\nscope_map = {\"b\" = \"c\"}\n[[auth.oidc]]\n[auth.oidc.scope_map]\nx = 1\n", "auth = {oidc = [{name = 'a'}, 1], mode = 'x'}\n", "[auth.oidc]\nx = 1\n", "[principals.groups]\nx = {admin = true}\n[quota.groups.'']\nburst = 1\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parse("f", []byte(text))
		var values map[string]any
		if bad := toml.Unmarshal([]byte(text), &values); (bad == nil) != (err == nil) {
			t.Fatalf("parse: %v, the decoder: %v", err, bad)
		}
		if err != nil {
			return
		}
		seen := map[string]entry{}
		for _, e := range entries {
			if len(e.path) == 0 || e.key != dotted(e.path) {
				t.Errorf("entry %q has the path %q", e.key, e.path)
			}
			line, column := 0, 0
			if _, err := fmt.Sscanf(e.origin, "f:%d:%d", &line, &column); err != nil || line < 1 || column < 1 || line > 1+strings.Count(text, "\n") {
				t.Errorf("%s stands at %s", e.key, e.origin)
			}
			seen[strings.Join(e.path, "\x00")] = e
		}
		var walk func(path []string, v any)
		walk = func(path []string, v any) {
			for n := 1; n <= len(path); n++ {
				if _, ok := seen[strings.Join(path[:n], "\x00")]; ok {
					return
				}
			}
			table, ok := v.(map[string]any)
			if !ok {
				t.Errorf("%q is passed over", path)
				return
			}
			for name, below := range table {
				walk(append(slices.Clone(path), name), below)
			}
		}
		walk(nil, values)
	})
}

// What is kept of a value is read again as the same.
func FuzzOneSpelling(f *testing.F) {
	for _, seed := range []string{
		"127.0.0.1:7433", "[::1]:80", ":1", "unix:/a/../b", "systemd:", "localhost:0", "https://A.example:443/x/", "http://[::FFFF:1.2.3.4]", "null", "app://x",
		"a.b.", "[fe80::1%x]:1", "10.0.0.0/8", "4 GiB", "18446744073709551615", "9223372036854775807", "1d12h", "106751d", "2562047h47m16s", "0.5s", "-1s", "0777", "0o17",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := input{home: "/home/bo", file: true}
		for name, read := range map[string]func(string, input) (string, error){
			"listen": readListen, "host": readHost, "origin": readOrigin, "URL": readPublicURL, "root": readTemplate,
			"network": func(s string, in input) (string, error) { n, err := readNetwork(s, in); return n.String(), err },
		} {
			kept, err := read(text, in)
			if err != nil {
				continue
			}
			if again, err := read(kept, in); err != nil || again != kept {
				t.Errorf("%s: %q is kept as %q, and that is read as %q, %v", name, text, kept, again, err)
			}
		}
		if d, err := parseDuration(text); err == nil && d > 0 {
			if again, err := parseDuration(showDuration(d)); err != nil || again != d {
				t.Errorf("%q is %v, shown as %s, and read as %v, %v", text, d, showDuration(d), again, err)
			}
			if plain, err := time.ParseDuration(text); err == nil && plain != d {
				t.Errorf("%q is %v, and %v in Go", text, d, plain)
			}
		}
		if n, err := parseSize(text); err == nil {
			if again, err := parseSize(showSize(n)); err != nil || again != n || n < 0 {
				t.Errorf("%q is %d, shown as %s, and read as %d, %v", text, n, showSize(n), again, err)
			}
		}
	})
}
