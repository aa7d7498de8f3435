package sandbox

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/probe"
)

// otherCalls make system calls in the ways of other machines, which a filter for this one does not see.
func otherCalls() []escape {
	const setuid = unix.S_ISUID | 0o755
	older := func(name string, number uintptr, args ...uintptr) escape {
		return escape{Attempt: probe.Attempt{Name: name, Level: 2, Gap: probe.KernelCalls, Try: func(*probe.Scene) error {
			return letsThrough(number, args...)
		}}}
	}
	return []escape{
		older("give a set-user-ID bit by chmod", unix.SYS_CHMOD, 0, setuid),
		older("make a set-user-ID file by mknod", unix.SYS_MKNOD, 0, unix.S_IFREG|setuid),
		older("make a set-user-ID file by creat", unix.SYS_CREAT, 0, setuid),
		older("make a set-user-ID file by open", unix.SYS_OPEN, 0, unix.O_CREAT, setuid),
		{Attempt: probe.Attempt{Name: "call the kernel as 32 bit programs do", Level: 2, Gap: probe.KernelCalls, Try: func(*probe.Scene) error {
			return interrupt()
		}}, alone: true, free: "a kernel may be built without it"},
		{Attempt: probe.Attempt{Name: "call the kernel as x32 programs do", Level: 2, Gap: probe.KernelCalls, Try: func(*probe.Scene) error {
			const x32 = 0x40000000
			return call(unix.SYS_GETPPID | x32)
		}}, alone: true, free: "few kernels know it"},
		{Attempt: probe.Attempt{Name: "set privileges of input and output", Level: 2, Gap: probe.KernelCalls, Try: func(*probe.Scene) error {
			return letsThrough(unix.SYS_IOPL, 99)
		}}},
		{Attempt: probe.Attempt{Name: "kexec_file_load", Level: 2, Gap: probe.KernelCalls, Try: func(*probe.Scene) error {
			return letsThrough(unix.SYS_KEXEC_FILE_LOAD, minusOne, minusOne, 0, 0, 0xffff)
		}}, root: true},
	}
}

// interrupt calls getpid by the interrupt of 32 bit programs.
func interrupt() error {
	code, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(code, []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20
		0xcd, 0x80, // int 0x80
		0x89, 0x05, 0xf3, 0, 0, 0, // mov [rip+0xf3], eax: byte 256 of the page
		0xc3, // ret
	})
	entry := uintptr(unsafe.Pointer(&code[0]))
	closure := &entry
	run := *(*func())(unsafe.Pointer(&closure))
	run()
	if pid := *(*int32)(unsafe.Pointer(&code[256])); pid <= 0 {
		return errors.New("the kernel does not know this")
	}
	return nil
}
