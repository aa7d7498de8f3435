package bash

import (
	"slices"
	"strings"

	"codehand/tools/bash/programs"
)

// remote is D9: what acts on other machines, on registries and on databases.
func (k *check) remote(name string, args []spelt) {
	tries := func(w spelt) bool {
		switch w.bare {
		case "--dry-run", "--dry-run=client", "--dry-run=server", "--dry-run=true", "--check", "--syntax-check",
			"--list-hosts", "--list-tasks":
			return true
		}
		return false
	}
	if name != "ssh" && slices.ContainsFunc(args, tries) {
		defer func(before string) { k.beyond = before }(k.beyond)
	}
	switch name {
	case "docker", "podman", "docker-compose", "nerdctl":
		k.containers(name, args)
	case "psql", "mysql", "mariadb", "sqlite3", "mongosh", "mongo", "redis-cli", "mysqladmin":
		k.database(name, args)
	}
	if programs.IsAfar(name) {
		words := make([]string, len(args))
		for i := range args {
			words[i] = args[i].bare
		}
		if word, why := programs.Afar(name, words); why != "" {
			k.found("D9", name, strings.TrimSpace(word+" "+why))
		}
	}
	k.far(name, args)
}

// database looks for words that delete, in the arguments and in what is fed.
func (k *check) database(name string, args []spelt) {
	for i := range args {
		if t := deletesRows(args[i].text); t != "" {
			k.found("D9", name, t+" deletes data")
		}
	}
	text := fedText(k.c)
	if k.c.fed {
		text += k.c.in.text
	}
	if t := deletesRows(text); t != "" {
		k.found("D9", name, t+" deletes data")
	}
}

// deletesRows returns the word that deletes, as a word of its own or the beginning of a name like dropDatabase.
func deletesRows(text string) string {
	lower := strings.ToLower(text)
	for _, word := range [...]string{"drop", "delete", "truncate", "flushall", "flushdb"} {
		for from := 0; ; {
			i := strings.Index(lower[from:], word)
			if i < 0 || len(lower) != len(text) {
				break
			}
			i += from
			from = i + len(word)
			if (i == 0 || !isLetter(text[i-1])) && (from == len(text) || !isLetter(text[from]) ||
				'A' <= text[from] && text[from] <= 'Z' && text[i] >= 'a') {
				return text[i:from]
			}
		}
	}
	return ""
}

