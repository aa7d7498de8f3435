package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/cgroup"
	"codehand/tools/sandbox/kernel"
	"codehand/tools/sandbox/probe"
)

// levelTime ends an attempt at a level that hangs. One takes a tenth of a second.
const levelTime = 10 * time.Second

// Probe proves how far this machine confines commands: it starts this program inside a profile of each kind, where it
// tries what the level must forbid, from the highest level down. Canaries are made in a new directory in state, and are
// gone when it returns. It takes some tens of milliseconds (BenchmarkProbe), at most twice levelTime for each level,
// and is safe for concurrent use. What cannot be proven counts as missing, also if ctx ended. If Failure.Passing is
// set, lower levels were not tried, and what the machine can do is unknown.
func Probe(ctx context.Context, state string) Report {
	starting, cancel := context.WithTimeout(ctx, levelTime)
	defer cancel()
	groups, ungrouped := cgroup.Find() // before this process has any other
	g, err := openGround(starting, state)
	if err != nil {
		failed := failureOf(LevelFull, nil, err)
		if !failed.Passing {
			failed.Remedy = "Make it possible to write in " + state + "."
		}
		return Report{Level: LevelLimits, Failed: failed}
	}
	defer g.close()
	report := proveDown(func(level Level) ([]probe.Attempt, error) {
		ctx, cancel := context.WithTimeout(ctx, levelTime)
		defer cancel()
		return g.try(ctx, level)
	})
	if around := kernel.Reads(state); around != "" && report.Level < LevelKernel && !report.Unknown() {
		report.Failed.Remedy = state + " lies in " + around + ", which every command reads, and only level 3 takes " +
			"a part out of that: move it with state_dir or http.data_dir. For level 3: " + report.Failed.Remedy
	}
	if ungrouped == nil && report.Level < LevelKernel {
		ungrouped = errors.New("control groups need sandbox level 2, since a command can leave its own below that")
	}
	if ungrouped == nil {
		ungrouped = g.proveGroups(starting, report.Level, groups)
	}
	if ungrouped != nil {
		report.Ungrouped = ungrouped.Error()
		return report
	}
	report.Groups = groups.With(usualBounds())
	kept := limitGaps(report.Level)
	report.Gaps = slices.DeleteFunc(report.Gaps, func(gap string) bool { return slices.Contains(kept, gap) })
	return report
}

// The limits of the groups in which probes take too much.
const (
	probeMemory    = 48 << 20
	probeProcesses = 24
)

// proveGroups shows that the kernel ends a process that takes more memory than its group may, and that it starts no
// process too many. What it counts proves that, and not how the processes took it.
func (g *ground) proveGroups(ctx context.Context, level Level, groups *Groups) error {
	groups = groups.With(Bounds{Memory: probeMemory, Processes: probeProcesses})
	var hit [2]Bounds
	var errs [2]error
	var both sync.WaitGroup
	for i, argument := range []string{probe.Memory, probe.Crowding} {
		both.Go(func() {
			var p *Process
			p, errs[i] = Start(ctx, Cmd{
				Path: g.self, Args: []string{argument}, Profile: &Profile{Readable: []string{g.self}}, Level: level,
				Groups: groups,
			})
			if errs[i] != nil {
				return
			}
			select {
			case <-p.Done():
			case <-ctx.Done():
			}
			p.End(0)
			select {
			case <-p.Done():
				hit[i] = p.Exit().Hit
			default: // the kernel cannot end it
			}
		})
	}
	both.Wait()
	switch err := errors.Join(errs[0], errs[1]); {
	case err != nil:
		return err
	case hit[0].Memory == 0:
		return fmt.Errorf("a process took %d MiB of memory in a control group of %d", probe.Greed>>20, probeMemory>>20)
	case hit[1].Processes == 0:
		return fmt.Errorf("a process had %d threads in a control group of %d", probe.Crowd, probeProcesses)
	}
	return nil
}

// mostMemory is the usual limit of memory on a machine that has twice as much.
const mostMemory = 8 << 30

// usualBounds are the usual limits of a command: half of the memory of the machine, at most 8 GiB, and 512 processes.
func usualBounds() Bounds {
	var info unix.Sysinfo_t
	memory := int64(mostMemory)
	if unix.Sysinfo(&info) == nil {
		memory = min(memory, int64(info.Totalram)*int64(info.Unit)/2)
	}
	return Bounds{Memory: memory, Processes: moreProcesses}
}

// proveDown tries the levels from the highest down. A moment in which the machine could not do what was tried says
// nothing about it: the level is tried once more, and never given up for a lower one.
func proveDown(try func(Level) ([]probe.Attempt, error)) Report {
	report := Report{Level: LevelLimits}
	for level := LevelFull; level >= LevelLimits; level-- {
		done, err := try(level)
		if err != nil && ofAMoment(err) {
			done, err = try(level)
		}
		failure := failureOf(level, done, err)
		if failure == nil {
			report.Level, report.Gaps = level, append(gapsOf(done), limitGaps(level)...)
			break
		}
		if failure.Passing {
			report.Failed = failure
			break
		}
		report.Failed = cmp.Or(report.Failed, failure)
	}
	return report
}

