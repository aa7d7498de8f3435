package sandbox

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A setting is a name with the value that it has for a command that was proved to change nothing, and the reason.
type setting struct{ name, value, why string }

// neutralVariables make programs of the closed list read only, whatever a person's files or a repository say.
//
// git diff writes the index only if diff.autoRefreshIndex is on, since GIT_OPTIONAL_LOCKS does not stop it (v2.55,
// builtin/diff.c: refresh_index_quietly); git describe --dirty always does, so it is on no list. protocol.allow stands
// beside GIT_NO_LAZY_FETCH, which git 2.39 does not know. Variables win over the file of `go env -w`, but an empty one
// does not.
var neutralVariables = []setting{
	{"GIT_CONFIG_NOSYSTEM", "1", "the machine's configuration may name programs"},
	{"GIT_CONFIG_GLOBAL", "/dev/null", "a person's configuration may name programs"},
	{"GIT_OPTIONAL_LOCKS", "0", "git status writes the index back"},
	{"GIT_NO_LAZY_FETCH", "1", "missing objects are fetched"},
	{"GIT_NO_REPLACE_OBJECTS", "1", "refs/replace shows other contents"},
	{"GIT_TERMINAL_PROMPT", "0", "nobody answers"},
	{"GIT_PAGER", "cat", "a pager is a program"},
	{"GOTOOLCHAIN", "local", "a toolchain line in go.mod or go.work makes go fetch and start another go"},
	{"GOPROXY", "off", "missing modules are fetched"},
	{"GOWORK", "off", "go list writes go.work.sum, also through a link"},
	{"GOSUMDB", "off", "sums are asked for at sum.golang.org, also with GOPROXY=off"},
	{"GOVCS", "*:off", "modules may be fetched by git and others"},
	{"GOAUTH", "off", "it may name a program"},
	{"GOFLAGS", "-buildvcs=false", "go list stamps main packages with what git status says; flags may name programs"},
	{"GODEBUG", "goindex=0", "an index of packages is written to the build cache"},
	{"TEST_TELEMETRY_DIR", "/dev/null/none", "every go and gofmt counts its starts below the home directory"},
}

// neutralGit is the configuration of git, which wins over that of every file.
var neutralGit = []setting{
	{"core.fsmonitor", "false", "a program"},
	{"core.hooksPath", "/dev/null", "programs"},
	{"core.pager", "cat", "a program"},
	{"pager.log", "false", "a program"},
	{"pager.diff", "false", "a program"},
	{"pager.show", "false", "a program"},
	{"core.editor", "false", "a program"},
	{"core.sshCommand", "false", "a program"},
	{"core.askPass", "", "a program"},
	{"core.alternateRefsCommand", "", "a program"},
	{"core.gitProxy", "", "a program"},
	{"credential.helper", "", "a program"},
	{"gpg.program", "false", "a program"},
	{"gpg.ssh.program", "false", "a program"},
	{"gpg.x509.program", "false", "a program"},
	{"log.showSignature", "false", "it starts gpg"},
	{"protocol.allow", "never", "missing objects are fetched"},
	{"safe.bareRepository", "explicit", "a directory of a repository may be one, with a configuration"},
	{"status.submoduleSummary", "false", "git starts git in submodules"},
	{"diff.submodule", "short", "git starts git in submodules"},
	{"diff.ignoreSubmodules", "dirty", "git starts git in submodules"},
	{"submodule.recurse", "false", "git starts git in submodules"},
	{"safe.directory", "*", "what it protects from is looked up, and another user's checkout is common in containers"},
	{"diff.orderFile", "/dev/null", "any file, also one that never ends"},
	{"log.diffMerges", "separate", "remerge writes objects for a moment"},
	{"diff.autoRefreshIndex", "false", "git diff writes the index back"},
}

// unneutral are variables that programs of the closed list obey, and by which they would run, read or write something
// else, or understand their options otherwise than the list does. An operator may pass them to other commands.
var unneutral = []setting{
	{"RIPGREP_CONFIG_PATH", "", "a file of options for rg, as --pre"},
	{"POSIXLY_CORRECT", "", "options end at the first operand"},
	{"_POSIX2_VERSION", "", "sort +1, tail +1 and others read their words in the old way"},
	{"GREP_OPTIONS", "", "options for an old grep"},
	{"PS_FORMAT", "", "what ps shows, as the environments of others"},
	{"PS_PERSONALITY", "", "which options ps has"},
	{"CMD_ENV", "", "likewise"},
	{"I_WANT_A_BROKEN_PS", "", "likewise"},
	{"MAGIC", "", "a file that file reads"},
	{"PERL*", "", "options and modules of perl, in which shasum is written"},
	{"PYTHON*", "", "modules that python starts with"},
	{"RUBYOPT", "", "modules that ruby starts with"},
	{"RUBYLIB", "", "likewise"},
	{"NODE_OPTIONS", "", "modules that node and npm start with"},
	{"NODE_PATH", "", "likewise"},
	{"npm_config_*", "", "settings of npm, as the program that runs scripts"},
	{"JAVA_TOOL_OPTIONS", "", "agents that java starts with"},
	{"JDK_JAVA_OPTIONS", "", "likewise"},
	{"_JAVA_OPTIONS", "", "likewise"},
	{"PHPRC", "", "modules that php starts with"},
	{"PHP_INI_SCAN_DIR", "", "likewise"},
	{"GCC_EXEC_PREFIX", "", "where gcc has its programs"},
	{"COMPILER_PATH", "", "likewise"},
	{"MAKEFLAGS", "", "options of make"},
	{"MAKEFILES", "", "files that make reads"},
	{"GOCACHEPROG", "", "a program that go starts"},
	{"GOENV", "", "a file of settings of go"},
	{"GCONV_PATH", "", "modules that the C library loads"},
	{"LOCPATH", "", "files that the C library reads"},
	{"NLSPATH", "", "likewise"},
	{"MALLOC_TRACE", "", "a file that the C library writes"},
	{"GLIBC_TUNABLES", "", "how the C library works"},
}

// Neutral returns the environment of a command that was proved to change nothing: env, made by Environ, without the
// ways to a person's agents and display and without what programs of the closed list must not obey, and with settings
// by which git and go only read: they start no other program, write nothing, and do not go to the network. What no
// environment can switch off, as drivers of free names, is looked up in the repository before (security.md 5.9). go
// still leaves a lock in the module cache where it misses a module.
func Neutral(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return Matches(personal, name) && !Matches(passed, name) ||
			slices.ContainsFunc(unneutral, func(s setting) bool { return Matches([]string{s.name}, name) })
	})
	for i, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			env[i] = "PATH=" + withoutShims(path)
		}
	}
	for _, s := range neutralVariables { // of two values of a name the later one counts
		env = append(env, s.name+"="+s.value)
	}
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(neutralGit)))
	for i, s := range neutralGit {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.name, "GIT_CONFIG_VALUE_"+n+"="+s.value)
	}
	return env
}

// withoutShims leaves out of a PATH the directories of version managers. Their programs start what a file of the
// workspace names, as .python-version, .tool-versions and package.json: `python --version` ran a program of it.
func withoutShims(path string) string {
	kept := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		dir = filepath.ToSlash(filepath.Clean(dir))
		name := dir[strings.LastIndexByte(dir, '/')+1:]
		return strings.EqualFold(name, "shims") || strings.HasSuffix(dir, "/.volta/bin")
	})
	if len(kept) == 0 {
		return defaultPath
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}
