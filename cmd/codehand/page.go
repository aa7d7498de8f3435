package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/userpage"
	"codehand/tools"
)

func newPage(t *terminal) *cobra.Command {
	var port int
	var quiet bool
	cmd := &cobra.Command{
		Use:         "page",
		Short:       "Show a page for approvals and changes in your browser",
		Annotations: map[string]string{ofMounts: ""},
		Long: `Show a page in your browser, over all sessions on stdio of your user account:
calls that wait for you because their client cannot ask, commands that run, and
what tools changed in every workspace, with undo. It is for this machine alone, and
ends with Ctrl-C. Clients never need it.

The printed address holds a key that opens the page once. A browser is opened where
there is a screen. Approvals and running commands need Linux.

Exit codes: 0 ended by Ctrl-C, 1 failed, 2 usage, 3 configuration.`,
		Example: `  codehand page
  codehand page --no-browser --port 7444`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65_535 {
				return usage("codehand page --help", "--port must be 0 to 65535")
			}
			return showPage(t, cmd, port, !quiet)
		},
	}
	cmd.Flags().IntVar(&port, "port", 0, "port of 127.0.0.1; 0: one that is free")
	cmd.Flags().BoolVar(&quiet, "no-browser", false, "print the address and open no browser")
	localConfig(cmd, "read `FILE` instead of the user's configuration")
	return cmd
}

// page serves the page of this user until a signal.
func showPage(t *terminal, cmd *cobra.Command, port int, browse bool) error {
	hide(t.errs)
	cfg, warnings, err := load(cmd, nil)
	for _, w := range warnings {
		fmt.Fprintf(t.errs, "codehand: %s\n", w)
	}
	if err != nil {
		return &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
	}
	if cfg.StateDir, err = config.OpenState(cfg.StateDir); err != nil {
		return &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
	}
	if cfg.Origin("log.level") == "default" && cfg.Log.File == "" {
		cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	}
	log, err := t.logger(cfg)
	if err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	l, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return &exitError{code: exitFailed, err: err, hint: "codehand page --port 0"}
	}
	o := userpage.Options{
		StateDir: cfg.StateDir, Approvals: cfg.Console.Approvals != "off", Calls: config.CallsDir(cfg), Log: log,
		Open: func(_ context.Context, roots []string) (userpage.Workspace, error) {
			return openWorkspace(cmd, cfg.StateDir, roots, log)
		},
	}
	return failed(userpage.Serve(cmd.Context(), l, o, func(url string) {
		fmt.Fprintf(t.out, "%s\n", url)
		fmt.Fprintln(t.errs, "codehand: open this address in a browser of this machine; it works once. "+
			"Ctrl-C ends it.")
		if browse && onTerminal(t.errs) {
			openBrowser(url)
		}
	}))
}

// openWorkspace makes the server of a workspace whose changes a person looks at: with its settings, and without what
// only sessions need.
func openWorkspace(cmd *cobra.Command, state string, roots []string, log *slog.Logger) (*server.Server, error) {
	cfg, _, err := load(cmd, roots)
	if err != nil {
		return nil, err
	}
	cfg.StateDir, cfg.WorkDir, cfg.Mounts = state, roots[0], nil
	return server.New(server.Options{Options: engines.Options{
		Config: cfg, Tools: tools.All, Version: buildVersion(), Log: log,
	}})
}

// openBrowser opens an address in the person's browser, where there is a screen to show one. Nobody waits for it, and
// that it fails is no error: the address is printed.
func openBrowser(url string) {
	var name string
	var args []string
	switch {
	case os.Getenv("CI") != "":
		return
	case runtime.GOOS == "darwin":
		name = "open"
	case runtime.GOOS == "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler"}
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return
	default:
		name = "xdg-open"
	}
	c := exec.Command(name, append(args, url)...)
	if c.Start() == nil {
		go func() { _ = c.Wait() }() // the browser goes on by itself
	}
}
