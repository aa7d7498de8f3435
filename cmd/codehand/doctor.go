package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/audit"
	"codehand/server/clients/install"
	"codehand/server/config"
	"codehand/server/doctor"
	"codehand/server/engines"
	"codehand/server/issuer"
	"codehand/tools"
)

// rulesLimit bounds the look at what rules cover: files are counted, and there can be any number. Doctor takes half of
// it, since each of its checks has 10 s.
const rulesLimit = 10 * time.Second

// doctorFlags is what doctor is told on its command line.
type doctorFlags struct {
	json, strict, slow bool
	serve, cluster     bool
	audit, url         string
	connect            connectFlags // token and authorities for url
}

func newDoctor(t *terminal) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor [CLIENT...] [ROOT...]",
		Short: "Check this machine, its clients, or an endpoint, and say what to do",
		Long: `Check what codehand needs here, and say what to do about what is wrong: its binary,
configuration, roots, state directory and store, programs and hooks, how far commands
are confined, which way pages take and who answers searches and executes sub-agents, the
limits of the system, and what each rule of permissions covers here, with a warning where
it can match nothing. Each client's entry is started as that client
would start it (command, arguments, environment, directory), lists its tools in both
protocol eras and must end with its input. Entries of a project's files are started only
if they are this program alone. Of other programs only codehand itself is started, from
outside of the project: no npx, no shell and no script.

With CLIENT, such as claude-code, check only those clients; codehand install --help lists
them. A directory of that name is ./NAME.

With --serve check what codehand serve needs on this machine instead: its configuration,
the identity providers, programs, the sandbox and limits. codehand serve --check says the
rest, and needs the data directory for itself.

With --cluster check the machines that share a store (cluster.node), from one of them:
the servers of NATS and their streams, each node by the way that requests take, versions,
clocks, the shared volume, and whose node does not live.

With --url check an endpoint instead, as clients and attackers see it: TLS, which process
answers and by which URL it knows itself, its pages for load balancers, what it serves
without a token and to foreign pages, both eras, OAuth and its clock. --slow adds a call
of 25 s, to see whether a proxy buffers or cuts. A token is sent only over https:// or to
this machine.

With --audit DIR check an audit log instead: every line must follow the one
before, in all files of the log. The first line that is changed, cut or missing
is named.

Nothing is changed, except that a missing state directory is created, and streams that
are missing in NATS. What is written to try a directory is removed. A check has 10 s,
those that start this program and --cluster 20 s, the entries of all clients 120 s
together, --slow 45 s; --audit has no limit.

Exit codes: 0 no FAIL, 1 a FAIL (with --strict also a warn), 2 usage.`,
		Example: `  codehand doctor
  codehand doctor claude-code
  codehand doctor --url https://tools.example.com/mcp --token-env TEAM_TOKEN --slow`,
		RunE: func(cmd *cobra.Command, args []string) error { return runDoctor(t, cmd, args, f) },
	}
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return install.Clients(), cobra.ShellCompDirectiveDefault
	}
	localConfig(cmd, "check the configuration in `FILE`, for stdio and for serve")
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print a JSON array of {id, level, text, fix}")
	flags.BoolVar(&f.serve, asServe, false, "check what serve needs, and nothing of stdio and clients")
	flags.BoolVar(&f.cluster, asCluster, false, "check the machines that share a store, and nothing else")
	flags.StringVar(&f.audit, "audit", "", "check the audit log in `DIR`, and nothing else")
	flags.BoolVar(&f.strict, "strict", false, "fail on warnings, too")
	flags.StringVar(&f.url, "url", "", "check the endpoint at `URL`, and nothing else")
	flags.BoolVar(&f.slow, "slow", false, "with --url, make a call of 25 s through what stands before the endpoint")
	flags.StringVar(&f.connect.tokenEnv, "token-env", "", "with --url, the environment variable that holds the token")
	flags.StringVar(&f.connect.tokenFile, "token-file", "", "with --url, the file that holds the token, mode 0600")
	flags.StringVar(&f.connect.caFile, "ca-file", "",
		"with --url, PEM file of certificate authorities to trust besides the system's")
	return cmd
}