// failureOf is why a level is not proven; nil: it is.
func failureOf(level Level, done []probe.Attempt, err error) *Failure {
	if err != nil {
		return &Failure{Level: level, Probe: err.Error(), Remedy: remedy(err), Passing: ofAMoment(err)}
	}
	for _, a := range done {
		if Level(a.Level) <= level {
			return &Failure{
				Level: level, Probe: "a confined process can " + a.Name,
				Remedy: "Use another kernel, or report this: the kernel took the restriction and does not keep it.",
			}
		}
	}
	return nil
}

// ofAMoment says that err is about a moment and not about the machine.
func ofAMoment(err error) bool {
	return slices.ContainsFunc([]error{
		context.DeadlineExceeded, context.Canceled, os.ErrDeadlineExceeded, unix.EMFILE, unix.ENFILE, unix.ENOMEM,
		unix.EAGAIN,
	}, func(target error) bool { return errors.Is(err, target) })
}

// gapsOf names what could be done, each thing once.
func gapsOf(done []probe.Attempt) []string {
	var gaps []string
	for _, a := range done {
		gaps = append(gaps, a.Gap)
	}
	slices.Sort(gaps)
	return slices.Compact(gaps)
}

// A ground is what attempts of several profiles share: listeners to connect to, and a process to reach.
type ground struct {
	dir      string
	self     string   // this program
	token    string   // what only canaries hold
	victim   *Process // that others must not reach
	closers  []io.Closer
	tcp, udp int
	abstract string
	scenes   int
	mu       sync.Mutex // covers scenes
}

func openGround(ctx context.Context, state string) (*ground, error) {
	g := &ground{token: rand.Text()}
	err := g.open(ctx, state)
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *ground) open(ctx context.Context, state string) (err error) {
	if g.self, err = os.Executable(); err != nil {
		return err
	}
	if g.dir, err = os.MkdirTemp(state, "probe-"); err != nil {
		return err
	}
	tcp, err := net.Listen("tcp4", "127.0.0.1:0") // nothing accepts: the kernel lets peers connect
	if err != nil {
		return err
	}
	g.closers, g.tcp = append(g.closers, tcp), tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g.closers, g.udp = append(g.closers, udp), udp.LocalAddr().(*net.UDPAddr).Port
	go echo(udp)
	abstract, err := net.Listen("unix", "@codehand-"+rand.Text())
	if err != nil {
		return err
	}
	g.closers, g.abstract = append(g.closers, abstract), abstract.Addr().String()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	g.closers = append(g.closers, w)
	g.victim, err = Start(ctx, Cmd{
		Path: g.self, Args: []string{probe.Canary}, Env: []string{"CANARY=" + g.token}, Stdin: r,
	})
	return err
}

// echo sends back what comes, until c is closed.
func echo(c net.PacketConn) {
	b := make([]byte, 64)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = c.WriteTo(b[:n], from) // who gets no answer was refused
	}
}

func (g *ground) close() {
	for _, c := range g.closers {
		_ = c.Close()
	}
	if g.victim != nil {
		g.victim.End(0)
	}
	if g.dir != "" {
		_ = os.RemoveAll(g.dir) // in the state directory, where the next start is no worse for it
	}
}

// try returns the probes that succeed at a level in one of the profiles.
func (g *ground) try(ctx context.Context, level Level) ([]probe.Attempt, error) {
	var all [2][]probe.Outcome
	var errs [2]error
	var both sync.WaitGroup
	for i, write := range []bool{false, true} {
		both.Go(func() { all[i], errs[i] = g.act(ctx, level, write) })
	}
	both.Wait()
	if err := errors.Join(errs[0], errs[1]); err != nil {
		return nil, cmp.Or(errs[0], errs[1])
	}
	succeeded := map[string]bool{}
	for _, o := range slices.Concat(all[0], all[1]) {
		succeeded[o.Name] = succeeded[o.Name] || o.Done
	}
	return slices.DeleteFunc(probe.Probes(), func(a probe.Attempt) bool { return !succeeded[a.Name] }), nil
}

// act prepares a scene, tries the probes there and returns how they ended. All must have been tried.
func (g *ground) act(ctx context.Context, level Level, write bool) ([]probe.Outcome, error) {
	s, end, err := g.scene(write)
	if err != nil {
		return nil, err
	}
	defer end()
	list, err := g.play(ctx, s, g.profile(s), level, probe.Argument)
	if err != nil {
		return nil, err
	}
	for _, a := range probe.Probes() {
		if a.Applies(write) && !slices.ContainsFunc(list, func(o probe.Outcome) bool { return o.Name == a.Name }) {
			return nil, fmt.Errorf("the probe %q was not tried", a.Name)
		}
	}
	return list, nil
}

