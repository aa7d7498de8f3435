package editing

import (
	"path/filepath"
	"slices"

	"codehand/tools/tool"
	"codehand/tools/wording"
)

// stages tell the client how far a call with edits is. The nil stages tell nothing.
type stages struct {
	env  tool.Env
	done func() // ends what is being told now
}

// say replaces what is told, from now on.
func (n *stages) say(what string) {
	if n != nil {
		n.end()
		n.done = wording.TellIfSlow(n.env, what)
	}
}

// end is called when the call ends.
func (n *stages) end() {
	if n != nil && n.done != nil {
		n.done()
		n.done = nil
	}
}

// TellPlanning tells the client that the files of many edits are looked for, if that takes a while. The caller must
// call done at its end.
func TellPlanning(env tool.Env, edits int) (done func()) {
	return wording.TellIfSlow(env, "Planning "+wording.Plural(edits, "edit", "edits")+"...")
}

// Activity names the files that a call edits: the first one, and how many there are besides.
func Activity(files []string) string {
	if len(files) == 0 {
		return "Editing nothing"
	}
	text := "Editing " + filepath.Base(files[0])
	if more := len(slices.Compact(slices.Sorted(slices.Values(files)))) - 1; more > 0 {
		text += " and " + wording.Plural(more, "more file", "more files")
	}
	return text
}
