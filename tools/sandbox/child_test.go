//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// child is the test binary as a hidden server: what it starts must still find its directory, which is entered through
// /proc, and get its limits.
func child(string) int {
	if err := hidden(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func hidden() error {
	if err := Hide(); err != nil {
		return err
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); n != 0 || err != nil {
		return fmt.Errorf("dumpable is %d, %v", n, err)
	}
	root, err := os.OpenRoot("/usr")
	if err != nil {
		return err
	}
	defer root.Close()
	text := `until [ "$(cat /proc/self/oom_score_adj)" = 1000 ]; do :; done; [ "$PWD" = /usr ] && [ "$(ulimit -c)" = 0 ]`
	p, err := Start(context.Background(), Cmd{
		Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"PATH=" + defaultPath}, Dir: root,
	})
	if err != nil {
		return err
	}
	defer p.End(0)
	<-p.Done()
	if p.Exit().Code != 0 {
		return fmt.Errorf("the command of a hidden server: %+v", p.Exit())
	}
	return nil
}
