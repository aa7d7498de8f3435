package bash

import "strings"

// operandsOf are the paths among the arguments of a command that is understood: what it reads, and what it changes.
func operandsOf(name string, args []spelt) (reads, writes []spelt) {
	if valued, ok := readsFiles(name); ok {
		reads = plainWords(args, valued, longValued)
		switch {
		case name == "sort":
			if out := optionValue(args, 'o', "kStT", "--output"); out != nil {
				writes = append(writes, *out)
			}
		case (name == "uniq" || name == "xxd") && len(reads) > 1:
			reads, writes = reads[:1], reads[1:]
		case name == "jq" && len(reads) > 0 && optionOf(args, "f", "L", "--from-file") == "":
			reads = reads[1:]
		}
		return reads, writes
	}
	switch name {
	case "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack":
		return searched(name, args), nil
	case "awk", "gawk", "mawk", "nawk":
		reads = plainWords(args, "Fvfi", longValued)
		if program := optionValue(args, 'f', "Fv", "--file"); program != nil {
			return append(reads, *program), nil
		}
		return reads[min(1, len(reads)):], nil
	case "sed", "gsed":
		use := sedOf(args)
		if use.inPlace {
			return nil, backedUp(use.files, backupSuffix(args))
		}
		return use.files, nil
	case "find", "gfind":
		return startingPoints(args), nil
	case "git":
		return gitPaths(args)
	case "tar", "gtar", "bsdtar", "zip", "7z", "rsync", "scp":
		return archived(name, args), nil
	}
	return changedBy(name, args)
}

// longValued are long options of programs that read files whose value is a word of its own.
const longValued = " --lines --bytes --key --field-separator --output --fields --delimiter --width --format " +
	"--include --exclude --exclude-dir --after-context" +
	" --before-context --context --max-count --glob --iglob --type --type-not --max-depth --regexp --file " +
	"--field-separator --assign --mode --size" +
	" --date --time --suffix --target-directory --reference "

// readsFiles knows the programs all of whose operands are files to read, with the letters that take a value.
func readsFiles(name string) (valued string, ok bool) {
	switch name {
	case "cat", "tac", "rev", "wc", "more", "less", "file", "realpath", "readlink", "md5sum", "sha1sum", "sha224sum",
		"sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "cmp", "comm", "zcat", "bat", "source", ".":
		return "", true
	case "head", "tail":
		return "nc", true
	case "ls":
		return "ITw", true
	case "sort":
		return "kStTo", true
	case "uniq":
		return "fsw", true
	case "cut":
		return "bcdf", true
	case "diff":
		return "CUFILWx", true
	case "stat":
		return "c", true
	case "nl":
		return "bdfhilnsvw", true
	case "join":
		return "12aejotv", true
	case "paste", "od":
		return "dAjNStw", true
	case "du":
		return "Bdt", true
	case "tree":
		return "ILP", true
	case "base64", "base32", "fold":
		return "w", true
	case "xxd":
		return "cglos", true
	case "hexdump", "strings":
		return "nste", true
	case "jq":
		return "fL", true
	}
	return "", false
}

// searched are the places in which a search looks, and the files that its patterns come from. The letters that take a
// value differ: `-r` and `-E` do for rg only.
func searched(name string, args []spelt) []spelt {
	valued := "ABCmdDef"
	switch name {
	case "rg":
		valued = "ABCmdefgjtTMEr"
	case "ag", "ack":
		valued = "ABCmefgG"
	}
	without := func(letter string) string { return strings.ReplaceAll(valued, letter, "") }
	found := plainWords(args, valued, longValued)
	given := optionOf(args, "e", without("e"), "--regexp") != "" ||
		name == "rg" && optionOf(args, "", "", "--files") == "--files"
	if file := optionValue(args, 'f', without("f"), "--file"); file != nil {
		return append(found, *file)
	}
	if !given {
		found = found[min(1, len(found)):]
	}
	return found
}

// startingPoints are the operands of find before its expression.
func startingPoints(args []spelt) []spelt {
	i := 0
	for i < len(args) && (args[i].bare == "-H" || args[i].bare == "-L" || args[i].bare == "-P") {
		i++
	}
	from := i
	for i < len(args) && args[i].bare != "" && strings.IndexByte("-(!", args[i].bare[0]) < 0 {
		i++
	}
	return args[from:i]
}

// changedBy are the operands of programs that change what they name.
func changedBy(name string, args []spelt) (reads, writes []spelt) {
	switch name {
	case "cp", "gcp", "ln", "gln", "install", "ginstall", "mv", "gmv":
		return put(name, args)
	case "rm", "rmdir", "grm", "grmdir", "tee", "gtee":
		return nil, plainWords(args, "", "")
	case "mkdir", "gmkdir":
		return nil, plainWords(args, "m", longValued)
	case "touch", "gtouch":
		if like := optionValue(args, 'r', "dt", "--reference"); like != nil {
			reads = append(reads, *like)
		}
		return reads, plainWords(args, "dtr", longValued)
	case "truncate", "gtruncate":
		return nil, plainWords(args, "sr", longValued)
	case "chmod", "gchmod":
		writes = plainWords(args, "", longValued)
		if optionOf(args, "", "", "--reference") == "" {
			writes = writes[min(1, len(writes)):]
		}
		return nil, writes
	case "dd", "gdd":
		return dumped(args)
	case "curl":
		if out := optionValue(args, 'o', strings.ReplaceAll(curlValued, "o", ""), "--output"); out != nil {
			writes = append(writes, *out)
		}
	case "wget":
		if out := optionValue(args, 'O', "oatTPQwARDIXUliBe", "--output-document"); out != nil {
			writes = append(writes, *out)
		}
	}
	return nil, writes
}

// put is what cp, mv, ln and install read and change.
func put(name string, args []spelt) (reads, writes []spelt) {
	valued := "St"
	if strings.HasSuffix(name, "install") {
		valued = "Stmog"
	}
	sources, targets, sure := moved(args, valued)
	for i := 1; i < len(targets) && !sure; i++ {
		targets[i].shape |= perhaps
	}
	switch {
	case strings.HasSuffix(name, "mv"):
		return nil, append(targets, sources...)
	case strings.HasSuffix(name, "ln"):
		return nil, targets
	}
	return sources, targets
}

// dumped are the files of dd.
func dumped(args []spelt) (reads, writes []spelt) {
	for i := range args {
		w := args[i]
		key, value, _ := strings.Cut(w.text, "=")
		w.text, w.bare = value, value
		switch key {
		case "if":
			reads = append(reads, w)
		case "of":
			writes = append(writes, w)
		}
	}
	return reads, writes
}
