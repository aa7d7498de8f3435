package main

import (
	"github.com/spf13/cobra"

	"codehand/tools/credentials"
)

// newGitHelper is what git in the sandbox starts as its helper, and no person.
func newGitHelper(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:    "git-helper SOCKET OPERATION",
		Short:  "Ask the session outside for a password, as git's helper in the sandbox",
		Hidden: true,
		Args:   wanted(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error {
			return failed(credentials.Help(args[0], args[1], t.in, t.out))
		},
	}
}
