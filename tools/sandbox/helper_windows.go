package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A helper is the job object of a command. It holds all descendants, whatever they do, and ends them when its last
// handle is closed, which also the death of the server does.
type helper struct {
	process   *os.Process
	listening net.Listener // nil: there is never one
	terminal  *os.File     // likewise

	mu  sync.Mutex
	job windows.Handle // 0: closed
}

const (
	// maxProcesses is how many processes a command may have at once.
	maxProcesses = 512
	// maxMemory bounds the half of the machine's memory that a command may commit, in bytes.
	maxMemory = 8 << 30
	// listed is how many processes of a job are looked at; End needs no list to end them all.
	listed = 1024
)

// launch starts the command in a job of its own. attr has its streams and its environment, dir is where it begins.
func launch(_ context.Context, c Cmd, attr *os.ProcAttr, dir *os.File, _ mark) (*helper, error) {
	if c.Terminal != nil {
		return nil, fmt.Errorf("%w: only codehand on Linux has them", ErrTerminal)
	}
	if c.level() > LevelLimits {
		return nil, fmt.Errorf("%w: this system has no means for it", ErrConfine)
	}
	job, err := newJob(c)
	if err != nil {
		return nil, err
	}
	h := &helper{job: job}
	if dir != nil {
		attr.Dir = enter(dir)
	}
	attr.Sys.CreationFlags |= windows.CREATE_SUSPENDED // it must not start anything before it is in the job
	if h.process, err = os.StartProcess(c.Path, c.argv(), attr); err != nil {
		h.cut()
		return nil, err
	}
	var failed error
	err = h.process.WithHandle(func(process uintptr) {
		failed = os.NewSyscallError("AssignProcessToJobObject",
			windows.AssignProcessToJobObject(job, windows.Handle(process)))
	})
	if err = errors.Join(err, failed); err == nil {
		err = resume(h.process.Pid)
	}
	if err != nil {
		_ = h.process.Kill() // it may not be in the job
		h.cut()
		_, _ = h.process.Wait() // err says more
		return nil, err
	}
	return h, nil
}

// newJob makes a job with the limits of a command.
func newJob(c Cmd) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil) // no child inherits it
	if err != nil {
		return 0, os.NewSyscallError("CreateJobObject", err)
	}
	var l windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	l.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
		windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
	l.BasicLimitInformation.ActiveProcessLimit = maxProcesses
	if c.Profile != nil && c.Profile.Processes > 0 {
		l.BasicLimitInformation.ActiveProcessLimit = uint32(c.Profile.Processes)
	}
	if memory := cmp.Or(uint64(c.Limits.Memory), min(physicalMemory()/2, maxMemory)); memory > 0 {
		l.BasicLimitInformation.LimitFlags |= windows.JOB_OBJECT_LIMIT_JOB_MEMORY
		l.JobMemoryLimit = uintptr(min(memory, uint64(^uintptr(0))))
	}
	if c.Limits.CPU > 0 {
		l.BasicLimitInformation.LimitFlags |= windows.JOB_OBJECT_LIMIT_PROCESS_TIME
		l.BasicLimitInformation.PerProcessUserTimeLimit = c.Limits.CPU.Nanoseconds() / 100
	}
	// The call reads the structure before it returns.
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&l)), uint32(unsafe.Sizeof(l)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, os.NewSyscallError("SetInformationJobObject", err)
	}
	return job, nil
}

// physicalMemory returns the bytes of memory of the machine; 0: unknown.
func physicalMemory() uint64 {
	// MEMORYSTATUSEX; golang.org/x/sys v0.49.0 has neither it nor its call.
	var status struct {
		length, load uint32
		physical     uint64
		_            [6]uint64
	}
	status.length = uint32(unsafe.Sizeof(status))
	ask := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")
	if done, _, _ := ask.Call(uintptr(unsafe.Pointer(&status))); done == 0 { // it fills the structure before it returns
		return 0
	}
	return status.physical
}

// resume lets a process run that was started suspended. It has one thread, whose handle os.StartProcess has closed.
func resume(pid int) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer func() { _ = windows.CloseHandle(snapshot) }() // only read
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != uint32(pid) {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return os.NewSyscallError("OpenThread", err)
		}
		_, err = windows.ResumeThread(thread)
		_ = windows.CloseHandle(thread) // it runs
		return os.NewSyscallError("ResumeThread", err)
	}
	return os.NewSyscallError("Thread32Next", err)
}

// exited leaves it to wait to tell how the command ended.
func (h *helper) exited() (exit Exit, alone, told bool) { return Exit{}, false, false }

func (h *helper) wait() (exit Exit, clean bool) {
	state, err := h.process.Wait()
	return exitOf(state, err), false
}

// cut ends all processes of the job, and the job.
func (h *helper) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.job != 0 {
		_ = windows.TerminateJobObject(h.job, 1) // closing does the same, if no other handle is left
		_ = windows.CloseHandle(h.job)
		h.job = 0
	}
}

func (h *helper) kill() { _ = h.process.Kill() }

// members lists the processes of the job; nil: there are none, or the job was ended.
func (h *helper) members() []member {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.job == 0 {
		return nil
	}
	var list struct {
		assigned, count uint32
		pids            [listed]uintptr
	}
	// The call fills the structure before it returns. If it is too small for all, it has those that fit.
	err := windows.QueryInformationJobObject(h.job, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil && !errors.Is(err, windows.ERROR_MORE_DATA) {
		return nil
	}
	var found []member
	for _, pid := range list.pids[:min(list.count, listed)] {
		if start := startOf(int(pid)); start != 0 { // else it has just ended
			found = append(found, member{id: id{int(pid), start}})
		}
	}
	return found
}
