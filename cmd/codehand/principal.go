package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"codehand/server/nodes"
	"codehand/server/state"
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

// asCluster is the flag of doctor that is about several machines with serve.
const asCluster = "cluster"

// aboutServe says whether a command reads the settings as serve does.
func aboutServe(cmd *cobra.Command) bool {
	if f := cmd.Flags().Lookup(asServe); f != nil {
		cluster := cmd.Flags().Lookup(asCluster)
		return f.Value.String() == "true" || cluster != nil && cluster.Value.String() == "true"
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
	if volume := cfg.Cluster.Volume(); volume != "" {
		if err := nodes.Mounted(volume); err != nil {
			return nil, wrong(fmt.Errorf("cluster.shared_dir: %w", err))
		}
	}
	if cfg.StateDir, err = config.OpenState(cfg.DataDir()); err != nil {
		return nil, wrong(err)
	}
	cfg.HTTP.DataDir = cfg.StateDir
	if err := servedHere(cmd, t.errs, cfg, id); err != nil {
		return nil, err
	}
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

// servedHere says what keeps a command about a principal from being run on this machine, where several share the
// Store. Without a shared volume the journal is on one of them. With one it is everywhere, but only the machine that
// serves the principal may change files: locks hold there alone.
func servedHere(cmd *cobra.Command, errs io.Writer, cfg config.Config, id string) error {
	shared, f := cfg.Cluster.Volume() != "", cmd.Flags().Lookup("dry-run")
	changes := f != nil && f.Value.String() != "true"
	if cfg.Cluster.Node == "" || shared && !changes {
		return nil
	}
	var at nodes.Owner
	var lives bool
	err := withStore(cmd.Context(), cfg, func(ctx context.Context, s state.Store) (err error) {
		at, lives, err = nodes.Where(ctx, s, id)
		return err
	})
	here := "this machine is " + cfg.Cluster.Node
	switch {
	case err != nil && !changes:
		fmt.Fprintf(errs, "codehand: these are the changes that were made on this machine; which one serves %s is not "+
			"known: %v\n", printable(id), err)
		return nil
	case err != nil:
		return &exitError{code: exitFailed, err: fmt.Errorf("which machine serves %s is not known: %w", printable(id),
			err), hint: "nothing is changed where another machine may change it, too: let the store answer first"}
	case at.Node == "" || at.Node == cfg.Cluster.Node:
		return nil
	case shared && !lives:
		return &exitError{code: exitFailed, err: fmt.Errorf("%s is served by %s, which is down; %s", printable(id),
			printable(at.Node), here), hint: fmt.Sprintf("codehand cluster move %s %s, if codehand serve works here; "+
			"then try again", printable(id), cfg.Cluster.Node)}
	case shared:
		return &exitError{code: exitFailed, err: fmt.Errorf("%s is served by %s, and files are changed there alone; %s",
			printable(id), printable(at.Node), here), hint: "run this on " + printable(at.Node)}
	default:
		return &exitError{code: exitFailed, err: fmt.Errorf("%s is served by %s, where the files and their history "+
			"are; %s", printable(id), printable(at.Node), here), hint: "run this on " + printable(at.Node)}
	}
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
