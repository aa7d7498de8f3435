package main

import (
	"fmt"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"codehand/server/audit"
	"codehand/tools/results"
)

func newSessions(t *terminal) *cobra.Command {
	var principal string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions of the clients of serve",
		Long: `List the sessions whose calls are in the audit log of codehand serve, the one last
used first: whose they are, from which client, how many calls they made, how many
of those failed, and how many files they changed. To see and undo these changes:
codehand history --principal NAME, codehand undo --principal NAME.

Exit codes: 0 done, 1 the log cannot be read, 2 usage, 3 configuration.`,
		Example: `  codehand sessions
  codehand sessions --principal alice --json`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := load(cmd, nil) // warnings are about what serve does
			if err != nil {
				return &exitError{code: exitConfig, err: err, hint: "codehand serve --check"}
			}
			dir := cfg.Audit.Dir
			switch dir {
			case "-":
				return usage("ask where standard output of serve goes", "audit.dir is -, so there is no log to read")
			case "":
				dir = filepath.Join(cfg.DataDir(), "audit")
			}
			all, err := audit.Sessions(dir, principal)
			if err != nil {
				return failed(err)
			}
			if asJSON {
				return t.printJSON(all)
			}
			if len(all) == 0 {
				fmt.Fprintf(t.errs, "codehand: no session in the audit log %s\n", dir)
				return nil
			}
			tw := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(tw, "LAST USED\tPRINCIPAL\tCALLS\tFAILED\tCHANGES\tCLIENT\tSESSION")
			for _, s := range all {
				fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", s.Last.UTC().Format(time.DateTime),
					results.Line(printable(s.Principal), 40), s.Calls, s.Failed, s.Changes,
					results.Line(printable(s.Client), 30), printable(s.Session))
			}
			return tw.Flush()
		},
	}
	cmd.Flags().StringVar(&principal, ofPrincipal, "", "only those of the principal `NAME`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	cmd.Flags().String("config", "", "configuration file of serve to read instead of the user's")
	return cmd
}
