package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestIssuers(t *testing.T) {
	w := newServe(t)
	file := w.user(t, `
[http]
public_url = "https://tools.example.com/x"
[[auth.oidc]]
name = "corp"
issuer = "https://login.example.com/realms/corp"
[[auth.oidc]]
name = "azure"
issuer = "https://login.microsoftonline.com/t/v2.0"
jwks_uri = "https://login.microsoftonline.com/t/keys?p=x"
audience = ["api://app", "app"]
audience_claim = "client_id"
algorithms = ["RS256"]
types = ["at+jwt"]
principal_claim = "email"
principal_prefix = "az:"
scope_claims = []
scope_map = {"api.write" = "mcp:write", read = "mcp:read"}
default_scopes = ["mcp:read"]
groups_claim = ""
step_up = false
initial_scopes = ["mcp:all"]
clock_skew = "0s"
`)
	c, _ := w.load(t)
	if len(c.Auth.Issuers) != 2 {
		t.Fatalf("%+v", c.Auth.Issuers)
	}
	corp, azure := c.Auth.Issuers[0], c.Auth.Issuers[1]
	const at = "https://tools.example.com/x"
	switch {
	case !slices.Equal(corp.Audience, []string{at + "/mcp", at + "/sse", at}):
		t.Errorf("audience %v", corp.Audience)
	case corp.PrincipalPrefix != "corp/", corp.PrincipalClaim != "sub", corp.AudienceClaim != "aud", corp.GroupsClaim != "groups":
		t.Errorf("%+v", corp)
	case !slices.Equal(corp.Types, []string{"at+jwt", "jwt", ""}), corp.ClockSkew != time.Minute, !corp.Scopes.StepUp:
		t.Errorf("%+v", corp)
	case !slices.Equal(corp.Scopes.Initial, []string{"mcp:read", "mcp:write"}), len(corp.Scopes.Default) != 0:
		t.Errorf("%+v", corp)
	case corp.origin != file+":4:3":
		t.Errorf("from %s", corp.origin)
	case !slices.Equal(azure.Audience, []string{"api://app", "app"}), azure.ClockSkew != 0, azure.Scopes.StepUp, azure.GroupsClaim != "":
		t.Errorf("%+v", azure)
	case !maps.Equal(azure.Scopes.Map, map[string]string{"api.write": "mcp:write", "read": "mcp:read"}), len(azure.Scopes.Claims) != 0:
		t.Errorf("%+v", azure)
	}
}

