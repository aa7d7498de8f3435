package bash

import (
	"net/netip"
	"slices"
	"strings"

	"codehand/tools/bash/programs"
)

// table finds what the row of a program says is dangerous about it: parts of D1, D2, D3, D6, D7, D9, and options that
// name a program or hold code.
func (k *check) table(h head, r *reading) {
	name := h.name
	if strings.HasPrefix(name, "mkfs.") {
		name = "mkfs"
		mkfs := read(name, r.args)
		r = &mkfs
	}
	if name == "kill" && !h.quiet {
		k.kill(r.args)
	}
	if r.row == nil {
		return
	}
	harmless := ""
	if r.row.Name == "find" && k.execsReaders() {
		harmless = "-exec -execdir"
	}
	for _, d := range r.row.Danger {
		counts := d.Options
		if harmless != "" {
			counts = slices.DeleteFunc(slices.Clone(counts), func(o string) bool { return isOneOf(o, harmless) })
		}
		note := k.found
		if r.row.Has("held") || keeps(name, d.Clause, r.args) {
			note = k.held
		}
		switch t := r.has(counts...); {
		case len(d.Options) == 0 && !h.quiet:
			note(d.Clause, name, d.Why)
		case name == "find" && t != "" && t != "-delete": // what it runs is looked at as a command of its own
			k.held(d.Clause, name, t+" "+d.Why)
		case t != "":
			note(d.Clause, name, t+" "+d.Why)
		}
	}
	for i := range r.Options {
		if o := &r.Options[i]; o.Option != nil && o.Kind == programs.Runs && !isOneOf(o.Name, harmless) {
			k.program(name, r.args[o.At].text+" names a program")
		}
	}
}

// keeps says whether the kernel keeps what a row says is dangerous at sandbox level 3, for the sake of the words: what
// only asks the system something, or stays on this machine.
func keeps(name, clause string, args []spelt) bool {
	first := ""
	if len(args) > 0 {
		first = args[0].bare
	}
	switch name {
	case "systemctl", "service", "launchctl":
		return !slices.ContainsFunc(args, func(w spelt) bool {
			return !strings.HasPrefix(w.bare, "-") && isOneOf(w.bare, systemVerbs)
		})
	case "crontab":
		return first == "-l"
	case "sysctl":
		return isOneOf(first, "-a -n --all") || first != "" && !strings.Contains(first, "=") && first != "-w"
	case "nc", "ncat", "netcat", "telnet":
		return clause == "D6" && (isLocal(args) || slices.ContainsFunc(args, func(w spelt) bool {
			return len(w.bare) > 1 && w.bare[0] == '-' && w.bare[1] != '-' && strings.Contains(w.bare, "z")
		}))
	case "wget", "wget2", "curl":
		return isLocal(args)
	}
	return false
}

// systemVerbs are the words by which systemctl, service and launchctl change something.
const systemVerbs = "start stop restart reload try-restart reload-or-restart isolate kill clean freeze thaw " +
	"set-property enable disable reenable preset preset-all mask unmask link revert add-wants add-requires edit " +
	"set-default import-environment set-environment unset-environment daemon-reload daemon-reexec default rescue " +
	"emergency halt poweroff reboot kexec soft-reboot exit switch-root suspend hibernate load unload bootstrap " +
	"bootout kickstart remove submit setenv unsetenv force-reload"

// isLocal says whether all hosts that the words of a program name are this machine, and that they name one.
func isLocal(args []spelt) (local bool) {
	for i := range args {
		t := args[i].bare
		_, rest, url := strings.Cut(t, "://")
		switch {
		case isLoopback(t), url && isLoopback(rest):
			local = true
		case url, looksLikeHost(t):
			return false
		}
	}
	return local
}

// isLoopback says whether a text begins with a name of this machine, behind which there may be a port and a path.
func isLoopback(t string) bool {
	host, _, _ := strings.Cut(t, "/")
	if strings.Contains(host, "@") {
		return false // what stands before it is a user, and no host
	}
	if in, rest, ok := strings.Cut(strings.TrimPrefix(host, "["), "]"); ok && (rest == "" || rest[0] == ':') {
		host = in
	} else if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (at.IsLoopback() || at.IsUnspecified())
}

// looksLikeHost says whether a word without a scheme may be one of a host: the value of an option most often is not.
func looksLikeHost(t string) bool {
	host, _, _ := strings.Cut(t, "/")
	return !strings.HasPrefix(t, "-") && !strings.ContainsAny(host, " {}\"'=") && strings.ContainsAny(host, ".$")
}

