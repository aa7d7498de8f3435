package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/people"
	"codehand/tools/results"
)

func newInvite(t *terminal) *cobra.Command {
	var list, asJSON bool
	var revoke []string
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Invite a principal of a team to sign in to serve",
		Long: `Print a link with which the principal NAME chooses a password or a passkey, and then
signs in to codehand serve --auth-mode team. It works once, for 24 hours. Only its
hash is kept; a running server sees it within 2 s.

A link for somebody who signs in already replaces the password and passkeys once it
is used, and signs that person's browsers out.

Exit codes: 0 done, 1 not done or nothing matched, 2 usage, 3 configuration.`,
		Example: `  codehand invite alice
  codehand invite --list
  codehand invite --revoke k3v7q2mzpa`,
		Args: wanted(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ways := len(args)
			for _, given := range []bool{list, len(revoke) > 0} {
				if given {
					ways++
				}
			}
			if ways != 1 || asJSON && len(revoke) > 0 {
				return usage("codehand invite --help", "give either a NAME, --list or --revoke ID")
			}
			if len(args) == 1 {
				if err := auth.CheckID(args[0]); err != nil {
					return &exitError{code: exitUsage, err: err}
				}
			}
			cfg, book, err := signInFiles(cmd)
			switch {
			case err != nil:
				return err
			case list:
				return listInvites(t, book, asJSON)
			case len(revoke) > 0:
				return revokeInvites(t, book, revoke)
			}
			return invite(t, cfg, book, args[0], asJSON)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&list, "list", false, "list the invitations of the last days")
	f.StringArrayVar(&revoke, "revoke", nil, "end the invitation `ID`; repeatable")
	f.BoolVar(&asJSON, "json", false, "print a JSON object, or an array with --list")
	f.String("config", "", "configuration file of serve to read instead of the user's")
	return cmd
}

// An inviteRow is an invitation as it is listed. The hash is never shown.
type inviteRow struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	State     string    `json:"state"` // open, used, revoked, expired
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
	URL       string    `json:"url,omitempty"` // shown once
}

func inviteRowOf(i people.Invite, now time.Time) inviteRow {
	return inviteRow{ID: i.ID, Principal: i.Principal, State: i.State(now), Created: i.Created, Expires: i.Expires}
}

func invite(t *terminal, cfg config.Config, book *people.Book, name string, asJSON bool) error {
	modes, err := auth.ParseModes(cfg.Auth.Mode) // auto is no mode
	if err == nil && modes.Owner {
		return &exitError{code: exitConfig, err: errors.New("auth.mode is owner, so only the owner signs in"),
			hint: "codehand owner new, or --auth-mode team for serve"}
	}
	made, code, err := book.Invite(name)
	if err != nil {
		return failed(err)
	}
	row := inviteRowOf(made, time.Now())
	row.URL = signInBase(cfg) + people.InvitePath + code
	if asJSON {
		err = t.printJSON(row)
	} else {
		_, err = fmt.Fprintln(t.out, row.URL)
	}
	if err != nil {
		return &exitError{code: exitFailed,
			err:  fmt.Errorf("invitation %s was made, but cannot be shown: %w", made.ID, err),
			hint: "codehand invite --revoke " + made.ID}
	}
	fmt.Fprintf(t.errs, "codehand: invitation %s for %s; the link works once, until %s UTC, and is not shown again\n",
		made.ID, printable(name), made.Expires.Format(time.DateTime))
	if !modes.Team {
		fmt.Fprintf(t.errs, "codehand: here auth.mode is %s: the link works only where serve runs with auth.mode = "+
			"\"team\" (--auth-mode team); change it and restart serve\n", cfg.Auth.Mode)
	}
	return nil
}

// signInBase is where browsers find serve.
func signInBase(cfg config.Config) string {
	if cfg.HTTP.PublicURL != "" {
		return strings.TrimSuffix(cfg.HTTP.PublicURL, "/")
	}
	scheme := "http://"
	if cfg.HTTP.TLSCert != "" {
		scheme = "https://"
	}
	for _, at := range cfg.HTTP.Listen {
		if !strings.HasPrefix(at, "unix:") && at != "systemd:" {
			return scheme + strings.Replace(at, "127.0.0.1:", "localhost:", 1) // addresses have no passkeys
		}
	}
	return scheme + "localhost:7433"
}

func listInvites(t *terminal, book *people.Book, asJSON bool) error {
	all, err := book.Invites()
	if err != nil {
		return failed(err)
	}
	rows, now := make([]inviteRow, len(all)), time.Now()
	for i, one := range all {
		rows[i] = inviteRowOf(one, now)
	}
	if asJSON {
		return t.printJSON(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(t.errs, "codehand: there is no invitation; to make one: codehand invite NAME")
		return nil
	}
	tw := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tPRINCIPAL\tSTATE\tCREATED\tEXPIRES")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.ID, results.Line(printable(r.Principal), 40), r.State,
			r.Created.UTC().Format(time.DateTime), r.Expires.UTC().Format(time.DateTime))
	}
	return tw.Flush()
}

func revokeInvites(t *terminal, book *people.Book, ids []string) error {
	ended, err := book.RevokeInvites(func(i people.Invite) bool { return slices.Contains(ids, i.ID) })
	if err != nil {
		return failed(err)
	}
	for _, i := range ended {
		fmt.Fprintf(t.out, "revoked %s for %s\n", i.ID, printable(i.Principal))
	}
	for _, id := range ids {
		if !slices.ContainsFunc(ended, func(i people.Invite) bool { return i.ID == id }) {
			fmt.Fprintf(t.errs, "codehand: there is no open invitation %q\n", id)
		}
	}
	if len(ended) == 0 {
		return &exitError{code: exitFailed, err: errors.New("nothing was revoked"), hint: "codehand invite --list"}
	}
	return nil
}
