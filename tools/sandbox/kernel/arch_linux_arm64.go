package kernel

import "golang.org/x/sys/unix"

const (
	machine = unix.AUDIT_ARCH_AARCH64
	foreign = 0
)

var forbiddenHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}

var modeCallsHere []modeCall // it has no older forms
