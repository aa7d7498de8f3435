package owner

import (
	"os"
	"strings"
)

func identifyHost() Host {
	var h Host
	if id, err := os.ReadFile("/etc/machine-id"); err == nil {
		h.Name = strings.TrimSpace(string(id))
	}
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		h.Boot = strings.TrimSpace(string(boot))
	}
	if ids, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		h.IDs = ids
	}
	return h
}
