package leaktest

import (
	"os"
	"slices"
	"strings"
	"syscall"
)

// unmount takes away what killed tests have mounted below dir; else it could not be removed. It needs to be root.
func unmount(dir string) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	var points []string
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 { // proc(5): the fifth is the mount point
			point := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(f[4])
			if strings.HasPrefix(point, dir+"/") {
				points = append(points, point)
			}
		}
	}
	for _, point := range slices.Backward(points) { // what is mounted on another one comes after it
		_ = syscall.Unmount(point, syscall.MNT_DETACH)
	}
}
