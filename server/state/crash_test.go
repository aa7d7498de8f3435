package state

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// childMark is the first argument of a test binary that is to be a child process.
const childMark = "be-a-child"

// crashHands are the goroutines of a child that write beside each other.
const crashHands = 3

// child writes until it is killed, and says what was acknowledged: hand, what, number.
func child(dir string) int {
	s, err := Open(context.Background(), "embedded:", crashOptions(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	failed := make(chan error)
	for hand := range crashHands {
		go func() { failed <- childWrites(s, hand) }()
	}
	fmt.Fprintln(os.Stderr, <-failed)
	return 1
}

// crashOptions let kills meet compactions, too. Nothing is synced in time: a kill loses nothing all the same.
func crashOptions(dir string) Options {
	return Options{Dir: dir, Sync: time.Hour, Timeout: time.Minute, compact: 256 << 10}
}

// crashValue is torn unless it is the same all over.
func crashValue(n int) []byte { return []byte(strings.Repeat(fmt.Sprintf("%08d", n), 100)) }

func crashNumber(v []byte) (n int, err error) {
	if len(v) == 0 {
		return 0, nil
	}
	if _, err = fmt.Sscanf(string(v[:min(len(v), 8)]), "%d", &n); err == nil && string(v) != string(crashValue(n)) {
		err = errors.New("a value is torn")
	}
	return n, err
}

// childWrites goes on from what the hand wrote before.
func childWrites(s Store, hand int) error {
	ctx := context.Background()
	k := crashKeys(hand)
	v, rev, err := s.Get(ctx, k.swapped)
	if err != nil {
		return err
	}
	n, err := crashNumber(v)
	if err != nil {
		return err
	}
	for {
		n++
		ok, err := s.Swap(ctx, k.swapped, crashValue(n), rev)
		if !ok || err != nil {
			return fmt.Errorf("swap %d at %d: %v, %w", n, rev, ok, err)
		}
		say(hand, "swapped", n)
		if err := s.Set(ctx, k.set, crashValue(n)); err != nil {
			return err
		}
		say(hand, "set", n)
		if err := s.Append(ctx, k.stream, crashValue(n)); err != nil {
			return err
		}
		say(hand, "stream", n)
		if err := s.Delete(ctx, k.set); err != nil {
			return err
		}
		say(hand, "deleted", n)
		if _, rev, err = s.Get(ctx, k.swapped); err != nil {
			return err
		}
	}
}

type crashNames struct{ swapped, set, stream string }

func crashKeys(hand int) crashNames {
	return crashNames{fmt.Sprintf("token.c%d", hand), fmt.Sprintf("prin.s%d", hand), fmt.Sprintf("job.p.%d", hand)}
}

// say writes a line at once.
func say(hand int, what string, n int) {
	_, _ = io.WriteString(os.Stdout, fmt.Sprintf("%d %s %d\n", hand, what, n))
}

// A process that is killed at any moment loses nothing that it acknowledged, and leaves nothing torn.
func TestKill(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	rounds := leaktest.Rounds(20, 500)
	dir := t.TempDir()
	for round := range rounds {
		said := killOne(t, dir, 1+rand.IntN(3000))
		s := openReal(t, crashOptions(dir))
		for hand := range crashHands {
			if err := checkHand(s, hand, said[hand]); err != nil {
				t.Fatalf("round %d, hand %d, acknowledged %+v: %v", round, hand, said[hand], err)
			}
		}
		must(t, s.Close())
	}
}

// acknowledged is what one hand of a child said: the last numbers, and all of the stream.
type acknowledged struct {
	swapped, set, deleted int
	stream                []int
}

// killOne starts a child, kills it after some lines, and returns what was acknowledged by hand.
func killOne(t *testing.T, dir string, lines int) (said [crashHands]acknowledged) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self, childMark, dir)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	in := bufio.NewScanner(out)
	for n := 0; in.Scan(); n++ {
		var hand, number int
		var what string
		if _, err := fmt.Sscan(in.Text(), &hand, &what, &number); err != nil {
			break // the last line is torn
		}
		switch a := &said[hand]; what {
		case "swapped":
			a.swapped = number
		case "set":
			a.set = number
		case "stream":
			a.stream = append(a.stream, number)
		case "deleted":
			a.deleted = number
		}
		if n == 0 {
			_, err := Open(t.Context(), "embedded:", crashOptions(dir))
			if want := fmt.Sprintf("data dir %s is in use by pid %d", dir, cmd.Process.Pid); err == nil || err.Error() != want {
				t.Errorf("a second process got %v, want %s", err, want)
			}
		}
		if n == lines {
			must(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait() // it was killed
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		t.Fatalf("the child ended by itself with code %d", code)
	}
	return said
}

// checkHand compares what is there with what was acknowledged. A hand does one thing after the other, so at most one
// write, the next one, may have been carried out besides.
func checkHand(s Store, hand int, said acknowledged) error {
	ctx := context.Background()
	k := crashKeys(hand)
	v, _, err := s.Get(ctx, k.swapped)
	if err != nil {
		return err
	}
	swapped, err := crashNumber(v)
	if err != nil || swapped < said.swapped || said.swapped > 0 && swapped > said.swapped+1 {
		return fmt.Errorf("the counter is %d, %w", swapped, err)
	}
	if v, _, err = s.Get(ctx, k.set); err != nil {
		return err
	}
	set, err := crashNumber(v)
	last := 0
	if len(said.stream) > 0 {
		last = said.stream[len(said.stream)-1]
	}
	switch {
	case err != nil:
		return err
	case said.set > last && set != said.set: // the next write was that to the stream
		return fmt.Errorf("what was set is %d", set)
	case said.deleted > 0 && said.deleted == said.swapped && set != 0: // the next write was the Swap
		return fmt.Errorf("what was deleted is back as %d", set)
	case set != 0 && (set < said.set || set <= said.deleted):
		return fmt.Errorf("the old value %d is back", set)
	}
	values, _, err := s.Tail(ctx, k.stream, 0, maxStream)
	if err != nil {
		return err
	}
	var numbers []int
	for _, v := range values {
		n, err := crashNumber(v)
		if err != nil || len(numbers) > 0 && n <= numbers[len(numbers)-1] {
			return fmt.Errorf("%d follows %v in the stream, %w", n, numbers, err)
		}
		numbers = append(numbers, n)
	}
	if n := len(numbers); n > 0 && numbers[n-1] == last+1 {
		numbers = numbers[:n-1] // carried out, but not acknowledged
	}
	want := said.stream[max(0, len(said.stream)-maxStream+1):]
	if len(numbers) < len(want) || !slices.Equal(numbers[len(numbers)-len(want):], want) {
		return fmt.Errorf("the stream holds %v", numbers)
	}
	return nil
}
