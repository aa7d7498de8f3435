package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"codehand/server/config"
	"codehand/tools/confine/caches"
)

func newClean(t *terminal) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what commands in the sandbox downloaded and built",
		Long: `Remove the caches that commands in the sandbox have for themselves, of all
principals, with the programs that they installed there, and say what each part
had. The next builds download and compile again. Your own caches, the journal of
changes and sessions stay.

Nothing is removed while a command runs. What sandbox.cache_max bounds needs no
cleaning.

Exit codes: 0 done, 1 a command runs or a file cannot be removed, 2 usage,
3 configuration.`,
		Example: `  codehand clean --dry-run
  codehand clean`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := rootless(cmd)
			if err != nil {
				return err
			}
			return clean(t, cmd, config.CacheDir(cfg.StateDir), dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the sizes, and remove nothing")
	localConfig(cmd, "configuration file to read instead of the user's")
	return cmd
}

// clean removes the caches of each principal in dir, and tells the size of their parts.
func clean(t *terminal, cmd *cobra.Command, dir string, dryRun bool) error {
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(err)
	}
	var total int64
	var wrong error
	tw := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
	for _, c := range all {
		if !c.IsDir() {
			continue
		}
		path := filepath.Join(dir, c.Name())
		parts, err := caches.Parts(cmd.Context(), path)
		if err == nil && !dryRun {
			err = caches.Remove(path)
		}
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", path, err))
			continue
		}
		for _, p := range parts {
			fmt.Fprintf(tw, "%.1f MiB\t%s\n", float64(p.Bytes)/(1<<20), printable(filepath.Join(path, p.Name)))
			total += p.Bytes
		}
	}
	if err := tw.Flush(); err != nil {
		return failed(err)
	}
	verb := "removed"
	if dryRun {
		verb = "would be removed"
	}
	fmt.Fprintf(t.errs, "codehand: %.1f MiB %s\n", float64(total)/(1<<20), verb)
	if wrong != nil {
		return failed(wrong)
	}
	return nil
}
