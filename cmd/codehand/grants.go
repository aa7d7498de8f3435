package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"codehand/server/control"
	"codehand/tools/results"
)

func newGrants(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List and revoke what people allowed clients of serve",
		Long: `List and revoke what people allowed clients on the approval page of codehand
serve: one grant for each client that somebody signed in to. Works while serve runs
(it listens at control.sock in its data directory) and while it does not.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("config", "", "configuration file of serve to read instead of the user's")
	cmd.AddCommand(newGrantsList(t), newGrantsRevoke(t))
	return cmd
}

// clientOf is what to call the client of a grant. What it says of itself is quoted.
func clientOf(r control.Row) string {
	return results.Line(printable(cmp.Or(r.Client.Name, r.Client.Host, "no name")), 30)
}

func newGrantsList(t *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the grants",
		Long: `List the grants that are in force, the newest first: whose they are, for which
client, what they allow, when they were made and last used, and when they end. A
host was verified; a name is what the client says of itself.

Exit codes: 0 done, 1 they cannot be read, 2 usage, 3 configuration.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := load(cmd, nil) // warnings are about what serve does
			if err != nil {
				return &exitError{code: exitConfig, err: err, hint: "codehand serve --check"}
			}
			desk, err := grantsDesk(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			rows, err := desk.List(cmd.Context())
			if err := errors.Join(err, desk.Close()); err != nil {
				return failed(err)
			}
			if asJSON {
				return t.printJSON(rows)
			}
			if len(rows) == 0 {
				fmt.Fprintln(t.errs, "codehand: there is no grant: nobody has allowed a client anything")
				return nil
			}
			return showGrants(t, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func showGrants(t *terminal, rows []control.Row) error {
	tw := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tPRINCIPAL\tCLIENT\tHOST\tSCOPES\tMODE\tCREATED\tLAST USED\tEXPIRES\tROOTS")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID,
			results.Line(printable(r.Principal), 30), clientOf(r),
			cmp.Or(printable(r.Client.Host), "-"), strings.ReplaceAll(strings.Join(r.Scopes, " "), "mcp:", ""),
			cmp.Or(r.MaxMode, "-"), dayOf(r.Created, ""), dayOf(r.LastUse, "never"), dayOf(r.Expires, ""),
			cmp.Or(printable(strings.Join(r.Roots, ", ")), "all"))
	}
	return tw.Flush()
}

func newGrantsRevoke(t *terminal) *cobra.Command {
	var w control.Wish
	cmd := &cobra.Command{
		Use:   "revoke [ID...]",
		Short: "Revoke grants",
		Long: `Revoke the grants with these IDs, those of a principal, or all. The client's tokens
end at once, and a running server ends its streams and calls.

Exit codes: 0 done, 1 nothing matched, 2 usage, 3 configuration.`,
		Example: `  codehand grants revoke k3v7q2mzpa
  codehand grants revoke --principal alice
  codehand grants revoke --all`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			ways := 0
			for _, given := range []bool{len(ids) > 0, w.Principal != "", w.All} {
				if given {
					ways++
				}
			}
			if ways != 1 {
				return usage("codehand grants revoke --help", "give either IDs of grants, --principal or --all")
			}
			cfg, _, err := load(cmd, nil) // warnings are about what serve does
			if err != nil {
				return &exitError{code: exitConfig, err: err, hint: "codehand serve --check"}
			}
			desk, err := grantsDesk(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			w.IDs = ids
			ended, err := desk.Revoke(cmd.Context(), w)
			for _, r := range ended {
				fmt.Fprintf(t.out, "revoked %s (%s) of %s\n", r.ID, clientOf(r), printable(r.Principal))
			}
			if err := errors.Join(err, desk.Close()); err != nil {
				return failed(err)
			}
			for _, id := range ids {
				if !slices.ContainsFunc(ended, func(r control.Row) bool { return r.ID == id }) {
					fmt.Fprintf(t.errs, "codehand: there is no grant %q\n", id)
				}
			}
			if len(ended) == 0 {
				return &exitError{code: exitFailed, err: errors.New("nothing was revoked"),
					hint: "codehand grants list"}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&w.Principal, "principal", "", "all grants of the principal `NAME`")
	cmd.Flags().BoolVar(&w.All, "all", false, "all grants of everybody")
	return cmd
}
