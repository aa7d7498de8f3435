package owner_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"codehand/filestate/owner"
)

// ended starts a process and waits until it is no more.
func ended(t *testing.T) owner.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "-test.run=^$")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	return owner.Process{ID: c.Process.Pid}
}

// In doubt a process lives.
func TestDead(t *testing.T) {
	t.Parallel()
	self, gone := owner.ProcessOf(os.Getpid()), ended(t)
	unix, linux := runtime.GOOS != "windows", runtime.GOOS == "linux"
	if (self.Started != 0) != linux || self.ID != os.Getpid() {
		t.Errorf("this process is %+v", self)
	}
	if linux {
		gone.Started = self.Started + 1 // whatever it was
	}
	for name, c := range map[string]struct {
		p    owner.Process
		dead bool
	}{
		"this process":                       {self, false},
		"this one, its start not known":      {owner.Process{ID: self.ID}, false},
		"another one before, of the same id": {owner.Process{ID: self.ID, Started: self.Started + 1}, linux},
		"its parent":                         {owner.ProcessOf(os.Getppid()), false},
		"one that has ended":                 {gone, unix},
		"one that has ended, start unknown":  {owner.Process{ID: gone.ID}, unix},
		"no process":                         {owner.Process{}, false},
		"no process, with a start":           {owner.Process{Started: 8}, false},
		"a group of processes":               {owner.Process{ID: -self.ID, Started: 8}, false},
		"all processes":                      {owner.Process{ID: -1, Started: 8}, false},
	} {
		if got := c.p.Dead(); got != c.dead {
			t.Errorf("%s, %+v: dead %v, want %v", name, c.p, got, c.dead)
		}
	}
	if p := owner.ProcessOf(gone.ID); p.ID != gone.ID || p.Started != 0 {
		t.Errorf("a process that has ended is %+v", p)
	}
}

// Only the same system in the same start, with the same ids, is sure of a process; another start is sure that it ended.
func TestEnded(t *testing.T) {
	t.Parallel()
	living, gone := owner.ProcessOf(os.Getpid()), ended(t)
	dead := gone.Dead() // not known on Windows
	for name, c := range map[string]struct {
		on   owner.Host
		sure bool
		anew bool // the system was started since
	}{
		"the same":                      {here, true, false},
		"another start":                 {owner.Host{Name: here.Name, Boot: "before", IDs: here.IDs}, true, true},
		"another start, other ids":      {owner.Host{Name: here.Name, Boot: "before", IDs: "pid:[2]"}, true, true},
		"another container":             {owner.Host{Name: here.Name, Boot: here.Boot, IDs: "pid:[2]"}, false, false},
		"ids not known":                 {owner.Host{Name: here.Name, Boot: here.Boot}, false, false},
		"start not known":               {owner.Host{Name: here.Name, IDs: here.IDs}, false, false},
		"another system":                {owner.Host{Name: "another", Boot: here.Boot, IDs: here.IDs}, false, false},
		"another system, another start": {owner.Host{Name: "another", Boot: "before", IDs: here.IDs}, false, false},
		"nothing known":                 {owner.Host{}, false, false},
	} {
		for p, isDead := range map[owner.Process]bool{living: false, gone: dead} {
			if ended, sure := here.Ended(c.on, p); ended != (isDead || c.anew) || sure != c.sure {
				t.Errorf("%s, %+v: ended %v, sure %v; want %v, %v", name, p, ended, sure, isDead || c.anew, c.sure)
			}
		}
	}
	unknown := owner.Host{Name: here.Name}
	if ended, sure := unknown.Ended(here, living); ended || sure {
		t.Errorf("a host that does not know its start says ended %v, sure %v of another", ended, sure)
	}
}

// A host is the same each time, and its hash reveals no name to readers of a note.
func TestThisHost(t *testing.T) {
	t.Parallel()
	h := owner.ThisHost()
	if again := owner.ThisHost(); again != h {
		t.Errorf("%+v became %+v", h, again)
	}
	if name, err := os.Hostname(); err == nil && h.Name == name || len(h.Name) != 8 {
		t.Errorf("the host is called %q, want 8 digits", h.Name)
	}
	if runtime.GOOS == "linux" && (h.Boot == "" || h.IDs == "") {
		t.Errorf("got %+v, want the start of the system and the ids that can be seen", h)
	}
}
