package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/server/state"
	"codehand/tools/permission"
)

// newServe is a world in which the command is serve.
func newServe(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.Serve = true
	return w
}

// Nothing of serve is a workspace's to decide: a project file that sets all of it changes nothing, and one warning says
// what it tried and where (SEC-45).
func TestProjectSetsNothingOfServe(t *testing.T) {
	w := newServe(t)
	bare, warnings := w.load(t)
	if len(warnings) != 0 {
		t.Fatalf("warnings: %v", warnings)
	}
	var text strings.Builder
	var keys []string
	for _, s := range serveTable(&bare) {
		if s.project != operatorOnly {
			t.Errorf("a project file may set %s", s.key)
		}
		fmt.Fprintf(&text, "%s = %s\n", s.key, samples(w)[s.key][0])
		keys = append(keys, s.key)
	}
	line := len(keys) + 1
	fmt.Fprintf(&text, "principals.default.mode = 'plan'\n[principals.\"corp/1\"]\nroots = ['/']\nno_such = 1\n[quota.groups.devs]\nburst = 1\n")
	project := w.project(t, text.String())
	c, warnings := w.load(t)
	for i, s := range serveTable(&c) {
		if got, held := s.at.text(), serveTable(&bare)[i].at.text(); got != held || c.Origin(s.key) != bare.Origin(s.key) {
			t.Errorf("%s: %s from %s, without the project file %s from %s", s.key, got, c.Origin(s.key), held, bare.Origin(s.key))
		}
	}
	if got := *c.Principals.Default.Mode; got != "acceptEdits" || len(c.Principals.Named) != 0 {
		t.Errorf("principals: %s, %v", got, c.Principals.Named)
	}
	if len(warnings) != 1 || warnings[0].Origin != project {
		t.Fatalf("warnings: %v, want one for %s", warnings, project)
	}
	for i, key := range keys {
		if want := fmt.Sprintf("%s (%d:1)", key, i+1); !strings.Contains(warnings[0].Text, want) {
			t.Errorf("%s is not named: %s", want, warnings[0].Text)
		}
	}
	for _, want := range []string{
		fmt.Sprintf("principals.default.mode (%d:1)", line), fmt.Sprintf(`principals."corp/1".roots (%d:1)`, line+2), "no_such", "quota.groups",
	} {
		if !strings.Contains(warnings[0].Text, want) {
			t.Errorf("%s is not named: %s", want, warnings[0].Text)
		}
	}
}

