package viewing

import (
	"context"
	"maps"
	"path/filepath"
	"sync/atomic"

	"codehand/filestate/owner"
	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/search/ignore"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// A LeftOut is what a search leaves out because of rules.
type LeftOut struct {
	env    tool.Env
	asked  bool         // files of the operator's ask rules, too
	unsure atomic.Int64 // files whose names could not all be looked up
}

// ModulesOfNode is a directory of others' code that lists leave out.
const ModulesOfNode = "node_modules"

// LeaveOut leaves out of a search each file that rules deny, and each that a person must allow before it is read. A
// question about the place of the search, because of a rule or of its name, is not repeated for files below it.
// Temporary files of changes, also those of dead processes, are no files of the user's.
func LeaveOut(env tool.Env, scope *search.Scope) *LeftOut {
	rules, place := env.Rules, scope.Place.Path
	w := &LeftOut{env: env, asked: rules.AsksToRead(place)}
	if !rules.SecretName(place) {
		scope.Omit = rules.SecretNames()
	}
	closed := func(path string) bool {
		return rules.Hidden(path) || rules.AskedFor(place, path) ||
			scope.Omit.Match(filepath.Base(path), true) != ignore.Ignore && rules.Withheld(place, path)
	}
	scope.Skip = func(path string) bool { return owner.Temporary(filepath.Base(path)) || closed(path) }
	if rules.ComparesPaths() {
		scope.SkipID = func(dev, ino uint64) bool {
			names, whole := env.Space.NamesByID(dev, ino)
			for _, name := range names {
				if closed(name) {
					return true
				}
			}
			if !whole {
				w.unsure.Add(1)
			}
			return !whole
		}
	}
	return w
}

// Notes say what was left out, as far as it may be known.
func (w *LeftOut) Notes(ctx context.Context, c search.Coverage) []string {
	var notes []string
	if c.Omitted.N > 0 {
		text := ""
		for i, path := range c.Omitted.Paths {
			if i > 0 {
				text += ","
			}
			text += " " + wording.ShownName(w.env, path)
		}
		if c.Omitted.N > len(c.Omitted.Paths) {
			text += " and " + results.Count(c.Omitted.N-len(c.Omitted.Paths)) + " more"
		}
		head := "(" + wording.Plural(c.Omitted.N, "secret name", "secret names") + " left out"
		if !w.tells(ctx, text) {
			notes = append(notes, head+", as told before)")
		} else {
			notes = append(notes, head+":"+text+". To ask for one, give it as path.)")
		}
	}
	if w.asked {
		notes = append(notes, "(Files that need approval by a rule are left out. To ask for one, give it as path.)")
	}
	if n := w.unsure.Load(); n > 0 {
		notes = append(notes,
			"("+wording.Plural(int(n), "file", "files")+
				" left out: each has hard links, and a rule may deny one of these names.)")
	}
	return notes
}

// toldSecrets is what State.Told calls the secret names that were left out last. No skill has a name with a space in
// it.
const toldSecrets = "secret names left out"

// tells notes that the session is told which secret names were left out, and says whether it must be: most searches of
// a workspace leave out the same.
func (w *LeftOut) tells(ctx context.Context, names string) bool {
	if w.env.State.Shared {
		return true
	}
	known := false
	_, err := w.env.Told.Change(ctx, func(told map[string]string) (map[string]string, error) {
		if known = told[toldSecrets] == names; !known {
			told = maps.Clone(told)
			if told == nil {
				told = map[string]string{}
			}
			told[toldSecrets] = names
		}
		return told, nil
	})
	return !known || err != nil
}
