package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codehand/server/auth"
)

// A tokenRow is a token as it is listed, with what the configuration says where the token says nothing. The hash is
// never shown.
type tokenRow struct {
	ID        string   `json:"id"`
	Principal string   `json:"principal"`
	State     string   `json:"state"`          // active, expired, revoked, or disabled by the configuration
	Roots     []string `json:"roots,omitzero"` // absent: the configuration cannot be read
	Mode      string   `json:"mode"`
	MaxMode   string   `json:"max_mode"`
	Profile   string   `json:"profile"`
	Scopes    []string `json:"scopes"`
	tokenRules
	Quota map[string]string `json:"quota,omitzero"` // limits that were set; the others have their defaults
	tokenTimes
	Note string `json:"note,omitzero"`
}

// tokenRules are the rules that hold for a token besides those for everybody.
type tokenRules struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// tokenTimes are the dates of a token.
type tokenTimes struct {
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"` // absent: never
	Revoked  time.Time `json:"revoked,omitzero"`
	LastUsed time.Time `json:"last_used,omitzero"`
}

// principal is who a token stands for, with what the configuration says besides; enabled is false if the configuration
// lets no token of that principal in.
func (at tokenPlace) principal(tok auth.Token) (p auth.Principal, enabled bool) {
	workspaces := ""
	if at.known {
		workspaces = filepath.Join(at.cfg.DataDir(), "workspaces")
	}
	said := at.cfg.Principals
	return auth.Resolve(tok.Principal, workspaces, tok.Values, said.Named[tok.Principal], said.Default)
}

// row is a token as it is listed. used is when it was last used.
func (at tokenPlace) row(tok auth.Token, used, now time.Time) tokenRow {
	who, enabled := at.principal(tok)
	r := tokenRow{
		ID: tok.ID, Principal: tok.Principal, State: tok.State(now), Roots: who.Roots, Mode: who.Mode,
		MaxMode: who.MaxMode, Profile: who.Profile, Scopes: strings.Fields(who.Scopes.String()), Note: tok.Note,
		tokenRules: tokenRules{who.Allow, who.Deny},
		tokenTimes: tokenTimes{tok.Created, tok.Expires, tok.Revoked, used},
	}
	if r.State == "active" && !enabled {
		r.State = "disabled"
	}
	said := at.cfg.Principals
	for _, quota := range []map[string]string{said.Default.Quota, said.Named[tok.Principal].Quota, tok.Values.Quota} {
		if r.Quota == nil && len(quota) > 0 {
			r.Quota = map[string]string{}
		}
		maps.Copy(r.Quota, quota)
	}
	return r
}

func newTokenList(t *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens",
		Long: `List the tokens: whose they are, whether they are valid, when they were last used,
and what they allow together with the configuration. The tokens themselves are not
kept and cannot be shown.

Exit codes: 0 done, 1 the file cannot be read, 2 usage, 3 configuration.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := tokenFile(cmd, nil, false)
			if err != nil {
				return err
			}
			tokens, err := at.List()
			if err != nil {
				return failed(err)
			}
			used, err := at.LastUse()
			if err != nil { // the list is of use without it
				fmt.Fprintf(t.errs, "codehand: %v\n", err)
			}
			now := time.Now()
			rows := make([]tokenRow, len(tokens))
			for i, tok := range tokens {
				rows[i] = at.row(tok, used[tok.ID], now)
			}
			if asJSON {
				return t.printJSON(rows)
			}
			if len(rows) == 0 {
				fmt.Fprintln(t.errs, "codehand: there is no token; to make one: codehand token new PRINCIPAL")
				return nil
			}
			var b strings.Builder
			for _, r := range rows {
				r.write(&b)
			}
			_, err = io.WriteString(t.out, b.String())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// listWidth is how wide the list of tokens is at most: as wide as a terminal is at least.
const listWidth = 80

// write shows a token in some lines, the first of which names it.
func (r tokenRow) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s  %s\n", r.ID, strings.Join(wrapped(printable(r.Principal), listWidth-12), "\n            "))
	line := func(name, text string) {
		if text == "" {
			return
		}
		for _, part := range wrapped(printable(text), listWidth-10) {
			fmt.Fprintf(b, "  %-6s  %s\n", name, part)
			name = ""
		}
	}
	state := r.State
	if !r.Revoked.IsZero() {
		state += " " + dayOf(r.Revoked, "")
	}
	line("state", fmt.Sprintf("%s, expires %s, last used %s, made %s", state, dayOf(r.Expires, "never"),
		dayOf(r.LastUsed, "never"), dayOf(r.Created, "")))
	if r.Roots == nil {
		line("roots", "as configured")
	}
	for _, root := range r.Roots {
		line("roots", root)
	}
	line("mode", fmt.Sprintf("%s, at most %s; profile %s", r.Mode, r.MaxMode, r.Profile))
	line("scopes", strings.Join(r.Scopes, " "))
	var quota []string
	for _, key := range slices.Sorted(maps.Keys(r.Quota)) {
		quota = append(quota, key+"="+r.Quota[key])
	}
	line("quota", strings.Join(quota, " "))
	line("allow", strings.Join(r.Allow, ", "))
	line("deny", strings.Join(r.Deny, ", "))
	line("note", r.Note)
}

// dayOf is the date in UTC.
func dayOf(t time.Time, zero string) string {
	if t.IsZero() {
		return zero
	}
	return t.UTC().Format(time.DateOnly)
}

// printable keeps a text to its line: its author may be hostile.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}