func isLetter(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// containers is D9 for docker and its kin.
func (k *check) containers(name string, args []spelt) {
	own, sub, rest := containerCommand(name, args)
	for _, part := range [...][]spelt{own, rest} {
		for i := range part {
			next := ""
			if i+1 < len(part) {
				next = part[i+1].bare
			}
			if opensHost(part[i].bare, next) {
				why := part[i].bare + " opens this machine to the container, or talks to another"
				k.held("D9", name, why)
				if part[i].bare == "--privileged" || strings.HasPrefix(mounted(part[i].bare, next), "/:") {
					k.reaches("D9", name, why)
				}
			}
		}
	}
	words := strings.Fields(sub)
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	switch {
	case last == "push":
		k.found("D9", name, "push publishes")
	case sub == "system prune", sub == "volume rm", sub == "down" && forcedBy(rest, 'v', "--volumes") != "":
		k.found("D9", name, sub+" removes data")
	case last == "rm" || last == "rmi" || last == "remove" || last == "prune":
		if t := forced(rest); t != "" {
			k.found("D9", name, last+" "+t+" removes without asking")
		}
	}
}

// containerCommand splits the arguments: the options before the sub-command, the sub-command with its group (`system
// prune`), and what belongs to it. The command that runs in the container is not among it.
func containerCommand(name string, args []spelt) (own []spelt, sub string, rest []spelt) {
	i := containerOperand(args, 0)
	own, args = args[:i], args[i:]
	if len(args) == 0 {
		return own, "", nil
	}
	sub, args = args[0].bare, args[1:]
	switch sub {
	case "compose", "container", "image", "system", "volume", "network", "builder", "buildx", "context", "pod",
		"machine", "manifest", "secret":
		n := containerOperand(args, 0)
		own = append(slices.Clip(own), args[:n]...)
		if args = args[n:]; len(args) > 0 {
			if sub == "compose" || sub == "container" {
				sub = args[0].bare
			} else {
				sub += " " + args[0].bare
			}
			args = args[1:]
		}
	}
	switch sub {
	case "run", "exec", "create":
		args = args[:min(containerOperand(args, 0)+1, len(args))]
	}
	if name == "docker-compose" {
		own = nil
	}
	return own, sub, args
}

// containerOperand returns where the first word is that is neither an option nor the value of one.
func containerOperand(args []spelt, i int) int {
	for ; i < len(args); i++ {
		t := args[i].bare
		switch {
		case len(t) < 2 || t[0] != '-':
			return i
		case t == "--":
			return min(i+1, len(args))
		case strings.HasPrefix(t, "--"):
			if !strings.Contains(t, "=") && !containerFlag(t) {
				i++
			}
		case strings.IndexByte("aceflmpuwvhHL", t[len(t)-1]) >= 0 && !strings.Contains(t, "="):
			i++
		}
	}
	return len(args)
}

// containerFlag knows the long options without a value.
func containerFlag(t string) bool {
	switch t {
	case "--rm", "--detach", "--interactive", "--tty", "--init", "--privileged", "--read-only", "--publish-all",
		"--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--disable-content-trust", "--help", "--debug",
		"--tls", "--tlsverify", "--version", "--build", "--force-recreate", "--no-deps", "--service-ports", "--quiet",
		"--no-tty", "--no-TTY", "--use-aliases", "--remove-orphans", "--all", "--force", "--volumes", "--wait",
		"--no-color", "--compatibility", "--all-resources", "--remote":
		return true
	}
	return false
}

// opensHost says whether an option gives a container the machine, or talks to another daemon. next is the word after.
func opensHost(t, next string) bool {
	option, value, glued := strings.Cut(t, "=")
	if !glued {
		value = next
	}
	switch option {
	case "--volume", "--mount", "--privileged", "--host", "--url", "--connection", "--identity":
		return true
	case "--pid", "--net", "--network":
		return value == "host"
	}
	if len(t) < 2 || t[0] != '-' || t[1] == '-' {
		return false
	}
	for i := 1; i < len(t); i++ {
		if t[i] == 'v' || t[i] == 'H' {
			return true
		}
		if strings.IndexByte("itdqP", t[i]) < 0 {
			return false
		}
	}
	return false
}

// mounted is what an option of docker mounts: HERE:THERE, if it mounts something.
func mounted(t, next string) string {
	if _, value, glued := strings.Cut(t, "="); glued {
		return value
	}
	return next
}

// far tries what runs elsewhere: the command behind ssh, and in a container or a pod.
func (k *check) far(name string, args []spelt) {
	switch name {
	case "ssh":
		if args = args[remoteCommand(args):]; len(args) > 0 {
			k.reaches("D6", name, "it runs a command on another machine")
		}
	case "docker", "podman", "kubectl", "docker-compose", "oc", "nerdctl":
		i := slices.IndexFunc(args, func(w spelt) bool { return w.bare == "exec" || w.bare == "run" })
		if i < 0 {
			return
		}
		args = args[i+1:]
	default:
		return
	}
	for i := range args {
		inner := args[i].name()
		k.destroys(inner, args[i+1:])
		if isShell(inner) && name == "ssh" {
			k.shell(head{at: 0}, inner, args[i+1:])
		}
	}
}

// forced returns the word that makes a container tool not ask.
func forced(args []spelt) string { return forcedBy(args, 'f', "--force") }

// forcedBy returns the argument that is an option, by its letter or its name; "": there is none.
func forcedBy(args []spelt, letter byte, long string) string {
	for i := range args {
		t := args[i].bare
		if t == long || len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.IndexByte(t, letter) > 0 {
			return t
		}
	}
	return ""
}