func runDoctor(t *terminal, cmd *cobra.Command, args []string, f doctorFlags) error {
	var found []doctor.Finding
	switch changed := cmd.Flags().Changed; {
	case changed("audit"):
		found = []doctor.Finding{checkAudit(f.audit)}
	case changed("url"):
		if len(args) > 0 {
			return usage("codehand doctor --help", "--url checks an endpoint; leave out %q", args[0])
		}
		checks, err := remoteChecks(f)
		if err != nil {
			return err
		}
		found = doctor.Run(cmd.Context(), checks)
	case f.slow || f.connect != connectFlags{}:
		return usage("codehand doctor --help", "--slow, --token-env, --token-file and --ca-file are for --url")
	case f.cluster:
		if len(args) > 0 || f.serve {
			return usage("codehand doctor --help", "--cluster checks all machines that share a store, and nothing else")
		}
		cfg, _, err := load(cmd, nil) // warnings are about what serve does
		if err != nil {
			found = misconfigured("", err)
			break
		}
		found = doctor.Run(cmd.Context(), doctor.Cluster{Config: cfg}.Checks())
	case f.serve:
		if len(args) > 0 {
			return usage("codehand doctor --help", "--serve checks what serve needs; leave out %q", args[0])
		}
		found = diagnoseServe(cmd)
	default:
		found = diagnose(cmd, args)
	}
	if err := printFindings(t, found, f.json); err != nil {
		return err
	}
	bad := slices.ContainsFunc(found, func(one doctor.Finding) bool {
		return one.Level == doctor.Fail || f.strict && one.Level == doctor.Warn
	})
	if bad {
		return &exitError{code: exitFailed, err: errors.New("")}
	}
	return nil
}

func printFindings(t *terminal, found []doctor.Finding, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(t.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(found)
	}
	for _, f := range found {
		fmt.Fprintf(t.out, "%-4s  %-9s  %s\n", f.Level, f.ID, shown(f.Text))
		if f.Fix != "" {
			fmt.Fprintf(t.out, "%17s-> %s\n", "", shown(f.Fix))
		}
	}
	_, err := fmt.Fprintf(t.out, "\n%s\n", verdict(found))
	return err
}

// verdict is the last line, which stands on every screen.
func verdict(found []doctor.Finding) string {
	var wrong []string
	for _, level := range []doctor.Level{doctor.Fail, doctor.Warn} {
		n := 0
		for _, f := range found {
			if f.Level == level {
				n++
			}
		}
		if n > 0 {
			wrong = append(wrong, fmt.Sprintf("%d %s", n, level))
		}
	}
	if len(wrong) == 0 {
		return "all good"
	}
	return strings.Join(wrong, ", ") + ": look for them above, with what to do"
}

// remoteChecks are those of --url.
func remoteChecks(f doctorFlags) ([]doctor.Check, error) {
	r := doctor.Remote{URL: f.url, Slow: f.slow}
	var err error
	if r.Token, _, err = bearer(f.connect); err != nil {
		return nil, err
	}
	if r.CAs, err = authorities(f.connect.caFile); err != nil {
		return nil, err
	}
	return r.Checks(), nil
}

// diagnose runs all checks of this machine, or those of the clients among args, in any order.
func diagnose(cmd *cobra.Command, args []string) []doctor.Finding {
	m := doctor.Machine{Version: buildVersion(), Revision: revision(), Env: os.Environ()}
	var only, roots []string
	for _, arg := range args {
		if slices.Contains(install.Clients(), arg) {
			only = append(only, arg)
		} else {
			roots = append(roots, arg)
		}
	}
	for _, root := range roots {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			exit, _ := errors.AsType[*exitError](noDirectory(root, err))
			return []doctor.Finding{{ID: "roots", Level: doctor.Fail, Text: exit.err.Error(), Fix: exit.hint}}
		}
	}
	var err error
	if m.Program, err = os.Executable(); err != nil {
		m.Program = "" // the check of the binary says what to do
	}
	m.Config, m.Warnings, err = load(cmd, roots)
	if err != nil {
		return misconfigured("", err)
	}
	m.Args = append([]string{"stdio"}, m.Config.Roots...)
	if file := cmd.Flag("config").Value.String(); file != "" {
		m.Args = append(m.Args, "--config="+file)
	}
	for flag, value := range given(cmd) {
		m.Args = append(m.Args, flag+"="+value)
	}
	m.More = []doctor.Check{
		{ID: "config", Run: func(context.Context) []doctor.Finding { return checkServe(cmd) }},
		{ID: "issuers", Run: func(ctx context.Context) []doctor.Finding {
			return checkIssuers(ctx, m.Config.Auth.Issuers)
		}},
		{ID: "rules", Run: func(ctx context.Context) []doctor.Finding { return checkRules(ctx, m.Config) }},
		{ID: "web", Run: func(ctx context.Context) []doctor.Finding { return checkWeb(ctx, m.Config, m.Env) }},
	}
	if len(only) == 0 {
		return doctor.Run(cmd.Context(), m.Checks())
	}
	var found []doctor.Finding
	for _, m.Client = range only {
		for _, f := range doctor.Run(cmd.Context(), m.Checks()) {
			if !slices.Contains(found, f) { // the binary is that of each
				found = append(found, f)
			}
		}
	}
	return found
}

