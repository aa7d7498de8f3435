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
	c := Config{
		Permissions: Permissions{Mode: permission.Default, Highest: permission.Bypass, AskFallback: "client",
			AskTimeout: 10 * time.Minute},
		Hooks:   Hooks{ToolNames: "claude"},
		Plan:    Plan{ApprovalFallback: "client"},
		Results: Results{KeepDays: 30, MaxBytes: gib},
		Tools:   Tools{MaxParallel: 10, Profile: "default", Deferral: "auto", Agent: defaultAgent()},
		Read: Read{Dedup: "once", MaxTokens: 25000, MaxLine: 2000, LineFormat: "auto", Version: "auto",
			ImageMaxEdge: 1568, PDF: true},
		Edit:    Edit{Guard: "strict"},
		Write:   Write{Durability: "full"},
		Journal: Journal{KeepDays: 30, MaxBytes: gib, Shell: true},
		List:    List{Limit: 100, TimeoutMS: 20 * second},
		Grep:    Grep{DefaultMode: "files_with_matches", TimeoutMS: 20 * second},
		Shell: Shell{Enabled: true, Fold: true, MaskSecrets: true,
			DefaultTimeoutMS: 120 * second, MaxTimeoutMS: 600 * second,
			AutoBackgroundMS: 110 * second},
		Protocol: Protocol{Versions: append([]string(nil), versions[:]...)},
		Stdio:    Stdio{EOFGrace: 5 * time.Second, ParentWatch: true},
		Search:   Search{OutsideIgnores: "auto", Memory: 256 * mib},
		Log:      Log{Level: slog.LevelInfo},
		LSP:      LSP{Enabled: true, MaxMemory: 2 * gib},
		Sandbox:  defaultSandbox(),
		Web:      defaultWeb(),
	}
	serveDefaults(&c)
	return c
}

// table is the list of all settings, bound to c. Choices stand strictest first.
func table(c *Config) []setting {
	return slices.Concat(ruleTable(c), toolTable(c), fileTable(c), shellTable(c), agentTable(c), processTable(c),
		sandboxTable(c), lspTableRows(c), webTable(c), webSearchTable(c), serveTable(c), pageTable(c))
}

// Permissions are the rules and the mode.
type Permissions struct {
	Mode             permission.Mode
	Highest          permission.Mode   // no session goes above it; Bypass unless the machine's administrator fixed Mode
	Deny, Ask, Allow []permission.Rule // of all sources, each with its own origin; all parse
	AskFallback      string            // client, deny: who answers a default ask
	AskTimeout       time.Duration     // of a person
	AdditionalDirs   []string          // absolute; beside the roots
	Protect          []string          // names besides the built-in ones that a person must allow to change
	Unprotect        []string          // built-in names that are ordinary files here
	Classifier       []string          // the command that decides in mode auto; empty: none, and Mode is not Auto
	UserFile         string            // that the user's own rules stand in; it need not be there; "": no place for one
	ManagedRulesOnly bool              // no rule allows but those of the machine's administrator, which are in Allow
}

// Hooks are the operator's programs around calls.
type Hooks struct {
	Entries      []Hook
	ToolNames    string // claude, codehand: which names of tools they are told
	TrustProject bool   // those of project files count
	FailClosed   bool   // one that fails blocks the call
}

// Plan is plan mode.
type Plan struct {
	Directory        string // of plan files, absolute; "": in the state directory
	ApprovalFallback string // client, console, auto: who approves when no person can be asked
}

// Results are the texts that were too long to show.
type Results struct {
	KeepDays int
	MaxBytes int64 // of all sessions together
}

// Tools is which tools there are and how they run.
type Tools struct {
	MaxParallel int      // calls of one session at once
	Profile     string   // default, simple, readonly: which tools there are
	Deferral    string   // auto, on, off: which of them are listed before they were searched for
	Always      []string // names of further tools that are always listed
	Agent       Agent    // how sub-agents are executed
}

// Skills are instructions in files.
type Skills struct {
	Dirs       []string // of the operator, absolute; each holds NAME/SKILL.md
	AllowShell bool     // commands in skills are run, but not in those of a project
}

// Tasks are the lists of tasks.
type Tasks struct {
	Directory string // of a list that all sessions of a principal share, absolute; "": each has its own
}

// Git is what is said about commits.
type Git struct {
	CoAuthor string // "NAME <ADDRESS>" for the trailer of a commit; "": none
}

