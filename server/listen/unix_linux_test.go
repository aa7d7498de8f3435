package listen

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"codehand/filestate/leaktest"
)

// Only this user can connect to a unix socket from its first moment on: it has its mode before a name, whatever the
// umask is.
func TestUnixSocketBeginsPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(leaktest.Public(t), "s")
	l, err := (&net.ListenConfig{Control: private}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v", info.Mode())
	}
}
