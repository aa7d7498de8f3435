package sandbox

import (
	"os"
	"slices"
	"strconv"
	"testing"
)

// TestConfined: what left session, group, parent and environment of its command is still known as a part of it. A
// program that is not confined is none.
func TestConfined(t *testing.T) {
	t.Parallel()
	for level := LevelLimits; level <= LevelFull; level++ {
		r, w, err := os.Pipe()
		must(t, err)
		c := Cmd{Path: bashPath(t), Stdin: r, Level: level, Env: []string{"PATH=/usr/bin:/bin"}, Args: []string{"-c",
			`(setsid env -i /bin/bash -c 'exec -a any sleep 2000.` + strconv.Itoa(int(level)) + `' &); read x`}}
		if level > LevelLimits {
			c.Profile = &Profile{Network: NetworkOn}
		}
		p, err := Start(t.Context(), c)
		if err != nil && level > LevelLimits {
			t.Skip("this machine does not confine commands:", err)
		}
		must(t, err)
		left := 0
		waitFor(t, "it left its command", func() bool {
			i := slices.IndexFunc(pids(), func(pid int) bool {
				left = pid
				return string(procFile(pid, "cmdline")) == "any\x002000."+strconv.Itoa(int(level))+"\x00"
			})
			return i >= 0
		})
		if confined, known := Confined(left); confined != (level > LevelLimits) || !known {
			t.Errorf("level %d: confined: %v, known: %v", level, confined, known)
		}
		if level > LevelLimits && !ConfinedHere() {
			t.Errorf("level %d: no command is seen here", level)
		}
		must(t, w.Close())
		p.End(0)
		must(t, r.Close())
	}
	if confined, known := Confined(os.Getpid()); confined || !known {
		t.Errorf("this process: confined: %v, known: %v", confined, known)
	}
	if _, known := Confined(1 << 30); known {
		t.Error("there is no such process")
	}
}