func TestIssuersRefuse(t *testing.T) {
	const first = "[[auth.oidc]]\nname = 'corp'\nissuer = 'https://login.example.com'\naudience = ['x']\n"
	const second = "[[auth.oidc]]\nname = 'b'\nissuer = 'https://b.example.com'\naudience = ['x']\n"
	for name, c := range map[string]struct{ text, want string }{
		"no audience":           {"[[auth.oidc]]\nname = 'corp'\nissuer = 'https://login.example.com'\n", ":1:3: auth.oidc: audience is empty"},
		"an empty audience":     {"[[auth.oidc]]\nname = 'corp'\nissuer = 'https://login.example.com'\naudience = ['']\n", "audience: an entry is empty"},
		"no name":               {"[[auth.oidc]]\nissuer = 'https://login.example.com'\naudience = ['x']\n", ":1:3: auth.oidc: name \"\": needs a name"},
		"name with a colon":     {strings.Replace(first, "corp", "a:b", 1), "needs a name"},
		"no issuer":             {"[[auth.oidc]]\nname = 'corp'\naudience = ['x']\n", "issuer: is missing"},
		"issuer in clear":       {strings.Replace(first, "https", "http", 1), "must be https"},
		"issuer with a query":   {strings.Replace(first, "example.com", "example.com?x", 1), "without user, fragment"},
		"issuer with a user":    {strings.Replace(first, "login.", "pw@login.", 1), "without user, fragment"},
		"issuer that is none":   {strings.Replace(first, "https://login.example.com", "corp", 1), "absolute URL"},
		"keys in clear":         {first + "jwks_uri = 'http://login.example.com/keys'\n", "jwks_uri: must be https"},
		"alg none":              {first + "algorithms = ['RS256', 'none']\n", `algorithms: "none" is not allowed`},
		"alg HS256":             {first + "algorithms = ['HS256']\n", `algorithms: "HS256" is not allowed`},
		"no alg":                {first + "algorithms = []\n", "algorithms is empty"},
		"no type":               {first + "types = []\n", "types is empty"},
		"type as media type":    {first + "types = ['application/at+jwt']\n", "without application/"},
		"type in capitals":      {first + "types = ['JWT']\n", "lower case"},
		"no prefix":             {first + "principal_prefix = ''\n", "principal_prefix \"\" must end with"},
		"prefix without an end": {first + "principal_prefix = 'own'\n", "must end with /, : or |"},
		"no claim":              {first + "principal_claim = ''\n", "is empty"},
		"equal prefixes":        {first + second + "principal_prefix = 'corp/'\n", ":5:3: auth.oidc: principal_prefix \"corp/\" begins like that of corp"},
		"prefix inside another": {first + second + "principal_prefix = 'corp/x/'\n", "begins like that of corp"},
		"equal names":           {first + strings.Replace(second, "'b'", "'corp'", 1), `name "corp" is given twice`},
		"equal issuers":         {first + strings.Replace(second, "b.example", "login.example", 1), "is given twice"},
		"unknown key":           {first + "audiense = ['x']\n", `:5:1: unknown key "auth.oidc.audiense" (did you mean "audience"?)`},
		"unknown scope":         {first + "default_scopes = ['mcp:writ']\n", `auth.oidc.default_scopes: unknown scope`},
		"map to unknown scope":  {first + "scope_map = {a = 'mcp:writ'}\n", `auth.oidc.scope_map: unknown scope`},
		"initial as header":     {first + "initial_scopes = ['a\"']\n", `auth.oidc.initial_scopes: "a\"" is not a scope`},
		"map of two":            {first + "scope_map = {\"a b\" = 'mcp:read'}\n", `must be one scope of the issuer`},
		"map as list":           {first + "scope_map = ['a']\n", `auth.oidc.scope_map: must be a table`},
		"map as table":          {first + "[auth.oidc.scope_map]\na = 'mcp:read'\n", `write it into its table`},
		"skew":                  {first + "clock_skew = '1h'\n", "clock_skew: must be a duration from 0s to 5m"},
		"skew below 0":          {first + "clock_skew = '-1s'\n", "clock_skew: must be a duration"},
		"one table":             {"[auth.oidc]\nname = 'corp'\n", ":1:2: auth.oidc: must be tables, written as [[auth.oidc]]"},
		"a list of texts":       {"auth.oidc = ['corp']\n", "must be tables"},
		"step up":               {first + "step_up = 'no'\n", "must be true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newServe(t)
			file := w.user(t, c.text)
			if got := w.refused(t).Error(); !strings.Contains(got, c.want) || !strings.Contains(got, file) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	if err := CheckIssuers([]Issuer{{}}); err == nil {
		t.Error("took an issuer about which nothing is said")
	}
}

// The list of keys names those that files take, and their defaults.
func TestIssuerSettings(t *testing.T) {
	w := newServe(t)
	for _, s := range IssuerSettings() {
		i := newIssuer("")
		if known, _ := i.set(s.Key, input{raw: "", file: true}); !known || s.Doc == "" {
			t.Errorf("%s is not known or not explained", s.Key)
		}
	}
	// a project says nothing of it
	w.Roots = nil
	w.write(t, "ws/.codehand/config.toml", "[[auth.oidc]]\nname = 'corp'\n")
	w.Roots = []string{w.path("ws")}
	c, warnings, err := Load(w.Sources)
	if len(c.Auth.Issuers) > 0 || err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Text, "auth.oidc (1:3)") {
		t.Errorf("%+v %v %v", c.Auth.Issuers, warnings, err)
	}
}

func TestGroups(t *testing.T) {
	w := newServe(t)
	file := w.user(t, `
[principals.groups."team b"]
scopes = ["mcp:read"]
deny = ["run_shell"]
[principals.groups.devs]
mode = "plan"
[quota.groups."team b"]
burst = 7
[principals.groups]
ops = {admin = true}
`)
	c, _ := w.load(t)
	g := c.Principals.Groups
	if len(g) != 3 || g[0].Name != "team b" || g[1].Name != "devs" || g[2].Name != "ops" || len(c.Principals.Named) != 0 {
		t.Fatalf("%+v", g)
	}
	if !slices.Equal(g[0].Values.Scopes, []string{"mcp:read"}) || g[0].Values.Quota["burst"] != "7" || *g[1].Values.Mode != "plan" || !*g[2].Values.Admin {
		t.Errorf("%+v", g)
	}
	if at := c.Principals.RuleOrigin("corp/1", "deny", "run_shell"); at != file+":4:9" {
		t.Errorf("the rule stands at %q", at)
	}
}

// The examples for identity providers are read as they are, and the table of their page names each.
func TestShippedIssuers(t *testing.T) {
	page, err := os.ReadFile("../../packaging/idp/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../packaging/idp/*.toml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w := newServe(t)
		w.user(t, "http.public_url = 'https://tools.example.com'\n"+string(text))
		if c, _ := w.load(t); len(c.Auth.Issuers) != 1 || c.Auth.Issuers[0].Name+".toml" != filepath.Base(file) {
			t.Errorf("%s: %+v", file, c.Auth.Issuers)
		}
		if !strings.Contains(string(page), "]("+filepath.Base(file)+")") {
			t.Errorf("the page does not name %s", file)
		}
	}
}

// With an issuer mode auto becomes oidc, in which each principal has a workspace of its own: where serve was started is
// of no use, and no reason for a warning.
func TestIssuersNeedNoDirectory(t *testing.T) {
	w := newServe(t)
	w.WorkDir = "/"
	if _, warnings := w.load(t); len(warnings) != 1 || !strings.Contains(warnings[0].Text, "no directory can be used") {
		t.Errorf("without an issuer: %v", warnings)
	}
	w.user(t, "[[auth.oidc]]\nname = 'corp'\nissuer = 'https://login.example.com'\naudience = ['x']\n")
	for _, mode := range []string{"auto", "oidc"} {
		w.Flags = map[string]string{"auth-mode": mode}
		if c, warnings := w.load(t); len(warnings) != 0 || c.Roots != nil {
			t.Errorf("%s: %v, roots %q", mode, warnings, c.Roots)
		}
	}
}
