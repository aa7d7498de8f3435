package bash

import "strings"

// byName finds what is dangerous whatever its arguments are: parts of D1, D2, D3, D6, D7, D9 and the table.
func (k *check) byName(name string, args []spelt) {
	switch name {
	case "dd", "shred", "truncate", "wipefs", "blkdiscard", "mkswap", "mkfs", "gdd", "gtruncate", "gshred":
		k.found("D1", name, "destroys what it writes to")
	case "sudo", "su", "doas", "pkexec", "runuser", "chroot", "nsenter", "unshare", "setcap", "setfacl", "mount",
		"umount", "chown", "chgrp":
		k.found("D2", name, "raises or changes rights")
	case "eval":
		k.found("D3", name, "runs text that is built at run time")
	case "watch":
		k.found("D3", name, "runs its words in a shell")
	case "nc", "ncat", "socat", "telnet", "ftp", "tftp", "sftp", "scp", "netcat":
		k.found("D6", name, "carries data out")
	case "systemctl", "service", "launchctl", "crontab", "at", "batch", "shutdown", "reboot", "halt", "poweroff",
		"init", "telinit", "sysctl", "iptables", "ip6tables", "nft", "ufw", "insmod", "rmmod", "modprobe", "fdisk",
		"parted", "swapon", "swapoff", "useradd", "userdel", "usermod", "groupadd", "passwd", "chpasswd", "visudo",
		"setenforce", "killall", "pkill", "history":
		k.found("D7", name, "touches the system")
	case "secret-tool":
		k.found("D5", name, "reads secrets")
	case "dropdb":
		k.found("D9", name, "deletes a database")
	case "kill":
		k.kill(args)
	}
	if strings.HasPrefix(name, "mkfs.") {
		k.found("D1", name, "formats")
	}
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
			k.found("D7", "kill", t+" is not one process of yours")
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
			k.found("D2", "chmod", t+" changes rights recursively")
		case widens(t):
			k.found("D2", "chmod", t+" gives rights to others or to whoever runs it")
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
