package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// editsOf returns all paths that a part changes, if it is one of the simple changes of files with literal words, does
// nothing else, and each of its options is known; nil: it is not.
func editsOf(c *simple) []string {
	if _, call := c.node.(*syntax.CallExpr); !call || len(c.words) < 2 || len(c.heads) != 1 || len(c.assigns) > 0 {
		return nil
	}
	for i := range c.words {
		if !c.words[i].known() || c.words[i].text == "" {
			return nil
		}
	}
	for _, r := range c.stmt.Redirs {
		if !keepsNothing(r) {
			return nil
		}
	}
	name, args := c.words[0].text, c.words[1:]
	w, ok := editorOf(name)
	if !ok || !w.understands(args) {
		return nil
	}
	changed := edited(name, args)
	edits := make([]string, 0, len(changed))
	for i := range changed {
		if changed[i].shape&perhaps != 0 {
			continue // among the files: the caller sees whether it can be there
		}
		p, ok := c.place(&changed[i])
		if !ok {
			return nil
		}
		edits = append(edits, p)
	}
	if len(edits) == 0 {
		return nil
	}
	return edits
}

// editorOf knows the options of the programs that only change the files that they name, in the form of wrappers.
func editorOf(name string) (w wrapper, ok bool) {
	switch name {
	case "mkdir":
		return wrapper{flags: "pv", valued: "m", long: " parents verbose mode= "}, true
	case "touch":
		return wrapper{flags: "acmhf", valued: "dtr", long: " no-create date= reference= time= no-dereference "}, true
	case "rm":
		return wrapper{flags: "dfiIrRv", long: " force recursive dir one-file-system verbose "}, true
	case "rmdir":
		return wrapper{flags: "v", long: " verbose ignore-fail-on-non-empty "}, true
	case "mv":
		return wrapper{flags: "finuvT", valued: "t",
			long: " force interactive no-clobber update verbose no-target-directory target-directory= "}, true
	case "cp": // not -r, -a, -P: what they copy may be links and protected names
		return wrapper{flags: "finpuvT", valued: "t",
			long: " force interactive no-clobber update verbose no-target-directory target-directory= "}, true
	case "sed":
		return wrapper{flags: "nErsuz", valued: "el", glued: "i",
			long: " quiet silent expression= in-place regexp-extended null-data separate "}, true
	}
	return w, false
}

// understands says whether every option is one of w.
func (w *wrapper) understands(args []spelt) bool {
	for i := 0; i < len(args); i++ {
		t := args[i].bare
		if t == "--" {
			return true
		}
		if len(t) < 2 || t[0] != '-' {
			continue
		}
		var value, ok bool
		if t[1] == '-' {
			value, ok = w.wholeOption(t[2:])
		} else {
			value, ok = w.shortOption(t[1:])
		}
		if !ok {
			return false
		}
		if value {
			i++
		}
	}
	return true
}

// wholeOption is longOption for names that are not shortened.
func (w *wrapper) wholeOption(t string) (value, ok bool) {
	name, _, _ := strings.Cut(t, "=")
	if !strings.Contains(w.long, " "+name+" ") && !strings.Contains(w.long, " "+name+"= ") {
		return false, false
	}
	return w.longOption(t)
}

// edited are the words that name what is changed.
func edited(name string, args []spelt) []spelt {
	switch name {
	case "sed":
		return editedBySed(args)
	case "cp", "mv":
		reads, writes := changedBy(name, args)
		if len(reads)+len(writes) < 2 {
			return nil
		}
		return writes
	}
	_, writes := changedBy(name, args)
	return writes
}

// editedBySed are the files of `sed -i`, with their backups, if the script reads and writes no others and runs nothing.
func editedBySed(args []spelt) []spelt {
	use := sedOf(args)
	if !use.inPlace || use.foreign || len(use.scripts) == 0 {
		return nil
	}
	for _, script := range use.scripts {
		commands, ok := sedCommands(script)
		if !ok || strings.ContainsAny(commands, "wWrRe") {
			return nil
		}
	}
	suffix := backupSuffix(args)
	if strings.ContainsAny(suffix, "/*") {
		return nil
	}
	return backedUp(use.files, suffix)
}

// backedUp adds the backups of files; suffix "": there are none.
func backedUp(files []spelt, suffix string) []spelt {
	changed := slices.Clip(files)
	if suffix != "" {
		for _, w := range files {
			w.text += suffix
			changed = append(changed, w)
		}
	}
	return changed
}

// backupSuffix is what stands glued to -i or --in-place.
func backupSuffix(args []spelt) string {
	for i := range args {
		t := args[i].text
		if t == "--" {
			return ""
		}
		if strings.HasPrefix(t, "--in-place=") {
			return t[len("--in-place="):]
		}
		if len(t) > 1 && t[0] == '-' && t[1] != '-' {
			if n := strings.IndexByte(t, 'i'); n > 0 && !strings.ContainsAny(t[:n], "el") {
				return t[n+1:]
			}
		}
	}
	return ""
}
