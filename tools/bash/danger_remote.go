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

// containers is D9 for options of docker and its kin that open the machine. They count wherever they stand: which words
// belong to the program in the container only that version of docker tells.
func (k *check) containers(name string, args []spelt) {
	for i := range args {
		t, next := args[i].bare, ""
		if i+1 < len(args) {
			next = args[i+1].bare
		}
		if !opensHost(t, next) {
			continue
		}
		why := t + " opens this machine to the container, or talks to another"
		k.held("D9", name, why)
		if t == "--privileged" || strings.HasPrefix(mounted(t, next), "/:") {
			k.reaches("D9", name, why)
		}
	}
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
