package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/logging"
	"codehand/tools"
)

// load reads the settings from flags, environment and files.
func load(cmd *cobra.Command, roots []string) (config.Config, []config.Warning, error) {
	src, err := config.Process()
	if err != nil {
		return config.Config{}, nil, err
	}
	src.Roots, src.Flags = roots, given(cmd)
	if f := cmd.Flags().Lookup("config"); f != nil {
		src.UserFile = f.Value.String()
	}
	src.Serve = aboutServe(cmd)
	if _, ok := cmd.Annotations[ofPrincipal]; ok && src.Serve {
		src.Rootless = true // the directories are those of the principal
	}
	cfg, warnings, err := config.Load(src)
	if _, ok := cmd.Annotations[ofMounts]; ok && err == nil && len(cfg.Roots) == 0 {
		src.Rootless = true // a person may start it anywhere
		return config.Load(src)
	}
	return cfg, warnings, err
}

// ofMounts marks a command that uses the directory it is started in only if it can be a root.
const ofMounts = "codehand_of_mounts"

// ofStdio marks a flag --config of a command that is not about serve.
const ofStdio = "codehand_of_stdio"

// localConfig gives a command that is not about serve a flag --config.
func localConfig(cmd *cobra.Command, doc string) {
	cmd.Flags().String("config", "", doc)
	if err := cmd.Flags().SetAnnotation("config", ofStdio, []string{""}); err != nil {
		panic(err) // the flag was made in the line before
	}
}

// given returns the settings that the command line has, by flag.
func given(cmd *cobra.Command) map[string]string {
	flags := map[string]string{}
	for _, s := range config.Settings() {
		if f := cmd.Flags().Lookup(flagName(s)); f != nil && f.Changed {
			flags[s.Flag] = f.Value.String()
		}
	}
	return flags
}

// open makes the server of a command that a client started. Warnings go to standard error, one line each.
func (t *terminal) open(cmd *cobra.Command, roots []string) (*server.Server, error) {
	return t.openFrom(cmd, roots, slog.LevelDebug, nil)
}

// openQuiet is open for a person, whose terminal shows of the log only what is wrong unless log.level is set: what came
// of the command, its own output says.
func (t *terminal) openQuiet(cmd *cobra.Command) (*server.Server, error) {
	return t.openFrom(cmd, nil, slog.LevelWarn, nil)
}

// openFrom is open with the level from which a log on the terminal has its lines by default. adapt, if it is not nil,
// changes defaults that suit no person.
func (t *terminal) openFrom(cmd *cobra.Command, roots []string, least slog.Level,
	adapt func(*config.Config)) (*server.Server, error) {
	cfg, warnings, err := load(cmd, roots)
	if err != nil {
		return nil, &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
	}
	if adapt != nil {
		adapt(&cfg)
	}
	return openWith(t, cfg, warnings, least)
}

// openWith makes the server of settings that were read.
func openWith(t *terminal, cfg config.Config, warnings []config.Warning, least slog.Level) (*server.Server, error) {
	for _, w := range warnings {
		fmt.Fprintf(t.errs, "codehand: %s\n", w)
	}
	if cfg.Origin("log.level") == "default" && cfg.Log.File == "" {
		cfg.Log.Level = max(cfg.Log.Level, least)
	}
	log, err := t.logger(cfg)
	if err != nil {
		return nil, &exitError{code: exitConfig, err: err}
	}
	s, err := server.New(server.Options{Options: engines.Options{
		Config: cfg, Tools: tools.All, Version: buildVersion(), Log: log, Echo: t.echo,
	}})
	if err != nil {
		return nil, &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
	}
	t.server.Store(s)
	return s, nil
}

// logger writes to standard error, or to the file that log.file names.
func (t *terminal) logger(cfg config.Config) (*slog.Logger, error) {
	return logging.New(t.log, cfg.Log.File, cfg.Log.Level)
}
