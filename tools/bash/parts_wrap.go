package bash

import "strings"

// A wrapper is a program that runs its words as a command.
type wrapper struct {
	flags    string // letters without a value
	valued   string // letters with a value
	glued    string // letters whose value is glued if there is one
	long     string // long options, a "=" behind those with a value
	operands int    // words before the command
	assigns  bool   // NAME=value may stand before the command
	numbers  bool   // `-10` is an option
	unsure   bool   // its options are not known here: its command may stand anywhere
	subs     string // sub-commands, behind one of which the command stands; "": it has none
	leads    bool   // a rule with a `*` allows it if it names the command behind it
}

// wrapperOf knows the programs that run their words. Whatever is not known for certain is tried from each word on.
func wrapperOf(name string) (w wrapper, ok bool) {
	switch name {
	case "command":
		w = wrapper{flags: "p"}
	case "builtin", "nohup", "noglob", "nocorrect", "busybox", "toybox", "fakeroot", "torsocks", "catchsegv":
	case "exec":
		w = wrapper{flags: "cl", valued: "a"}
	case "env":
		w = wrapper{flags: "i0v", valued: "uCa", assigns: true, long: " unset= chdir= argv0= ignore-environment null " +
			"debug block-signal default-signal ignore-signal list-signal-handling "}
	case "timeout", "gtimeout":
		w = wrapper{flags: "fpv", valued: "ks", long: " kill-after= signal= foreground preserve-status verbose ",
			operands: 1}
	case "nice":
		w = wrapper{valued: "n", long: " adjustment= ", numbers: true}
	case "time":
		w = wrapper{flags: "apqvlh", valued: "fo", long: " format= output= append portability quiet verbose "}
	case "stdbuf":
		w = wrapper{valued: "ioe", long: " input= output= error= "}
	case "setsid":
		w = wrapper{flags: "cfw", long: " ctty fork wait "}
	case "ionice":
		w = wrapper{flags: "t", valued: "cn", long: " class= classdata= ignore "}
	case "chrt":
		w = wrapper{flags: "abdfiorRmv", valued: "TPD", operands: 1}
	case "taskset":
		w = wrapper{flags: "ac", long: " all-tasks cpu-list ", operands: 1}
	case "xargs", "gxargs":
		w = wrapper{flags: "0rtxpo", valued: "aEILnPsdJRS", glued: "iel",
			long: " arg-file= delimiter= max-args= max-procs= max-chars= null no-run-if-empty verbose exit " +
				"interactive "}
	case "watch":
		w = wrapper{flags: "bcdegtxpwrC", valued: "nqs",
			long: " interval= beep color differences errexit chgexit no-title exec precise "}
	case "flock":
		w = wrapper{flags: "sxeunoFv", valued: "wE", operands: 1,
			long: " timeout= wait= conflict-exit-code= shared exclusive unlock nonblock close no-fork verbose "}
	case "unbuffer":
		w = wrapper{flags: "p"}
	case "sudo":
		w = wrapper{flags: "AbBEHkNnPSis", valued: "CDghpRrTtUu", assigns: true,
			long: " user= group= host= prompt= chdir= chroot= login shell non-interactive stdin background " +
				"preserve-env "}
	case "doas":
		w = wrapper{flags: "Lns", valued: "Cu"}
	case "chroot":
		w = wrapper{long: " userspec= groups= skip-chdir ", operands: 1}
	case "caffeinate":
		w = wrapper{flags: "dimsu", valued: "tw"}
	case "strace":
		w = wrapper{flags: "cCdDfFikqrtTvVwxyzZ", valued: "abeEIoOpPsSuX"}
	case "parallel":
		w = wrapper{flags: "kXmquvtp0", valued: "jNnPIadsLE",
			long: " jobs= keep-order verbose dry-run null arg-file= colsep= "}
	case "script", "ltrace", "pkexec", "runuser", "su", "nsenter", "unshare", "systemd-run", "firejail",
		"rlwrap", "proxychains", "proxychains4", "cpulimit", "numactl", "prlimit", "setarch", "linux64", "linux32",
		"xvfb-run", "dbus-run-session", "faketime", "bwrap":
		w = wrapper{unsure: true}
	default:
		return runnerOf(name)
	}
	return w, true
}