// The defaults of serve differ where there is no person to ask; settings are obeyed.
func TestDefaultsOfServe(t *testing.T) {
	for name, c := range map[string]struct {
		serve               bool
		file, project       string
		mode, ask, policy   string
		alone               string // who decides where only one person can connect
		modeFrom, askFrom   string
		policyFrom          string
		startMode, highMode string // of principals; "": not said
	}{
		"serve": {
			serve: true, mode: "acceptEdits", ask: "deny", alone: "client", policy: "best-effort", modeFrom: serveOrigin, askFrom: serveOrigin,
			policyFrom: "default", startMode: "acceptEdits", highMode: "acceptEdits",
		},
		"stdio": {mode: "default", ask: "client", alone: "client", policy: "best-effort", modeFrom: "default", askFrom: "default", policyFrom: "default"},
		"said": {
			serve: true, file: "permissions = {mode = 'default', ask_fallback = 'client'}\nsandbox.policy = 'off'\n",
			mode: "default", ask: "client", alone: "client", policy: "off", modeFrom: ":1:16", askFrom: ":1:34", policyFrom: ":2:1",
			startMode: "default", highMode: "acceptEdits",
		},
		"said of principals": {
			serve: true, file: "principals.default = {mode = 'plan', max_mode = 'manual'}\npermissions.ask_fallback = 'deny'\n",
			mode: "acceptEdits", ask: "deny", alone: "deny", policy: "best-effort", modeFrom: serveOrigin, askFrom: ":2:1", policyFrom: "default",
			startMode: "plan", highMode: "default",
		},
		"said by the project": {
			serve: true, project: "permissions.ask_fallback = 'deny'\n",
			mode: "acceptEdits", ask: "deny", alone: "deny", policy: "best-effort", modeFrom: serveOrigin, askFrom: "config.toml:1:1", policyFrom: "default",
			startMode: "acceptEdits", highMode: "acceptEdits",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Serve = c.serve
			if c.file != "" {
				w.user(t, c.file)
			}
			if c.project != "" {
				w.project(t, c.project)
				w.Roots = []string{"."}
			}
			got, _ := w.load(t)
			if one := got.ForOnePerson().Sandbox.Network; one != NetworkOn || c.serve != (got.Sandbox.Network == NetworkOff) {
				t.Errorf("network %q, for one person %q", got.Sandbox.Network, one)
			}
			if alone := got.ForOnePerson().Permissions.AskFallback; alone != c.alone {
				t.Errorf("for one person: %q", alone)
			}
			if got.Permissions.Mode.String() != c.mode || got.Permissions.AskFallback != c.ask || got.Sandbox.Policy != c.policy {
				t.Errorf("%+v %+v", got.Permissions, got.Sandbox)
			}
			for key, want := range map[string]string{"permissions.mode": c.modeFrom, "permissions.ask_fallback": c.askFrom, "sandbox.policy": c.policyFrom} {
				if from := got.Origin(key); !strings.HasSuffix(from, want) {
					t.Errorf("%s from %s, want %s", key, from, want)
				}
			}
			start, high := "", ""
			if p := got.Principals.Default; p.Mode != nil && p.MaxMode != nil {
				start, high = *p.Mode, *p.MaxMode
			}
			if start != c.startMode || high != c.highMode {
				t.Errorf("principals start in %q, at most %q", start, high)
			}
		})
	}
}

// A project file narrows the sandbox and the mode, for principals with a mode of their own, too.
func TestProjectNarrowsServe(t *testing.T) {
	w := newServe(t)
	w.project(t, "permissions.mode = 'plan'\nsandbox.policy = 'required'\n")
	w.user(t, "sandbox.policy = 'off'\n[principals.default]\nmode = 'acceptEdits'\n[principals.bo]\nmode = 'default'\nmax_mode = 'plan'\n[principals.cy]\nadmin = true\n")
	w.Roots = []string{"."}
	c, warnings := w.load(t)
	if len(warnings) != 0 || c.Permissions.Mode != permission.Plan || c.Sandbox.Policy != "required" {
		t.Errorf("%v %v %v", c.Permissions.Mode, c.Sandbox, warnings)
	}
	p, bo, cy := c.Principals.Default, c.Principals.Named["bo"], c.Principals.Named["cy"]
	if *p.Mode != "plan" || *p.MaxMode != "plan" || *bo.Mode != "plan" || *bo.MaxMode != "plan" || cy.Mode != nil || cy.MaxMode != nil {
		t.Errorf("default %s %s, bo %s %s, cy %v %v", *p.Mode, *p.MaxMode, *bo.Mode, *bo.MaxMode, cy.Mode, cy.MaxMode)
	}
	w.project(t, "sandbox.policy = 'best-effort'\n")
	w.user(t, "sandbox.policy = 'required'\n")
	if c, warnings = w.load(t); c.Sandbox.Policy != "required" || len(warnings) != 1 {
		t.Errorf("widened: %v, %v", c.Sandbox, warnings)
	}
	w.Serve = false
	w.user(t, "")
	w.project(t, "sandbox.policy = 'required'\n")
	if c, _ = w.load(t); c.Sandbox.Policy != "required" {
		t.Errorf("on stdio a project file did not narrow: %v", c.Sandbox)
	}
}

