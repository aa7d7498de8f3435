package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/public"
)

// publicWait is how long serve looks for itself at its public URL before it gives up.
const publicWait = time.Minute

// A publication is what --public asks for.
type publication struct {
	url    string
	wait   time.Duration
	prover *public.Prover
}

// publicFlags adds the flags of --public. Without a value --public prints how to get a URL.
func publicFlags(t *terminal, cmd *cobra.Command) *publication {
	p := &publication{}
	cmd.Flags().StringVar(&p.url, "public", "", "check that `URL` reaches this server safely from outside, and serve "+
		"it; alone: print how to get one")
	cmd.Flags().DurationVar(&p.wait, "public-wait", publicWait, "how long --public waits for the tunnel or proxy")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok && missing.GetFlag().Name == "public" {
			fmt.Fprint(t.out, waysText(localAddress(cmd)))
			return &exitError{code: exitDone, err: errors.New("")}
		}
		return flagError(cmd, err)
	})
	return p
}

// apply makes the URL of --public that of the configuration. It comes before the configuration is read.
func (p *publication) apply(cmd *cobra.Command) error {
	f := cmd.Flags()
	if !f.Changed("public") {
		return nil
	}
	if err := public.Usable(p.url); err != nil {
		return failure(exitUsage, err)
	}
	setting := f.Lookup("http-public-url")
	if setting.Changed && strings.TrimSuffix(setting.Value.String(), "/") != strings.TrimSuffix(p.url, "/") {
		return usage("leave out --http-public-url", "--public and --http-public-url name two URLs")
	}
	return f.Set("http-public-url", p.url)
}

// prover answers challenges at http.public_url, if there is one; nil: there is none. Without --public it answers from
// the start: serve checks nothing itself, but "codehand doctor --url" may.
func (run *serving) prover() *public.Prover {
	if run.cfg.HTTP.PublicURL == "" {
		return nil
	}
	p := public.NewProver(run.cfg.HTTP.PublicURL)
	if run.public == nil {
		p.Open()
		return p
	}
	run.public.prover = p
	return p
}

// failure gives a *public.Failure its exit code.
func failure(code int, err error) *exitError {
	exit := &exitError{code: code, err: err}
	if f, ok := errors.AsType[*public.Failure](err); ok {
		exit.hint = f.Hint()
	}
	return exit
}

// signsIn says whether a mode lets people sign in in a browser, as chats on the web need it.
func signsIn(mode string) bool {
	modes, err := auth.ParseModes(mode)
	return err == nil && modes.OAuth()
}

// mayPublish refuses what must not be on the open network: no sign-in, and commands that nothing confines. It comes
// before anything listens.
func (run *serving) mayPublish() error {
	if run.public == nil {
		return nil
	}
	if run.mode == "none" {
		return &exitError{code: exitConfig,
			err:  errors.New("--public needs a sign-in: without one everybody on the network acts as you"),
			hint: `run "codehand owner new", which prints a password, and add --auth-mode owner`}
	}
	if run.cfg.Sandbox.Policy == config.SandboxOff && run.noCommands == "" {
		return &exitError{code: exitConfig,
			err: errors.New("--public needs confined commands: sandbox.policy is off, so a stolen sign-in could do " +
				"everything that your user account can"),
			hint: "leave sandbox.policy as it is; where the sandbox is missing, serve runs no commands"}
	}
	return nil
}

// prove waits until the public URL is proven to reach this process, and then lets the endpoint serve. The error says
// what the URL reaches instead, or is that of ctx.
func (run *serving) prove(ctx context.Context, urls []string) error {
	p := run.public
	at := run.cfg.HTTP.PublicURL
	run.say("checking that %s reaches this process; until then nothing is served", at)
	err := public.Check{
		URL: at, Prover: p.prover, Agent: "codehand/" + buildVersion(), Wait: p.wait,
		Trying: func(err error) { run.say("not yet: %v; trying for %s", err, p.wait) },
	}.Run(ctx)
	if err != nil {
		return err
	}
	p.prover.Open()
	run.notify("READY=1")
	run.say("ready: %s reaches this process (instance %s)", at, p.prover.Instance())
	if run.noCommands != "" {
		run.say("COMMANDS DO NOT RUN: %s. Files can be read and changed", run.noCommands)
	} else {
		run.say("commands run at sandbox level %d", run.confined.Level)
	}
	if !signsIn(run.mode) {
		run.say("warning: tokens are the only sign-in, and chats on the web cannot send them; for those: " +
			"codehand owner new, then --auth-mode owner")
	} else if run.snippets {
		fmt.Fprint(run.t.errs, chatsText(run.endpointOr(urls)))
	}
	return nil
}

// endpointOr is the address that clients are told.
func (run *serving) endpointOr(urls []string) string {
	e, _ := run.endpoint(urls) // the public one: there is one
	return e.URL
}

// unproven is what serve ends with if the URL is not proven; nil: the person ended it meanwhile.
func unproven(err error) error {
	if _, ok := errors.AsType[*public.Failure](err); !ok {
		return nil
	}
	failed := failure(exitFailed, fmt.Errorf("nothing was served: %w", err))
	failed.hint += ". If only this machine cannot call that URL, serve it unchecked: --http-public-url in place of " +
		"--public"
	return failed
}

// localAddress is the first TCP address of --listen, as far as the flags were read; else the usual one.
func localAddress(cmd *cobra.Command) string {
	for at := range strings.SplitSeq(cmd.Flags().Lookup("http-listen").Value.String(), ",") {
		if strings.HasPrefix(at, "127.") || strings.HasPrefix(at, "localhost:") {
			return at
		}
	}
	return public.Usual
}

// waysText says how to get a public URL.
func waysText(local string) string {
	var b strings.Builder
	b.WriteString(`Chats on the web and the phone call codehand at a public https:// URL. First make the
password with which you sign in there, once:

  codehand owner new

Then put a URL in front of it, in one of these ways. Start serve in the directory to work
in; it says ready when the URL reaches it.
`)
	for _, way := range public.Ways(local) {
		fmt.Fprintf(&b, "\n%s\n", way.Name)
		for _, step := range way.Steps {
			command, is := strings.CutPrefix(step, "$ ")
			if is {
				step = command
			} else {
				step = "# " + step
			}
			fmt.Fprintf(&b, "  %s\n", step)
		}
	}
	b.WriteString(chatsText("URL/mcp"))
	return b.String()
}

// chatsText says where people paste the address of the endpoint.
func chatsText(at string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nPaste %s into your chat; it opens the page on which you sign in:\n\n", at)
	for _, c := range public.Chats() {
		fmt.Fprintf(&b, "  %-10s %s\n", c.Name, c.Where)
	}
	return b.String()
}
