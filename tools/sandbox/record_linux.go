package sandbox

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/cgroup"
)

// A machine is all that a Report holds for, as far as it can be told without trying: what differs is not the same one.
type machine struct {
	Boot       string `json:"boot"`       // changes with each start of the kernel
	Kernel     string `json:"kernel"`     // release and version
	Security   string `json:"security"`   // its modules that decide
	Settings   string `json:"settings"`   // of the kernel, about namespaces and processes
	Program    string `json:"program"`    // the file that runs
	User       string `json:"user"`       // and group, and rights
	Label      string `json:"label"`      // of this process, as AppArmor and SELinux have one
	Namespaces string `json:"namespaces"` // where this process is, as in which container
	State      string `json:"state"`      // the directory in which the probes were
	Grouped    bool   `json:"grouped"`    // there is a tree for control groups

	groups *Groups // that tree, with the usual limits; nil: there is none
}

// changed names the first thing that differs; "": nothing does.
func (m machine) changed(now machine) string {
	switch {
	case m.Boot != now.Boot:
		return "start of the kernel"
	case m.Kernel != now.Kernel, m.Security != now.Security, m.Settings != now.Settings:
		return "kernel, or other settings of it"
	case m.Program != now.Program:
		return "program"
	case m.User != now.User, m.Label != now.Label:
		return "user, or other rights"
	case m.Namespaces != now.Namespaces:
		return "container"
	case m.State != now.State:
		return "state directory"
	case m.Grouped != now.Grouped:
		return "place among control groups"
	}
	return ""
}

// kernelSettings are those on which the probes depend, below /proc/sys.
var kernelSettings = []string{
	"kernel/apparmor_restrict_unprivileged_userns", "kernel/apparmor_restrict_unprivileged_unconfined",
	"kernel/unprivileged_userns_clone", "kernel/yama/ptrace_scope", "kernel/io_uring_disabled", "fs/suid_dumpable",
	"user/max_user_namespaces", "user/max_mnt_namespaces", "user/max_pid_namespaces", "user/max_net_namespaces",
	"user/max_ipc_namespaces", "user/max_uts_namespaces", "user/max_cgroup_namespaces",
}

// rights are the lines of /proc/self/status that say what this process may do.
var rights = []string{"Uid:", "Gid:", "Groups:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:"}

// thisMachine says where this process runs; false: that cannot be told.
func thisMachine(state string) (m machine, ok bool) {
	var name unix.Utsname
	var file unix.Stat_t
	if unix.Uname(&name) != nil || unix.Stat("/proc/self/exe", &file) != nil {
		return m, false
	}
	text := func(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }
	m.Kernel = text(name.Release[:]) + " " + text(name.Version[:])
	m.Boot = kernelSetting("kernel/random/boot_id")
	// The kernel alone sets the time of the last change of the file's content or name.
	m.Program = fmt.Sprintf("%d:%d %d %d.%09d %d.%09d", file.Dev, file.Ino, file.Size, file.Mtim.Sec, file.Mtim.Nsec,
		file.Ctim.Sec, file.Ctim.Nsec)
	modules, _ := os.ReadFile("/sys/kernel/security/lsm") // in a container it is often not there
	m.Security = strings.TrimSpace(string(modules))
	label, _ := os.ReadFile("/proc/self/attr/current") // without such a module it has none
	m.Label = strings.TrimRight(string(label), "\x00\n")
	for _, setting := range kernelSettings {
		m.Settings += kernelSetting(setting) + " "
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || m.Boot == "" {
		return m, false
	}
	for line := range strings.Lines(string(status)) {
		field, rest, _ := strings.Cut(line, "\t")
		for _, right := range rights {
			if field == right {
				m.User += right + strings.TrimRight(rest, "\n") + " "
			}
		}
	}
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		link, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return m, false
		}
		m.Namespaces += link + " "
	}
	m.State = state
	if groups, err := cgroup.Find(); err == nil {
		m.Grouped, m.groups = true, groups.With(usualBounds())
	}
	return m, true
}

// mineAlone reports whether a file belongs to this user, and others may not change it.
func mineAlone(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}
