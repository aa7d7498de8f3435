package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codehand/server/auth"
	"codehand/server/config"
)

// usualLife is how long a token is valid by default: long enough not to be in the way, and short enough that a
// forgotten one expires.
const usualLife = "90d"

func newToken(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of serve",
		Long: `Make, list and revoke the tokens that people and programs need to call codehand
serve. One file keeps a hash of each token; a running server sees a change within
2 s. The file is --file, or else auth.token_file, or else tokens.jsonl in the data
directory.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("file", "", "tokens file")
	cmd.PersistentFlags().String("config", "", "configuration file of serve to read instead of the user's")
	cmd.AddCommand(newTokenNew(t), newTokenList(t), newTokenRevoke(t))
	return cmd
}

// A tokenPlace is where the tokens are.
type tokenPlace struct {
	*auth.TokenFile
	cfg   config.Config // of serve; the zero value if it cannot be read and does not matter
	known bool          // cfg was read
	other bool          // --file names the file, which serve may know nothing of
}

// tokenFile finds the file, and checks roots against what serve keeps. With writes the directory is made if it is that
// of the server's own state.
func tokenFile(cmd *cobra.Command, roots []string, writes bool) (tokenPlace, error) {
	var at tokenPlace
	path, err := cmd.Flags().GetString("file")
	if err != nil {
		return at, err
	}
	cfg, _, err := load(cmd, nil) // warnings are about what serve does
	at.cfg, at.known = cfg, err == nil
	if path != "" {
		if path, err = filepath.Abs(path); err != nil {
			return at, &exitError{code: exitFailed, err: err}
		}
		at.TokenFile, at.other = auth.OpenTokenFile(path), true
		return at, nil
	}
	if err != nil {
		return at, &exitError{code: exitConfig, err: err, hint: "codehand serve --check"}
	}
	for _, root := range roots {
		if err := cfg.CheckRoot(root); err != nil {
			return at, &exitError{code: exitUsage, err: fmt.Errorf("--root: %w", err)}
		}
	}
	if writes && cfg.Auth.TokenFile == "" {
		if _, err := config.OpenState(cfg.DataDir()); err != nil {
			return at, &exitError{code: exitConfig, err: err}
		}
	}
	at.TokenFile = auth.OpenTokenFile(cfg.TokenFile())
	return at, nil
}

// A tokenWish is what the options of token new say.
type tokenWish struct {
	roots, scopes, quotas  []string
	mode, maxMode, profile string
	expires, note          string
	admin, asJSON          bool
}

func newTokenNew(t *terminal) *cobra.Command {
	var w tokenWish
	cmd := &cobra.Command{
		Use:   "new PRINCIPAL",
		Short: "Make a token, and print it once",
		Long: `Make a token for a principal and print it once: only its hash is kept. The
configuration (principals) decides what you give no option for.

Exit codes: 0 done, 1 the file cannot be written, 2 usage, 3 configuration.`,
		Example: `  codehand token new alice
  codehand token new alice --root '/srv/ws/{principal}' --scope mcp:read --expires 30d --note laptop
  codehand token new ci --quota calls_per_minute=60 --json`,
		Args: wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			wish, err := w.token(cmd, args[0], time.Now())
			if err != nil {
				return &exitError{code: exitUsage, err: err, hint: "codehand token new --help"}
			}
			file, err := tokenFile(cmd, w.roots, true)
			if err != nil {
				return err
			}
			before, err := file.List()
			if err != nil {
				return failed(err)
			}
			made, text, err := file.New(wish)
			if err != nil {
				return failed(err)
			}
			if err := t.showToken(file, made, text, w.asJSON); err != nil {
				return err
			}
			if !file.other {
				tellService(t.errs, file, made, serviceConfig)
			}
			if len(before) == 0 && !file.other && file.cfg.Auth.Mode == "auto" {
				t.tellFirstToken(file, made)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&w.roots, "root", nil,
		"directory to work in, where {principal} stands for the principal; repeatable")
	f.StringArrayVar(&w.scopes, "scope", nil,
		"mcp:read, mcp:write, mcp:shell, mcp:web, mcp:all or mcp:admin; repeatable")
	f.StringArrayVar(&w.quotas, "quota", nil, "a limit as KEY=VALUE, such as calls_per_minute=60; repeatable")
	f.StringVar(&w.mode, "mode", "", "permission mode at the start of a session")
	f.StringVar(&w.maxMode, "max-mode", "", "highest permission mode of a session")
	f.StringVar(&w.profile, "profile", "", "tool profile: default or readonly")
	f.BoolVar(&w.admin, "admin", false, "let the token open /metrics and the details of /readyz")
	f.StringVar(&w.note, "note", "", "what the token is for")
	f.StringVar(&w.expires, "expires", usualLife, "how long the token is valid: such as 30d or 12h, or never")
	f.BoolVar(&w.asJSON, "json", false, "print a JSON object")
	return cmd
}

// token checks the options. What was not given stays nil, so that the configuration decides, also later.
func (w tokenWish) token(cmd *cobra.Command, principal string, now time.Time) (auth.Token, error) {
	tok := auth.Token{Principal: principal, Note: w.note, Values: auth.Values{Roots: w.roots, Scopes: w.scopes}}
	if err := auth.CheckID(principal); err != nil {
		return tok, err
	}
	v := &tok.Values
	for _, text := range []struct {
		flag string
		from string
		to   **string
	}{{"mode", w.mode, &v.Mode}, {"max-mode", w.maxMode, &v.MaxMode}, {"profile", w.profile, &v.Profile}} {
		if cmd.Flags().Changed(text.flag) {
			*text.to = &text.from
		}
	}
	if cmd.Flags().Changed("admin") {
		v.Admin = &w.admin
	}
	for _, q := range w.quotas {
		key, value, ok := strings.Cut(q, "=")
		if !ok {
			return tok, fmt.Errorf("--quota %q is not KEY=VALUE", q)
		}
		if _, twice := v.Quota[key]; twice {
			return tok, fmt.Errorf("--quota %s is given twice", key)
		}
		if v.Quota == nil {
			v.Quota = map[string]string{}
		}
		v.Quota[key] = value
	}
	if err := v.Check(); err != nil {
		return tok, err
	}
	life, err := parseLife(w.expires)
	if life > 0 {
		tok.Expires = now.Add(life).UTC().Truncate(time.Second)
	}
	return tok, err
}

// maxLife is the longest life of a token that ends at all.
const maxLife = 100 * 365 * 24 * time.Hour

// parseLife reads a duration as Go writes it, or days; 0 means never.
func parseLife(text string) (time.Duration, error) {
	if text == "never" {
		return 0, nil
	}
	const form = "--expires %q: write 90d, 12h or never"
	hours, rest := text, ""
	if days, after, ok := strings.Cut(text, "d"); ok {
		hours, rest = days+"h", after
	}
	d, err := time.ParseDuration(hours)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf(form, text)
	}
	if hours != text { // days were written as hours
		if rest != "" || d > maxLife/24 {
			return 0, fmt.Errorf(form, text)
		}
		d *= 24
	}
	if d > maxLife {
		return 0, fmt.Errorf(form, text)
	}
	return d, nil
}

// showToken prints the secret on standard output and everything else beside it.
func (t *terminal) showToken(at tokenPlace, made auth.Token, text string, asJSON bool) error {
	var err error
	row := at.row(made, time.Time{}, time.Now())
	if asJSON {
		err = t.printJSON(struct {
			tokenRow
			Token string `json:"token"`
		}{row, text})
	} else {
		_, err = fmt.Fprintln(t.out, text)
	}
	if err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("token %s was made, but cannot be shown: %w", made.ID, err),
			hint: "codehand token revoke " + made.ID}
	}
	fmt.Fprintf(t.errs, "codehand: token %s for %s, scopes %s, expires %s; it is not shown again\n",
		made.ID, made.Principal, strings.Join(row.Scopes, " "), dayOf(made.Expires, "never"))
	if made.Expires.IsZero() {
		fmt.Fprintf(t.errs, "codehand: warning: this token never expires; to revoke it: codehand token revoke %s\n",
			made.ID)
	}
	return nil
}

// serviceConfig is the file that the service of the packages reads.
const serviceConfig = "/etc/codehand/config.toml"

// tellService writes that a token is not for the service of this machine, whose configuration is at path, where there
// is one and the command read other files: people then wonder why their clients are refused.
func tellService(w io.Writer, at tokenPlace, made auth.Token, path string) {
	if _, err := os.Stat(path); err != nil || slices.Contains(at.cfg.Files, path) {
		return
	}
	fmt.Fprintf(w, "codehand: this token is in %s, and not one of the service that reads %s; to make one there: "+
		"sudo -u codehand codehand token new %s --config %s\n", at.cfg.TokenFile(), path, made.Principal, path)
}

// tellFirstToken says what the first token changes: until now everybody who could connect was the person who started
// serve, in the current directory.
func (t *terminal) tellFirstToken(at tokenPlace, made auth.Token) {
	who, _ := at.principal(made)
	fmt.Fprintf(t.errs, "codehand: this is the first token: from its next start, \"codehand serve\" wants one from "+
		"every client, and %s works in %s\n", made.Principal, strings.Join(who.Roots, ", "))
	if len(made.Values.Roots) == 0 && len(at.cfg.Principals.Default.Roots) == 0 {
		fmt.Fprintf(t.errs, "codehand: to serve the current directory to everyone with a token: codehand serve .\n")
	}
	fmt.Fprintf(t.errs, "codehand: to serve the current directory to yourself without a token, as before: "+
		"codehand serve --auth-mode none\n")
}

func (t *terminal) printJSON(v any) error {
	enc := json.NewEncoder(t.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func newTokenRevoke(t *terminal) *cobra.Command {
	var principal string
	cmd := &cobra.Command{
		Use:   "revoke [ID...]",
		Short: "Revoke tokens",
		Long: `Revoke the tokens with these IDs, or all those of a principal. A running server
ends their streams and calls within 5 s.

Exit codes: 0 done, 1 nothing matched, 2 usage, 3 configuration.`,
		Example: `  codehand token revoke k3v7q2mzpa
  codehand token revoke --principal alice`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if (len(ids) == 0) != cmd.Flags().Changed("principal") {
				return usage("codehand token revoke --help", "give either token IDs or --principal")
			}
			file, err := tokenFile(cmd, nil, false)
			if err != nil {
				return err
			}
			for i, id := range ids {
				ids[i] = idOf(id)
			}
			match := func(tok auth.Token) bool {
				return tok.Principal == principal || slices.Contains(ids, tok.ID)
			}
			all, err := file.List() // Revoke is silent about those that were revoked before
			if err != nil {
				return failed(err)
			}
			matched := map[string]bool{}
			for _, tok := range all {
				if match(tok) {
					matched[tok.ID] = true
				}
			}
			ended, err := file.Revoke(match)
			if err != nil {
				return failed(err)
			}
			for _, id := range ids {
				if !matched[id] {
					fmt.Fprintf(t.errs, "codehand: there is no token %q%s\n", id, allOf(id, all))
				}
			}
			if len(matched) == 0 {
				return &exitError{code: exitFailed, err: errors.New("nothing was revoked"), hint: "codehand token list"}
			}
			for _, tok := range ended {
				fmt.Fprintf(t.out, "revoked %s of %s\n", tok.ID, tok.Principal)
			}
			if len(ended) == 0 {
				fmt.Fprintln(t.errs, "codehand: already revoked")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&principal, "principal", "", "all tokens of this principal")
	return cmd
}

// allOf says how to revoke all tokens of a principal, for who gives its name; "": id is none.
func allOf(id string, all []auth.Token) string {
	if !slices.ContainsFunc(all, func(tok auth.Token) bool { return tok.Principal == id }) {
		return ""
	}
	return "; for all tokens of that principal: codehand token revoke --principal " + id
}

// idOf returns the ID, also of who pastes a whole token: its secret half must not be repeated anywhere.
func idOf(text string) string {
	if rest, ok := strings.CutPrefix(text, "chd_"); ok {
		text, _, _ = strings.Cut(rest, "_")
	}
	return text
}
