package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/tools/keys"
)

// A Mount is another MCP server whose tools are offered, too. It has a program or an address.
type Mount struct {
	Name    string // of [a-z0-9_]
	Program MountProgram
	At      MountAddress
	Tools   []string // names that count, as the server has them; empty: all
	Always  []string // those that are always listed
	Timeout time.Duration
	Start   time.Duration
	Trusted bool // what the server says of its tools counts
	Eager   bool
	Sandbox bool   // the program runs in the sandbox of commands
	Scope   string // process, principal, session; "": process on stdio, principal in serve
	Off     bool

	origin  string
	managed bool                     // the administrator's file names it: nothing of another file counts
	lookup  func(name string) string // of the environment that the settings were made from
}

// A MountProgram speaks MCP over its standard input and output.
type MountProgram struct {
	Argv []string // the program is absolute, or a name in PATH; empty: there is none
	Env  map[string]string
	Cwd  string // absolute; "": the home directory, or the first root where it is confined
}

// A MountAddress is where a server is reached over HTTP.
type MountAddress struct {
	URL     string // http or https; "": there is none
	Headers map[string]string
	// Transport says how URL speaks: http (Streamable HTTP), sse (its predecessor), or auto: what it answers to.
	Transport string

	// OAuth says how tokens are had where there is no header Authorization: login, by a person who signed in, or
	// client, by the secret of codehand itself.
	OAuth  string
	ID     string   // of codehand, as the authorization server knows it; "": it is registered at each sign-in
	Secret string   // of codehand there, with references as headers have them; "": it has none
	Scopes []string // that are asked for
}

// Signs says whether tokens of OAuth go with the requests, if there are any.
func (m Mount) Signs() bool {
	for name := range m.At.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	return m.At.URL != ""
}

// oauthLogin and oauthClient are the values of oauth.
const (
	oauthLogin  = "login"
	oauthClient = "client"
)

// SignsItself says whether codehand has tokens of its own there.
func (m Mount) SignsItself() bool { return m.At.OAuth == oauthClient }

// mountsTable is the path of the tables of mounted servers, one for each by its name.
var mountsTable = []string{"mcp", "servers"}

// autoTransport is the transport of an address that says by its answers how it speaks.
const autoTransport = "auto"

// maxMounts is how many servers can be mounted.
const maxMounts = 100

