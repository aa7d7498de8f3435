package shell

import (
	"strings"
	"time"

	"codehand/tools/sandbox"
)

// limits are numbers of policy, in one place so that tests can make them small.
type limits struct {
	keep  int64         // bytes kept of each end of a file
	gap   int64         // a middle smaller than this is kept, too; larger than the line that stands for a gap
	most  int64         // bytes of output at which a command is ended
	tick  time.Duration // between two looks at the spools
	late  time.Duration // for output after the direct child has ended
	grace time.Duration // between SIGTERM and SIGKILL
	// the same once this process will be killed soon: two such ends, one after the other, fit into 2 s
	hurry  time.Duration
	calls  time.Duration // at the end, for the callers of commands that were ended
	masked bool          // secrets are hidden in the log and from who looks on
	// looks that do not try a log again which could not be written: each copies all that is missing
	pause int
}

func defaultLimits() limits {
	return limits{
		keep: 32 << 20, gap: 1 << 20, most: 5 << 30,
		tick: 20 * time.Millisecond, late: 100 * time.Millisecond, grace: 2 * time.Second,
		hurry: 500 * time.Millisecond, calls: time.Second, pause: 50,
	}
}

// run follows the command until its tree is gone and its output is on disk. It is the only writer of the files and the
// only one that ends the process.
func (j *Job) run() {
	tick := time.NewTicker(j.shell.limits.tick)
	defer tick.Stop()
	defer j.timer.Stop()

	why := j.follow(tick.C)
	if why == "" {
		why = j.settle(tick.C)
	}
	if t := j.terminal; t != nil {
		if why == "" {
			t.Drain(j.shell.limits.late)
		}
		t.HangUp()
	}
	left := j.end(tick.C)
	if j.unserve != nil {
		j.unserve()
	}
	if why != "" {
		left = 0 // what was ended then was not left behind
	}
	if j.unlink != nil {
		j.unlink()
	}
	j.finish(why, left)
}

// follow copies output until the direct child has ended ("") or the command must end.
func (j *Job) follow(tick <-chan time.Time) State {
	for {
		select {
		case <-j.process.Done():
			return ""
		case why := <-j.want:
			return why
		case <-j.timer.C:
			return TimedOut
		case <-tick:
			if why := j.look(); why != "" {
				return why
			}
		}
	}
}

// look copies what is new. It returns why the command must end; "": it need not.
func (j *Job) look() State {
	switch {
	case !j.output.take():
		return Overflow
	case j.output.events != nil && !j.output.events.flush(false):
		return Chatty
	}
	return ""
}

// settle gives what the child left running a moment to print. Without such processes no output can come.
func (j *Job) settle(tick <-chan time.Time) State {
	late := time.NewTimer(j.shell.limits.late)
	defer late.Stop()
	for j.process.Left() > 0 {
		select {
		case <-late.C:
			return ""
		case why := <-j.want:
			return why
		case <-tick:
			if why := j.look(); why != "" {
				return why
			}
		}
	}
	return ""
}

// end ends the tree. The spools are followed meanwhile: a process that ignores SIGTERM can print gigabytes in the
// grace period, which a hurry that begins in it shortens.
func (j *Job) end(tick <-chan time.Time) (ended int) {
	done, hastened := make(chan struct{}), false
	go func() {
		defer close(done)
		ended = j.process.End(j.shell.limits.grace)
	}()
	for {
		if !hastened && j.shell.hurried() {
			hastened = true
			j.process.Hasten(j.shell.limits.hurry)
		}
		select {
		case <-done:
			return ended
		case <-tick:
			_ = j.output.take() // it is being ended already
		}
	}
}

// finish closes the files and writes down how the command ended.
func (j *Job) finish(why State, left int) {
	if j.terminal != nil {
		j.terminal.Finish()
	}
	lastErr := ""
	if j.output.events != nil {
		_ = j.output.take() // before the last line is looked for
		_, lastErr = j.output.lastLines()
	}
	j.output.finish()
	j.output.events.close()
	j.unhold()
	cwd := j.shell.script.cwd(j.base())
	j.shell.script.cleanUp(j.base())

	exit := sandbox.Exit{Code: -1}
	select {
	case <-j.process.Done():
		exit = j.process.Exit()
	default: // a child that the kernel cannot end
	}
	var configs []string
	if j.settled != nil {
		configs = j.settled(j.Info().Background)
	}
	j.mu.Lock()
	j.info.Configs = configs
	j.info.LastErr = lastErr
	j.info.Exit, j.info.Signal, j.info.Left, j.info.End = exit.Code, exit.Signal, left, time.Now()
	j.info.Hit = exit.Hit
	j.info.Aside = strings.Join(j.process.Removed(), ", ")
	switch {
	case why != "":
		j.info.State = why
	case exit.Code == 0:
		j.info.State, j.info.Cwd = Completed, cwd
	default:
		j.info.State, j.info.Cwd = Failed, cwd
		if exit.Signal == "" {
			j.info.Signal = crash(exit.Code)
		}
	}
	j.mu.Unlock()
	j.over()
}

// crash names the signal that ended the last program of a command, which its shell reports as 128 and a number. Only
// signals of a fault and SIGKILL: programs exit with 130 or 143 by themselves, too.
func crash(code int) string {
	const faults = " SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGSEGV SIGXCPU SIGXFSZ SIGSYS "
	name := sandbox.SignalName(code - 128)
	if name == "" || !strings.Contains(faults, " "+name+" ") {
		return ""
	}
	return name
}
