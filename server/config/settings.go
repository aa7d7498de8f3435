package config

import (
	"log/slog"
	"slices"
	"time"

	"codehand/tools/permission"
)

// A policy says what a project file may do with a setting. The zero value is nothing: a setting that forgets to say
// it cannot be widened by a repository.
type policy int

const (
	operatorOnly policy = iota // ignored, with a warning: it reaches beyond the workspace, or widens
	narrower                   // counts if it is stricter than what holds without the project file
	added                      // its entries are added
	guidance                   // counts, below flags and environment
)

// A setting is one row of the table, bound to the field of a Config.
type setting struct {
	key     string
	doc     string
	project policy
	at      value
}

const (
	second = 1000 // in milliseconds
	hour   = 3600 * second
)

// versions of MCP that are spoken, newest first.
var versions = [...]string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// defaults returns the Config without any source.
func defaults() Config {
	return Config{
		Permissions: Permissions{Mode: permission.Default, Highest: permission.Bypass, AskFallback: "client",
			AskTimeout: 10 * time.Minute},
		Hooks:   Hooks{ToolNames: "claude"},
		Plan:    Plan{ApprovalFallback: "client"},
		Results: Results{KeepDays: 30},
		Tools:   Tools{MaxParallel: 10, Profile: "default", Deferral: "auto"},
		Read: Read{Dedup: "once", MaxTokens: 25000, MaxLine: 2000, LineFormat: "tab", Version: "auto",
			ImageMaxEdge: 1568, PDF: true},
		Edit:    Edit{Guard: "strict"},
		Write:   Write{Durability: "full"},
		Journal: Journal{KeepDays: 30, MaxBytes: gib},
		List:    List{Limit: 100, TimeoutMS: 20 * second},
		Grep:    Grep{DefaultMode: "files_with_matches", TimeoutMS: 20 * second},
		Shell: Shell{Enabled: true, DefaultTimeoutMS: 120 * second, MaxTimeoutMS: 600 * second,
			AutoBackgroundMS: 110 * second},
		Protocol: Protocol{Versions: append([]string(nil), versions[:]...)},
		Stdio:    Stdio{EOFGrace: 5 * time.Second, ParentWatch: true},
		Search:   Search{OutsideIgnores: "auto"},
		Log:      Log{Level: slog.LevelInfo},
		HTTP: HTTP{
			Listen: []string{"127.0.0.1:7433"}, MaxBody: 4 << 20, Drain: 30 * time.Second,
			OrphanGrace: 30 * time.Second,
			LameDuck:    -1, SSE: true, UnixMode: 0o600, MaxConnections: 4096,
		},
		Auth:    Auth{Mode: "auto", LocalPeer: "same-user"},
		Session: Session{Idle: 30 * time.Minute, TTL: 30 * 24 * time.Hour, Max: 10_000, MaxPerPrincipal: 200},
		Store:   Store{URL: "embedded:", MaxBytes: 4 << 30, Sync: time.Second},
		Audit: Audit{Sync: time.Second, OnError: "refuse", Rotate: 256 << 20, Keep: 90 * 24 * time.Hour,
			Commands: "redacted"},
	}
}

// table is the list of all settings, bound to c. Choices stand strictest first.
func table(c *Config) []setting {
	return slices.Concat(ruleTable(c), toolTable(c), processTable(c), serveTable(c))
}

