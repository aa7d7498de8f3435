package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
)

// An Issuer is an identity provider whose access tokens are accepted. The zero value accepts none.
type Issuer struct {
	Name            string // in logs, audit and /readyz
	Issuer          string // URL; the claim iss is exactly this
	JWKSURI         string // of its keys; "": as its discovery document says
	Audience        []string
	AudienceClaim   string
	Algorithms      []string // of signatures
	Types           []string // of the header typ, in lower case, without application/; "": there is none
	PrincipalClaim  string
	PrincipalPrefix string
	GroupsClaim     string // "": groups do not count
	ClockSkew       time.Duration
	Scopes          IssuerScopes

	origin string // file:line:column
}

// IssuerScopes are what an issuer's tokens are good for.
type IssuerScopes struct {
	Claims  []string          // that list scopes
	Map     map[string]string // from the issuer's scopes to ours
	Default []string          // of a token with none of ours
	Initial []string          // that clients are told to ask for
	StepUp  bool              // a client is told which scope a call needs, and may ask for it
}

// issuerArray says whether path is that of the issuers.
func issuerArray(path []string) bool { return slices.Equal(path, []string{"auth", "oidc"}) }

// What an Issuer may be made of.
var (
	issuerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`) })
	// algorithms of public keys; with any other one, who can verify a token can also make one
	issuerAlgorithms = []string{
		"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA",
	}
)

// maxSkew is how wrong the clock of an issuer may be.
const maxSkew = 5 * time.Minute

// newIssuer is what holds of an issuer about which nothing else is said.
func newIssuer(origin string) Issuer {
	return Issuer{
		AudienceClaim: "aud", Algorithms: []string{"RS256", "ES256", "PS256", "EdDSA"},
		Types: []string{"at+jwt", "jwt", ""}, PrincipalClaim: "sub", GroupsClaim: "groups", ClockSkew: time.Minute,
		Scopes: IssuerScopes{
			Claims: []string{"scope", "scp"}, Default: []string{}, Initial: []string{"mcp:read", "mcp:write"},
			StepUp: true,
		},
		origin: origin,
	}
}

// IssuerSettings lists the keys of [[auth.oidc]]. The slice is the caller's.
func IssuerSettings() []Setting {
	return []Setting{
		{Key: "name", Doc: "what log, audit and /readyz call the issuer: up to 32 of a-z, 0-9, - and _"},
		{Key: "issuer", Doc: "URL of the issuer, exactly as its tokens say in iss"},
		{Key: "jwks_uri", Doc: "URL of its keys; empty: as its discovery document says"},
		{Key: "audience", Doc: "what a token must be for, one of these; empty: http.public_url alone, with /mcp " +
			"and with /sse"},
		{Key: "audience_claim", Default: "aud", Doc: "claim that says what a token is for"},
		{Key: "algorithms", Default: "RS256,ES256,PS256,EdDSA", Doc: "algorithms of signatures; none and " +
			"HS* are refused"},
		{Key: "types", Default: "at+jwt,jwt,", Doc: "values of the header typ, empty for a token without it; at+jwt " +
			"alone for issuers that follow RFC 9068"},
		{Key: "principal_claim", Default: "sub", Doc: "claim that names the principal; email counts only with " +
			"email_verified"},
		{Key: "principal_prefix", Default: "NAME/", Doc: "what stands before it, so that no issuer names another's " +
			"principals, or the operator's own"},
		{Key: "scope_claims", Default: "scope,scp", Doc: "claims that list the scopes of a token"},
		{Key: "scope_map", Doc: `what the issuer's scopes mean here, such as {"api.write" = "mcp:write"}`},
		{Key: "default_scopes", Doc: "scopes of a token that carries none of ours; empty: it is good for nothing"},
		{Key: "groups_claim", Default: "groups", Doc: "claim that lists groups, for principals.groups.NAME; empty: " +
			"none"},
		{Key: "step_up", Default: "true", Doc: "tell a client which scope a call needs, so that it can sign in for it"},
		{Key: "initial_scopes", Default: "mcp:read,mcp:write", Doc: "scopes that clients are told to ask for, under " +
			"the names that the issuer has for them"},
		{Key: "clock_skew", Default: "60s", Doc: "how far in the future nbf and iat may be, at most 5m"},
	}
}

