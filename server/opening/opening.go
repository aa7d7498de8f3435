package opening

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"codehand/filestate"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/sessions"
	"codehand/server/state"
	"codehand/server/tenants"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/shell"
)

// An Opener opens sessions. Its fields are set before the first one. It is safe for concurrent use.
type Opener struct {
	Engines *engines.Set
	Tenants *tenants.Maker
	Config  config.Config
	Log     *slog.Logger
	Echo    io.Writer   // gets what commands print; nil: nothing does
	Hurried func() bool // says that the process may be killed soon
	// JobOver is told of each job that has ended.
	JobOver func(key session.Key, at *tenants.Tenant, i shell.Info)
}

// Open opens the handles of one session. Its directory lies below that of its principal; both are named by hashes,
// because keys are free text.
func (o *Opener) Open(key session.Key, at *tenants.Tenant) (*session.State, func(), error) {
	e := o.Engines
	// A process that was stopped and goes on must not write over what the session remembers at another node. Of its
	// own jobs it may, which that node does not know.
	holds, board := e.Holds(key.Principal), e.Memory(key)
	memory := state.Fenced(board, holds)
	journal, err := e.Journals.Of(sessions.JournalOf(key.Principal))
	if err != nil {
		return nil, nil, err
	}
	dir := sessions.DirOf(e.Dir, key)
	jobs, kept := filepath.Join(dir, "jobs"), filepath.Join(dir, "tool-results")
	keep, stopSnapshot := func(context.Context) {}, func() {}
	if !e.Durable { // else the Store keeps everything itself
		keep, stopSnapshot = sessions.Resume(key, dir, at.Start, memory, config.CallsDir(o.Config) != "", o.Log)
	}
	sh, err := shell.New(shell.Options{Dir: jobs, Board: board, Init: o.Config.Shell.InitFile, Env: at.Env(),
		Withheld: o.Tenants.Withheld(at), Hurried: o.Hurried, Echo: o.Echo, Plain: !o.Config.Shell.MaskSecrets,
		Over: func(i shell.Info) { o.JobOver(key, at, i) }})
	if err != nil && at.Prefs.NoShell == "" {
		stopSnapshot()
		return nil, nil, fmt.Errorf("shell of a session: %w", err)
	}
	st := &session.State{
		Key:    key,
		Shared: strings.HasPrefix(key.Session, sessions.ByWorkspace),
		Space:  at.Space.Readable(jobs, kept),
		Files: filestate.New(filestate.Options{
			Memory: memory, Locker: e.Locker, Contents: e.Contents, Journal: journal,
			Fast: o.Config.Write.Durability == "fast", MayCommit: holds,
		}),
		Rules:    at.Rules,
		Clean:    at.Clean,
		Search:   e.Search,
		Settings: e.Settings,
		Commands: session.Commands{Shell: sh},
		Results:  results.New(kept),
		Media:    e.Media,
		Prefs:    at.Prefs,
		Modes: session.Modes{Start: at.Start, Highest: at.Highest,
			Limit: session.NewCell[session.Limit](memory, sessions.LimitCell)},
		Mode:     session.NewCell[permission.Mode](memory, sessions.ModeCell),
		Cwd:      session.NewCell[string](memory, "cell.cwd"),
		Isolated: session.NewCell[session.Worktrees](memory, "cell.worktrees"),
		Plan:     session.NewCell[session.Plan](memory, sessions.PlanCell),
		Grants:   session.NewCell[[]permission.Grant](memory, sessions.GrantsCell),
		Declines: session.NewCell[session.Declines](memory, "cell.declines"),
		Cursors:  session.NewCell[map[string]session.Cursor](memory, "cell.cursors"),
		Active:   session.NewCell[[]string](memory, engines.ActiveCell),
		Todos:    session.NewCell[[]session.Todo](memory, sessions.TodosCell),
		Reach: session.Reach{
			Searches: session.NewCell[int](memory, "cell.searches"),
		},
		Choices: session.NewCell[session.Choices](memory, "cell.choices"),
		Told:    session.NewCell[map[string]string](memory, "cell.loaded"),
		// of all sessions of the tenant: a copy each would be most of what a session holds
		Skills:  at.Bare.Skills,
		Catalog: at.Offers(false).Catalog, // a call says whether its client can be asked
		Tasks:   o.Tenants.TaskList(at, memory),
	}
	st.Keep = keep
	st.SkillDirs, st.Languages = at.SkillDirs, at.Bare.Languages
	st.Agents = session.Agents{Types: at.Bare.Types}
	st.Confine = at.Confinement(filepath.Join(dir, "tmp"), jobs, kept)
	st.Plans, st.PlanFallback = o.plans(at), o.Config.Plan.ApprovalFallback
	letGo := e.Search.Hold()
	return st, func() {
		letGo()
		if sh != nil {
			_ = sh.Close() // what could not be ended was logged there; nobody is left to be told
		}
		_ = os.RemoveAll(filepath.Join(dir, "tmp")) // the commands that used it have ended; what is left goes with dir
		stopSnapshot()
	}, nil
}

// plans is where the plan files of a tenant's sessions are: where the operator wants them, if that lies in its roots.
func (o *Opener) plans(at *tenants.Tenant) string {
	own := filepath.Join(o.Engines.Dir, "plans")
	dir := o.Config.Plan.Directory
	switch {
	case dir == "":
		return own
	case at.Space.Inside(dir):
		return dir
	}
	o.Log.Warn("plan.directory is not inside a root here: plans go to the state directory", "directory", dir,
		"principal", at.Who.ID)
	return own
}