// ruleTable is about what may be done, and who decides.
func ruleTable(c *Config) []setting {
	return []setting{
		{"roots", "directories that sessions may touch; ROOT arguments replace them", operatorOnly, dirs{&c.Roots}},
		{"state_dir", "directory for what must be remembered", operatorOnly, file{&c.StateDir}},

		{"permissions.mode",
			"default, acceptEdits, plan, auto, dontAsk or bypassPermissions; in serve acceptEdits unless it is set",
			narrower, mode{&c.Permissions.Mode}},
		{"permissions.deny", "rules for what is never done", added, rules{&c.Permissions.Deny, permission.Deny}},
		{"permissions.ask", "rules for what a person is asked about, whatever the client shows", added,
			rules{&c.Permissions.Ask, permission.Ask}},
		{"permissions.allow", "rules for what needs no question", operatorOnly,
			rules{&c.Permissions.Allow, permission.Allow}},
		{"permissions.protect",
			"names of files, at any depth, that a person must allow to change, besides those of every installation",
			added, protects{&c.Permissions.Protect}},
		{"permissions.unprotect",
			"names that every installation protects or keeps secret in the roots, and that are ordinary files here",
			operatorOnly, unprotects{&c.Permissions.Unprotect}},
		{"permissions.additional_dirs",
			"directories besides the roots that every session may touch, whatever roots its principal or token has",
			operatorOnly, dirs{&c.Permissions.AdditionalDirs}},
		{"permissions.ask_fallback", "who answers when a rule says ask: client or deny; in serve deny unless it is set",
			narrower, choice{&c.Permissions.AskFallback, []string{"deny", "client"}}},
		{"permissions.ask_timeout_ms", "milliseconds that a person has for an answer", narrower,
			millis{&c.Permissions.AskTimeout, second, 600 * second}},
		{"permissions.classifier", "program with its arguments that judges calls in mode auto", operatorOnly,
			command{&c.Permissions.Classifier}},

		{"hooks.tool_names", "which names of tools hooks are told: claude or codehand", operatorOnly,
			choice{&c.Hooks.ToolNames, []string{"claude", "codehand"}}},
		{"hooks.trust_project", "whether hooks of project files are run", operatorOnly, toggle{&c.Hooks.TrustProject}},
		{"hooks.fail_closed", "whether a hook that fails blocks the call", operatorOnly, toggle{&c.Hooks.FailClosed}},

		{"plan.directory", "directory of plan files, inside a root; empty: in the state directory", guidance,
			term{&c.Plan.Directory, absolute}},
		{"plan.approval_fallback",
			"who approves a plan when nobody can be asked: console, client or auto; in serve console unless it is set",
			narrower, choice{&c.Plan.ApprovalFallback, []string{"console", "client", "auto"}}},
		{"results.keep_days", "days that results are kept which were too long to show", narrower,
			number{&c.Results.KeepDays, 1, 3650, false}},
	}
}

