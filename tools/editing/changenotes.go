package editing

import (
	"context"
	"fmt"
	"strings"

	"codehand/filestate"
	"codehand/tools/language"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// Notes are the last lines of an answer about changed files. Where a language server runs that knows them, it waits
// half a second at most for what the server says of them: the caller holds no lock.
func Notes(ctx context.Context, env tool.Env, notes []string, changes ...filestate.Change) string {
	for _, c := range changes {
		if c.SyncErr != nil {
			notes = append(notes, fmt.Sprintf("[written, but it may not survive a power loss: %v]", c.SyncErr))
		}
		if c.Links > 0 {
			notes = append(notes, "[hard link broken: "+wording.Plural(c.Links, "other name keeps", "other names keep")+
				" the old content]")
		}
		if c.Shut {
			notes = append(notes, "[the file is read-only by its mode; it was changed all the same]")
		}
		if c.InPlace {
			notes = append(notes, "[written in place: not atomic]")
		}
		if c.NoCopy {
			notes = append(notes, "[no undo copy: over 32 MiB]")
		}
		if len(c.Lost) > 0 {
			notes = append(notes, "[attributes lost: "+strings.Join(c.Lost, ", ")+"]")
		}
		if c.Forgotten {
			notes = append(notes, "[the change could not be remembered; read the file again before the next edit]")
		}
		if (env.Client.Modern || env.Prefs.ReadVersion) && c.After != "" { // else it was removed
			note := "[version " + string(c.After)
			if len(changes) > 1 {
				note += " of " + wording.ShownName(env, c.Path)
			}
			notes = append(notes, note+"]")
		}
	}
	notes = append(notes, language.AfterEdit(ctx, env, changes...)...)
	if len(notes) == 0 {
		return ""
	}
	return "\n" + strings.Join(notes, "\n")
}
