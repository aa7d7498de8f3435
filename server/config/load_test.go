package config

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/permission"
)

// A world is a home directory with a project in it, and what Load is told about them.
type world struct {
	Sources
	top string // canonical
}

func newWorld(t *testing.T) *world {
	t.Helper()
	top := leaktest.Dir(t)
	w := &world{top: top}
	w.Home, w.WorkDir = w.path("home"), w.path("project")
	w.UserFile = ""
	w.Flags = map[string]string{}
	w.Env = []string{"XDG_CONFIG_HOME=" + w.path("config"), "XDG_STATE_HOME=" + w.path("state")}
	for _, dir := range []string{"home", "project", "config"} {
		if err := os.Mkdir(w.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) path(rel string) string { return filepath.Join(w.top, filepath.FromSlash(rel)) }

func (w *world) write(t *testing.T, rel, text string) string {
	t.Helper()
	path := w.path(rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// user and project write the two files, in the places where Load finds them.
func (w *world) user(t *testing.T, text string) string {
	t.Helper()
	w.UserFile = w.write(t, "config/codehand/config.toml", text)
	return w.UserFile
}

func (w *world) project(t *testing.T, text string) string {
	t.Helper()
	return w.write(t, "project/.codehand/config.toml", text)
}

func (w *world) load(t *testing.T) (Config, []Warning) {
	t.Helper()
	c, warnings, err := Load(w.Sources)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c, warnings
}

// refused loads and returns the problems, of which there must be some.
func (w *world) refused(t *testing.T) Problems {
	t.Helper()
	c, _, err := Load(w.Sources)
	problems, ok := errors.AsType[Problems](err)
	if !ok || len(problems) == 0 {
		t.Fatalf("Load: %v, want Problems", err)
	}
	if c.StateDir != "" {
		t.Error("a Config came with the error")
	}
	return problems
}

func TestDefaults(t *testing.T) {
	w := newWorld(t)
	c, warnings := w.load(t)
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	if !slices.Equal(c.Roots, []string{w.path("project")}) || c.StateDir != w.path("state/codehand") {
		t.Errorf("roots %v, state %s", c.Roots, c.StateDir)
	}
	for _, s := range Settings() {
		if got := c.Origin(s.Key); s.Default != "" && got != "default" {
			t.Errorf("origin of %s: %s", s.Key, got)
		}
	}
	// Two are too long for `codehand help settings`, whose golden file has all others.
	for key, want := range map[string]string{
		"protocol.versions": "2026-07-28,2025-11-25,2025-06-18,2025-03-26,2024-11-05",
		"web.preapproved":   strings.Join(strings.Fields(documentation), ","),
	} {
		i := slices.IndexFunc(Settings(), func(s Setting) bool { return s.Key == key })
		if i < 0 || Settings()[i].Default != want {
			t.Errorf("%s is no setting, or not %s", key, want)
		}
	}
}

func TestSpellings(t *testing.T) {
	env, flag := spellings("permissions.ask_fallback")
	if env != "CODEHAND_PERMISSIONS_ASK_FALLBACK" || flag != "--permissions-ask-fallback" {
		t.Errorf("got %s, %s", env, flag)
	}
	seen := map[string]string{}
	for _, s := range Settings() {
		if s.Doc == "" || strings.HasSuffix(s.Doc, ".") {
			t.Errorf("%s: doc %q", s.Key, s.Doc)
		}
		for _, name := range []string{s.Env, s.Flag} {
			if other, ok := seen[name]; ok {
				t.Errorf("%s and %s are both %s", s.Key, other, name)
			}
			seen[name] = s.Key
		}
	}
}

// Flags go before the environment, that before the project's file, that before the user's, that before defaults.
func TestPrecedence(t *testing.T) {
	w := newWorld(t)
	user := w.user(t, "[read]\nline_format = \"pipe\"\n\n[grep]\ndefault_mode = \"content\"\n")
	c, _ := w.load(t)
	if c.Read.LineFormat != "pipe" || c.Origin("read.line_format") != user+":2:1" {
		t.Errorf("user file: %s from %s", c.Read.LineFormat, c.Origin("read.line_format"))
	}
	project := w.project(t, "read.line_format = 'tab'\n")
	c, _ = w.load(t)
	if c.Read.LineFormat != "tab" || c.Origin("read.line_format") != project+":1:1" || c.Grep.DefaultMode != "content" {
		t.Errorf("project file: %s from %s", c.Read.LineFormat, c.Origin("read.line_format"))
	}
	if !slices.Equal(c.Files, []string{user, project}) {
		t.Errorf("files read: %v", c.Files)
	}
	w.Env = append(w.Env, "CODEHAND_READ_LINE_FORMAT=pipe", "CODEHAND_GREP_DEFAULT_MODE=")
	c, _ = w.load(t)
	if c.Read.LineFormat != "pipe" || c.Origin("read.line_format") != "CODEHAND_READ_LINE_FORMAT" {
		t.Errorf("environment: %s from %s", c.Read.LineFormat, c.Origin("read.line_format"))
	}
	if c.Grep.DefaultMode != "content" {
		t.Error("an empty variable counted as a value")
	}
	w.Flags["read-line-format"] = "tab"
	c, _ = w.load(t)
	if c.Read.LineFormat != "tab" || c.Origin("read.line_format") != "flag --read-line-format" {
		t.Errorf("flag: %s from %s", c.Read.LineFormat, c.Origin("read.line_format"))
	}
}

// samples are values that are no defaults, one for every setting: as a file has it, and as it is typed elsewhere. Only
// for a value whose row does not say what it may be one is written here, or for a spelling of its own.
func samples(w *world) map[string][2]string {
	all := map[string][2]string{
		"roots":                    {`["` + w.path("home") + `"]`, w.path("home")},
		"state_dir":                {`"` + w.path("elsewhere") + `"`, w.path("elsewhere")},
		"permissions.mode":         {`"plan"`, "plan"},
		"permissions.deny":         {`["run_shell", "Read(a,b)"]`, "run_shell, Read(a,b)"},
		"permissions.ask_fallback": {`"deny"`, "deny"},
		"read.max_tokens":          {"5_000", "5000"},
		"write.secret_paths":       {`["public/**", "/x"]`, "public/**,/x"},
		"journal.max_bytes":        {`"2MiB"`, "2MiB"},
		"shell.init_file":          {`"` + w.path("init.sh") + `"`, w.path("init.sh")},
		"shell.env_allow":          {`["FOO", "BAR_*"]`, "FOO,BAR_*"},
		"shell.env_allow_secret":   {`["MY_TOKEN", "AWS_*"]`, "MY_TOKEN,AWS_*"},
		"protocol.versions":        {`["2025-06-18"]`, "2025-06-18"},
		"stdio.eof_grace":          {`"1m"`, "1m"},
		"client.profile":           {`"codex"`, "codex"},
		"log.level":                {`"debug"`, "debug"},
		"log.file":                 {`"` + w.path("log") + `"`, w.path("log")},
		"http.listen":              {`["127.0.0.1:80", "[::1]:0", "systemd:"]`, "127.0.0.1:80,[::1]:0,systemd:"},
		"http.public_url":          {`"https://tools.example.com/x/"`, "https://tools.example.com/x"},
		"http.allowed_hosts":       {`["Tools.Example.com", "other:7433"]`, "tools.example.com,other:7433"},
		"http.allowed_origins":     {`["https://app.example.com:443"]`, "https://app.example.com"},
		"http.max_body":            {"1048576", "1MiB"},
		"http.drain":               {`"1m"`, "60s"},
		"http.orphan_grace":        {`"0s"`, "0s"},
		"http.lame_duck":           {`"5s"`, "5s"},
		"http.data_dir":            {`"` + w.path("data") + `"`, w.path("data")},
		"http.trusted_proxies":     {`["10.0.0.0/8", "::1"]`, "10.0.0.0/8,::1/128"},
		"http.unix_mode":           {`"0660"`, "660"},
		"http.tls_cert":            {`"` + w.path("cert.pem") + `"`, w.path("cert.pem")},
		"http.tls_key":             {`"` + w.path("key.pem") + `"`, w.path("key.pem")},
		"http.client_ca":           {`"` + w.path("ca.pem") + `"`, w.path("ca.pem")},
		"auth.mode":                {`"token"`, "token"},
		"auth.token_file":          {`"` + w.path("tokens.jsonl") + `"`, w.path("tokens.jsonl")},
		"session.idle":             {`"1h"`, "60m"},
		"session.ttl":              {`"7d"`, "168h"},
		"store.url":                {`"memory:"`, "memory:"},
		"store.nats.prefix":        {`"team-a"`, "team-a"},
		"cluster.node":             {`"tools-1"`, "tools-1"},
		"cluster.shared_dir":       {`"` + w.path("shared") + `"`, w.path("shared")},
		"store.nats.creds_file":    {`"` + w.path("nats.creds") + `"`, w.path("nats.creds")},
		"store.nats.nkey_file":     {`"` + w.path("nats.nk") + `"`, w.path("nats.nk")},
		"store.nats.user":          {`"codehand"`, "codehand"},
		"store.nats.password_file": {`"` + w.path("nats.password") + `"`, w.path("nats.password")},
		"store.nats.ca_file":       {`"` + w.path("ca.pem") + `"`, w.path("ca.pem")},
		"store.nats.cert_file":     {`"` + w.path("cert.pem") + `"`, w.path("cert.pem")},
		"store.nats.key_file":      {`"` + w.path("key.pem") + `"`, w.path("key.pem")},
		"store.max_bytes":          {`"1 GiB"`, "1024MiB"},
		"store.sync":               {`"always"`, "0s"},
		"sandbox.readable":         {`["` + w.path("home") + `"]`, w.path("home")},
		"sandbox.writable":         {`["` + w.path("home") + `"]`, w.path("home")},
		"sandbox.hide":             {`["` + w.path("home") + `"]`, w.path("home")},
		"sandbox.memory":           {`"2GiB"`, "2GiB"},
		"sandbox.domains":          {`["Example.com.", "*.npmjs.org", "example.org:8443"]`, "example.com,*.npmjs.org,example.org:8443"},
		"sandbox.git_hosts":        {`["GitHub.com", "gitlab.example:8443"]`, "https://github.com,https://gitlab.example:8443"},
		"web.allow_private":        {`["10.1.0.0/16", "fd12::/32"]`, "10.1.0.0/16,fd12::/32"},
		"web.nat64":                {"true", "true"},
		"web.user_agent":           {`"bot/1 (+https://example.org)"`, "bot/1 (+https://example.org)"},
		"web.preapproved":          {`["go.dev", "*.Python.org"]`, "go.dev,*.python.org"},
		"web.proxy":                {`"http://proxy.example:3128/"`, "http://proxy.example:3128"},
		"web.ca_file":              {`"/etc/ca.pem"`, "/etc/ca.pem"},
		"web.ports":                {`["8080", "8443"]`, "8080,8443"},
		"web.search.kind":          {`"searxng"`, "searxng"},
		"web.search.url":           {`"https://searx.example/"`, "https://searx.example/"},
		"web.search.key_env":       {`"BRAVE_API_KEY"`, "BRAVE_API_KEY"},
		"web.search.key_file":      {`"` + w.path("key") + `"`, w.path("key")},
		"web.search.header":        {`"X-Api-Key: {key}"`, "X-Api-Key: {key}"},
		"web.search.body":          {`'{"q": "{query}"}'`, `{"q": "{query}"}`},
		"web.search.list":          {`"data.items"`, "data.items"},
		"web.search.title":         {`"name"`, "name"},
		"web.search.link":          {`"link.href"`, "link.href"},
		"web.search.text":          {`"snippet"`, "snippet"},

		"permissions.ask":             {`["Bash(git push *)", "mcp__*"]`, "Bash(git push *),mcp__*"},
		"permissions.allow":           {`["Read(src/**)", "Bash(go test *)"]`, "Read(src/**),Bash(go test *)"},
		"permissions.protect":         {`["Makefile", "ci/*.sh"]`, "Makefile,ci/*.sh"},
		"permissions.unprotect":       {`[".npmrc", ".vscode"]`, ".npmrc,.vscode"},
		"permissions.additional_dirs": {`["` + w.path("config") + `"]`, w.path("config")},
		"console.notify":              {`["/usr/bin/tell", "-q"]`, "/usr/bin/tell,-q"},
		"permissions.classifier":      {`["/usr/bin/judge", "-q"]`, "/usr/bin/judge,-q"},
		"plan.directory":              {`"` + w.path("project/plans") + `"`, w.path("project/plans")},
		"results.max_bytes":           {`"64MiB"`, "64 MiB"},
		"tools.always":                {`["web_fetch", "mcp__git-hub__Search"]`, "web_fetch, mcp__git-hub__Search"},
		"skills.dirs":                 {`["` + w.path("home") + `"]`, w.path("home")},
		"tasks.directory":             {`"` + w.path("home/tasks") + `"`, w.path("home/tasks")},
		"git.co_author":               {`" Jo Doe <jo@example.com>"`, "Jo Doe <jo@example.com> "},
		"audit.dir":                   {`"-"`, "-"},
		"agent.dirs":                  {`["` + w.path("home") + `"]`, w.path("home")},
		"agent.max_time":              {`"5m"`, "5m"},
		"agent.api.provider":          {`"openai"`, "openai"},
		"agent.api.base_url":          {`"https://models.example.com/v1/"`, "https://models.example.com/v1"},
		"agent.api.model":             {`"m-1"`, "m-1"},
		"agent.api.models":            {`["m-2", "m-3"]`, "m-2,m-3"},
		"agent.api.key_env":           {`"MY_KEY"`, "MY_KEY"},
		"agent.api.key_file":          {`"` + w.path("key") + `"`, w.path("key")},
		"agent.command.argv":          {`["/usr/bin/other", "-p", "{prompt}"]`, "/usr/bin/other,-p,{prompt}"},
		"agent.command.argv_resume":   {`["/usr/bin/other", "-c"]`, "/usr/bin/other,-c"},
		"agent.command.env_allow":     {`["OTHER_KEY"]`, "OTHER_KEY"},
		"audit.sync":                  {`"never"`, "never"},
		"audit.rotate_bytes":          {`"64KiB"`, "65536"},
		"audit.keep":                  {`"1d12h"`, "36h"},
		"metrics.listen":              {`"0.0.0.0:9090"`, "0.0.0.0:9090"},
		"metrics.token_file":          {`"` + w.path("token") + `"`, w.path("token")},
	}
	c := defaults()
	for _, s := range table(&c) {
		if _, ok := all[s.key]; !ok {
			all[s.key] = derivedSample(w, s)
		}
	}
	return all
}

// derivedSample is a value beside the default one, by what the row says that there may be; zero: it does not say.
func derivedSample(w *world, s setting) [2]string {
	same := func(text string) [2]string { return [2]string{text, text} }
	beside := func(n, most int) [2]string { // within the limits, since the smallest value may need other settings
		if n < most {
			return same(strconv.Itoa(n + 1))
		}
		return same(strconv.Itoa(n - 1))
	}
	word := func(held string, of []string) [2]string {
		i := slices.IndexFunc(of, func(word string) bool { return word != held })
		return [2]string{strconv.Quote(of[i]), of[i]}
	}
	switch v := s.at.(type) {
	case number:
		return beside(*v.p, v.max)
	case millis:
		return beside(int(v.p.Milliseconds()), v.max)
	case toggle:
		return same(strconv.FormatBool(!*v.p))
	case choice:
		return word(*v.p, v.of)
	case profile:
		return word(*v.p, v.of)
	case size:
		return [2]string{strconv.Quote(showSize(*v.p + 1)), showSize(*v.p + 1)}
	case period:
		return [2]string{strconv.Quote(showDuration(*v.p + time.Second)), showDuration(*v.p + time.Second)}
	case text:
		return [2]string{`"a word"`, "a word"}
	case file:
		return [2]string{strconv.Quote(w.path("file")), w.path("file")}
	case dirs:
		return [2]string{"[" + strconv.Quote(w.path("home")) + "]", w.path("home")}
	}
	return [2]string{}
}

// needs are settings that a value needs besides itself.
func needs(w *world, key string) map[string]string {
	switch key {
	case "http.tls_cert":
		return map[string]string{"http-tls-key": w.path("key.pem")}
	case "http.tls_key":
		return map[string]string{"http-tls-cert": w.path("cert.pem")}
	case "store.nats.user":
		return map[string]string{"store-nats-password-file": w.path("nats.password")}
	case "store.nats.password_file":
		return map[string]string{"store-nats-user": "codehand"}
	case "store.nats.cert_file":
		return map[string]string{"store-nats-key-file": w.path("key.pem")}
	case "store.nats.key_file":
		return map[string]string{"store-nats-cert-file": w.path("cert.pem")}
	case "cluster.workspaces":
		return map[string]string{"cluster-node": "a", "cluster-shared-dir": w.path("shared")}
	case "cluster.shared_dir":
		return map[string]string{"cluster-node": "a", "cluster-workspaces": "shared"}
	case "sandbox.domains":
		return map[string]string{"sandbox-network": "list"}
	case "agent.api.provider":
		return map[string]string{"agent-api-model": "m"}
	case "agent.api.model":
		return map[string]string{"agent-api-provider": "openai"}
	case "web.search.kind":
		return map[string]string{"web-search-url": "https://searx.example"}
	case "web.search.url":
		return map[string]string{"web-search-kind": "searxng"}
	case "web.search.key_env", "web.search.key_file":
		return map[string]string{"web-search-kind": "brave"}
	case "web.search.body":
		return map[string]string{"web-search-kind": "template", "web-search-url": "https://find.example"}
	case "web.search.header", "web.search.list", "web.search.title", "web.search.link", "web.search.text":
		return map[string]string{"web-search-kind": "template", "web-search-url": "https://find.example/{query}"}
	case "http.client_ca":
		return map[string]string{"http-tls-cert": w.path("cert.pem"), "http-tls-key": w.path("key.pem")}
	}
	return nil
}

// Every setting can be given in a file, in the environment and as a flag, and all three mean the same.
func TestThreeSpellingsMeanTheSame(t *testing.T) {
	w := newWorld(t)
	w.write(t, "init.sh", "")
	samples := samples(w)
	for _, s := range Settings() {
		sample := samples[s.Key]
		if sample == ([2]string{}) {
			t.Errorf("%s has no sample here", s.Key)
			continue
		}
		read := func(x *world) string {
			c, _ := x.load(t)
			for _, row := range table(&c) {
				if row.key == s.Key {
					return row.at.text()
				}
			}
			return ""
		}
		inFile, inEnv, asFlag := *w, *w, *w
		inFile.Flags = needs(w, s.Key)
		inEnv.Flags = needs(w, s.Key)
		inFile.user(t, s.Key+" = "+sample[0]+"\n")
		inEnv.Env = append(slices.Clone(w.Env), s.Env+"="+sample[1])
		asFlag.Flags = map[string]string{s.Flag: sample[1]}
		maps.Copy(asFlag.Flags, needs(w, s.Key))
		a, b, c := read(&inFile), "", ""
		if err := os.Remove(inFile.UserFile); err != nil {
			t.Fatal(err)
		}
		b, c = read(&inEnv), read(&asFlag)
		if a != b || a != c || a == s.Default {
			t.Errorf("%s: file %q, environment %q, flag %q, default %q", s.Key, a, b, c, s.Default)
		}
	}
}

// All that is wrong is told at once, each with its place.
func TestProblemsAreToldTogether(t *testing.T) {
	w := newWorld(t)
	file := w.user(t, `
tools.max_parallel = 11
[permissions]
mode = "yolo"
deny = [
  "run_shell",
  "Read(",
  "Write(x)",
]
[shell]
enabled = "false"
init_file = "relative.sh"
env_allow = ["MY_TOKEN"]
[banana]
policy = "strict"
[[hooks.PreTool]]
[log]
level = 3
colour = true
[[mcp]]
name = "x"
`)
	w.Env = append(w.Env, "CODEHAND_LIST_LIMIT=many", "CODEHAND_BANANA_POLICY=off")
	w.Flags["no-such-flag"] = "1"
	got := w.refused(t).Error()
	for _, want := range []string{
		file + ":2:1: tools.max_parallel: must be a whole number from 1 to 10",
		file + ":4:1: permissions.mode: ",
		file + ":7:3: permissions.deny: ",
		file + ":8:3: permissions.deny: ",
		file + ":11:1: shell.enabled: must be true or false",
		file + ":12:1: shell.init_file: relative.sh: must be an absolute path",
		file + ":13:1: shell.env_allow: MY_TOKEN: ",
		file + `:14:2: unknown key "banana"`,
		file + `:15:1: unknown key "banana.policy"`,
		file + `:16:3: unknown event "PreTool"`,
		file + ":18:1: log.level: must be one of",
		file + `:19:1: unknown key "log.colour"`,
		file + `:20:3: unknown key "mcp"`,
		"CODEHAND_LIST_LIMIT: list.limit: must be a whole number",
		"CODEHAND_BANANA_POLICY: unknown setting",
		"flag --no-such-flag: unknown flag",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Logf("got:\n%s", got)
	}
}

func TestOddFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"syntax":           {"a = 1\nb = @\n", ":2:5: "},
		"twice":            {"[log]\nlevel = \"info\"\nlevel = \"warn\"\n", ": "},
		"quoted dot":       {"\"log.level\" = \"info\"\n", `:1:1: unknown key "\"log.level\""`},
		"section as value": {"log = \"info\"\n", `:1:1: unknown key "log"`},
		"value as section": {"[log.level]\nx = 1\n", ":1:2: log.level: must be one of"},
		"key too deep":     {"log.level.x = 1\n", `unknown key "log.level.x"`},
		"inline table":     {"log = {level = \"info\", size = 3}\n", `:1:24: unknown key "log.size"`},
		"mixed list":       {"permissions.deny = [\"run_shell\", 3]\n", "must be a list of texts"},
		"text for list":    {"permissions.deny = \"run_shell\"\n", "must be a list of texts"},
		"number as text":   {"list.limit = \"3\"\n", "must be a whole number"},
		"float":            {"list.limit = 3.0\n", "must be a whole number"},
		"huge":             {"list.limit = 99999999999\n", "must be a whole number"},
		"date":             {"log.level = 2026-01-01\n", "must be one of"},
		"no versions":      {"protocol.versions = []\n", "at least one version"},
		"bad version":      {"protocol.versions = [\"2020-01-01\"]\n", "must be one of"},
		"timeouts":         {"shell.default_timeout_ms = 700000\n", "is more than shell.max_timeout_ms"},
		"other's home":     {"log.file = \"~bob/x\"\n", "must be an absolute path"},
		"log as list":      {"log.file = []\n", "must be a path"},
		"unquoted name":    {"\"a b\".\"\" = 1\n", `unknown key "\"a b\".\"\""`},
		"two lines":        {"client.profile = \"a\\nb\"\n", "must be a text in one line"},
		"no tool":          {"tools.always = [\"web fetch\"]\n", "web fetch: must be the name of a tool"},
		"no profile":       {"tools.profile = \"full\"\n", "must be one of readonly, simple, default"},
		"relative list":    {"tasks.directory = \"tasks\"\n", "tasks: must be an absolute path"},
		"not UTF-8":        {"client.profile = \"\xff\"\n", ": "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			file := w.user(t, c.text)
			if got := w.refused(t).Error(); !strings.Contains(got, c.want) || !strings.Contains(got, file) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	w := newWorld(t)
	w.user(t, "log = {level = \"debug\"}\nshell.init_file = \"~/rc\"\n\n[tools]\n")
	if c, _ := w.load(t); c.Log.Level != slog.LevelDebug || c.Shell.InitFile != filepath.Join(w.Home, "rc") {
		t.Errorf("inline table: %v, %s", c.Log.Level, c.Shell.InitFile)
	}
}

// A co-author becomes a line of a commit message, and only one.
func TestCoAuthor(t *testing.T) {
	for s, want := range map[string]bool{
		"Jo Doe <jo@example.com>": true, "Żółć 李 <a+b@x>": true, "O'Neil, J. (x) <1+o@users.noreply.example.com>": true,
		"Jo": false, "Jo <jo>": false, "<jo@example.com>": false, " <jo@example.com>": false, "Jo<jo@example.com>": false, "Jo <@x>": false, "Jo <a@>": false,
		"Jo <a@x> ": false, "Jo <a@x> <b@x>": false, "Jo > <a@x>": false, "Jo <a b@x>": false, "Jo\nSigned-off-by: x <a@x>": false, "Jo\r <a@x>": false,
		"Jo\u2028 <a@x>": false, "Jo\x7f <a@x>": false, "Jo\u202e <a@x>": false, "Jo\u0085 <a@x>": false, "Jo\xff <a@x>": false, "Jo <a@\u00a0x>": false,
		strings.Repeat("J", maxCoAuthor) + " <a@x>": false,
	} {
		if got, err := coAuthor(s, input{}); (err == nil) != want || want && got != s {
			t.Errorf("%q: got %q, %v", s, got, err)
		}
	}
	w := newWorld(t)
	file := w.user(t, "git.co_author = \"Jo\\nx <jo@example.com>\"\n")
	if got := w.refused(t).Error(); !strings.Contains(got, file+":1:1: git.co_author: must be one line such as: Jo Doe <jo@example.com>") {
		t.Error(got)
	}
}

// Deny rules of all sources count, each with its own place. Only those of a project have a directory of their own: `/x`
// of a person's rule was relative to the configuration's, and protected nothing.
func TestDenyRulesAdd(t *testing.T) {
	w := newWorld(t)
	user := w.user(t, "permissions.deny = [\n\"Read(/a)\",\n\"Read(b)\"]\n")
	project := w.project(t, "permissions.deny = [\"Read(/c)\"]\n")
	w.Env = append(w.Env, "CODEHAND_PERMISSIONS_DENY=Edit(x,y), web_fetch")
	w.Flags["--permissions-deny"] = "Read(/d)"
	c, _ := w.load(t)
	want := []permission.Rule{
		{Text: "Read(/a)", Origin: user + ":2:1"},
		{Text: "Read(b)", Origin: user + ":3:1"},
		{Text: "Edit(x,y)", Origin: "CODEHAND_PERMISSIONS_DENY"},
		{Text: "web_fetch", Origin: "CODEHAND_PERMISSIONS_DENY"},
		{Text: "Read(/d)", Origin: "flag --permissions-deny"},
		{Text: "Read(/c)", Origin: project + ":1:21", Dir: w.WorkDir},
	}
	if !slices.Equal(c.Permissions.Deny, want) {
		t.Errorf("got  %+v\nwant %+v", c.Permissions.Deny, want)
	}
}

// A rule with a parenthesis that is not closed swallowed the deny rule behind it, without a word.
func TestListThatNobodyCanDivide(t *testing.T) {
	w := newWorld(t)
	w.Env = append(w.Env, "CODEHAND_PERMISSIONS_DENY=Bash(echo ( *),Read(secret)")
	w.Flags["--permissions-ask"] = "Bash(echo (a), (b)),Read(b)"
	bad := w.refused(t)
	if len(bad) != 1 || bad[0].Origin != "CODEHAND_PERMISSIONS_DENY" || !strings.HasPrefix(bad[0].Text, "permissions.deny: a parenthesis is not closed") {
		t.Errorf("got %v", bad)
	}
	w.Env = []string{"CODEHAND_PERMISSIONS_DENY=Bash(echo ( *)"}
	if c, _ := w.load(t); len(c.Permissions.Deny) != 1 || len(c.Permissions.Ask) != 2 {
		t.Errorf("got %+v, %+v", c.Permissions.Deny, c.Permissions.Ask)
	}
}

func TestEnvironmentOfTheSession(t *testing.T) {
	w := newWorld(t)
	w.Env = append(w.Env, "CODEHAND_SESSION=handle-1", "CLAUDE_CODE_SESSION_ID=bad id", "COPILOT_AGENT_SESSION_ID=c:1", "CODEHAND_TOKEN=x", "CODEHAND_TEST_REDIS=x", "CODEHAND=1")
	c, warnings := w.load(t)
	if c.StdioHandle != "handle-1" || c.StdioProcessID != "c:1" {
		t.Errorf("handle %q, process %q", c.StdioHandle, c.StdioProcessID)
	}
	origins := []string{}
	for _, warning := range warnings {
		origins = append(origins, warning.Origin)
	}
	if !slices.Equal(origins, []string{"CODEHAND_TOKEN", "CLAUDE_CODE_SESSION_ID"}) {
		t.Errorf("warnings: %v", warnings)
	}
	for _, bad := range []string{"short", strings.Repeat("x", 65), "with blank", "slash/slash"} {
		v := newWorld(t)
		v.Env = append(v.Env, "CODEHAND_SESSION="+bad)
		if got := v.refused(t).Error(); !strings.Contains(got, "CODEHAND_SESSION: must be 8-64") {
			t.Errorf("%q: %s", bad, got)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": 0, "250ms": 250 * time.Millisecond, "10m": 10 * time.Minute, "11m": -1, "-1s": -1, "5": -1, "": -1} {
		w := newWorld(t)
		w.Flags["stdio-eof-grace"] = text
		c, _, err := Load(w.Sources)
		if (err != nil) != (want < 0) || err == nil && c.Stdio.EOFGrace != want {
			t.Errorf("%q: %v, %v", text, c.Stdio.EOFGrace, err)
		}
	}
}

func TestBypassNeedsAnOrdinaryUserOrAContainer(t *testing.T) {
	w := newWorld(t)
	w.Flags["permissions-mode"] = "bypassPermissions"
	w.Env = append(w.Env, "container=podman")
	if c, _ := w.load(t); c.Permissions.Mode != permission.Bypass {
		t.Errorf("in a container: %v", c.Permissions.Mode)
	}
	l := loader{env: map[string]string{}}
	if os.Geteuid() != 0 || l.inContainer() {
		return // the rest is about root on a bare machine
	}
	w.Env = w.Env[:len(w.Env)-1]
	if got := w.refused(t).Error(); !strings.Contains(got, "refused for root") {
		t.Error(got)
	}
}