// toolTable is about what there is to call, and how it behaves.
func toolTable(c *Config) []setting {
	return []setting{
		{"tools.max_parallel", "calls of one session at once", narrower, number{&c.Tools.MaxParallel, 1, 10, false}},
		{"tools.profile",
			"which tools there are: readonly (what changes nothing), simple (run_shell, read_file, edit_file) or " +
				"default (all)", narrower,
			profile{choice{&c.Tools.Profile, []string{"readonly", "simple", "default"}}}},
		{"tools.deferral",
			"which tools are listed before tool_search found them: auto (by client), on (the core) or off (all)",
			operatorOnly, choice{&c.Tools.Deferral, []string{"auto", "on", "off"}}},
		{"tools.always", "names of tools that are listed as the core is", operatorOnly,
			list{&c.Tools.Always, checkToolName}},

		{"skills.dirs", "directories of skills, each NAME/SKILL.md, that go before those of the user and of projects",
			operatorOnly, dirs{&c.Skills.Dirs}},
		{"skills.allow_shell",
			"whether commands in skills of the operator and the user are run, under the rules of run_shell",
			operatorOnly, toggle{&c.Skills.AllowShell}},
		{"tasks.directory",
			"directory of a task list that all sessions of a person share, in serve below it one for each principal; " +
				"empty: each session has its own", operatorOnly, term{&c.Tasks.Directory, absolute}},
		{"git.co_author", "co-author of commits that the prompt commit asks for, as NAME <ADDRESS>; empty: none",
			operatorOnly, term{&c.Git.CoAuthor, coAuthor}},

		{"read.dedup", "answer an unchanged second read with a short note: once or off", guidance,
			choice{&c.Read.Dedup, []string{"once", "off"}}},
		{"read.max_tokens", "tokens of one page of a file", narrower, number{&c.Read.MaxTokens, 100, 1_000_000, false}},
		{"read.max_line", "characters of one line, 0 for no limit", narrower,
			number{&c.Read.MaxLine, 0, 1_000_000, true}},
		{"read.line_format", "what stands between line number and line: tab or pipe", guidance,
			choice{&c.Read.LineFormat, []string{"tab", "pipe"}}},
		{"read.version", "when versions of files are shown: auto or always", guidance,
			choice{&c.Read.Version, []string{"auto", "always"}}},
		{"read.image_max_edge",
			"pixels of the longer edge of an image as it is shown; above 1568 it counts for long, narrow images " +
				"alone, since 1.15 megapixels are shown at most, and not for pages of a PDF", operatorOnly,
			number{&c.Read.ImageMaxEdge, 64, 8192, false}},
		{"read.pdf", "whether PDF files are given to poppler's programs, which no kernel confines yet, to be read",
			narrower, toggle{&c.Read.PDF}},

		{"edit.guard", "strict: a file must be read before it is changed; or relaxed", narrower,
			choice{&c.Edit.Guard, []string{"strict", "relaxed"}}},
		{"edit.desanitize", "try an edit again with the markers <fnr> <n> <o> <e> <s>, H: and A: written out",
			operatorOnly, toggle{&c.Edit.Desanitize}},
		{"write.durability", "full: a change is on the disk before the answer; or fast", narrower,
			choice{&c.Write.Durability, []string{"full", "fast"}}},
		{"write.secret_paths", "patterns of files, as in rules, into which file tools write no secrets", added,
			patterns{&c.Write.SecretPaths}},
		{"journal.keep_days", "days that changes are kept for history and undo", operatorOnly,
			number{&c.Journal.KeepDays, 1, 3650, false}},
		{"journal.max_bytes",
			"size of what is kept of the changes in one workspace, of each person; the oldest go first", operatorOnly,
			size{&c.Journal.MaxBytes, mib, 1024 * gib}},

		{"list.limit", "paths of one listing", narrower, number{&c.List.Limit, 1, 100_000, false}},
		{"list.gitignore", "leave ignored files out of listings", guidance, toggle{&c.List.Gitignore}},
		{"list.timeout_ms", "milliseconds for one listing", narrower, number{&c.List.TimeoutMS, 100, hour, false}},
		{"grep.default_mode", "files_with_matches, content or count", guidance,
			choice{&c.Grep.DefaultMode, []string{"files_with_matches", "content", "count"}}},
		{"grep.timeout_ms", "milliseconds for one search", narrower, number{&c.Grep.TimeoutMS, 100, hour, false}},

		{"shell.enabled", "whether commands may be run at all", narrower, toggle{&c.Shell.Enabled}},
		{"shell.default_timeout_ms", "milliseconds for a command that names none", narrower,
			number{&c.Shell.DefaultTimeoutMS, 1, 2 * hour, false}},
		{"shell.max_timeout_ms", "most milliseconds that a command may name", narrower,
			number{&c.Shell.MaxTimeoutMS, 1, 2 * hour, false}},
		{"shell.auto_background_ms", "milliseconds after which a command moves to the background, 0 for never",
			narrower, number{&c.Shell.AutoBackgroundMS, 0, 2 * hour, true}},
		{"shell.init_file", "file that is sourced before each command", operatorOnly, file{&c.Shell.InitFile}},
		{"shell.env_allow", "environment variables that commands see besides the usual ones; NAME or PREFIX_*",
			operatorOnly, list{&c.Shell.EnvAllow, checkEnvName}},
	}
}

// processTable is about the process, its client and its log.
func processTable(c *Config) []setting {
	return []setting{
		{"protocol.versions", "versions of MCP that are spoken", operatorOnly,
			list{&c.Protocol.Versions, checkVersion}},
		{"stdio.eof_grace", "time for running calls after the end of input", operatorOnly,
			period{&c.Stdio.EOFGrace, 0, 10 * time.Minute, nil}},
		{"stdio.parent_watch", "end when the client's process is gone", operatorOnly, toggle{&c.Stdio.ParentWatch}},
		{"client.profile", "client profile to use, whatever the client says it is", operatorOnly,
			text{&c.Client.Profile}},

		{"search.workers", "threads of the search engine, 0 for one per processor", operatorOnly,
			number{&c.Search.Workers, 0, 64, true}},
		{"search.outside_ignores", "obey ignore files above a root: auto or off", guidance,
			choice{&c.Search.OutsideIgnores, []string{"auto", "off"}}},

		{"log.level", "debug, info, warn or error", operatorOnly, level{&c.Log.Level}},
		{"log.file", "file for the log instead of stderr", operatorOnly, file{&c.Log.File}},
	}
}