// Read is how files are shown.
type Read struct {
	Dedup      string // once, off: answer an unchanged re-read with a stub
	MaxTokens  int    // of one page
	MaxLine    int    // runes of one line; 0: no limit
	LineFormat string // auto, tab, pipe, none
	Version    string // auto, always: when versions are shown

	// pixels of the longer edge of an image as it is shown, within 1.15 megapixels; a page of a PDF has 1,568 at most
	ImageMaxEdge int
	PDF          bool // the programs for PDF files may run
}

// Edit is what must be known before a change, and how text is looked for.
type Edit struct {
	Guard      string // strict, relaxed
	Desanitize bool   // write out short forms of markers
}

// Write is how changes reach the disk, and what must not.
type Write struct {
	Durability  string            // full: fsync; fast: none
	SecretPaths []permission.Rule // each Edit(pattern): where no secret may be written
}

// Journal is how long the contents before and after each change are kept.
type Journal struct {
	KeepDays int
	MaxBytes int64 // of one principal
	Shell    bool  // also of what changes in a git work tree while a command runs
}

// List is how directories are listed.
type List struct {
	Limit     int // paths
	Gitignore bool
	TimeoutMS int
}

// Grep is how contents are searched.
type Grep struct {
	DefaultMode string // files_with_matches, content, count
	TimeoutMS   int
}

// Shell is how commands run.
type Shell struct {
	Enabled          bool
	DefaultTimeoutMS int
	MaxTimeoutMS     int
	AutoBackgroundMS int      // 0: never
	Fold             bool     // leave out what known programs say of success
	MaskSecrets      bool     // of known shapes, in what commands print
	InitFile         string   // absolute; sourced before each command; "": none
	EnvAllow         []string // names, or prefixes that end in `*`, passed on besides the built-in ones
	EnvAllowSecret   []string // likewise, also what sounds like a secret
}

// Protocol is what is spoken.
type Protocol struct {
	Versions []string // of MCP, newest first
}

// Stdio is how the pipe ends.
type Stdio struct {
	EOFGrace    time.Duration // for running calls after the end of input
	ParentWatch bool          // end when the parent is gone
}

// Client is what we know better than the client.
type Client struct {
	Profile string // name of a profile that is used whatever the client says; "": chosen by its name
}

// Search is how the search engine works.
type Search struct {
	Workers        int    // 0: by the number of processors
	OutsideIgnores string // auto, off: ignore files above a root
	Memory         int64  // bytes that searches of all sessions remember of trees; 0: nothing
}

// Log is where the log goes.
type Log struct {
	Level slog.Level
	File  string // absolute; "": stderr
}

// ruleTable is about what may be done, and who decides.
func ruleTable(c *Config) []setting {
	return []setting{
		{"roots", "directories that sessions may use; ROOT arguments replace them", operatorOnly, dirs{&c.Roots}},
		{"state_dir", "directory for state that outlives the process", operatorOnly, file{&c.StateDir}},

		{"permissions.mode",
			"default, acceptEdits, plan, auto, dontAsk or bypassPermissions; serve defaults to acceptEdits", narrower,
			mode{&c.Permissions.Mode}},
		{denyKey,
			"rules for what is refused; /x in a rule starts at each root (in a project's file at the project), " +
				"//x at the top of the file system, ~/x at the home directory", added,
			rules{&c.Permissions.Deny, permission.Deny}},
		{"permissions.ask", "rules for what a person must approve, whatever the client's own dialog says", added,
			rules{&c.Permissions.Ask, permission.Ask}},
		{"permissions.allow", "rules for what needs no approval", operatorOnly,
			rules{&c.Permissions.Allow, permission.Allow}},
		{"permissions.protect",
			"file names, at any depth, that change only with a person's approval, besides the built-in ones", added,
			protects{&c.Permissions.Protect}},
		{"permissions.unprotect", "built-in protected or secret names that are ordinary files in the roots here",
			operatorOnly, unprotects{&c.Permissions.Unprotect}},
		{"permissions.additional_dirs",
			"directories that every session may use besides its roots, whatever roots its principal or token has",
			operatorOnly, dirs{&c.Permissions.AdditionalDirs}},
		{askFallbackKey,
			"who decides about calls that a mode asks about: client (its own dialog) or deny (refused unless a " +
				"person can be asked); serve defaults to deny for more than one person", narrower,
			choice{&c.Permissions.AskFallback, []string{"deny", "client"}}},
		{"permissions.ask_timeout_ms", "milliseconds that a person has to answer", narrower,
			millis{&c.Permissions.AskTimeout, second, 600 * second}},
		{"permissions.classifier", "program and arguments that judge calls in mode auto", operatorOnly,
			command{&c.Permissions.Classifier}},

		{"hooks.tool_names", "tool names that hooks are given: claude or codehand", operatorOnly,
			choice{&c.Hooks.ToolNames, []string{"claude", "codehand"}}},
		{"hooks.trust_project", "whether hooks in project files run", operatorOnly, toggle{&c.Hooks.TrustProject}},
		{"hooks.fail_closed", "whether a hook that fails blocks the call", operatorOnly, toggle{&c.Hooks.FailClosed}},

		{"plan.directory", "directory of plan files, inside a root; empty: in the state directory", guidance,
			term{&c.Plan.Directory, absolute}},
		{"plan.approval_fallback",
			"who approves a plan when nobody can be asked: client, console or auto",
			narrower, choice{&c.Plan.ApprovalFallback, []string{"console", "client", "auto"}}},
		{"results.keep_days", "days to keep results that were too long to show", narrower,
			number{&c.Results.KeepDays, 1, 3650, false}},
		{"results.max_bytes",
			"most bytes of such results and of job logs to keep, of one session a quarter; the oldest go first",
			operatorOnly, size{&c.Results.MaxBytes, mib, 1024 * gib}},
	}
}

