package session

import (
	"context"
	"errors"
	"syscall"
	"time"

	"codehand/filestate"
	"codehand/tools/agent"
	"codehand/tools/catalog"
	"codehand/tools/confine"
	"codehand/tools/lsp"
	"codehand/tools/media"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/settings"
	"codehand/tools/shell"
	"codehand/tools/skills"
	"codehand/tools/tasks"
	"codehand/tools/workspace"
)

// A Key says whose memory a State is. Neither part may be empty.
type Key struct {
	Principal string
	Session   string
}

// Local says that the principal is the person who started this process and calls it alone.
func (k Key) Local() bool { return k.Principal == "local" }

// A Client is what the caller said about itself with this call, and what its profile adds.
type Client struct {
	Name, Version string // clientInfo
	Revision      string // of the protocol, as 2025-11-25; "": not known
	Modern        bool   // protocol 2026-07-28 or later
	CanAsk        bool   // declared elicitation
	Cards         bool   // declared that it shows cards (server/cards)
	SeesAll       bool   // every tool is listed for it: nothing is deferred
	Numbers       bool   // its models are used to lines with their numbers
	Patches       bool   // its models are trained to change files by patches
	MaxRunes      int    // of one result, from its profile; 0: no limit of its own
	MaxBytes      int    // likewise
	MaxLines      int    // likewise
	MaxJSON       int    // likewise, counted as results.Form.JSON
	MaxImages     int    // of one result; 0: it takes none
	// ByName and ByDispatcher say how a model calls a tool that tool_search found: by its name, since the client reads
	// its list again, or through call_tool, since it does not. Neither: nobody has looked.
	ByName, ByDispatcher bool
	// Rereads says that a modern client is told when its list of tools changes, so that its list may do so.
	Rereads bool
	Forms   Forms // what is odd about how it puts questions
}

// Forms say how a client puts questions to a person, where that is not as usual.
type Forms struct {
	NoTexts       bool // a form with an empty text cannot be sent there
	DeclinesAlone bool // it declines questions by itself when it runs without a person
}

// Prefs are the settings that tools read: the operator's, and what the session changed of them.
type Prefs struct {
	ReadDedup                                     bool   // answer an unchanged re-read with a stub, once
	ReadVersion                                   bool   // show versions to legacy clients, too
	ReadLines                                     string // read.line_format; "": tab
	ReadMaxTokens                                 int    // of one page
	ReadMaxLine                                   int    // characters of one line; 0: no limit
	EditRelaxed                                   bool   // let a unique match stand in for a read
	EditMarkers                                   bool   // try the long forms of markers in edits
	ListLimit                                     int    // paths in one listing
	ListGitignore                                 bool   // apply ignore files to listings
	ListTimeoutMS                                 int
	GrepMode                                      string // default output mode
	GrepTimeoutMS                                 int
	ShellDefaultMS, ShellMaxMS, ShellBackgroundMS int
	// ShellBackgroundSet: the operator chose ShellBackgroundMS, so it counts for clients that are less patient, too.
	// ShellBackgroundMost is what a project's file allows at most; 0: it says nothing.
	ShellBackgroundSet  bool
	ShellBackgroundMost int
	ShellFold           bool   // what known programs say of success is left out
	NoShell             string // why there is no shell; "": there is one
	NoPDF               string // why no PDF file is read; "": they are
	SkillShell          bool   // commands in skills are run, but not in those of a project
	// no rule allows but those of the machine's administrator: skills lend none
	ManagedRules bool
}

// Commands is what commands are run with.
type Commands struct {
	Shell   *shell.Shell
	Confine *confine.Session // how the kernel confines the commands of Shell; nil: not at all
}

// Languages is how a session reaches the servers of languages.
type Languages struct {
	LSP        *lsp.Pool       // all of the process; nil: there are none
	ServerEnv  func() []string // the environment that they are started with; nil: an empty one
	ServerDir  string          // where their temporary directories are, absolute
	ServerSize int64           // bytes of memory that one may need, where that can be limited
}

// A State is everything that one session remembers and may use: handles and cells, no logic and no
// lock of its own. server makes it; tools get it in Env. A copy shares every handle, and server
// copies it for each call to set Client and Space.
type State struct {
	Key    Key
	Client Client
	// the key is shared by several conversations of one person, so nothing may count on what was shown before
	Shared bool

	Space *workspace.Space   // roots, the cwd as of this call, and how paths are reached
	Files *filestate.Ledger  // what was read; the only way to change a file
	Rules *permission.Policy // rules in force
	// what it denies to change are files into which no secret may be written; nil: there are none
	Clean   *permission.Policy
	Search  *search.Engine
	Results *results.Shelf
	Media   *media.Reader // images and PDF files; shared by all sessions
	Skills  *skills.Index
	// Settings says whether a change breaks a file of settings; nil: it knows only those of clients.
	Settings *settings.Checker
	Catalog  []catalog.Entry // every tool that this session may find, by name; only read
	// Relist brings Catalog up to date with tools that came since the call began; nil: none come
	Relist func(*State)
	Tasks  tasks.List
	Prefs  Prefs // the operator's, as far as Choices does not say otherwise
	Usual  Usual // Prefs and the cap of results as they are without Choices

	Modes
	PlanFiles
	Commands
	Languages
	Reach

	Mode Cell[permission.Mode]
	Cwd  Cell[string]
	// Isolated are the git work trees that the session made, and the one in which it works
	Isolated Cell[Worktrees]
	// Keep writes at once what the session remembers, for a process that comes after a kill; nil: it is written already
	Keep func(context.Context)
	// Worktree is that one as of this call; "": it works in none
	Worktree string
	Apart    agent.Apart              // what KeepApart narrowed the session to
	Plan     Cell[Plan]               // plan file, mode before plan mode
	Grants   Cell[[]permission.Grant] // rules that a person allowed for this session
	Declines Cell[Declines]           // what persons declined
	Cursors  Cell[map[string]Cursor]  // how far each job's output was read, by job id
	Active   Cell[[]string]           // deferred tools that tool_search brought in, by name
	Todos    Cell[[]Todo]
	Choices  Cell[Choices] // what session_config has set
	// what it was told and need not be told again: the sum of a skill's text by its name; a tip by words of its own
	Told Cell[map[string]string]

	Helpers
}