// readIssuer reads one table of [[auth.oidc]].
func readIssuer(l *loader, e entry, in input) {
	if list, ok := e.raw.([]any); ok && len(list) == 0 {
		return
	}
	table, ok := e.raw.(map[string]any)
	if !ok {
		l.problems.add(e.origin, fmt.Sprintf("%s: must be tables, written as [[%s]]", e.key, e.key))
		return
	}
	i := newIssuer(e.origin)
	problems := len(l.problems)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		at := in
		at.raw, at.lines = table[key], nil
		if origin := e.keys[key]; origin != "" {
			at.origin = origin
		}
		known, err := i.set(key, at)
		switch {
		case !known:
			l.problems.add(at.origin, fmt.Sprintf("unknown key %q", e.key+"."+key)+meant(key, issuerKeys()))
		case err != nil:
			l.refuse(e.key+"."+key, at.origin, err)
		}
	}
	if _, said := table["principal_prefix"]; !said {
		i.PrincipalPrefix = i.Name + "/"
	}
	if len(l.problems) == problems {
		l.config.Auth.Issuers = append(l.config.Auth.Issuers, i)
	}
}

func issuerKeys() []string {
	var keys []string
	for _, s := range IssuerSettings() {
		keys = append(keys, s.Key)
	}
	return keys
}

// set sets one key of an issuer; known is false if there is no such key.
func (i *Issuer) set(key string, in input) (known bool, err error) {
	plain := map[string]*string{
		"name": &i.Name, "issuer": &i.Issuer, "jwks_uri": &i.JWKSURI, "audience_claim": &i.AudienceClaim,
		"principal_claim": &i.PrincipalClaim, "principal_prefix": &i.PrincipalPrefix, "groups_claim": &i.GroupsClaim,
	}
	lists := map[string]*[]string{
		"audience": &i.Audience, "algorithms": &i.Algorithms, "types": &i.Types, "scope_claims": &i.Scopes.Claims,
	}
	scopes := map[string]value{
		"default_scopes": terms{&i.Scopes.Default, readScope},
		"initial_scopes": list{&i.Scopes.Initial, checkScopeName},
	}
	switch {
	case plain[key] != nil:
		err = (text{plain[key]}).set(in)
	case lists[key] != nil:
		*lists[key], err = entries(in)
	case scopes[key] != nil:
		err = scopes[key].set(in)
	case key == "scope_map":
		i.Scopes.Map, err = readScopeMap(in)
	case key == "step_up":
		err = (toggle{&i.Scopes.StepUp}).set(in)
	case key == "clock_skew":
		err = (period{&i.ClockSkew, 0, maxSkew, nil}).set(in)
	default:
		return false, nil
	}
	return true, err
}

// readScopeMap reads a table from the issuer's scopes to ours.
func readScopeMap(in input) (map[string]string, error) {
	table, ok := in.raw.(map[string]any)
	if !ok {
		return nil, errors.New(`must be a table, such as {"api.write" = "mcp:write"}`)
	}
	scopes := map[string]string{}
	for _, theirs := range slices.Sorted(maps.Keys(table)) {
		ours, ok := table[theirs].(string)
		if err := checkScopeName(theirs); err != nil || !ok {
			return nil, fmt.Errorf("%q: must be one scope of the issuer with one of ours", theirs)
		}
		if _, err := auth.ParseScopes([]string{ours}); err != nil {
			return nil, err
		}
		scopes[theirs] = ours
	}
	return scopes, nil
}

// checkScopeName refuses what cannot be a scope of OAuth. It stands in a header.
func checkScopeName(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return fmt.Errorf("%q is not a scope", s)
	}
	return nil
}

// issuersTogether fills in what depends on other settings, and checks the issuers.
func issuersTogether(l *loader) {
	c := &l.config
	for i := range c.Auth.Issuers {
		if one := &c.Auth.Issuers[i]; len(one.Audience) == 0 && c.HTTP.PublicURL != "" {
			one.Audience = []string{c.HTTP.PublicURL + "/mcp", c.HTTP.PublicURL + "/sse", c.HTTP.PublicURL}
		}
	}
	if m, err := auth.ParseModes(c.Auth.Mode); err == nil && !m.OIDC && len(c.Auth.Issuers) > 0 {
		l.warnings = append(l.warnings, Warning{Origin: c.Auth.Issuers[0].origin,
			Text: "auth.oidc: its tokens are not accepted, because auth.mode is " + c.Auth.Mode})
	}
	for i := range c.Auth.Issuers {
		if err := checkIssuer(c.Auth.Issuers[:i], c.Auth.Issuers[i]); err != nil {
			l.problems.add(c.Auth.Issuers[i].origin, "auth.oidc: "+err.Error())
		}
	}
}