// toolTable is about what there is to call.
func toolTable(c *Config) []setting {
	return []setting{
		{"tools.max_parallel", "most calls of one session at once", narrower,
			number{&c.Tools.MaxParallel, 1, 10, false}},
		{"tools.profile",
			"which tools exist: readonly (those that change nothing), simple (run_shell, read_file, edit_file) or " +
				"default (all)", narrower,
			profile{choice{&c.Tools.Profile, []string{"readonly", "simple", "default"}}}},
		{"tools.deferral",
			"which tools are listed before tool_search finds them: auto (depends on the client), on (only the core) " +
				"or off (all)", operatorOnly, choice{&c.Tools.Deferral, []string{"auto", "on", "off"}}},
		{"tools.always", "tools to list besides the core", operatorOnly, list{&c.Tools.Always, checkToolName}},

		{"skills.dirs", "directories of skills (NAME/SKILL.md); they win over those of the user and of projects",
			operatorOnly, dirs{&c.Skills.Dirs}},
		{"skills.allow_shell",
			"whether commands in the operator's and the user's skills run, under the rules of run_shell", operatorOnly,
			toggle{&c.Skills.AllowShell}},
		{"tasks.directory",
			"directory of one task list for all sessions of a person (serve: a directory below it per principal); " +
				"empty: one list per session", operatorOnly, term{&c.Tasks.Directory, absolute}},
		{"git.co_author", "co-author in commits that the prompt commit asks for, as NAME <ADDRESS>; empty: none",
			operatorOnly, term{&c.Git.CoAuthor, coAuthor}},
	}
}

// fileTable is about how the tools for files behave.
func fileTable(c *Config) []setting {
	return []setting{
		{"read.dedup", "answer an unchanged second read with a short note: once or off", guidance,
			choice{&c.Read.Dedup, []string{"once", "off"}}},
		{"read.max_tokens", "most tokens of one page of a file", narrower,
			number{&c.Read.MaxTokens, 100, 1_000_000, false}},
		{"read.max_line", "most characters of one line, 0 for no limit", narrower,
			number{&c.Read.MaxLine, 0, 1_000_000, true}},
		{"read.line_format",
			"how read_file shows lines: with number and tab, with number and pipe, or none; auto: with numbers for " +
				"clients whose own tools show them, such as Claude Code", guidance,
			choice{&c.Read.LineFormat, []string{"tab", "auto", "none", "pipe"}}},
		{"read.version", "when results show file versions: auto or always", guidance,
			choice{&c.Read.Version, []string{"auto", "always"}}},
		{"read.image_max_edge",
			"longest edge in pixels of a shown image; more than 1568 matters only for long, narrow images, because " +
				"at most 1.15 megapixels are shown, and not for pages of a PDF", operatorOnly,
			number{&c.Read.ImageMaxEdge, 64, 8192, false}},
		{"read.pdf", "whether PDF files are read, by poppler's programs, which the kernel does not confine yet",
			narrower, toggle{&c.Read.PDF}},

		{"edit.guard", "strict (a file must be read before it is changed) or relaxed", narrower,
			choice{&c.Edit.Guard, []string{"strict", "relaxed"}}},
		{"edit.desanitize", "retry an edit with the markers <fnr> <n> <o> <e> <s>, H: and A: written out", operatorOnly,
			toggle{&c.Edit.Desanitize}},
		{"write.durability", "full (a change is on the disk before the answer) or fast", narrower,
			choice{&c.Write.Durability, []string{"full", "fast"}}},
		{"write.secret_paths", "file patterns, as in rules; file tools write no secrets into these files", added,
			patterns{&c.Write.SecretPaths}},
		{"journal.keep_days", "days to keep changes for history and undo", operatorOnly,
			number{&c.Journal.KeepDays, 1, 3650, false}},
		{"journal.max_bytes", "most bytes of changes to keep per workspace and person; the oldest go first",
			operatorOnly, size{&c.Journal.MaxBytes, mib, 1024 * gib}},
		{"journal.shell", "list, keep and undo what changes in a git work tree while a command runs",
			operatorOnly, toggle{&c.Journal.Shell}},

		{"list.limit", "most paths in one listing", narrower, number{&c.List.Limit, 1, 100_000, false}},
		{"list.gitignore", "leave ignored files out of listings", guidance, toggle{&c.List.Gitignore}},
		{"list.timeout_ms", "most milliseconds for one listing", narrower, number{&c.List.TimeoutMS, 100, hour, false}},
		{"grep.default_mode", "output_mode of grep_search if a call gives none: files_with_matches, content or count",
			guidance, choice{&c.Grep.DefaultMode, []string{"files_with_matches", "content", "count"}}},
		{"grep.timeout_ms", "most milliseconds for one search", narrower, number{&c.Grep.TimeoutMS, 100, hour, false}},
	}
}

