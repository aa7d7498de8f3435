package owner

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	tempPrefix = ".codehand-"
	tempSuffix = ".tmp"
)

// LeftAfter is how old a temporary file of elsewhere must be to be a left-over. A process on another host or in
// another container looks dead from here; no change takes this long.
const LeftAfter = 10 * time.Minute

// A Hand is who makes temporary files, and names them.
type Hand struct {
	Process Process
	Host    Host
	Swaps   bool // since it exchanges names, its temporary files can hold the only copy of a user's content
}

// Mark is the first half of the 16 digits in the names of this hand's temporary files. It says whether a process id in
// a name means anything here, and what the file can hold.
func (h Hand) Mark() string {
	use := "replaces"
	if h.Swaps {
		use = "swaps"
	}
	return short(use, h.Host.Name, h.Host.Boot, h.Host.IDs)
}

// TempName names a new temporary file.
func (h Hand) TempName() string {
	var random [4]byte
	rand.Read(random[:]) // never fails (crypto/rand, Go 1.24)
	return tempName(h.Process, h.Mark()+hex.EncodeToString(random[:]))
}

func tempName(p Process, digits string) string {
	return fmt.Sprintf("%s%d-%d-%s%s", tempPrefix, p.ID, p.Started, digits, tempSuffix)
}

// Of returns the process that made the temporary file of that name, and its mark. A user can choose a similar name: one
// that TempName would spell differently belongs to a user's file.
func Of(name string) (p Process, mark string, ok bool) {
	inner, isTemp := strings.CutPrefix(name, tempPrefix)
	inner, ends := strings.CutSuffix(inner, tempSuffix)
	parts := strings.Split(inner, "-")
	if !isTemp || !ends || len(parts) != 3 || len(parts[2]) != 16 {
		return Process{}, "", false
	}
	pid, pidErr := strconv.Atoi(parts[0])
	started, startErr := strconv.ParseUint(parts[1], 10, 64)
	digits, digitsErr := hex.DecodeString(parts[2])
	p = Process{pid, started}
	if pidErr != nil || startErr != nil || digitsErr != nil || name != tempName(p, hex.EncodeToString(digits)) {
		return Process{}, "", false
	}
	return p, parts[2][:8], true
}

// Temporary says whether name, of one component, is that of a temporary file of a change: no listing shows one.
func Temporary(name string) bool {
	if !strings.HasPrefix(name, tempPrefix) {
		return false // nearly all names, at no cost
	}
	_, _, is := Of(name)
	return is
}