var mountName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`) })

// mountPath says whether path leads to or into a table of mounted servers.
func mountPath(path []string) bool {
	return len(path) >= len(mountsTable) && slices.Equal(path[:len(mountsTable)], mountsTable) ||
		len(path) == 1 && path[0] == mountsTable[0]
}

// mountSection says whether path is such a table, or one in it.
func mountSection(path []string) bool {
	switch len(path) {
	case 1, 2, 3:
		return mountPath(path)
	case 4:
		return mountPath(path) && (path[3] == "env" || path[3] == "headers")
	}
	return false
}

// checkMountName says what is wrong with the name of a mounted server; nil: nothing.
func checkMountName(name string) error {
	if !mountName().MatchString(name) || len(name) > 20 || name == "codehand" {
		return errors.New("a server's name has up to 20 of a-z, 0-9 and single _ between them, and is not codehand")
	}
	return nil
}

// mount applies one key of a mounted server.
func (l *loader) mount(e entry, in input) {
	if e.empty {
		l.problems.add(e.origin, e.key+": needs command or url")
		return
	}
	if len(e.path) < 4 || len(e.path) > 5 {
		l.problems.add(e.origin, fmt.Sprintf("unknown key %q; servers are written as [mcp.servers.NAME]", e.key))
		return
	}
	name, key := e.path[2], e.path[3]
	if err := checkMountName(name); err != nil {
		l.problems.add(e.origin, fmt.Sprintf("%s: %v", e.key, err))
		return
	}
	i := slices.IndexFunc(l.config.Mounts, func(m Mount) bool { return m.Name == name })
	if i < 0 {
		if len(l.config.Mounts) == maxMounts {
			l.problems.add(e.origin, fmt.Sprintf("%s: there are more than %d servers", e.key, maxMounts))
			return
		}
		i = len(l.config.Mounts)
		l.config.Mounts = append(l.config.Mounts, newMount(name, e.origin, variables(l.env)))
	}
	if m := &l.config.Mounts[i]; l.managed.path != "" && !m.managed {
		*m = newMount(name, e.origin, variables(l.env))
		m.managed = true
	}
	known, err := l.config.Mounts[i].set(key, e.path[4:], in)
	switch {
	case !known:
		l.problems.add(e.origin, fmt.Sprintf("unknown key %q", e.key)+meant(key, mountKeys()))
	case err != nil:
		l.refuse(e.key, in.origin, err)
	}
}

// mountOff lets a project leave a server out, which is all that it may say of one.
func (l *loader) mountOff(e entry) (counts bool) {
	off, isOff := e.raw.(bool)
	if len(e.path) != 4 || e.path[3] != "off" || !isOff || !off {
		return false
	}
	i := slices.IndexFunc(l.config.Mounts, func(m Mount) bool { return m.Name == e.path[2] })
	if i >= 0 {
		l.config.Mounts[i].Off = true
	}
	return true
}

func newMount(name, origin string, lookup func(string) string) Mount {
	return Mount{Name: name, At: MountAddress{Transport: autoTransport, OAuth: oauthLogin},
		Timeout: 2 * time.Minute, Start: time.Minute, origin: origin, lookup: lookup}
}

// MountSettings lists the keys of [mcp.servers.NAME]. The slice is the caller's.
func MountSettings() []Setting {
	return []Setting{
		{Key: "command", Doc: "program that speaks MCP over its standard input and output"},
		{Key: "args", Doc: "its arguments"},
		{Key: "env", Doc: "variables that it gets besides the usual ones, as {NAME = \"value\"}; ${VAR} stands for a " +
			"variable of codehand, ${file:/PATH} for the content of a file that only its owner may read"},
		{Key: "cwd", Doc: "its working directory; empty: the home directory; with sandbox the first root"},
		{Key: "url", Doc: "address of a server that is reached over HTTP, instead of command"},
		{Key: "headers", Doc: "headers of each request, as {Authorization = \"Bearer ${TOKEN}\"}; with references as " +
			"in env"},
		{Key: "transport", Default: "auto", Values: []string{"auto", "http", "sse"},
			Doc: "how the address speaks: http (Streamable HTTP), sse, or auto"},
		{Key: "oauth", Default: "login", Values: []string{"login", "client"},
			Doc: "how tokens for url are had where no header Authorization is set: by a person who signed in with " +
				"codehand mcp login, or by the secret of codehand itself"},
		{Key: "oauth_client_id", Doc: "of codehand at the authorization server; empty: it registers at the sign-in"},
		{Key: "oauth_client_secret", Doc: "of codehand there, as ${VAR} or ${file:/PATH}"},
		{Key: "oauth_scopes", Doc: "scopes that are asked for"},
		{Key: "tools", Doc: "names of its tools that count; empty: all"},
		{Key: "always", Doc: "names of its tools that are always listed; the others are found by tool_search"},
		{Key: "timeout_ms", Default: "120000", Doc: "how long a call may take"},
		{Key: "start_timeout_ms", Default: "60000", Doc: "how long it may take to start and to list its tools"},
		{Key: "trusted", Default: "false", Doc: "whether what it says of its tools counts, such as that one only " +
			"reads; else each is taken to change things"},
		{Key: "eager", Default: "false", Doc: "start it with codehand, and not when a tool is first needed"},
		{Key: "sandbox", Default: "false", Doc: "run the command in the sandbox of the shell: the roots, its own " +
			"caches and the network of sandbox.network; where the machine cannot, it is not started"},
		{Key: "scope", Values: []string{"process", "principal", "session"},
			Doc: "who shares one connection; empty: process on stdio, principal in serve"},
		{Key: "off", Default: "false", Doc: "leave it out"},
	}
}

func mountKeys() []string {
	var keys []string
	for _, s := range MountSettings() {
		keys = append(keys, s.Key)
	}
	return keys
}

// set sets one key; known is false if there is no such key. below is what follows the key: the name of a variable or
// header.
func (m *Mount) set(key string, below []string, in input) (known bool, err error) {
	if (len(below) > 0) != (key == "env" || key == "headers") {
		if key == "env" || key == "headers" {
			return true, errors.New(`must be a table, as {NAME = "value"}`)
		}
		return false, nil
	}
	switch key {
	case "command":
		var program string
		if err = (text{&program}).set(in); err == nil {
			err = m.setProgram(program, in)
		}
	case "args":
		var args []string
		if args, err = entries(in); err == nil {
			m.Program.Argv = append(slices.Clip(append(m.Program.Argv, "")[:1]), args...)
		}
	case "env":
		err = m.setPair(&m.Program.Env, below[0], in, variableName().MatchString)
	case "headers":
		err = m.setPair(&m.At.Headers, below[0], in, func(name string) bool {
			return name != "" &&
				!strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' })
		})
	case "cwd":
		err = (term{&m.Program.Cwd, absolute}).set(in)
	case "url":
		err = (term{&m.At.URL, mountURL}).set(in)
	case "transport":
		err = (choice{&m.At.Transport, []string{autoTransport, "http", "sse"}}).set(in)
	case "oauth":
		err = (choice{&m.At.OAuth, []string{oauthLogin, oauthClient}}).set(in)
	case "oauth_client_id":
		err = (text{&m.At.ID}).set(in)
	case "oauth_client_secret":
		if err = (text{&m.At.Secret}).set(in); err == nil && !strings.Contains(m.At.Secret, "${") && m.At.Secret != "" {
			err = errors.New("must be a reference, as ${VARIABLE} or ${file:/absolute/path}")
		}
		if err == nil {
			_, err = expand(m.At.Secret, func(string) (string, error) { return "", nil })
		}
	case "oauth_scopes":
		m.At.Scopes, err = entries(in)
	case "tools":
		m.Tools, err = entries(in)
	case "always":
		m.Always, err = entries(in)
	case "timeout_ms":
		err = (millis{&m.Timeout, 100, 3_600_000}).set(in)
	case "start_timeout_ms":
		err = (millis{&m.Start, 100, 600_000}).set(in)
	case "trusted":
		err = (toggle{&m.Trusted}).set(in)
	case "eager":
		err = (toggle{&m.Eager}).set(in)
	case "sandbox":
		err = (toggle{&m.Sandbox}).set(in)
	case "scope":
		err = (choice{&m.Scope, []string{"session", "principal", "process"}}).set(in)
	case "off":
		err = (toggle{&m.Off}).set(in)
	default:
		return false, nil
	}
	return true, err
}

// setProgram sets the program, and leaves the arguments.
func (m *Mount) setProgram(program string, in input) error {
	switch {
	case program == "":
		return errors.New("is empty")
	case strings.ContainsAny(program, `/\`):
		path, err := absolute(program, in)
		if err != nil {
			return err
		}
		program = path
	}
	if len(m.Program.Argv) == 0 {
		m.Program.Argv = []string{program}
	}
	m.Program.Argv[0] = program
	return nil
}

func (m *Mount) setPair(to *map[string]string, name string, in input, good func(string) bool) error {
	var value string
	if err := (text{&value}).set(in); err != nil {
		return err
	}
	if !good(name) {
		return fmt.Errorf("%q is no name that it could have", name)
	}
	if _, err := expand(value, func(string) (string, error) { return "", nil }); err != nil {
		return err
	}
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
	return nil
}

func mountURL(s string, _ input) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("must be an http or https URL without a user")
	}
	return s, nil
}

// checkMounts finds what does not go together.
func checkMounts(l *loader) {
	for i := range l.config.Mounts {
		m := &l.config.Mounts[i]
		wrong := ""
		switch {
		case len(m.Program.Argv) > 0 && m.At.URL != "":
			wrong = "give command or url, not both"
		case m.At.URL == "" && (len(m.Program.Argv) == 0 || m.Program.Argv[0] == ""):
			wrong = "needs command or url"
		case m.At.URL == "" && (m.At.Headers != nil || m.At.Transport != autoTransport || m.oauth()):
			wrong = "headers, transport and oauth count only with url"
		case m.oauth() && !m.Signs():
			wrong = "oauth counts only without a header Authorization"
		case m.At.OAuth == oauthClient && (m.At.ID == "" || m.At.Secret == ""):
			wrong = `oauth = "client" needs oauth_client_id and oauth_client_secret`
		case m.At.URL != "" && (m.Program.Env != nil || m.Program.Cwd != ""):
			wrong = "env and cwd count only with command"
		case m.At.URL != "" && m.Sandbox:
			wrong = "sandbox counts only with command"
		}
		if wrong != "" {
			l.problems.add(m.origin, "mcp.servers."+m.Name+": "+wrong)
		}
	}
	slices.SortFunc(l.config.Mounts, func(a, b Mount) int { return strings.Compare(a.Name, b.Name) })
}

// oauth says whether something is set about tokens.
func (m Mount) oauth() bool {
	return m.At.OAuth == oauthClient || m.At.ID != "" || m.At.Secret != "" || len(m.At.Scopes) > 0
}

// sameMounts says whether two lists mount the same.
func sameMounts(a, b []Mount) bool {
	return slices.EqualFunc(a, b, func(a, b Mount) bool {
		a.lookup, b.lookup, a.origin, b.origin = nil, nil, "", ""
		return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
	})
}

// Expanded is Env or Headers with what its references stand for now. Errors name the variable or file, never a value.
func (m Mount) Expanded(pairs map[string]string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		value, err := expand(pairs[name], m.refer)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = value
	}
	return all, nil
}

// refer is what one reference stands for.
func (m Mount) refer(to string) (string, error) {
	if file, ok := strings.CutPrefix(to, fileReference); ok {
		return keys.Source{File: file}.Read()
	}
	if value := m.lookup(to); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the variable %s is not set", to)
}

const fileReference = "file:"

// expand replaces each ${…} of a value.
func expand(value string, refer func(to string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		to, after, closed := strings.Cut(rest, "}")
		file, isFile := strings.CutPrefix(to, fileReference)
		if !closed || isFile && !filepath.IsAbs(file) || !isFile && !variableName().MatchString(to) {
			return "", errors.New("a reference is written ${VARIABLE} or ${file:/absolute/path}")
		}
		text, err := refer(to)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		value = after
	}
}

// secretName is what a variable is called that holds a secret.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|PAT$`)
})

// mountReferences are the variables and files with the secrets of mounted servers, which commands do not get.
func (c Config) mountReferences() (variables, files []string) {
	for _, m := range c.Mounts {
		for _, pairs := range []map[string]string{m.Program.Env, m.At.Headers, {"": m.At.Secret}} {
			for _, value := range pairs {
				_, _ = expand(value, func(to string) (string, error) {
					if file, ok := strings.CutPrefix(to, fileReference); ok {
						files = append(files, filepath.Clean(file))
					} else if secretName().MatchString(to) {
						variables = append(variables, to)
					}
					return "", nil
				})
			}
		}
	}
	slices.Sort(variables)
	slices.Sort(files)
	return slices.Compact(variables), slices.Compact(files)
}
