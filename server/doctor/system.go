package doctor

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"codehand/filestate/exchange"
	"codehand/tools/sandbox"
)

// A system is what the checks ask the operating system for that no test can change.
type system struct {
	network   func(dir string) string // kind of the network file system that dir is on; "": it is on none
	free      func(dir string) (bytes int64, ok bool)
	openFiles func() (most uint64, ok bool)
	readFile  func(path string) ([]byte, error)
	swap      func(dir *os.Root, a, b string) error // as exchange.Swap
	probe     func(ctx context.Context, state string) sandbox.Report
	programs  []string // directories with programs of the system
	poppler   []string // directories with its programs
	patience  patience
}

// patience is how long a server that is started may take.
type patience struct {
	answer time.Duration // until it has answered
	exit   time.Duration // from the end of its input until it has ended
	slow   time.Duration // from which on an answer is slow
	all    time.Duration // one handshake, with what it takes to start and to end it
}

func (m Machine) system() system {
	if m.sys != nil {
		return *m.sys
	}
	return theSystem()
}

func theSystem() system {
	poppler := shellDirs
	if runtime.GOOS == "darwin" {
		poppler = []string{"/opt/homebrew/bin", "/usr/local/bin", "/opt/local/bin"}
	}
	return system{
		network: networkKind, free: freeSpace, openFiles: openFiles, readFile: os.ReadFile,
		swap: exchange.Swap, probe: sandbox.Probe,
		programs: shellDirs, poppler: poppler,
		patience: patience{answer: 5 * time.Second, exit: 2 * time.Second, slow: time.Second, all: usualLimit},
	}
}

// remoteKinds are file systems whose files are on another machine, as mountinfo names them.
var remoteKinds = []string{
	"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "ceph", "afs", "coda", "lustre", "gpfs", "glusterfs",
	"fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.davfs", "fuse.mount-s3",
	"webdav", "afpfs",
}

// mountOf returns the kind of the file system that path is on, from the text of /proc/self/mountinfo. Of several mounts
// in one place the last one counts.
func mountOf(mounts, path string) string {
	kind, longest := "", -1
	for line := range strings.Lines(mounts) {
		head, tail, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(head), strings.Fields(tail)
		if !ok || len(fields) < 5 || len(types) < 1 {
			continue
		}
		at := unescaped(fields[4])
		below := at == "/" || path == at || strings.HasPrefix(path, at+"/")
		if below && len(at) >= longest {
			kind, longest = types[0], len(at)
		}
	}
	return kind
}

// unescaped replaces \040 and the like, as which mountinfo has spaces.
func unescaped(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
