package blackbox

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	fileexchange "codehand/filestate/exchange"
	"codehand/filestate/leaktest"
)

// runSwapper is another program that exchanges the two names of every line in its current directory, again and again, each
// time at once: in bursts, with rests of up to 0.2 ms between them, so that a program that looks twice sees every
// possible pair of states. It ends with its standard input, with all names as they were, and says how often it
// exchanged.
func runSwapper(list string) int {
	dir, err := os.OpenRoot(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var pairs [][]string
	for line := range strings.Lines(list) {
		pairs = append(pairs, strings.Fields(line))
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for swaps := 0; ; {
		for range 1 + rand.IntN(16) {
			for _, p := range pairs {
				if err := fileexchange.Swap(dir, p[0], p[1]); err != nil {
					fmt.Fprintln(os.Stderr, p, err)
					return 1
				}
			}
			swaps++
		}
		select {
		case <-ended:
			if swaps%2 == 0 {
				fmt.Println(swaps * len(pairs))
				return 0
			}
		default:
			letPass(time.Duration(rand.IntN(200)) * time.Microsecond)
		}
	}
}

// startSwapper starts it in dir over pairs of names without spaces. stop ends it, and returns how often it exchanged.
func startSwapper(t *testing.T, dir string, pairs ...[2]string) (stop func() int) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	var lines strings.Builder
	for _, p := range pairs {
		fmt.Fprintln(&lines, p[0], p[1])
	}
	cmd := exec.Command(self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), swapperMark+"="+lines.String())
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, t.Output()
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, leaktest.Start(cmd))
	t.Cleanup(func() { _ = in.Close() })
	return func() int {
		t.Helper()
		_ = in.Close()
		must(t, cmd.Wait())
		var swaps int
		_, err := fmt.Sscan(out.String(), &swaps)
		must(t, err)
		return swaps
	}
}