// scene makes a scene with a process in it. The caller must call end.
func (g *ground) scene(write bool) (s *probe.Scene, end func(), err error) {
	g.mu.Lock()
	g.scenes++
	dir := filepath.Join(g.dir, strconv.Itoa(g.scenes))
	g.mu.Unlock()
	s = probe.New(dir, write)
	s.Token, s.TCP, s.UDP, s.Abstract, s.Variables = g.token, g.tcp, g.udp, g.abstract, []string{markVariable}
	s.Victim = g.victim.tree.child.pid
	for kind, name := range map[string]*string{"pid": &s.PIDs, "net": &s.Net, "ipc": &s.IPC} {
		if *name, err = os.Readlink("/proc/self/ns/" + kind); err != nil {
			return nil, nil, err
		}
	}
	if err := s.Prepare(); err != nil {
		return nil, nil, err
	}
	listeners := []io.Closer{}
	end = func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}
	for _, path := range []string{s.Seen + probe.SocketName, s.Unlisted + probe.SocketName} {
		if len(path) > probe.SocketMost {
			continue
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			end()
			return nil, nil, err
		}
		listeners = append(listeners, l)
	}
	return s, end, nil
}

// stopFor is how long a process may live whose command has ended.
const stopFor = time.Second

// play starts this program with an argument, confined, with the scene as its input, and returns the outcomes that it
// writes.
func (g *ground) play(
	ctx context.Context, s *probe.Scene, p *Profile, level Level, argument string,
) ([]probe.Outcome, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	script := filepath.Join(filepath.Dir(s.Root), "script")
	if err := os.WriteFile(script, text, 0o600); err != nil {
		return nil, err
	}
	in, err := os.Open(script)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // only read
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only read
	place, err := os.OpenRoot(s.Root)
	if err == nil {
		defer func() { _ = place.Close() }()
		if level < LevelKernel {
			p = nil
		}
		var process *Process
		process, err = Start(ctx, Cmd{
			Path: g.self, Args: []string{argument}, Dir: place, Stdin: in, Stdout: w, Profile: p, Level: level,
		})
		if err == nil {
			_ = w.Close()
			return g.watch(ctx, r, process)
		}
	}
	_ = w.Close()
	return nil, err
}

func (g *ground) profile(s *probe.Scene) *Profile {
	// What every command reads may hold the state directory. Of that, commands see only what is theirs.
	p := &Profile{Readable: []string{s.Seen, g.self}, Hidden: []string{s.Hidden}, Masked: []string{s.Unlisted}}
	if s.Write {
		p.Writable, p.Protected, p.Sockets = []string{s.Root}, s.Protected(), true
	} else {
		p.Readable = append(p.Readable, s.Root)
	}
	return p
}

// watch reads the outcomes and ends the process. Its output ends with the last process that has it.
func (g *ground) watch(ctx context.Context, r *os.File, p *Process) ([]probe.Outcome, error) {
	var list []probe.Outcome
	end := make(chan error, 1)
	go func() {
		for d := json.NewDecoder(r); ; {
			var o probe.Outcome
			if err := d.Decode(&o); err != nil {
				end <- err
				return
			}
			list = append(list, o)
		}
	}()
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	p.End(0)
	_ = r.SetReadDeadline(time.Now().Add(stopFor))
	err := <-end
	for i := range list {
		if list[i].Name == probe.Daemon && list[i].Absent {
			list[i].Absent, list[i].Done = false, errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded):
		return nil, err
	}
	return list, nil
}

// remedy says what makes the kernel confine, after a start failed.
func remedy(err error) string {
	switch {
	case ofAMoment(err):
		return "The machine was too busy, or had no memory, processes or descriptors left. Run codehand doctor when " +
			"it is idle; if this stays, give it more of them."
	case strings.Contains(err.Error(), "Landlock"):
		return "Use Linux 6.2 or later with Landlock. If the kernel has it, add landlock to the list lsm= of its " +
			"command line."
	case kernelSetting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "kernel.apparmor_restrict_unprivileged_userns is 1. Install packaging/apparmor/codehand: copy it to " +
			"/etc/apparmor.d and run apparmor_parser -r /etc/apparmor.d/codehand."
	case kernelSetting("kernel/unprivileged_userns_clone") == "0":
		return "kernel.unprivileged_userns_clone is 0. Run sysctl kernel.unprivileged_userns_clone=1."
	case kernelSetting("user/max_user_namespaces") == "0":
		return "user.max_user_namespaces is 0. Run sysctl user.max_user_namespaces=10000."
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC):
		return "This looks like a container that allows no namespaces, or no new /proc. Start it with them allowed, " +
			"or have commands confined outside of it."
	case errors.Is(err, ErrConfine):
		return "Use Linux 5.12 or later with user, mount, pid, ipc, uts, cgroup and net namespaces."
	}
	return "Run codehand doctor again; if it stays, report what the probe says."
}

// kernelSetting reads a setting of the kernel; "": there is none.
func kernelSetting(name string) string {
	text, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(text))
}