func TestServeRefusesBypass(t *testing.T) {
	w := newServe(t)
	w.Env = append(w.Env, "container=podman")
	w.Flags["permissions-mode"] = "bypassPermissions"
	if got := w.refused(t).Error(); got != "flag --permissions-mode: permissions.mode: "+noBypass {
		t.Error(got)
	}
}

// Values of serve that are wrong by themselves or together, with the words that help.
func TestServeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"every interface":    {`http.listen = [":7433"]`, `:1:16: http.listen: listen ":7433" binds every interface; write 0.0.0.0:7433 or 127.0.0.1:7433`},
		"every, by star":     {`http.listen = ["*:80"]`, `listen "*:80" binds every interface; write 0.0.0.0:80 or 127.0.0.1:80`},
		"second address":     {"http.listen = [\n\"127.0.0.1:1\",\n\"x\"]", `:3:1: http.listen: listen "x" is not an address; write host:port, [v6]:port, systemd: or unix:/path`},
		"bare IPv6":          {`http.listen = ["::1:80"]`, "[v6]:port"},
		"port":               {`http.listen = ["127.0.0.1:65536"]`, "the port must be a number from 0 to 65535"},
		"service":            {`http.listen = ["127.0.0.1:http"]`, "the port must be"},
		"half an address":    {`http.listen = ["127.1:80"]`, `"127.1" is neither a host name in ASCII nor an address`},
		"other letters":      {`http.listen = ["bücher:80"]`, "host name in ASCII"},
		"no address":         {`http.listen = []`, "http.listen: at least one address"},
		"not a list":         {`http.listen = "127.0.0.1:80"`, `must be a list of texts`},
		"twice":              {`http.listen = ["localhost:80", "LOCALHOST:080"]`, "http.listen: localhost:80 is given twice"},
		"relative socket":    {`http.listen = ["unix:x"]`, `listen "unix:x": x: must be an absolute path`},
		"no socket":          {`http.listen = ["unix:"]`, "must be a path"},
		"long socket":        {`http.listen = ["unix:/` + strings.Repeat("x", 110) + `"]`, "the path of a socket can have at most"},
		"systemd by name":    {`http.listen = ["systemd:a"]`, "write only systemd:"},
		"URL for listen":     {`http.listen = ["http://127.0.0.1:80"]`, "is not an address"},
		"relative URL":       {`http.public_url = "tools.example.com"`, "http.public_url: must be an absolute URL"},
		"other scheme":       {`http.public_url = "ftp://a"`, "must be an absolute URL"},
		"query":              {`http.public_url = "https://a/?x=1"`, "without user, query and fragment"},
		"empty query":        {`http.public_url = "https://a/?"`, "without user, query and fragment"},
		"fragment":           {`http.public_url = "https://a/#x"`, "without user, query and fragment"},
		"user":               {`http.public_url = "https://me:pw@a"`, "without user, query and fragment"},
		"no host":            {`http.public_url = "https:///x"`, "must be an absolute URL"},
		"dots":               {`http.public_url = "https://a/x/../y"`, "the path must be plain"},
		"escapes":            {`http.public_url = "https://a/x%2fy"`, "the path must be plain"},
		"all hosts":          {`http.allowed_hosts = ["*.example.com"]`, "patterns are not supported"},
		"host as URL":        {`http.allowed_hosts = ["https://a"]`, "write only the host"},
		"host with port":     {`http.allowed_hosts = ["a:b"]`, "the port must be"},
		"host IPv6":          {`http.allowed_hosts = ["::1"]`, "[v6]:port"},
		"host with zone":     {`http.allowed_hosts = ["[fe80::1%eth0]"]`, "zone"},
		"empty host":         {`http.allowed_hosts = [""]`, "neither a host name"},
		"origin path":        {`http.allowed_origins = ["https://a/"]`, "must be scheme://host[:port], without a path"},
		"origin user":        {`http.allowed_origins = ["https://u@a"]`, "must be scheme://host[:port]"},
		"origin without":     {`http.allowed_origins = ["a.example"]`, "must be scheme://host[:port]"},
		"origin null":        {`http.allowed_origins = ["null"]`, "every page"},
		"origin star":        {`http.allowed_origins = ["https://*.a"]`, "every page"},
		"origin scheme":      {`http.allowed_origins = ["1x://a"]`, "must be scheme://host[:port]"},
		"large body":         {`http.max_body = "2GiB"`, `must be a size from 1KiB to 1GiB, such as "4MiB"`},
		"bare text":          {"[auth]\nmode = token # of the file", `a text needs quotes: mode = "token"`},
		"short keep":         {`audit.keep = "5s"`, `must be a duration from 1h to 36500d, such as "90d"`},
		"small memory":       {`sandbox.memory = "4MiB"`, `must be a size from 64MiB to 1024GiB, such as "`},
		"decimal size":       {`http.max_body = "4MB"`, "must be a size"},
		"fraction":           {`http.max_body = "1.5MiB"`, "must be a size"},
		"negative":           {`http.max_body = -1`, "must be a size"},
		"overflow":           {`store.max_bytes = "99999999999GiB"`, "must be a size"},
		"number for time":    {`http.drain = 30`, "must be a duration from 0s to 1h"},
		"long drain":         {`http.drain = "2d"`, "must be a duration"},
		"lame duck":          {`http.lame_duck = "soon"`, "must be empty, or a duration"},
		"number for text":    {`http.lame_duck = 0`, "must be empty, or a duration"},
		"network":            {`http.trusted_proxies = ["10.0.0.1/8"]`, `"10.0.0.1/8" has bits outside its mask; write 10.0.0.0/8`},
		"network name":       {`http.trusted_proxies = ["proxy"]`, "is not a network"},
		"IPv4 as IPv6":       {`http.trusted_proxies = ["::ffff:10.0.0.0/104"]`, "write IPv4 networks as"},
		"mode without quote": {`http.unix_mode = 600`, `must be an octal mode as text, such as "0600"`},
		"large mode":         {`http.unix_mode = "1777"`, "must be an octal mode"},
		"mode in words":      {`http.unix_mode = "rw"`, "must be an octal mode"},
		"relative file":      {`http.tls_cert = "cert.pem"`, "http.tls_cert: cert.pem: must be an absolute path"},
		"cert alone":         {`http.tls_cert = "/c"`, ":1:1: http.tls_cert: needs http.tls_key"},
		"key alone":          {`http.tls_key = "/k"`, ":1:1: http.tls_key: needs http.tls_cert"},
		"authority alone":    {`http.client_ca = "/c"`, ":1:1: http.client_ca: needs http.tls_cert and http.tls_key"},
		"oidc":               {`auth.mode = "oidc"`, "auth.mode: oidc needs an issuer: a table [[auth.oidc]]"},
		"token and oidc":     {`auth.mode = "token+oidc"`, "auth.mode: token+oidc needs an issuer"},
		"owner and team":     {`auth.mode = "owner+team"`, "auth.mode: must be one of"},
		"front":              {`auth.mode = "front"`, "auth.mode: not in this version; must be one of token, owner, team, oidc, "},
		"misspelt mode":      {`auth.mode = "tokens"`, "auth.mode: must be one of"},
		"issuers":            {"[[auth.oidc]]\nname = 'corp'", ":1:3: auth.oidc: issuer: is missing"},
		"peer":               {`auth.local_peer = "all"`, "must be one of same-user, any"},
		"idle":               {`session.idle = "31d"`, "session.idle: 31d is more than session.ttl, 30d"},
		"NATS with password": {`store.url = "nats://u:secret@h"`, "store.url: must hold no user and no password"},
		"Redis":              {`store.url = "redis://u:secret@h"`, "store.url: must be one of embedded:, memory:, or nats://"},
		"no store":           {`store.url = ""`, "store.url: must be one of"},
		"prefix":             {`store.nats.prefix = "a.b"`, "store.nats.prefix: must be 1 to 32 of"},
		"password alone":     {`store.nats.password_file = "/p"`, "store.nats.password_file: needs store.nats.user"},
		"user alone":         {`store.nats.user = "u"`, "store.nats.user: needs store.nats.password_file"},
		"two ways":           {"[store.nats]\ncreds_file = '/c'\nnkey_file = '/n'", "store.nats.creds_file: excludes store.nats.nkey_file"},
		"NATS key alone":     {`store.nats.key_file = "/k"`, "store.nats.key_file: needs store.nats.cert_file"},
		"NATS cert alone":    {`store.nats.cert_file = "/c"`, "store.nats.cert_file: needs store.nats.key_file"},
		"shared alone":       {"store.url = 'nats://h'\n[cluster]\nworkspaces = 'shared'\nshared_dir = '/s'", "cluster.workspaces: shared needs cluster.node"},
		"shared nowhere":     {"[cluster]\nnode = 'a'\nworkspaces = 'shared'", "cluster.workspaces: shared needs cluster.shared_dir"},
		"shared dir alone":   {"[cluster]\nnode = 'a'\nshared_dir = '/s'", "cluster.shared_dir: counts only with cluster.workspaces"},
		"other store":        {`store.url = "sqlite:"`, "store.url: must be one of"},
		"Redis table":        {"[store.redis]\nprefix = 'x'", ":1:2: store.redis: not in this version"},
		"console":            {"console.enabled = true", "console.enabled: not in this version"},
		"policy":             {`sandbox.policy = "none"`, "must be one of required, best-effort, off"},
		"network kind":       {`sandbox.network = "some"`, "must be one of off, list, on"},
		"list alone":         {`sandbox.network = "list"`, ":1:1: sandbox.network: list needs sandbox.domains"},
		"empty list":         {"sandbox = {network = 'list', domains = []}", "sandbox.network: list needs sandbox.domains"},
		"domains alone":      {`sandbox.domains = ["example.com"]`, `:1:1: sandbox.domains: counts only with sandbox.network = "list"`},
		"every domain":       {`sandbox.domains = ["*"]`, "sandbox.domains: \"*\": a star can only stand for all names below a host"},
		"domain with scheme": {`sandbox.domains = ["https://example.com"]`, "write only the host"},
		"address as domain":  {`sandbox.domains = ["10.0.0.1"]`, "is an address; only host names can be allowed"},
		"local domain":       {`sandbox.domains = ["localhost"]`, "is never opened"},
		"metadata":           {`web.allow_private = ["10.0.0.0/8", "169.254.169.254"]`, "169.254.169.254/32 cannot be opened: it lies in 169.254.0.0/16"},
		"loopback":           {`web.allow_private = ["127.0.0.0/8"]`, "127.0.0.0/8 cannot be opened"},
		"everything":         {`web.allow_private = ["0.0.0.0/0"]`, "0.0.0.0/0 is more than a private network"},
		"audit sync":         {`audit.sync = "sometimes"`, "must be always, or never, or a duration"},
		"audit dir":          {`audit.dir = "audit"`, "must be an absolute path"},
		"keep":               {`audit.keep = "-1d"`, "must be a duration from 1h to 36500d"},
		"metrics systemd":    {`metrics.listen = "systemd:"`, "sockets of systemd are only for http.listen"},
		"metrics everywhere": {`metrics.listen = ":9090"`, `listen ":9090" binds every interface; write 0.0.0.0:9090 or 127.0.0.1:9090`},
		"metrics twice":      {`metrics.listen = "127.0.0.1:7433"`, "metrics.listen: 127.0.0.1:7433 is an address of http.listen, too"},
		"metrics token":      {`metrics.token = "x"`, `unknown key "metrics.token"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newServe(t)
			file := w.user(t, c.text+"\n")
			got := w.refused(t).Error()
			if !strings.Contains(got, c.want) || !strings.Contains(got, file) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if said := strings.ReplaceAll(got, file, ""); strings.Contains(said, "secret") || strings.Contains(said, "pw") {
				t.Errorf("a password is repeated: %s", got)
			}
		})
	}
}

// Every Store that can be opened can be chosen.
func TestStoreURLs(t *testing.T) {
	t.Parallel()
	for _, url := range state.URLs() {
		w := newServe(t)
		w.user(t, fmt.Sprintf("store.url = %q\n", url))
		c, _ := w.load(t)
		if got := c.Store.URL; got != url {
			t.Errorf("store.url = %q is read as %q", url, got)
		}
	}
}

// One spelling is kept of what can be written in several ways.
func TestSpellingsOfServe(t *testing.T) {
	for text, want := range map[string]string{
		`http.listen = ["[::FFFF:127.0.0.1]:080"]`:                      "127.0.0.1:80",
		`http.listen = ["[fe80::1%eth0]:1"]`:                            "[fe80::1%eth0]:1",
		`http.listen = ["LocalHost:0", "localhost:0"]`:                  "localhost:0,localhost:0",
		`http.listen = ["unix:///run//x/../y.sock"]`:                    "unix:/run/y.sock",
		`http.public_url = "HTTPS://Tools.Example.com:443/"`:            "https://tools.example.com",
		`http.public_url = "http://[::1]:7433/a/b"`:                     "http://[::1]:7433/a/b",
		`http.public_url = ""`:                                          "",
		`http.allowed_hosts = ["A.example.", "[::0:1]", "[::1]:80"]`:    "a.example,[::1],[::1]:80",
		`http.allowed_origins = ["HTTP://A:80", "vscode-webview://ab"]`: "http://a,vscode-webview://ab",
		`http.trusted_proxies = ["192.0.2.1", "fd00::/8"]`:              "192.0.2.1/32,fd00::/8",
		`http.unix_mode = "0o666"`:                                      "0666",
		`http.max_body = "1048577"`:                                     "1048577",
		`http.lame_duck = ""`:                                           "",
		`store.sync = "0s"`:                                             "always",
		`audit.keep = "2160h"`:                                          "90d",
		`audit.keep = "1d30m"`:                                          "24h30m",
		`audit.dir = ""`:                                                "",
		`session.idle = "5400s"`:                                        "1h30m",
		`metrics.listen = ""`:                                           "",
	} {
		w := newServe(t)
		w.user(t, text+"\n")
		c, _ := w.load(t)
		key, _, _ := strings.Cut(text, " ")
		got := ""
		for _, s := range table(&c) {
			if s.key == key {
				got = s.at.text()
			}
		}
		if filepath.ToSlash(got) != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// What the reference says of a value can be written into a file again, for every setting.
func TestTextIsReadAgain(t *testing.T) {
	w := newServe(t)
	maps.Copy(w.Flags, map[string]string{
		"http-tls-cert": w.path("cert.pem"), "http-tls-key": w.path("key.pem"), "http-listen": "unix:" + w.path("s") + ",[::1]:0",
		"http-trusted-proxies": "10.0.0.0/8", "audit-sync": "never", "store-sync": "always", "session-ttl": "36h", "http-max-body": "5KiB",
	})
	c, _ := w.load(t)
	for _, s := range table(&c) {
		text := s.at.text()
		if text == "" && (s.project == added || strings.HasSuffix(s.key, "_dir") || s.key == "log.file" || s.key == "shell.init_file" || s.key == "agent.api.key_file") {
			continue // these have no word for nothing
		}
		if err := s.at.set(input{raw: text, base: w.WorkDir, home: w.Home}); err != nil || s.at.text() != text && s.project != added {
			t.Errorf("%s: %q becomes %q, %v", s.key, text, s.at.text(), err)
		}
	}
}

// The data directory is the state directory by default.
func TestDataDir(t *testing.T) {
	w := newServe(t)
	if c, _ := w.load(t); c.HTTP.DataDir != c.StateDir || c.StateDir == "" {
		t.Errorf("data %s, state %s", c.HTTP.DataDir, c.StateDir)
	}
	w.Env = append(w.Env, "CODEHAND_HTTP_DATA_DIR=../data")
	if c, _ := w.load(t); c.HTTP.DataDir != w.path("data") || c.StateDir != w.path("state/codehand") {
		t.Errorf("data %s, state %s", c.HTTP.DataDir, c.StateDir)
	}
}

// Where serve takes its roots from.
func TestRootsOfServe(t *testing.T) {
	type want struct{ local, templates []string }
	for name, c := range map[string]struct {
		file, workDir string
		args          []string
		want          want
		warns         string
	}{
		"nothing said":      {want: want{local: []string{"project"}}},
		"the setting":       {file: "roots = ['$TOP/a']\n", want: want{local: []string{"a"}}},
		"the principals":    {file: "roots = ['$TOP/b']\nprincipals.default.roots = ['$TOP/a']\n", want: want{[]string{"a"}, []string{"a"}}},
		"templates":         {file: "[principals.default]\nroots = ['$TOP/{principal}/x']\n", want: want{nil, []string{"{principal}/x"}}},
		"empty list":        {file: "[principals.default]\nroots = []\n", want: want{local: []string{"project"}}},
		"arguments":         {file: "principals.default.roots = ['$TOP/b']\n", args: []string{"../a"}, want: want{[]string{"a"}, []string{"a"}}},
		"template argument": {args: []string{"../a/{principal}", "../b"}, want: want{nil, []string{"a/{principal}", "b"}}},
		"tokens":            {file: "auth.mode = 'token'\nroots = ['$TOP/missing']\n", want: want{}},
		"tokens, anywhere":  {file: "auth.mode = 'token'\n", workDir: "/", want: want{}},
		"started in /":      {workDir: "/", want: want{}, warns: "started in /, which is never a root by itself, because all files are below it; without tokens, add a directory after \"serve\""},
		"started at home":   {workDir: "home", want: want{}, warns: "never a root by itself, because it is the home directory"},
		"in the data":       {workDir: "state/codehand", want: want{}, warns: "never a root by itself"},
		"around the data":   {workDir: "state", want: want{}, warns: "never a root by itself, because it contains the "},
		"in a workspace":    {workDir: "state/codehand/workspaces/x", want: want{local: []string{"state/codehand/workspaces/x"}}},
		"home, templates":   {workDir: "home", file: "principals.default.roots = ['$TOP/a/{principal}']\n", want: want{nil, []string{"a/{principal}"}}},
		"below the data":    {args: []string{"../state/codehand/workspaces/{principal}"}, want: want{nil, []string{"state/codehand/workspaces/{principal}"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newServe(t)
			for _, dir := range []string{"a", "b", "state/codehand/workspaces/x"} {
				if err := os.MkdirAll(w.path(dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if c.file != "" {
				w.user(t, strings.ReplaceAll(c.file, "$TOP", w.top))
			}
			if w.Roots = c.args; c.workDir == "/" {
				w.WorkDir = "/"
			} else if c.workDir != "" {
				w.WorkDir = w.path(c.workDir)
			}
			got, warnings := w.load(t)
			for i := range c.want.local {
				c.want.local[i] = w.path(c.want.local[i])
			}
			for i := range c.want.templates {
				c.want.templates[i] = w.path(c.want.templates[i])
			}
			if !slices.Equal(got.Roots, c.want.local) || !slices.Equal(got.Principals.Default.Roots, c.want.templates) {
				t.Errorf("roots %v, templates %v, want %v", got.Roots, got.Principals.Default.Roots, c.want)
			}
			switch {
			case c.warns == "" && len(warnings) != 0:
				t.Errorf("warnings: %v", warnings)
			case c.warns != "" && (len(warnings) != 1 || !strings.Contains(warnings[0].Text, c.warns)):
				t.Errorf("warnings: %v, want %s", warnings, c.warns)
			}
		})
	}
}
