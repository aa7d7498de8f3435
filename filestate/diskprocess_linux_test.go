package filestate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// A diskProcess is a process that serves a lossyDisk to this one, by orders over its standard input. A process that serves
// a disk to itself cannot end while one of its threads waits for the disk: the kernel waits for an answer that can no
// longer come.
//
// It ends with its orders, whatever becomes of the process that gives them, and takes the mount with it.
type diskProcess struct {
	*testing.T
	cmd  *exec.Cmd
	in   io.Closer
	to   *json.Encoder
	from *json.Decoder
}

// A diskOrder is what a diskProcess is told to do.
type diskOrder struct {
	Do        string // mount, arm, look, sync, cut or crash
	N, Choice int    // of arm
}

// A diskAnswer is given to each order.
type diskAnswer struct {
	Out   bool // the power is out
	Count int  // operations since arm
	Err   string
}

func startDisk(t *testing.T, dir string, seeded uint64) *diskProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, childMark, "disk", dir, "", strconv.FormatUint(seeded, 10))
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal leaves it the time to unmount
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &diskProcess{t, cmd, in, json.NewEncoder(in), json.NewDecoder(out)}
}

func (d *diskProcess) order(o diskOrder) diskAnswer {
	d.Helper()
	var a diskAnswer
	if err := errors.Join(d.to.Encode(o), d.from.Decode(&a)); err != nil {
		d.Fatalf("the disk: %s: %v", o.Do, err)
	}
	if a.Err != "" && o.Do != "mount" {
		d.Fatalf("the disk: %s: %s", o.Do, a.Err)
	}
	return a
}

// arm has the power go out before the n-th operation from now on that changes something.
func (d *diskProcess) arm(n, choice int) { d.order(diskOrder{"arm", n, choice}) }

// off says whether the power is out.
func (d *diskProcess) off() bool { return d.order(diskOrder{Do: "look"}).Out }

// end unmounts the disk.
func (d *diskProcess) end() {
	_ = d.in.Close() // this is the end of the orders
	_ = d.cmd.Wait() // a disk that did not end well has said so
}

// childDisk serves a disk until there are no more orders.
func childDisk(dir, seeded string) error {
	signal.Ignore(syscall.SIGPIPE) // who gives the orders may have died, and the disk must be unmounted all the same
	n, err := strconv.ParseUint(seeded, 10, 64)
	if err != nil {
		return err
	}
	s := &servedDisk{dir: dir, disk: newLossyDisk(rand.New(rand.NewPCG(n, 1)))}
	defer s.unmount()
	from, to := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o diskOrder
		if err := from.Decode(&o); err != nil {
			return nil // the end of the orders
		}
		var a diskAnswer
		if err := s.do(o); err != nil {
			a.Err = err.Error()
		}
		a.Out, a.Count = s.disk.off()
		if err := to.Encode(a); err != nil {
			return nil // the process that gave the order is gone
		}
	}
}

// A servedDisk is a lossyDisk that is mounted, in the process that serves it.
type servedDisk struct {
	dir    string
	disk   *lossyDisk
	server *fuse.Server // nil: it is not mounted
}

func (s *servedDisk) do(o diskOrder) error {
	switch o.Do {
	case "mount":
		return s.mount()
	case "arm":
		s.disk.arm(o.N, o.Choice)
	case "look":
	case "sync":
		s.disk.sync()
	case "cut":
		s.disk.cut()
	case "crash":
		left := s.disk.cut()
		s.unmount()
		s.disk = left
		return s.mount()
	default:
		return fmt.Errorf("what is %q", o.Do)
	}
	return nil
}

func (s *servedDisk) mount() error {
	server, err := fuse.NewServer(s.disk, s.dir, &fuse.MountOptions{DirectMount: true, FsName: "lossy", Name: "lossy", DisableReadDirPlus: true, DisableSplice: true})
	if err != nil {
		return err
	}
	s.server = server
	go server.Serve() // until it is unmounted
	return server.WaitMount()
}

func (s *servedDisk) unmount() {
	if s.server == nil {
		return
	}
	if s.server.Unmount() != nil {
		_ = syscall.Unmount(s.dir, syscall.MNT_DETACH) // a program has one of its files open
	}
	s.server.Wait()
	s.server = nil
}