// diagnoseServe runs the checks of --serve.
func diagnoseServe(cmd *cobra.Command) []doctor.Finding {
	m := doctor.Machine{Serve: true, Version: buildVersion(), Revision: revision(), Env: os.Environ()}
	var err error
	if m.Program, err = os.Executable(); err != nil {
		m.Program = "" // the check of the binary says what to do
	}
	if m.Config, m.Warnings, err = load(cmd, nil); err != nil {
		return misconfigured("serve: ", err)
	}
	m.More = []doctor.Check{
		{ID: "config", Run: func(context.Context) []doctor.Finding { return checkShared(m.Config) }},
		{ID: "issuers", Run: func(ctx context.Context) []doctor.Finding {
			return checkIssuers(ctx, m.Config.Auth.Issuers)
		}},
	}
	return doctor.Run(cmd.Context(), m.Checks())
}

// misconfigured says what is wrong with the configuration, one finding each.
func misconfigured(of string, err error) []doctor.Finding {
	const fix = "fix the file or the setting that is named"
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		return []doctor.Finding{{ID: "config", Level: doctor.Fail, Text: of + err.Error(), Fix: fix}}
	}
	var out []doctor.Finding
	for _, p := range problems {
		out = append(out, doctor.Finding{ID: "config", Level: doctor.Fail, Text: of + p.Error(), Fix: fix})
	}
	return out
}

// checkServe says what serve would refuse in the configuration that --config names, and what it would not use; a file
// that is good for stdio may not be for it.
func checkServe(cmd *cobra.Command) []doctor.Finding {
	file := cmd.Flag("config").Value.String()
	if file == "" {
		return nil
	}
	var cfg config.Config
	src, err := config.Process()
	if err == nil {
		src.Flags, src.UserFile, src.Serve = given(cmd), file, true
		cfg, _, err = config.Load(src)
	}
	if err != nil {
		return misconfigured("serve: ", err)
	}
	return checkShared(cfg)
}

// checkIssuers asks each issuer for what serve needs of it.
func checkIssuers(ctx context.Context, issuers []config.Issuer) []doctor.Finding {
	var out []doctor.Finding
	for _, i := range issuers {
		f := doctor.Finding{ID: "issuers", Level: doctor.OK}
		found, fix, err := issuer.Probe(ctx, i, nil)
		if f.Text = i.Name + ": " + found; err != nil {
			f.Level, f.Text, f.Fix = doctor.Fail, fmt.Sprintf("%s: %s: %v", i.Name, i.Issuer, err), fix
		}
		out = append(out, f)
	}
	return out
}

// checkRules says what each rule covers here: one that covers something else than its author thinks guards nothing.
func checkRules(ctx context.Context, cfg config.Config) []doctor.Finding {
	s, err := server.New(server.Options{
		Options: engines.Options{Config: cfg, Tools: tools.All, Version: buildVersion()},
	})
	if err != nil {
		return []doctor.Finding{{ID: "rules", Level: doctor.Fail, Text: err.Error(),
			Fix: "fix the file or the setting that is named"}}
	}
	defer func() { _ = s.Close() }() // nothing was done that could be lost
	ctx, cancel := context.WithTimeout(ctx, rulesLimit/2)
	defer cancel()
	var out []doctor.Finding
	rules, hosts := apart(s.Rules(ctx))
	if len(hosts) > 0 {
		out = append(out, doctor.Finding{ID: "rules", Level: doctor.OK, Text: fmt.Sprintf(
			"web_fetch may read %d hosts by default; codehand permissions check lists them", len(hosts))})
	}
	for _, r := range rules {
		f := doctor.Finding{ID: "rules", Level: doctor.OK, Text: fmt.Sprintf("%s %s: %s, from %s", r.List,
			shown(r.Rule), covered(r), shown(r.Origin))}
		switch {
		case r.Warning != "":
			f.Level, f.Text, f.Fix = doctor.Warn, f.Text+"; "+shown(r.Warning), r.Fix
		case r.Note != "":
			f.Level, f.Text = doctor.Note, f.Text+"; "+shown(r.Note)
		}
		out = append(out, f)
	}
	return out
}

// checkAudit follows the chains of an audit log. It has no limit of time: a log can have gigabytes.
func checkAudit(dir string) doctor.Finding {
	lines, err := audit.Check(dir)
	f := doctor.Finding{ID: "audit", Level: doctor.Fail}
	if damage, ok := errors.AsType[*audit.Break](err); ok {
		f.Text = fmt.Sprintf("%v (%d lines before it are in order)", damage, lines)
		f.Fix = "keep the files as they are, and find out who could write to the directory"
		return f
	}
	if err != nil {
		f.Text, f.Fix = err.Error(), "give the directory of the log: audit.dir, or else audit in the data directory"
		return f
	}
	return doctor.Finding{ID: "audit", Level: doctor.OK, Text: fmt.Sprintf("%d lines, each follows the one before",
		lines)}
}
