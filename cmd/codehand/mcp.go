package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"codehand/server/config"
	"codehand/tools/results"
)

func newMCP(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Mount other MCP servers, and see what they offer",
		Args:  wanted(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return usage("codehand mcp --help", "missing subcommand; available: list, test, add, remove, import, login")
		},
	}
	cmd.PersistentFlags().String("config", "", "configuration file instead of the user's")
	cmd.AddCommand(newMCPList(t), newMCPTest(t), newMCPAdd(t), newMCPRemove(t), newMCPImport(t), newMCPLogin(t))
	return cmd
}

func newMCPList(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:         "list",
		Annotations: map[string]string{ofMounts: ""},
		Short:       "List the mounted servers, without starting any",
		Long: `List the servers that the settings mount: how each is reached, and what is said
of it. None is started. Values of variables and headers are not shown.

Exit codes: 0 done, 2 usage, 3 configuration.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := load(cmd, nil)
			if err != nil {
				return &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
			}
			if len(cfg.Mounts) == 0 {
				_, err := fmt.Fprintln(t.out, "no server is mounted: codehand mcp add NAME -- COMMAND...")
				return err
			}
			w := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
			for _, m := range cfg.Mounts {
				fmt.Fprintf(w, "%s\t%s\t%s\n", m.Name, mountWhere(m), mountWords(m))
			}
			return w.Flush()
		},
	}
}

// mountWhere is how a server is reached.
func mountWhere(m config.Mount) string {
	if m.At.URL != "" {
		return results.Line(m.At.URL, 100)
	}
	return results.Line(strings.Join(m.Program.Argv, " "), 100)
}

// mountWords is what is said of a server besides.
func mountWords(m config.Mount) string {
	var words []string
	for _, w := range []struct {
		name string
		said bool
	}{{"off", m.Off}, {"trusted", m.Trusted}, {"eager", m.Eager}, {"in the sandbox", m.Sandbox}} {
		if w.said {
			words = append(words, w.name)
		}
	}
	if m.Scope != "" {
		words = append(words, "one connection for each "+m.Scope)
	}
	for _, of := range []struct {
		what  string
		pairs map[string]string
	}{{"variables", m.Program.Env}, {"headers", m.At.Headers}} {
		if len(of.pairs) > 0 {
			words = append(words, of.what+": "+strings.Join(slices.Sorted(maps.Keys(of.pairs)), " "))
		}
	}
	return strings.Join(words, ", ")
}

func newMCPTest(t *terminal) *cobra.Command {
	var wait time.Duration
	var accept bool
	cmd := &cobra.Command{
		Use:         "test NAME",
		Annotations: map[string]string{ofMounts: ""},
		Short:       "Start a mounted server, and list its tools or say why it fails",
		Long: `Start or reach a mounted server as a call of one of its tools would, and list its
tools, with what each costs in a model's context once it was found (bytes of its
entry in tools/list, divided by 4). Until then none costs anything, but those that
"always" names.

A tool that the server describes in another way than when it was first used is
named, with what changed. Its next call asks a person; --accept accepts all of them
as they are now, for good.

Exit codes: 0 it works, 1 it does not (the message says why), 2 usage,
3 configuration.`,
		Args: wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := t.openQuiet(cmd)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), wait,
				fmt.Errorf("it did not answer within %s", wait))
			defer cancel()
			mounted, err := s.Mounted(ctx, args[0], accept)
			if err := errors.Join(err, s.Close()); err != nil {
				return &exitError{code: exitFailed,
					err:  fmt.Errorf("%s: %s", args[0], results.Line(results.Clean(err.Error()), 500)),
					hint: "codehand mcp list"}
			}
			sum := 0
			w := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
			for _, e := range mounted.Tools {
				sum += e.Tokens()
				what := "writes"
				if e.Tool.Spec.Traits.ReadOnly {
					what = "reads"
				}
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", e.Tool.Spec.Name, e.Tokens(), what,
					results.Line(e.Tool.Spec.Description, 70))
			}
			if err := w.Flush(); err != nil {
				return err
			}
			said := "changed, and asked about at its next call"
			if accept {
				said = "changed, and accepted"
			}
			for _, c := range mounted.Changed {
				if _, err := fmt.Fprintf(t.out, "%s: %s: %s\n", said, c.Tool, c.What); err != nil {
					return err
				}
			}
			if len(mounted.Changed) > 0 && !accept {
				fmt.Fprintf(t.out, "to accept: codehand mcp test %s --accept\n", args[0])
			}
			_, err = fmt.Fprintf(t.out, "%s works: %d tools, %d tokens if all were found\n",
				args[0], len(mounted.Tools), sum)
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "how long it may take")
	cmd.Flags().BoolVar(&accept, "accept", false, "accept how the server describes its tools now")
	return cmd
}

func newMCPAdd(t *terminal) *cobra.Command {
	m := config.Mount{}
	var env, headers []string
	cmd := &cobra.Command{
		Use:         "add NAME (-- COMMAND [ARG]... | --url URL)",
		Annotations: map[string]string{ofMounts: ""},
		Short:       "Mount a server: write its table into your file of settings",
		Long: `Add a table [mcp.servers.NAME] to your own file of settings; all else in the file
