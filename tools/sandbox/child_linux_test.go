package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child is the test binary as a server with something unusual about it.
func child(mode string) int {
	run := map[string]func() error{
		"hide": hidden, "adopt": adopting, "untraced": untraced, "serve": serving, "late": late,
		"terminal": terminalEscapes, "inside": inside, "blind": blind,
	}[mode]
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// terminalEscapes tries on its controlling terminal what no command may.
func terminalEscapes() error {
	text := [8]byte{'x'}
	for _, try := range []struct {
		name   string
		number uintptr
	}{{"TIOCSTI", unix.TIOCSTI}, {"TIOCLINUX", unix.TIOCLINUX}, {"TIOCSETD", unix.TIOCSETD}} {
		_, _, no := unix.Syscall(unix.SYS_IOCTL, 0, try.number, uintptr(unsafe.Pointer(&text)))
		fmt.Println(try.name, no.Error())
	}
	return nil
}

// hidden is a hidden server: what it starts must still find its directory, which is entered through /proc, and get its
// limits.
func hidden() error {
	if err := Hide(); err != nil {
		return err
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); n != 0 || err != nil {
		return fmt.Errorf("dumpable is %d, %v", n, err)
	}
	root, err := os.OpenRoot("/usr")
	if err != nil {
		return err
	}
	defer root.Close()
	text := `[ "$(cat /proc/self/oom_score_adj)" = 1000 ] && [ "$PWD" = /usr ] && [ "$(ulimit -c)" = 0 ]`
	for _, profile := range []*Profile{nil, {}} {
		p, err := Start(context.Background(), Cmd{
			Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"PATH=" + defaultPath}, Dir: root, Profile: profile,
		})
		if errors.Is(err, ErrConfine) && os.Getenv("CI") == "" {
			continue // TestProfile skips, too
		}
		if err != nil {
			return err
		}
		defer p.End(0)
		<-p.Done()
		if p.Exit().Code != 0 {
			return fmt.Errorf("the command of a hidden server, profile %v: %+v", profile, p.Exit())
		}
	}
	return nil
}

// inside is a server in a command, whose own commands are confined once more.
func inside() error {
	dir := os.Getenv("DIR")
	for _, profile := range []*Profile{{Writable: []string{dir}}, {Writable: []string{dir + "/link"}}} {
		p, err := Start(context.Background(), Cmd{
			Path: "/bin/sh", Args: []string{"-c", `cd "$1" && echo written > f && cat f; (echo x > /tmp/x) 2>/dev/null || echo no`, "sh", dir},
			Env: []string{"PATH=" + defaultPath}, Stdout: os.Stdout, Profile: profile, Level: LevelKernel,
		})
		if err != nil {
			return err
		}
		<-p.Done()
		p.End(0)
	}
	return nil
}

// blind is a server whose user has no more of what LIMIT names, since other programs took it.
func blind() error {
	if err := os.WriteFile("/proc/sys/user/"+os.Getenv("LIMIT"), []byte("0"), 0); err != nil {
		return err
	}
	dir := os.Getenv("DIR")
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	p, err := Start(context.Background(), Cmd{
		Path: "/bin/bash", Args: []string{"-c", os.Getenv("TEXT")}, Env: []string{"PATH=" + defaultPath}, Dir: root, Stdin: os.Stdin, Stdout: os.Stdout,
		Profile: &Profile{
			Writable: []string{dir}, Hidden: []string{dir + "/.env"}, Protected: []string{dir + "/.mcp.json", dir + "/.npmrc"},
		},
	})
	if err != nil {
		return err
	}
	<-p.Done()
	p.End(0)
	return nil
}

// late is a hidden server whose callers give up at every step of a start. Whatever was begun by then must be gone, also
// what a helper that is not root makes in namespaces, which is a child of the server, too.
func late() error {
	if err := Hide(); err != nil {
		return err
	}
	for i := range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*300*time.Microsecond)
		p, err := Start(ctx, Cmd{
			Path: "/bin/sh", Args: []string{"-c", "exec sleep 86400"}, Env: []string{"PATH=" + defaultPath},
			Profile: &Profile{},
		})
		cancel()
		if err == nil {
			p.End(0)
		} else if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrConfine) {
			return err
		}
	}
	if left := children(); len(left) > 0 {
		return fmt.Errorf("%d children are left", len(left))
	}
	return nil
}

// adopting is a server that gets the orphans of its trees as children, as the first process of a container does. It
// must collect them, or their numbers are never free again.
func adopting() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	for _, text := range []string{
		"(setsid sleep 86400 &); (sleep 86400 &)",
		"(true &); (setsid true &); (env -i true &)",
	} {
		p, err := Start(context.Background(), Cmd{
			Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"PATH=" + defaultPath},
		})
		if err != nil {
			return err
		}
		<-p.Done()
		p.End(0)
	}
	if !reached(func() bool { return len(children()) == 0 }) {
		return errors.New("children are left")
	}
	return nil
}

// untraced is a server in a place where tracing is forbidden. Its children get their limits all the same.
func untraced() error {
	if err := forbid(unix.SYS_PTRACE); err != nil {
		return err
	}
	p, err := Start(context.Background(), Cmd{
		Path: "/bin/sh", Args: []string{"-c", "sleep 86400 & wait"}, Env: []string{"PATH=" + defaultPath},
	})
	if err != nil {
		return err
	}
	defer p.End(0)
	limits := string(procFile(p.tree.child.pid, "limits"))
	if !p.tree.carries(p.tree.child.pid) || !strings.Contains(limits, p.tree.mark.limit()) {
		return fmt.Errorf("the child is not marked: %s", limits)
	}
	if !reached(func() bool { return p.Left() == 1 }) {
		return errors.New("the child does not run")
	}
	return nil
}

// forbid makes a system call fail with EPERM in this process and its children.
func forbid(call uint32) error {
	const load, equal, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load}, // the number of the call
		{Code: equal, K: call, Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// There is no wrapper for this call; the kernel copies the program before it returns.
	_, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if no != 0 {
		return no
	}
	return nil
}

// serving is a server that runs until it is killed: a command at each level with every kind of child that does not end
// by itself.
func serving() error {
	const text = `bash -c 'sleep $W; :' & setsid bash -c 'sleep $W; :' & (setsid bash -c 'sleep $W; :' &)
		nohup bash -c 'sleep $W; :' & (trap "" TERM HUP INT; setsid bash -c 'sleep $W; :' &) ; setsid bash -c 'kill -STOP $$; sleep $W' &
		sleep $W & wait`
	dir := os.Getenv("DIR")
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for level, profile := range map[Level]*Profile{
		LevelLimits: nil, LevelKernel: {Writable: []string{dir}}, LevelFull: {Writable: []string{dir}, Protected: []string{dir + "/.vscode"}},
	} {
		p, err := Start(context.Background(), Cmd{
			Path: "/bin/bash", Args: []string{"-c", text}, Env: []string{"PATH=" + defaultPath, "W=" + os.Getenv("W")}, Dir: root,
			Profile: profile, Level: level,
		})
		if errors.Is(err, ErrConfine) && os.Getenv("CI") == "" {
			continue // TestProfile skips, too
		}
		if err != nil {
			return err
		}
		defer p.End(0)
	}
	fmt.Println("serving")
	select {}
}
