package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"codehand/server/config"
	"codehand/server/engines"
	"codehand/tools/results"
)

func newMCPLogin(t *terminal) *cobra.Command {
	var wait time.Duration
	var principal string
	var forget bool
	cmd := &cobra.Command{
		Use:         "login NAME",
		Short:       "Sign in to a mounted server that is reached over HTTP",
		Annotations: map[string]string{ofMounts: ""},
		Long: `Sign in to a mounted server by OAuth: an address is shown that you open in a browser
of this machine; once you agree there, the tokens are kept in a file of the state
directory that only you may read, and made new when they are too old. codehand
registers itself at the authorization server, or has the oauth_client_id of the
settings. With serve each principal has tokens of its own: name it.

Exit codes: 0 done, 1 it failed (the message says why), 2 usage, 3 configuration.`,
		Args: wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := load(cmd, nil)
			if err != nil {
				return &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
			}
			i := slices.IndexFunc(cfg.Mounts, func(m config.Mount) bool { return m.Name == args[0] })
			switch {
			case i < 0:
				return usage("codehand mcp list", "there is no mounted server %s", results.Line(args[0], 40))
			case !cfg.Mounts[i].Signs():
				return usage("codehand mcp list", "%s is no server over HTTP, or has a header Authorization", args[0])
			case cfg.Mounts[i].SignsItself():
				return usage("codehand mcp test "+args[0], "%s has oauth = \"client\", so nobody signs in", args[0])
			}
			dir, err := config.OpenState(cfg.StateDir)
			if err != nil {
				return &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
			}
			g, err := engines.Grant(cfg.Mounts[i], dir, principal)
			if err != nil {
				return &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
			}
			if forget {
				if err := os.Remove(g.Store); err != nil && !errors.Is(err, os.ErrNotExist) {
					return &exitError{code: exitFailed, err: err}
				}
				_, err = fmt.Fprintf(t.out, "the tokens for %s are removed\n", args[0])
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), wait, fmt.Errorf("nobody signed in within %s", wait))
			defer cancel()
			err = g.SignIn(ctx, func(address string) {
				fmt.Fprintf(t.out, "Open this address in a browser of this machine, and agree there:\n%s\n",
					results.Clean(address))
			})
			if err != nil {
				return &exitError{code: exitFailed, hint: "codehand mcp list",
					err: fmt.Errorf("%s: %s", args[0], results.Line(results.Clean(err.Error()), 500))}
			}
			_, err = fmt.Fprintf(t.out, "signed in; try it: codehand mcp test %s\n", args[0])
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 5*time.Minute, "how long the sign-in may take")
	cmd.Flags().StringVar(&principal, "principal", "", "of serve, whose tokens these are")
	cmd.Flags().BoolVar(&forget, "forget", false, "remove the tokens instead")
	return cmd
}