// shellTable is about commands.
func shellTable(c *Config) []setting {
	return []setting{
		{"shell.enabled", "whether commands can run at all", narrower, toggle{&c.Shell.Enabled}},
		{"shell.fold", "leave out of long outputs what go test, cargo, pytest and others say of success; all is kept",
			guidance, toggle{&c.Shell.Fold}},
		{"shell.default_timeout_ms", "timeout in milliseconds of a command whose call gives none", narrower,
			number{&c.Shell.DefaultTimeoutMS, 1, 2 * hour, false}},
		{"shell.max_timeout_ms", "highest timeout in milliseconds that a call may give", narrower,
			number{&c.Shell.MaxTimeoutMS, 1, 2 * hour, false}},
		{"shell.auto_background_ms", "milliseconds after which a command moves to the background, 0 for never; " +
			"if it is not set, less for clients that give up sooner",
			narrower, number{&c.Shell.AutoBackgroundMS, 0, 2 * hour, true}},
		{"output.mask_secrets", "hide what looks like a password, token or key in what commands print",
			operatorOnly, toggle{&c.Shell.MaskSecrets}},
		{"shell.init_file", "file that is sourced before each command", operatorOnly, file{&c.Shell.InitFile}},
		{"shell.env_allow", "environment variables that commands get besides the usual ones: NAME or PREFIX_*",
			operatorOnly, list{&c.Shell.EnvAllow, checkEnvName}},
		{"shell.env_allow_secret",
			"the same for variables that hold secrets, such as GH_TOKEN: every command that a model runs can read them",
			operatorOnly, list{&c.Shell.EnvAllowSecret, checkEnvPattern}},
	}
}

// processTable is about the process, its client and its log.
func processTable(c *Config) []setting {
	return []setting{
		{"protocol.versions", "MCP versions to support", operatorOnly, list{&c.Protocol.Versions, checkVersion}},
		{"stdio.eof_grace", "time that running calls have after the end of input", operatorOnly,
			period{&c.Stdio.EOFGrace, 0, 10 * time.Minute, nil}},
		{"stdio.parent_watch", "exit when the client's process is gone", operatorOnly, toggle{&c.Stdio.ParentWatch}},
		{"client.profile", "client profile to use, whatever name the client gives", operatorOnly,
			text{&c.Client.Profile}},

		{"search.workers", "threads of the search engine, 0 for one per processor", operatorOnly,
			number{&c.Search.Workers, 0, 64, true}},
		{"search.outside_ignores", "obey ignore files above a root: auto or off", guidance,
			choice{&c.Search.OutsideIgnores, []string{"auto", "off"}}},
		{"search.memory",
			"memory for what searches remember of trees, so that the next one reads only what can match; 0 for nothing",
			operatorOnly, size{&c.Search.Memory, 0, 64 * gib}},

		{"log.level", "debug, info, warn or error", operatorOnly, level{&c.Log.Level}},
		{"log.file", "file for the log instead of stderr", operatorOnly, file{&c.Log.File}},
	}
}
