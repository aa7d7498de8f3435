package kernel

import "golang.org/x/sys/unix"

const (
	machine = unix.AUDIT_ARCH_X86_64
	foreign = 0x40000000 // x32
)

var forbiddenHere = []uint32{
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB,
	unix.SYS_CREATE_MODULE, unix.SYS__SYSCTL, unix.SYS_USTAT, unix.SYS_SYSFS,
}

// modeCallsHere are the older forms of modeCalls.
var modeCallsHere = []modeCall{
	{unix.SYS_CHMOD, 1, 0}, {unix.SYS_MKNOD, 1, 0}, {unix.SYS_CREAT, 1, 0}, {unix.SYS_OPEN, 2, 1},
}
