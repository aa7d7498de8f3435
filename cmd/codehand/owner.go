package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"codehand/server/config"
	"codehand/server/control"
	"codehand/server/people"
)

func newOwner(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "owner",
		Short: "Set the password with which the owner of serve signs in",
		Long: `Set the password with which you sign in to codehand serve --auth-mode owner, on
the page that a client such as claude.ai or ChatGPT opens. One file in the data
directory keeps its hash; a running server sees a change within 2 s.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("config", "", "configuration file of serve to read instead of the user's")
	cmd.AddCommand(newOwnerNew(t))
	return cmd
}

// An ownerWish is what the options of owner new say.
type ownerWish struct{ stdin, choose, force, revoke bool }

func newOwnerNew(t *terminal) *cobra.Command {
	var w ownerWish
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make the owner's password, and print it once",
		Long: `Make a password for the owner and print it once: only its hash is kept. With
--choose you type one of your own, with --password-stdin a program gives it; it
needs at least 12 characters.

A new password replaces the old one and signs all browsers out. Passkeys and the
clients that you allowed stay; --revoke ends both.

Exit codes: 0 done, 1 not done, 2 usage, 3 configuration.`,
		Example: `  codehand owner new
  codehand owner new --choose
  pass show codehand | codehand owner new --password-stdin --force`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.stdin && w.choose {
				return usage("codehand owner new --help", "give either --password-stdin or --choose")
			}
			return makeOwner(t, cmd, w)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&w.choose, "choose", false, "ask for a password instead of making one")
	f.BoolVar(&w.stdin, "password-stdin", false, "read the password from the first line of standard input")
	f.BoolVar(&w.force, "force", false, "replace a password without asking")
	f.BoolVar(&w.revoke, "revoke", false, "also remove the passkeys, and end what all clients were allowed")
	return cmd
}

func makeOwner(t *terminal, cmd *cobra.Command, w ownerWish) error {
	cfg, book, err := signInFiles(cmd)
	if err != nil {
		return err
	}
	switch _, err := book.Find(people.Owner); {
	case errors.Is(err, people.ErrUnknown):
	case err != nil:
		return failed(err)
	case !w.force:
		if err := confirmed(t, "Replace the owner's password? Browsers are signed out."); err != nil {
			return err
		}
	}
	password, err := ownerPassword(t, w)
	if err != nil {
		return err
	}
	hash, err := people.NewHasher(people.Cost{}).Hash(cmd.Context(), password)
	if err == nil {
		err = book.SetPassword(people.Owner, hash, w.revoke)
	}
	if err != nil {
		return failed(err)
	}
	if !w.stdin && !w.choose {
		if _, err := fmt.Fprintln(t.out, password); err != nil {
			return &exitError{code: exitFailed, err: fmt.Errorf("a password was made, but cannot be shown: %w", err),
				hint: "codehand owner new --force"}
		}
		fmt.Fprintln(t.errs, "codehand: this is the owner's password; it is not shown again")
	} else {
		fmt.Fprintln(t.errs, "codehand: the owner's password is set")
	}
	if w.revoke {
		if err := revokeAll(cmd.Context(), t, cfg, control.Wish{Principal: people.Owner}); err != nil {
			return err
		}
	}
	if cfg.Auth.Mode == "auto" || cfg.Auth.Mode == "none" {
		fmt.Fprintln(t.errs, "codehand: to let clients sign in with it: codehand serve --auth-mode owner")
	}
	return nil
}

// confirmed asks before a command replaces something. Without a terminal to ask at, it refuses.
func confirmed(t *terminal, question string) error {
	if !isTerminal(t.in) {
		return &exitError{code: exitFailed, err: errors.New("there is a password already, so nothing was changed"),
			hint: "--force replaces it"}
	}
	fmt.Fprintf(t.errs, "%s [y/N] ", question)
	line, err := firstLine(t.in)
	if err != nil || !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line))) {
		return &exitError{code: exitFailed, err: errors.New("nothing was changed")}
	}
	return nil
}

// firstLine reads a line and nothing behind it.
func firstLine(r io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); len(line) <= 4096; {
		n, err := r.Read(one)
		if n == 1 && one[0] == '\n' {
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		line = append(line, one[:n]...)
		if err != nil {
			if errors.Is(err, io.EOF) && len(line) > 0 {
				err = nil
			}
			return string(line), err
		}
	}
	return "", bufio.ErrTooLong
}

// ownerPassword is the one that is given or typed, or a new one.
func ownerPassword(t *terminal, w ownerWish) (string, error) {
	var password string
	var err error
	switch {
	case w.stdin:
		if password, err = firstLine(t.in); err != nil {
			return "", &exitError{code: exitFailed, err: fmt.Errorf("read the password: %w", err)}
		}
	case w.choose:
		if password, err = typedPassword(t); err != nil {
			return "", err
		}
	default:
		return people.NewPassword(), nil
	}
	if err := people.CheckPassword(password); err != nil {
		return "", &exitError{code: exitUsage, err: err}
	}
	return password, nil
}

// typedPassword asks twice on the terminal, which does not show what is typed.
func typedPassword(t *terminal) (string, error) {
	f, ok := t.in.(*os.File)
	if !ok || !isTerminal(t.in) {
		return "", usage("--password-stdin reads it from a program", "--choose needs a terminal")
	}
	var typed [2]string
	for i, prompt := range []string{"New password: ", "The same again: "} {
		fmt.Fprint(t.errs, prompt)
		text, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(t.errs)
		if err != nil {
			return "", &exitError{code: exitFailed, err: fmt.Errorf("read the password: %w", err)}
		}
		typed[i] = string(text)
	}
	if typed[0] != typed[1] {
		return "", &exitError{code: exitFailed, err: errors.New("the two passwords differ, so nothing was changed")}
	}
	return typed[0], nil
}

// signInFiles finds the configuration of serve, and how people sign in to it. The data directory is made.
func signInFiles(cmd *cobra.Command) (config.Config, *people.Book, error) {
	cfg, _, err := load(cmd, nil) // warnings are about what serve does
	if err != nil {
		return cfg, nil, &exitError{code: exitConfig, err: err, hint: "codehand serve --check"}
	}
	dir, err := config.OpenState(cfg.DataDir())
	if err != nil {
		return cfg, nil, &exitError{code: exitConfig, err: err}
	}
	cfg.HTTP.DataDir = dir
	return cfg, people.Open(dir, nil), nil
}

// grantsDesk asks the running server about grants, or the Store.
func grantsDesk(ctx context.Context, cfg config.Config) (*control.Desk, error) {
	desk, err := control.Open(ctx, cfg.DataDir(), cfg.Store.URL, cfg.StoreOptions())
	return desk, failed(err)
}

// revokeAll ends grants and says which.
func revokeAll(ctx context.Context, t *terminal, cfg config.Config, w control.Wish) error {
	desk, err := grantsDesk(ctx, cfg)
	if err != nil {
		return err
	}
	ended, err := desk.Revoke(ctx, w)
	for _, r := range ended {
		fmt.Fprintf(t.errs, "codehand: revoked %s (%s) of %s\n", r.ID, clientOf(r), printable(r.Principal))
	}
	return failed(errors.Join(err, desk.Close()))
}
