package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/tools/web/guard"
)

// What is built in can be read as what a person writes.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	for _, host := range strings.Fields(documentation) {
		if d, err := guard.ParseDomain(host); err != nil || d.String() != host {
			t.Errorf("%s: %v, %v", host, d, err)
		}
	}
	var c Config
	c.Web = defaultWeb()
	rules := c.PreapprovedRules()
	if len(rules) != len(preapproved()) || rules[0].Text != "WebFetch(domain:docs.python.org)" {
		t.Errorf("%d rules: %v", len(rules), rules)
	}
}

// What is wrong with a setting about the web is said, and a value that could hide a password is none.
func TestWebSettings(t *testing.T) {
	for line, want := range map[string]string{
		`web.proxy = "http://me:pw@proxy:1"`: "user name or password",
		`web.proxy = "proxy:3128"`:           "must be like",
		`web.proxy = "http://proxy/path"`:    "end behind the port",
		`web.user_agent = "a\nb"`:            "printable",
		`web.preapproved = ["go.dev:8443"]`:  "without a port",
		`web.preapproved = ["localhost"]`:    "local network",
		`web.ports = ["0"]`:                  "port from 1 to 65535",
		`web.ports = ["http"]`:               "1 to 65535",
		`web.ports = [0]`:                    "1 to 65535",
		`web.ports = [8443.5]`:               "1 to 65535",
		`web.ports = [true]`:                 "must be a list of ports",
		`web.timeout_ms = 60000`:             "1000 to 45000",
	} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t)
			w.user(t, line+"\n")
			_, _, err := Load(w.Sources)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw@") {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// Examples of the documents can be pasted as they are: one for web.ports was refused.
func TestExamplesAreRead(t *testing.T) {
	for _, doc := range []string{"web.md", "agents.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", doc))
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "```toml\n")[1:]
		for i, block := range blocks {
			example, _, _ := strings.Cut(block, "```")
			t.Run(fmt.Sprint(doc, i), func(t *testing.T) {
				w := newWorld(t)
				w.user(t, example)
				if _, _, err := Load(w.Sources); err != nil {
					t.Errorf("%v\n%s", err, example)
				}
			})
		}
		if len(blocks) == 0 {
			t.Errorf("%s has no examples", doc)
		}
	}
	w := newWorld(t)
	w.user(t, "web.ports = [8443, \"9443\"]\n")
	if c, _, err := Load(w.Sources); err != nil || !slices.Equal(c.Web.Ports, []uint16{8443, 9443}) {
		t.Errorf("%v, %v", c.Web.Ports, err)
	}
}

// The operator's certificates come to those of the system; a file without any is an error that names the setting.
func TestWebRoots(t *testing.T) {
	t.Parallel()
	var c Config
	if roots, err := c.WebRoots(); roots != nil || err != nil {
		t.Errorf("without a file: %v, %v", roots, err)
	}
	c.Web.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if _, err := c.WebRoots(); err == nil || !strings.Contains(err.Error(), "web.ca_file") {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(c.Web.CAFile, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WebRoots(); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("a file without certificates: %v", err)
	}
}
