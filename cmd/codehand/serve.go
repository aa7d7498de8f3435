package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/auth"
	"codehand/server/clients"
	"codehand/server/clients/install"
	"codehand/server/config"
	"codehand/server/doctor"
	"codehand/server/engines"
	"codehand/server/listen"
	"codehand/tools"
	"codehand/tools/sandbox"
)

// serveFlags are the settings that the help of serve shows, in its order. All others are there, too.
var serveFlags = []string{
	"http.public_url", "auth.mode", "store.url", "http.data_dir", "http.tls_cert", "http.tls_key", "http.behind_proxy",
}

// tokenVariable is what snippets call the variable that holds a token.
const tokenVariable = "CODEHAND_TOKEN"

// addresses is the flag --http-listen, which may be repeated; the first one replaces what holds without flags.
type addresses []string

func (a *addresses) Set(s string) error {
	*a = append(*a, s)
	return nil
}
func (a *addresses) String() string { return strings.Join(*a, ",") }
func (a *addresses) Type() string   { return "ADDRESS" }

func newServe(t *terminal) *cobra.Command {
	var check, snippets bool
	var publish *publication
	cmd := &cobra.Command{
		Use:   "serve [ROOT...]",
		Short: "Serve many clients over HTTP",
		Long: `Serve MCP clients over HTTP: Streamable HTTP at /mcp, the older SSE transport at
/sse. Without flags it serves the current directory at 127.0.0.1:7433 to your user
account, and runs commands as stdio does. For a team, make tokens ("codehand token
new NAME"), give each person a workspace ("/srv/ws/{principal}" as ROOT), and use
TLS or a proxy.

--public URL is for chats on the web and the phone: it checks that the URL of your
tunnel or proxy reaches this process, with TLS and a sign-in, before anything is
served. Alone, --public prints how to get such a URL.

SIGHUP reloads tokens and certificates. SIGTERM and Ctrl-C let running calls
finish (http.drain); a second one ends at once. All settings: codehand help settings.

Exit codes: 0 ended by a signal, after running calls had time to finish, 1 the start
or a listener failed, 2 usage, 3 configuration, 128+n a second signal n.`,
		Example: `  codehand serve
  codehand serve --listen 127.0.0.1:8080 ~/src/project
  codehand serve --listen 0.0.0.0:7433 --http-public-url https://tools.example.com \
    --http-behind-proxy true --auth-mode token '/srv/ws/{principal}'`,
		RunE: func(cmd *cobra.Command, roots []string) error {
			if f := cmd.Flags(); f.Changed("listen") {
				f.Lookup("http-listen").Changed = true // two names of one value
			}
			if len(roots) > 0 && address().MatchString(roots[0]) {
				if _, err := os.Stat(roots[0]); err != nil {
					return usage("codehand serve --listen 127.0.0.1:"+address().FindStringSubmatch(roots[0])[1],
						"%s is no directory; an address is given with --listen", roots[0])
				}
			}
			run := &serving{t: t, snippets: snippets, person: onTerminal(t.errs)}
			if err := publish.apply(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("public") {
				run.public = publish
			}
			return run.serve(cmd, roots, check)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	var listen addresses
	f.Var(&listen, "listen", "short for --http-listen")
	f.Var(&listen, "http-listen", "host:port, [v6]:port, unix:/path or systemd:; repeatable (default 127.0.0.1:7433)")
	settings := config.Settings()
	for _, key := range serveFlags {
		i := slices.IndexFunc(settings, func(s config.Setting) bool { return s.Key == key })
		f.String(flagName(settings[i]), settings[i].Default, settings[i].Doc)
	}
	publish = publicFlags(t, cmd)
	f.String("config", "", "configuration file to read instead of the user's")
	f.BoolVar(&check, "check", false, "check everything, say what would be served, and exit without listening")
	f.BoolVar(&snippets, "snippets", false, "print what to paste into each client")
	return cmd
}

// address is what somebody gives as an argument who is used to programs that take a port or an address there.
var address = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[\w.]*:)?(\d{1,5})$`) })

// onTerminal says whether a person reads what is written to w.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}

// A serving is one run of serve.
type serving struct {
	t        *terminal
	snippets bool
	person   bool          // a person reads what it says
	read     config.Config // as the sources had it
	cfg      config.Config // as it is served
	mode     string        // of authentication; never auto

	noCommands string // why no command runs; "": commands run
	confined   sandbox.Report
	public     *publication // of --public; nil: not given
}

func (run *serving) serve(cmd *cobra.Command, roots []string, check bool) error {
	t := run.t
	starting := func() bool { return true } // all is read now anyway
	t.hangup.Store(&starting)
	defer t.hangup.Store(nil)
	if err := sandbox.Hide(); err != nil { // weaker than it could be, and said
		run.say("warning: commands can read the environment of this process: %v", err)
	}
	cfg, warnings, err := load(cmd, roots)
	for _, w := range warnings {
		run.say("%s", w)
	}
	if err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	run.read = cfg
	log, err := t.logger(cfg)
	if err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	var passed []net.Listener
	if slices.Contains(cfg.HTTP.Listen, "systemd:") {
		if passed, err = systemdSockets(); err != nil {
			return &exitError{code: exitFailed, err: err}
		}
	}
	if err := listen.Check(cfg, passed...); err != nil {
		return startError(err)
	}
	if cfg, err = listen.Settle(cfg, passed...); err != nil {
		return startError(err)
	}
	// One directory holds all that serve keeps.
	if cfg.StateDir, err = config.OpenState(cfg.DataDir()); err != nil {
		return &exitError{code: exitConfig, err: err, hint: dataDirHint(cfg)}
	}
	cfg.HTTP.DataDir = cfg.StateDir
	if cfg.Auth.Mode == "none" && len(cfg.Principals.Default.Roots) > 0 {
		if cfg.Roots, err = localRoots(cfg.Principals.Default.Roots); err != nil {
			return &exitError{code: exitConfig, err: err}
		}
	}
	run.cfg, run.mode = cfg, cfg.Auth.Mode
	s, err := server.New(server.Options{AuditOut: t.out, Public: run.prover(), Check: check, Options: engines.Options{
		Config: cfg, Tools: tools.All, Version: buildVersion(), Log: log, Serve: true,
	}})
	if err != nil {
		return startError(err)
	}
	t.server.Store(s)
	run.noCommands, run.confined = s.NoCommands(), s.Confinement()
	if err := run.mayPublish(); err != nil {
		return errors.Join(err, s.Close())
	}
	if check {
		run.describe(wouldServe(cfg))
		if run.mode == "none" && len(cfg.Roots) == 0 {
			run.say("ready to serve, but no tool can use a file: there is no root; --check does not listen")
		} else {
			run.say("ready to serve; --check does not listen")
		}
		return failed(s.Close())
	}
	return run.listen(cmd, roots, s, listen.Options{Inherited: passed, Log: log})
}

// listen opens the addresses, and serves on them until a signal, then drains. It closes s.
func (run *serving) listen(cmd *cobra.Command, roots []string, s *server.Server, o listen.Options) error {
	t, cfg := run.t, run.cfg
	ls, err := listen.Open(cmd.Context(), cfg, o)
	if err != nil {
		return startError(errors.Join(err, s.Close()))
	}
	urls := make([]string, len(ls))
	for i, l := range ls {
		urls[i] = l.URL
	}
	reload := func() bool { return run.reload(cmd, roots, s, ls) }
	t.hangup.Store(&reload)
	run.describe(urls)
	endMetrics, err := run.metrics(cmd.Context(), s)
	if err != nil {
		for _, l := range ls {
			_ = l.Close() // never served
		}
		return startError(errors.Join(err, s.Close()))
	}
	ctx, end := context.WithCancelCause(cmd.Context())
	defer end(nil)
	proven := make(chan error, 1)
	if run.public == nil {
		run.notify("READY=1")
		proven <- nil
	} else {
		go func() {
			err := run.prove(ctx, urls)
			if err != nil {
				end(err)
			}
			proven <- err
		}()
	}
	reported := atEnd(cmd.Context(), func() {
		run.notify("STOPPING=1") // first: standard error may be a terminal that stands still
		run.say("stopping; running calls have %s to finish%s, a second signal ends at once", cfg.HTTP.Drain,
			lameDuck(cfg, ls))
	})
	err = s.HTTP(ctx, ls)
	end(nil)
	unchecked := unproven(<-proven)
	endMetrics() // they look into what is closed now
	err = errors.Join(err, s.Close())
	reported(5 * time.Second) // longer than that a blocked standard error does not delay the end
	if err == nil && unchecked != nil {
		return unchecked
	}
	return failed(err)
}

// lameDuck says how long the end takes at least, which a start right behind it would meet; "": no time.
func lameDuck(cfg config.Config, ls []listen.Listener) string {
	d := cfg.HTTP.LameDuck
	if d < 0 { // as the endpoint decides
		d = 0
		if slices.ContainsFunc(ls, func(l listen.Listener) bool { return !l.Loopback && !l.Unix }) {
			d = 5 * time.Second
		}
	}
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("; it ends after http.lame_duck (%s) at the earliest", d)
}

// atEnd calls f in a goroutine of its own once ctx ends. done is called once: f is never called after it, and has
// returned unless it takes longer than limit from then on. Without the wait a process that has nothing to drain would
// end before f has reported it.
func atEnd(ctx context.Context, f func()) (done func(limit time.Duration)) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		f()
	})
	return func(limit time.Duration) {
		if stop() {
			return
		}
		select {
		case <-ended:
		case <-time.After(limit):
		}
	}
}

// localRoots are the roots of the one principal of a server without sign-in. That principal exists already, so its
// directories are made now and not at its first call.
func localRoots(templates []string) ([]string, error) {
	roots := slices.Clone(templates)
	for i, template := range templates {
		if roots[i] = strings.ReplaceAll(template, "{principal}", "local"); roots[i] == template {
			continue
		}
		if err := os.MkdirAll(roots[i], 0o700); err != nil {
			return nil, fmt.Errorf("root %s: %w", template, err)
		}
	}
	return roots, nil
}

// metrics serves metrics.listen, if there is one, until end is called: also during the drain.
func (run *serving) metrics(ctx context.Context, s *server.Server) (end func(), err error) {
	l, ok, err := listen.OpenMetrics(ctx, run.cfg)
	if err != nil || !ok {
		return func() {}, err
	}
	run.say("metrics at %s/metrics for everyone who can reach that address", l.URL)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.ServeMetrics(ctx, l); err != nil {
			run.say("metrics: %v", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}, nil
}

// wouldServe are the addresses as they will be called when they are bound.
func wouldServe(cfg config.Config) []string {
	scheme := "http://"
	if cfg.HTTP.TLSCert != "" {
		scheme = "https://"
	}
	urls := slices.Clone(cfg.HTTP.Listen)
	for i, at := range urls {
		if _, _, err := net.SplitHostPort(at); err == nil && !strings.HasPrefix(at, "unix:") {
			urls[i] = scheme + at
		}
	}
	return urls
}

// say prints one line for people, below what was logged before it.
func (run *serving) say(format string, args ...any) {
	run.t.log.Flush()
	fmt.Fprintf(run.t.errs, "codehand: "+format+"\n", args...)
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitFailed, err: err}
}

// dataDirHint says what to do about a data directory that cannot be used.
func dataDirHint(cfg config.Config) string {
	at := cfg.Origin("http.data_dir")
	if !strings.Contains(at, ".toml:") {
		return "--http-data-dir names another directory"
	}
	hint := "http.data_dir (" + at + ") names it"
	if me, err := user.Current(); err == nil {
		hint += "; chown it to " + me.Username + " if that user runs serve"
	}
	return hint
}

// startError gives a refusal its exit code and its hint.
func startError(err error) error {
	if wrong, ok := errors.AsType[*config.Unusable](err); ok {
		return &exitError{code: exitConfig, err: err, hint: wrong.Hint}
	}
	exit := &exitError{code: exitFailed, err: err}
	if hinting, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		exit.hint = hinting.Hint()
	}
	if bind, ok := errors.AsType[*listen.BindError](err); ok {
		exit.hint = bind.Hint
	}
	return exit
}

// reload is what SIGHUP does. It is false if the terminal that showed us is gone: then the signal means the end.
func (run *serving) reload(cmd *cobra.Command, roots []string, s *server.Server, ls []listen.Listener) bool {
	principals, issuers := run.read.Principals, run.read.Auth.Issuers
	cfg, _, err := load(cmd, roots)
	errs := []error{err}
	if err == nil {
		principals, issuers = cfg.Principals, cfg.Auth.Issuers
		for _, key := range run.read.Changed(cfg) {
			run.say("%s changed; it takes effect after a restart", key)
		}
	}
	errs = append(errs, s.ReloadIssuers(issuers), s.Reload(principals))
	for _, l := range ls {
		errs = append(errs, l.Reload())
	}
	text := "reloaded principals, issuers, tokens and certificates"
	if err := errors.Join(errs...); err != nil {
		text = "reload failed: " + err.Error() + "; the old ones stay in use"
	}
	_, err = fmt.Fprintf(run.t.errs, "codehand: %s\n", text)
	return err == nil
}

// describe says what is served, where and to whom, and warns. urls are the listeners', or as configured with --check.
func (run *serving) describe(urls []string) {
	cfg := run.cfg
	paths := "/mcp"
	if cfg.HTTP.SSE {
		paths = "/mcp and /sse"
	}
	run.say("version %s serves %s at %s", buildVersion(), paths, strings.Join(urls, ", "))
	if cfg.HTTP.PublicURL != "" {
		run.say("clients connect to %s", cfg.HTTP.PublicURL)
	}
	run.say("auth mode %s", run.access())
	page, signIn := run.pages(urls)
	if signIn != "" {
		run.say("to sign in, add %s/mcp to your client; its browser window then leads to %s/signin/",
			signIn, signIn)
	}
	if page != "" {
		shows := "what waits for your approval, and takes changes back"
		if cfg.Console.Approvals == "off" {
			shows = "what tools changed, and takes it back"
		}
		run.say("a browser at %s/ shows %s", page, shows)
	}
	run.say("data directory %s (store %s)", cfg.DataDir(), cfg.Store.URL)
	run.say("%s", run.confinement())
	if text := run.noNetwork(); text != "" {
		run.say("%s", text)
	}
	for _, root := range run.roots() {
		run.say("root %s", root)
	}
	for _, text := range run.warnings() {
		run.say("warning: %s", text)
	}
	if run.snippets {
		run.paste(urls)
	}
	if run.person {
		run.next(urls)
	}
}

// pages are the addresses of the page for people, and at which they sign in; "": there is none, or no address is known
// yet. Both end without a slash.
func (run *serving) pages(urls []string) (page, signIn string) {
	modes, err := auth.ParseModes(run.mode)
	if err != nil || !modes.None && !modes.Pages() {
		return "", ""
	}
	if page = run.cfg.HTTP.PublicURL; page == "" {
		e, _ := run.endpoint(urls)
		page = strings.TrimSuffix(e.URL, "/mcp")
	}
	if page = strings.TrimSuffix(page, "/"); modes.Pages() {
		signIn = page
	}
	return page, signIn
}

// access says who can connect, and in mode token why tokens are needed and how many there are.
func (run *serving) access() string {
	if modes, err := auth.ParseModes(run.mode); err == nil && modes.OAuth() {
		if !modes.Pages() {
			return run.mode + ": people sign in with " + run.issuers() + run.besides(modes)
		}
		text := map[bool]string{true: "one person, the owner, signs in", false: "principals sign in"}[modes.Owner]
		if modes.OIDC {
			text += ", or with " + run.issuers()
		}
		return run.mode + ": " + text + run.besides(modes)
	}
	switch {
	case run.mode == "none" && run.everyUser():
		return "none: no tokens, every user of this machine can connect"
	case run.mode == "none":
		return "none: no tokens, only your user account can connect"
	}
	why, alone := "auth.mode is token ("+run.read.Origin("auth.mode")+")", ""
	if run.read.Auth.Mode == "auto" {
		why, alone = "tokens were made", ". To serve only yourself, without tokens: --auth-mode none"
	}
	valid, all := run.tokens()
	return fmt.Sprintf("token, because %s; valid tokens: %d of %d in %s%s", why, valid, all, run.cfg.TokenFile(), alone)
}

// issuers names those with whom people sign in.
func (run *serving) issuers() string {
	var names []string
	for _, i := range run.cfg.Auth.Issuers {
		names = append(names, i.Name+" ("+i.Issuer+")")
	}
	return strings.Join(names, ", ")
}

// besides says how many tokens are good beside a sign-in.
func (run *serving) besides(modes auth.Modes) string {
	valid, all := run.tokens()
	if !modes.Token || all == 0 {
		return ""
	}
	return fmt.Sprintf("; tokens are good, too: %d of %d in %s are valid", valid, all, run.cfg.TokenFile())
}

// tokens counts the tokens, and those of them that are neither revoked nor expired.
func (run *serving) tokens() (valid, all int) {
	tokens, _ := auth.OpenTokenFile(run.cfg.TokenFile()).List() // server.New has read it, and said what is wrong
	now := time.Now()
	for _, tok := range tokens {
		if tok.State(now) == "active" {
			valid++
		}
	}
	return valid, len(tokens)
}

// confinement says how far commands are confined, or why there are none.
func (run *serving) confinement() string {
	r := run.confined
	text := fmt.Sprintf("sandbox level %d: ", r.Level)
	if run.noCommands != "" {
		return text + "the tools that run commands are not listed: " + run.noCommands
	}
	text += doctor.LevelText(r.Level)
	if len(r.Gaps) > 0 {
		text += "; not kept: " + strings.Join(r.Gaps, ", ")
	}
	if r.Ungrouped != "" {
		text += "; memory is not limited: " + r.Ungrouped
	}
	if r.Failed != nil {
		text += fmt.Sprintf("; level %d failed: %s (%s)", r.Failed.Level, r.Failed.Probe, r.Failed.Remedy)
	}
	return text
}

// noNetwork says that commands reach no network, or only some hosts, and what opens it; "": nothing keeps them from it.
func (run *serving) noNetwork() string {
	switch network := run.cfg.Sandbox.Network; {
	case run.noCommands != "" || run.cfg.Sandbox.Policy == "off" || run.confined.Level < sandbox.LevelKernel:
		return ""
	case network == config.NetworkOff:
		return `commands have no network: sandbox.network = "list" with sandbox.domains opens hosts, "on" opens all`
	case network == config.NetworkList:
		return "commands reach only the hosts in sandbox.domains"
	}
	return ""
}

// roots are where principals work, as templates.
func (run *serving) roots() []string {
	switch roots := run.cfg.Principals.Default.Roots; {
	case run.mode == "none":
		return run.cfg.Roots
	case len(roots) > 0:
		return roots
	case run.ownerSignsIn():
		return run.cfg.Roots
	}
	return []string{filepath.Join(run.cfg.DataDir(), "workspaces", "{principal}")}
}

func (run *serving) ownerSignsIn() bool {
	modes, err := auth.ParseModes(run.mode)
	return err == nil && modes.Owner
}

// everyUser says whether clients of other users of this machine are let in without a token.
func (run *serving) everyUser() bool {
	return run.cfg.Auth.LocalPeer == "any" || !auth.TellsUsers()
}

// warnings name every setting that protects less than a reader would expect.
func (run *serving) warnings() []string {
	cfg := run.cfg
	var out []string
	if run.mode == "none" {
		if cfg.HTTP.PublicURL != "" {
			out = append(out,
				"auth.mode is none, so requests for http.public_url, and all that come through a proxy, are refused; "+
					"to serve them: codehand owner new, then --public "+cfg.HTTP.PublicURL+" --auth-mode owner")
		}
		if run.everyUser() {
			out = append(out, "every user of this machine can connect and acts as you")
		}
	} else {
		for _, root := range run.roots() {
			if !strings.Contains(root, "{principal}") && !run.ownerSignsIn() {
				out = append(out, "root "+root+" is shared by all principals")
			}
		}
		m, _ := auth.ParseModes(run.mode)
		if valid, _ := run.tokens(); valid == 0 && !m.OAuth() {
			out = append(out, "there is no valid token, so nobody can connect; make one: codehand token new NAME")
		}
	}
	if cfg.Sandbox.Policy == config.SandboxOff && listen.WhyShared(cfg) != "" {
		out = append(out, "sandbox.policy is off: commands of everyone who connects can do everything that your user "+
			"account can")
	}
	if cfg.HTTP.TLSCert == "" {
		for _, at := range cfg.HTTP.Listen {
			if listen.Outside(at) {
				out = append(out, at+" takes plain HTTP, and tokens cross the network to it in clear: let only your "+
					"proxy reach it, or set http.tls_cert and http.tls_key")
			}
		}
	}
	if cfg.Store.URL == "memory:" {
		out = append(out, "store memory: sessions are forgotten when this process ends")
	}
	if cfg.Audit.OnError == "continue" {
		out = append(out, "audit.on_error is continue: calls run even when they cannot be recorded")
	}
	return out
}

// next tells a person how the clients of this machine are connected. Its last line is the address, so that it stands on
// every screen.
func (run *serving) next(urls []string) {
	e, ok := run.endpoint(urls)
	if !ok {
		return
	}
	errs := run.t.errs
	var here []string
	for _, f := range install.Look(clientPlaces(run.cfg)) {
		if f.Present && !slices.Contains(here, f.Client) {
			here = append(here, f.Client)
		}
	}
	command := connecting("CLIENT", e)
	if len(here) > 0 {
		fmt.Fprintf(errs, "\nClients on this machine: %s.", strings.Join(here, ", "))
		command = connecting(here[0], e)
	}
	fmt.Fprintf(errs, "\nTo connect one: %s\n", command)
	if !run.snippets {
		fmt.Fprintln(errs, "What to paste into any other: codehand serve --snippets")
	}
	fmt.Fprintf(errs, "\nServing at %s until Ctrl-C\n", e.URL)
}

// connecting is the command that connects a client to the endpoint.
func connecting(client string, e clients.Endpoint) string {
	command := "codehand install " + client + " --remote " + e.URL
	if e.TokenEnv != "" {
		command += " --token-env " + e.TokenEnv
	}
	return command
}

// paste prints what each client is told.
func (run *serving) paste(urls []string) {
	e, ok := run.endpoint(urls)
	if !ok {
		run.say("no snippets: clients cannot connect to a unix socket; listen on an address as well")
		return
	}
	errs := run.t.errs
	command := connecting("CLIENT", e)
	fmt.Fprintf(errs, "\nRun %s, or paste into your client's configuration file:\n", command)
	for _, s := range clients.Snippets(e) {
		fmt.Fprintf(errs, "\n%s: %s", s.ID, s.Files.On(runtime.GOOS))
		if s.Files.Project != "" {
			fmt.Fprintf(errs, ", or %s in a project", s.Files.Project)
		}
		if s.Note != "" {
			fmt.Fprintf(errs, " (%s)", s.Note)
		}
		fmt.Fprintf(errs, "\n%s", s.Text)
	}
	if e.TokenEnv != "" {
		fmt.Fprintf(errs, "\nSet %s in the client's environment to a token. To make one: codehand token new NAME\n",
			e.TokenEnv)
	}
	fmt.Fprintln(errs)
}

// endpoint is what clients are told of this server: the public address, else that of the first listener that has one;
// false: there is none.
func (run *serving) endpoint(urls []string) (e clients.Endpoint, ok bool) {
	e.Command = installed()
	if run.mode != "none" && !signsIn(run.mode) { // else each client signs in by itself
		e.TokenEnv = tokenVariable
	}
	if public := run.cfg.HTTP.PublicURL; public != "" {
		e.URL = strings.TrimSuffix(public, "/") + "/mcp"
		return e, true
	}
	for _, at := range urls {
		u, err := url.Parse(at)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			continue
		}
		ip, err := netip.ParseAddr(u.Hostname())
		if hosts := run.cfg.HTTP.AllowedHosts; err == nil && ip.IsUnspecified() && len(hosts) > 0 {
			u.Host = hosts[0]
			if _, _, err := net.SplitHostPort(u.Host); err != nil {
				_, port, _ := net.SplitHostPort(strings.TrimPrefix(at, u.Scheme+"://"))
				u.Host = net.JoinHostPort(strings.Trim(u.Host, "[]"), port)
			}
		}
		e.URL = u.Scheme + "://" + u.Host + "/mcp"
		return e, true
	}
	return e, false
}
