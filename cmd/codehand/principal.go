package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/tools"
)

// ofPrincipal marks the commands that are about the current directory without --principal, and about serve with it.
const ofPrincipal = "principal"

// forPrincipal gives a command the flags that let an administrator look at what serve keeps of another principal.
func forPrincipal(cmd *cobra.Command) {
	cmd.Annotations = map[string]string{ofPrincipal: ""}
	cmd.Flags().String(ofPrincipal, "", "the changes of the principal `NAME` of codehand serve")
	cmd.Flags().String("config", "", "configuration file to read instead of the user's")
}

// asServe is the flag of a command that explains what serve does instead of stdio.
const asServe = "serve"

// aboutServe says whether a command reads the settings as serve does.
func aboutServe(cmd *cobra.Command) bool {
	if f := cmd.Flags().Lookup(asServe); f != nil {
		return f.Value.String() == "true"
	}
	_, either := cmd.Annotations[ofPrincipal]
	f := cmd.Flags().Lookup("config")
	return f != nil && f.Annotations[ofStdio] == nil && (!either || cmd.Flags().Changed(ofPrincipal))
}

// openFor is openQuiet, for the principal that --principal names, if it does.
func (t *terminal) openFor(cmd *cobra.Command) (*server.Server, error) {
	if f := cmd.Flags().Lookup(ofPrincipal); f != nil && f.Changed {
		return t.openPrincipal(cmd, f.Value.String())
	}
	return t.openQuiet(cmd)
}

// openPrincipal makes a server in which calls are those of a principal of serve: its roots, and its part of the data
// directory. serve may run meanwhile: files and journals have locks. What is called is in the same audit log.
func (t *terminal) openPrincipal(cmd *cobra.Command, id string) (*server.Server, error) {
	wrong := func(err error) error {
		return &exitError{code: exitConfig, err: err,
			hint: "--config FILE and --http-data-dir DIR say what serve uses; run this as the user who runs serve"}
	}
	cfg, warnings, err := load(cmd, nil)
	if err != nil {
		return nil, wrong(err)
	}
	for _, w := range warnings {
		fmt.Fprintf(t.errs, "codehand: %s\n", w)
	}
	if _, err := os.Stat(cfg.DataDir()); err != nil {
		return nil, wrong(fmt.Errorf("data directory: %w", err))
	}
	if cfg.StateDir, err = config.OpenState(cfg.DataDir()); err != nil {
		return nil, wrong(err)
	}
	cfg.HTTP.DataDir = cfg.StateDir
	if cfg.Roots, err = rootsOf(cfg, id); err != nil {
		return nil, wrong(err)
	}
	// serve removes what is too old or too much, by its own settings.
	cfg.Results.KeepDays, cfg.Results.MaxBytes = math.MaxInt16, math.MaxInt64
	cfg.WorkDir = cfg.Roots[0] // where relative paths begin for the principal, too
	if cfg.Audit.Dir == "" {
		cfg.Audit.Dir = filepath.Join(cfg.StateDir, "audit")
	}
	if cfg.Origin("log.level") == "default" && cfg.Log.File == "" {
		cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	}
	log, err := t.logger(cfg)
	if err != nil {
		return nil, &exitError{code: exitConfig, err: err}
	}
	s, err := server.New(server.Options{Principal: id, Options: engines.Options{
		Principal: true, Config: cfg.ForOnePerson(), Tools: tools.All, Version: buildVersion(), Log: log,
	}})
	if err != nil {
		return nil, wrong(err)
	}
	t.server.Store(s)
	return s, nil
}

// rootsOf are the directories of a principal that exist: those of all its tokens, and those of the configuration.
func rootsOf(cfg config.Config, id string) ([]string, error) {
	tokens, err := auth.OpenTokenFile(cfg.TokenFile()).List()
	if err != nil {
		return nil, err
	}
	at := tokenPlace{cfg: cfg, known: true}
	_, named := cfg.Principals.Named[id]
	said := []auth.Token{{Principal: id}} // one that says nothing
	for _, tok := range tokens {
		if tok.Principal == id {
			said = append(said, tok)
		}
	}
	if len(said) == 1 && !named && id != auth.LocalID {
		known := slices.Sorted(maps.Keys(cfg.Principals.Named))
		for _, tok := range tokens {
			known = append(known, tok.Principal)
		}
		slices.Sort(known)
		if len(known) == 0 {
			return nil, fmt.Errorf("there is no principal %q: there is no token, and the configuration names nobody",
				id)
		}
		return nil, fmt.Errorf("there is no principal %q; there are: %s", id,
			printable(strings.Join(slices.Compact(known), ", ")))
	}
	var roots, wanted []string
	for _, tok := range said {
		who, _ := at.principal(tok)
		for _, root := range who.Roots {
			if slices.Contains(wanted, root) {
				continue
			}
			wanted = append(wanted, root)
			if _, err := os.Stat(root); err == nil {
				roots = append(roots, root)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("%s has no workspace: %s does not exist (ROOTs on the command line of serve are not "+
			"known here; principals.default.roots of its configuration is)", id, strings.Join(wanted, ", "))
	}
	return roots, nil
}
