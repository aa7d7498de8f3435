package credentials

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The helper asks where Landlock lets no directory be opened, as in the sandbox of every command whose home is not
// below /tmp: there git got no password, and the answer blamed the command.
func TestHelpListsNoDirectory(t *testing.T) {
	p := newPerson(t)
	door, _ := open(t, New(p.options(On, "https://example.com/a.git")), nil)
	var out strings.Builder
	var confined, asked error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with this function
		if confined = listsNothing(); confined == nil {
			asked = Help(door.socket, "get", strings.NewReader("protocol=https\nhost=example.com\n\n"), &out)
		}
	}()
	<-done
	if confined != nil {
		t.Skipf("it needs Landlock: %v", confined)
	}
	if asked != nil || out.String() != wanted {
		t.Errorf("%v, %q", asked, out.String())
	}
}

// listsNothing keeps this thread from opening any directory for reading.
func listsNothing() error {
	rules := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_READ_DIR}
	fd, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), 8, 0)
	if no != 0 {
		return no
	}
	defer func() { _ = unix.Close(int(fd)) }() // a set of rules holds no data
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, no := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); no != 0 {
		return no
	}
	return nil
}
