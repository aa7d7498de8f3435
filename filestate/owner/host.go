package owner

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
)

// A Host says where a process id means anything. Fields that the system does not tell are empty.
type Host struct {
	Name string `json:"name"`           // of the system
	Boot string `json:"boot,omitempty"` // this start of it
	IDs  string `json:"ids,omitempty"`  // which process ids can be seen: containers differ
}

// ThisHost is the host of this process.
func ThisHost() Host {
	name, _ := os.Hostname() // what is not known is left out
	h := identifyHost()
	h.Name = short("host", name, h.Name)
	return h
}

// short is 8 hex digits that stand for a text, others for each use.
func short(use string, text ...string) string {
	sum := sha256.New()
	for _, t := range append([]string{use}, text...) {
		sum.Write(append([]byte(t), 0))
	}
	return hex.EncodeToString(sum.Sum(nil)[:4])
}

// Ended says whether process p, which ran on host on, has ended. It is not sure where that host may be another one.
func (h Host) Ended(on Host, p Process) (ended, sure bool) {
	switch {
	case h == on:
		return p.Dead(), true
	case h.Name == on.Name && h.Boot != "" && on.Boot != "" && h.Boot != on.Boot:
		return true, true // the system was started anew since
	default:
		return p.Dead(), false
	}
}