// CheckIssuers refuses issuers that would accept tokens that are not for us, or whose principals could be taken for
// others.
func CheckIssuers(list []Issuer) error {
	for i, one := range list {
		if err := checkIssuer(list[:i], one); err != nil {
			return fmt.Errorf("auth.oidc %q: %w", one.Name, err)
		}
	}
	return nil
}

// checkIssuer checks an issuer by itself and beside those before it.
func checkIssuer(before []Issuer, i Issuer) error {
	if !issuerName().MatchString(i.Name) {
		return fmt.Errorf("name %q: needs a name of up to 32 characters a-z, 0-9, - and _", i.Name)
	}
	if err := issuerURL(i.Issuer, "?#"); err != nil {
		return fmt.Errorf("issuer: %w", err)
	}
	if i.JWKSURI != "" {
		if err := issuerURL(i.JWKSURI, "#"); err != nil {
			return fmt.Errorf("jwks_uri: %w", err)
		}
	}
	switch {
	case len(i.Audience) == 0:
		return errors.New("audience is empty, so a token for any other service would open this one; set it, or " +
			"http.public_url")
	case slices.Contains(i.Audience, ""):
		return errors.New("audience: an entry is empty")
	case len(i.Algorithms) == 0:
		return errors.New("algorithms is empty")
	case len(i.Types) == 0:
		return errors.New("types is empty")
	case i.AudienceClaim == "" || i.PrincipalClaim == "" || slices.Contains(i.Scopes.Claims, ""):
		return errors.New("audience_claim, principal_claim or an entry of scope_claims is empty")
	case i.ClockSkew < 0 || i.ClockSkew > maxSkew:
		return errors.New("clock_skew must be from 0s to 5m")
	}
	for _, a := range i.Algorithms {
		if !slices.Contains(issuerAlgorithms, a) {
			return fmt.Errorf("algorithms: %q is not allowed; use %s", a, strings.Join(issuerAlgorithms, ", "))
		}
	}
	for _, t := range i.Types {
		if t != strings.ToLower(t) || strings.HasPrefix(t, "application/") {
			return fmt.Errorf("types: write %q in lower case, without application/", t)
		}
	}
	if i.PrincipalPrefix == "" || !strings.ContainsAny(i.PrincipalPrefix[len(i.PrincipalPrefix)-1:], "/:|") {
		return fmt.Errorf("principal_prefix %q must end with /, : or |: else the issuer could name the owner, or a "+
			"principal of the tokens file", i.PrincipalPrefix)
	}
	if err := auth.CheckID(i.PrincipalPrefix + "x"); err != nil {
		return fmt.Errorf("principal_prefix: %w", err)
	}
	return besideIssuers(before, i)
}

// besideIssuers refuses what two issuers must not share.
func besideIssuers(before []Issuer, i Issuer) error {
	for _, o := range before {
		switch {
		case o.Name == i.Name:
			return fmt.Errorf("name %q is given twice", i.Name)
		case o.Issuer == i.Issuer:
			return fmt.Errorf("issuer %s is given twice", i.Issuer)
		case strings.HasPrefix(o.PrincipalPrefix, i.PrincipalPrefix),
			strings.HasPrefix(i.PrincipalPrefix, o.PrincipalPrefix):
			return fmt.Errorf("principal_prefix %q begins like that of %s, %q, so one could name principals of the "+
				"other", i.PrincipalPrefix, o.Name, o.PrincipalPrefix)
		}
	}
	return nil
}

// issuerURL refuses a URL whose answers a host on the way could forge, and one with a character of never.
func issuerURL(s, never string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return errors.New("is missing; write the URL of the issuer")
	case err != nil || u.Host == "" || u.Opaque != "":
		return errors.New("must be an absolute URL, such as https://login.example.com")
	case u.User != nil || strings.ContainsAny(s, never):
		return errors.New("must be a URL without user, fragment and, for an issuer, query")
	case u.Scheme == "https":
		return nil
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errors.New("must be https; http is for issuers on this machine only")
}
