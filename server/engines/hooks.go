package engines

import (
	"codehand/tools/hooks"
)

// hooks makes the engine that runs the operator's programs. around: some run around calls, and not only the
// classifier.
func (o Options) hooks() (runner *hooks.Runner, around bool, err error) {
	cfg := o.Config
	as := hooks.Options{
		Classifier: cfg.Permissions.Classifier,
		Notify:     cfg.Console.Notify,
		OwnNames:   cfg.Hooks.ToolNames == ownToolNames,
		FailClosed: cfg.Hooks.FailClosed,
		EnvAllow:   cfg.Shell.EnvAllow,
		EnvSecret:  cfg.Shell.EnvAllowSecret,
		Withhold:   cfg.KeyEnvs(),
		Written:    cfg.Sandbox.Writable,
		Personal:   !o.Serve,
		Home:       cfg.Home,
		Log:        o.Log,
	}
	for _, h := range cfg.Hooks.Entries {
		as.Hooks = append(as.Hooks, hooks.Hook{
			Event: h.Event, Matcher: h.Matcher, If: h.If, Command: h.Command, Timeout: h.Timeout, Async: h.Async,
			Project: h.Project, Origin: h.Origin,
		})
	}
	runner, err = hooks.New(as)
	return runner, len(as.Hooks) > 0, err
}

// ownToolNames is the value of hooks.tool_names with which hooks are told our names.
const ownToolNames = "codehand"
