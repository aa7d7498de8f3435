package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Programs returns the command line of each living process of the tree, with the name of its program's file in front,
// without a directory; what it calls itself, where that cannot be read. known is false where the system does not tell
// of all of them.
func (p *Process) Programs() (lines [][]string, known bool) {
	known = true
	for _, m := range p.look() {
		argv := bytes.Split(bytes.TrimSuffix(procFile(m.pid, "cmdline"), []byte{0}), []byte{0})
		if len(argv[0]) == 0 { // it ends, or becomes another program
			known = known && !running(m.pid)
			continue
		}
		line := make([]string, len(argv))
		for i, word := range argv {
			line[i] = string(word)
		}
		name := line[0]
		if exe, err := os.Readlink("/proc/" + strconv.Itoa(m.pid) + "/exe"); err == nil {
			name = exe
		}
		lines = append(lines, append([]string{filepath.Base(name)}, line...))
	}
	return lines, known
}