// Helpers are where a session finds skills and sub-agents besides those of its workspace.
type Helpers struct {
	SkillDirs []skills.Dir // of the operator and the user, the one that wins a clash first; absolute
	Agents
}

// Agents is what a session needs to start sub-agents.
type Agents struct {
	Types   []skills.Dir // of the operator and the user, as SkillDirs
	Depth   int          // how deep below others the session is; 0: it is no sub-agent's
	Samples bool         // the model of the client that calls may be asked for answers during this call
}

// Modes are the permission modes that the operator gives a session.
type Modes struct {
	Start   permission.Mode // of a session that has not changed it
	Highest permission.Mode // no session goes above it
	// Above says which mode the parent of a sub-agent has now: the sub-agent never goes above it. Highest has it as of
	// when the call began. nil: the session is no sub-agent's.
	Above func(context.Context) permission.Mode
	Limit Cell[Limit] // what a person has set for the session
	// Over are the limits of the sessions whose sub-agent this is: their rules hold here, too. Above has their modes
	Over []Cell[Limit]
	Said []string // of that, as of this call: what the session was not told yet
}

// Reach is what a session has used of the web, and may.
type Reach struct {
	Searches  Cell[int] // this session's requests to the operator's search endpoint so far
	PageModel bool      // the model of the client that calls may answer questions about pages
}

// PlanFiles say where plan files are, and what becomes of them.
type PlanFiles struct {
	Plans        string // directory of plan files, absolute
	PlanFallback string // who approves a plan when nobody can be asked: client, console, auto
	PlanPage     string // where a person approves it then, with console; "": nowhere
}

// A Todo is one line of the todo list.
type Todo struct {
	Content    string `json:"content"`
	Status     string `json:"status"` // pending, in_progress, completed
	ActiveForm string `json:"activeForm,omitempty"`
}

// A Plan is the session's plan file.
type Plan struct {
	Path   string          // absolute; "": none yet
	Before permission.Mode // mode to go back to
	Last   time.Time       // last call in plan mode, to the minute, of a session that several conversations share
	Left   bool            // a person let the session out of the plan mode in which the operator has it start
}

// Declines are the calls that a person declined last, so that the same one is not asked about again at once.
type Declines struct {
	At map[string]time.Time // by the digest of the tool and its input
}

// Worktrees are the git work trees of a session. What they are is noted when they are made, and never read from files
// that a command could have written.
type Worktrees struct {
	In      string              `json:",omitempty"` // the one in which the session works; "": in none
	Before  string              `json:",omitempty"` // its current directory before
	Entered time.Time           `json:",omitzero"`
	Made    map[string]Worktree `json:",omitempty"` // by path
}

// A Worktree is a git work tree that a session made.
type Worktree struct {
	Top    string // of the work tree in which git added it
	Branch string
	Base   string // the commit that the branch began with
}

// A Cursor is how far a session has read one job's output.
type Cursor struct {
	// position in the merged log, or in the events of a monitor; of a terminal how many lines have left its screen
	At        int64
	Events    int    `json:",omitempty"` // of a monitor that were read
	Screen    uint64 `json:",omitempty"` // the sum of a terminal's screen that was seen last; 0: none was
	Announced bool   // its end was told
}

// Open resolves path inside the roots and returns it as the ledger wants it. The caller closes it.
// Errors are those of workspace.Space.Open, also of its Guard; what the system says about a path that is to be written
// is a *filestate.WriteError, which has that as its cause.
func (s *State) Open(path string, a workspace.Access) (filestate.File, error) {
	p, err := s.Space.Open(path, a)
	if cause, ok := errors.AsType[syscall.Errno](err); ok && a == workspace.Write {
		failed := &filestate.WriteError{Path: path, Step: "open", Err: cause}
		// even of a name that is not there it says so
		failed.Absent = cause == syscall.EMFILE || cause == syscall.ENFILE
		if unlisted, ok := errors.AsType[*workspace.UnlistedError](err); ok {
			failed.Err = unlisted
		}
		err = failed
	}
	return filestate.File(p), err
}

// ConfineProgram says how a program of the project is confined that no rule was asked about: as a command that may
// write. background: nobody waits for it. Errors: those of confine.Session.Command.
func (s *State) ConfineProgram(background bool) (confine.Command, error) {
	use := confine.Use{Rules: s.Rules, Background: background, Repositories: s.Repositories()}
	if s.Space != nil {
		use.Roots = s.Space.Roots()
	}
	return s.Confine.Command(use)
}
