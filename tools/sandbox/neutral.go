package sandbox

import (
	"slices"
	"strconv"
	"strings"
)

// Neutral returns the environment of a command that was proved to change nothing: env, made by Environ, without the
// ways to a person's agents and display, and with settings by which git starts none of the programs that a repository
// or a person may have named, writes no index back, and goes neither into submodules nor to the network; and go uses
// the toolchain and the modules that are there. What no environment can switch off, as drivers of free names, is looked
// up in the repository before (security.md 5.9).
//
// protocol.allow stands beside GIT_NO_LAZY_FETCH, which git 2.39 does not know. safe.directory is `*`, because what it
// protects from is looked up, and a checkout of another user's is common in containers.
func Neutral(env []string) []string {
	settings := [...][2]string{
		{"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}, {"core.pager", "cat"}, {"pager.log", "false"},
		{"pager.diff", "false"},
		{"pager.show", "false"}, {"core.editor", "false"}, {"core.sshCommand", "false"}, {"core.askPass", ""},
		{"core.alternateRefsCommand", ""},
		{"core.gitProxy", ""}, {"credential.helper", ""}, {"gpg.program", "false"}, {"gpg.ssh.program", "false"},
		{"gpg.x509.program", "false"},
		{"log.showSignature", "false"}, {"protocol.allow", "never"}, {"safe.bareRepository", "explicit"},
		{"status.submoduleSummary", "false"},
		{"diff.submodule", "short"}, {"diff.ignoreSubmodules", "dirty"}, {"submodule.recurse", "false"},
		{"safe.directory", "*"},
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return Matches(personal, name) && !Matches(passed, name)
	})
	env = append(env, // of two values of a name the later one counts
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat",
		"GIT_CONFIG_COUNT="+strconv.Itoa(len(settings)),
		"GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=-mod=readonly",
	)
	for i, s := range settings {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s[0], "GIT_CONFIG_VALUE_"+n+"="+s[1])
	}
	return env
}