// stripped says whether a rule that allows looks past this wrapper, all of whose options are known.
func stripped(name string) bool {
	switch name {
	case "timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob":
		return true
	}
	return false
}

// runsItsWords says whether a program runs its words as a command of their own, so that no rule with a star allows it.
func runsItsWords(name string) bool {
	switch name {
	case "watch", "setsid", "ionice", "flock":
		return true
	}
	return false
}

// skip returns where the command of w begins if its own words begin at i. not certain: an option is not known.
func (w *wrapper) skip(words []spelt, i int) (next int, certain bool) {
	if w.subs != "" {
		if i = w.behindSub(words, i); i == len(words) {
			return i, true
		}
	}
	if w.unsure {
		return i, false
	}
	operands := w.operands
	for ended := false; i < len(words); i++ {
		t := words[i].bare
		switch {
		case w.assigns && assigned(t) != "":
		case ended || len(t) < 2 && (t != "-" || w.valued == "") || t[0] != '-' || words[i].shape&braced != 0:
			if operands == 0 {
				return i, true
			}
			operands--
		case t == "--":
			ended = true
		case t == "-":
			if !w.assigns {
				return i, false
			}
		case t[:2] == "--":
			value, ok := w.longOption(t[2:])
			if !ok {
				return i, false
			}
			if value {
				i++
			}
		default:
			value, ok := w.shortOption(t[1:])
			if !ok {
				return i, false
			}
			if value {
				i++
			}
		}
	}
	return len(words), true
}

// longOption says whether the next word is the value of a long option.
func (w *wrapper) longOption(t string) (value, ok bool) {
	name, _, glued := strings.Cut(t, "=")
	if name == "version" || name == "help" {
		return false, true
	}
	i := strings.Index(w.long, " "+name)
	if i < 0 {
		return false, false
	}
	whole, _, _ := strings.Cut(w.long[i+1:], " ")
	return strings.HasSuffix(whole, "=") && !glued, true
}

// shortOption says whether the next word is the value of the last letter.
func (w *wrapper) shortOption(letters string) (value, ok bool) {
	if w.numbers && strings.Trim(letters, "-0123456789") == "" {
		return false, true
	}
	for i := range len(letters) {
		switch c := letters[i]; {
		case strings.IndexByte(w.flags, c) >= 0:
		case strings.IndexByte(w.glued, c) >= 0:
			return false, true
		case strings.IndexByte(w.valued, c) >= 0:
			return i+1 == len(letters), true
		default:
			return false, false
		}
	}
	return false, true
}

// assigned returns the name in `NAME=value`, "" if it is none.
func assigned(t string) string {
	name, _, ok := strings.Cut(t, "=")
	if !ok || name == "" || '0' <= name[0] && name[0] <= '9' {
		return ""
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		default:
			return ""
		}
	}
	return name
}

// RunsAnything says whether a program runs what its words say: a rule for all its uses would allow everything.
func RunsAnything(name string) bool {
	w, wraps := wrapperOf(name)
	return wraps && !w.leads && w.subs == "" || isShell(name) || isOneOf(name, "cmd powershell pwsh eval source .")
}

// NeverMatched says why no part of a command that begins with a name is compared with a rule which allows and has a
// star; "": it is.
func NeverMatched(name string) string {
	switch {
	case stripped(name):
		return name + " is left out before rules that allow are compared; write the rule for the command behind it"
	case runsItsWords(name):
		return name + " runs its words as a command, so only a rule without a star allows it"
	}
	return ""
}