// execsReaders says whether all that find starts is in the column proved with all its options, and its words are text,
// or what find finds where that can be nothing but a path. Git never is: what it does depends on the repository.
func (k *check) execsReaders() bool {
	c, n := k.c, 0
	f := closedCall{c: &simple{}, inside: k.inside}
	for i, h := range c.heads {
		if h.via != "find" {
			continue
		}
		n++
		if h.row == nil || !h.row.Reads || h.row.Has("own") || h.name == "git" || h.end == len(c.words) {
			return false
		}
		r, takes := c.reading(i), h.row.Proved
		several := 0
		if c.words[h.end].bare == "+" { // find gives it several names at once
			several = 1
		}
		unsafe := func(o programs.Found) bool {
			return o.Option == nil || !o.Safe || o.Shortened || o.Impossible || o.Does&programs.Follows != 0
		}
		script := isOneOf(takes.First, "script filter")
		if h.name != c.words[h.at].text || r.Command >= 0 || len(r.Operands)+several-r.skipped() > takes.Max ||
			slices.ContainsFunc(r.Options, unsafe) || script && r.instead() {
			return false
		}
		for at := range r.args {
			w := &r.args[at]
			found := strings.Contains(w.text, "{}")
			if found && script && at == r.Operands[0] || w.text != "{}" && f.path(w) != "" ||
				w.shape&(computed|globbed|braced|escaped|odd) != 0 {
				return false
			}
		}
		if use := sedOf(h.name, r.args); !use.plain() {
			return false
		}
	}
	return n > 0
}

// kill finds signals to all processes or to the first. The first of several words that begins with `-` is the signal.
func (k *check) kill(args []spelt) {
	if len(args) > 1 {
		switch t := args[0].bare; {
		case t == "-s" || t == "-n":
			args = args[min(2, len(args)):]
		case t != "--" && strings.HasPrefix(t, "-"):
			args = args[1:]
		}
	}
	for i := range args {
		if t := args[i].bare; t == "1" || t == "-1" {
			k.held("D7", "kill", t+" is not one process of yours")
		}
	}
}

// rights is the rest of D2: chmod.
func (k *check) rights(name string, args []spelt) {
	if name != "chmod" && name != "gchmod" {
		return
	}
	for i := range args {
		t := args[i].bare
		switch {
		case abbreviates(t, "--recursive"), len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.Contains(t, "R"):
			k.held("D2", "chmod", t+" changes rights recursively")
		case widens(t):
			k.held("D2", "chmod", t+" gives rights to others or to whoever runs it")
		}
	}
}

// widens says whether a mode gives write to others, setuid or setgid.
func widens(mode string) bool {
	if mode == "" {
		return false
	}
	if strings.Trim(mode, "01234567") == "" {
		if n := len(mode); n >= 3 {
			return (mode[n-1]-'0')&2 != 0 || n > 3 && (mode[n-4]-'0')&6 != 0
		}
		return (mode[len(mode)-1]-'0')&2 != 0
	}
	for clause := range strings.SplitSeq(mode, ",") {
		i := strings.IndexAny(clause, "+=")
		if i < 0 || strings.Trim(clause[:i], "ugoa") != "" || strings.Trim(clause[i:], "+-=rwxXstugo") != "" {
			continue
		}
		who, what := clause[:i], clause[i+1:]
		if strings.ContainsAny(who, "oa") && strings.Contains(what, "w") || strings.Contains(what, "s") && who != "o" {
			return true
		}
	}
	return false
}

// destroys is D1 of the table alone, for what runs elsewhere.
func (k *check) destroys(name string, args []spelt) {
	r := read(name, args)
	c := gitCall{}
	if name == "git" {
		c = gitOf(args)
		r = c.reading
	}
	if r.row == nil {
		return
	}
	for _, d := range r.row.Danger {
		if t := r.has(d.Options...); t != "" && d.Clause == "D1" {
			k.afar(d.Clause, name, t+" "+d.Why)
		}
	}
	if t := c.destroys(); t != "" {
		k.afar("D1", "git "+c.sub, t+" destroys work")
	}
}

// afar is found for what is done elsewhere, where no journal keeps anything.
func (k *check) afar(clause, word, text string) {
	k.held(clause, word, text)
	k.reaches(clause, word, text)
}
