package bash

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"codehand/tools/bash/programs"
)

// deviceWord is D7 for one word: devices, and writing below /proc and /sys.
func (k *check) deviceWord(w *spelt, row *programs.Program) {
	absolute := strings.HasPrefix(k.c.dir, "/")
	if strings.IndexByte(w.text, '/') < 0 && !absolute {
		return
	}
	for p := range pieces(w.text) {
		if absolute {
			p = under(k.c.dir, p)
		}
		k.devicePath(p, w.text, writes(row))
	}
}

// devicePath looks at one path. word is how it is written.
func (k *check) devicePath(p, word string, write bool) {
	if len(p) < 5 || p[0] != '/' {
		return
	}
	p = path.Clean("/" + strings.TrimLeft(p, "/"))
	switch name, ok := strings.CutPrefix(p, "/dev/"); {
	case ok && isOneOf(name, "zero full random urandom"): // a stream without an end is ended like any other command
		k.held("D7", word, "is a device")
	case ok && !plainDevice(name):
		k.found("D7", word, "is a device")
	}
	if write && (strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/")) {
		k.found("D7", word, "changes the system")
	}
}

func plainDevice(name string) bool {
	switch name {
	case "null", "stdin", "stdout", "stderr", "tty", "shm", "fd":
		return true
	}
	return strings.HasPrefix(name, "fd/") || strings.HasPrefix(name, "shm/")
}

// redirection looks at where a redirection goes: D5, D6, D7, D8.
func (k *check) redirection(r *syntax.Redirect) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	}
	write := r.Op != syntax.RdrIn && r.Op != syntax.DplIn
	for _, w := range spellOne(nil, k.c.in.text, r.Word) {
		if strings.HasPrefix(w.text, "/dev/tcp/") || strings.HasPrefix(w.text, "/dev/udp/") {
			k.found("D6", w.text, "is a network connection")
		}
		k.secretWord(&w, k.c.dir)
		k.devicePath(under(k.c.dir, w.text), w.text, write)
		if write {
			k.persists(">", &w)
		}
	}
}