stays as it is. The server is started when a model first needs it. In values of
--env and --header, ${NAME} stands for a variable of codehand and ${file:/path} for
the content of a file that only you may read: so no key stands in the settings.

Exit codes: 0 done, 1 it cannot be added (the message says why), 2 usage,
3 configuration.`,
		Example: `  codehand mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  codehand mcp add github --url https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${GITHUB_TOKEN}'`,
		Args: wanted(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.Name, m.Program.Argv = args[0], args[1:]
			var err error
			if m.Program.Env, err = pairsOf(env); err == nil {
				m.At.Headers, err = pairsOf(headers)
			}
			if err != nil || (len(m.Program.Argv) == 0) == (m.At.URL == "") {
				return usage("codehand mcp add --help", "name the server and its command behind --, or --url; "+
					"--env and --header take NAME=VALUE")
			}
			file, err := userFile(cmd)
			if err != nil {
				return err
			}
			if err := config.AddMount(file, m); err != nil {
				return &exitError{code: exitFailed, err: err, hint: "codehand mcp list"}
			}
			_, err = fmt.Fprintf(t.out, "added to %s:\n%s\nTry it: codehand mcp test %s\n", file, config.MountText(m),
				m.Name)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&m.At.URL, "url", "", "address of a server that is reached over HTTP")
	flags.StringVar(&m.At.Transport, "transport", "", "how the address speaks: http, sse or auto")
	flags.StringArrayVar(&env, "env", nil, "variable that the command gets, as NAME=VALUE")
	flags.StringArrayVar(&headers, "header", nil, "header of each request, as NAME=VALUE")
	flags.BoolVar(&m.Sandbox, "sandbox", false, "run the command in the sandbox of the shell")
	flags.StringVar(&m.Program.Cwd, "cwd", "", "working directory of the command, absolute")
	return cmd
}

// userFile is the operator's file of settings, to be changed.
func userFile(cmd *cobra.Command) (string, error) {
	cfg, _, err := load(cmd, nil)
	if err != nil {
		return "", &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
	}
	if cfg.Permissions.UserFile == "" {
		return "", &exitError{code: exitConfig, err: errors.New("there is no place for your file of settings"),
			hint: "--config FILE"}
	}
	return cfg.Permissions.UserFile, nil
}

func newMCPRemove(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:         "remove NAME",
		Annotations: map[string]string{ofMounts: ""},
		Short:       "Mount a server no more: remove its table from your file of settings",
		Long: `Remove the table [mcp.servers.NAME] from your own file of settings; all else in the
file stays as it is. Servers that run end with the sessions that they serve.

Exit codes: 0 done, 1 it cannot be removed (the message says why), 2 usage,
3 configuration.`,
		Args: wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := userFile(cmd)
			if err != nil {
				return err
			}
			if err := config.RemoveMount(file, args[0]); err != nil {
				return &exitError{code: exitFailed, err: err, hint: "codehand mcp list"}
			}
			_, err = fmt.Fprintf(t.out, "removed from %s: mcp.servers.%s\n", file, args[0])
			return err
		},
	}
}

// pairsOf reads NAME=VALUE.
func pairsOf(list []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, errors.New("want NAME=VALUE")
		}
		pairs[name] = value
	}
	return pairs, nil
}
