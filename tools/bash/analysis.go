package bash

import (
	"fmt"
	"slices"
	"strings"
)

// A Class says what a command line can do at most. The zero value is Unknown: treated as writing.
type Class int

// The classes. Unknown is what the grammar does not cover. Dangerous is allowed by mode bypassPermissions and by a rule
// that is equal to the whole command, never by another mode or a rule with a `*`.
const (
	Unknown Class = iota
	Dangerous
	Writes
	ReadOnly
)

// String returns the name of the class: unknown, dangerous, write, readonly.
func (c Class) String() string {
	switch c {
	case Dangerous:
		return "dangerous"
	case Writes:
		return "write"
	case ReadOnly:
		return "readonly"
	}
	return "unknown"
}

// An Analysis is a command taken apart.
type Analysis struct {
	Class Class
	Why   string // what made it worse than ReadOnly: the rule, then the word; "" for ReadOnly
	Parts []Part // every simple command, in the order of the text

	// Files are what the command is known to touch: redirections, and operands of commands that are understood. The
	// list is never complete for a command that is not ReadOnly.
	Files []FileUse

	// Removes are the operands of rm and rmdir, without quotes, with expansions as written (`$HOME`, `"$x"/*` is
	// `$x/*`).
	Removes []string

	// Person says why a person must decide whatever the rules say (`eval` and the like); "": nothing does.
	Person string

	// Hidden says why rules that deny or ask may not see all that the command runs: code of another language, a program
	// that an option or a variable names, a computed name. "": they see it.
	Hidden string

	OfGit

	// UnsureReads says why the command may read files that Files does not tell, in half a sentence; "": none but those
	// that the programs which it starts choose by themselves. UnsureWrites says it of files that it changes.
	UnsureReads  string
	UnsureWrites string

	// Opaque says that a program runs whose words do not tell what it changes: a script, a build.
	Opaque bool

	// Unclear says that the grammar does not explain the whole: only a rule equal to the whole text allows it.
	Unclear bool

	ByKernel

	harm
}

// OfGit is what is known of the git commands in a line.
type OfGit struct {
	// Git are the directories in which parts that are ReadOnly start git: absolute, or relative to where the command
	// line starts; nil: none does. The caller that runs the command looks at the repositories there (GitRuns), and
	// calls Distrust.
	Git []string

	// GitShows says that git shows contents of files which the text does not name, GitChanges that it changes such.
	GitShows, GitChanges bool

	// Moves are the places to which git brings other contents of files, as far as its words tell: see Change.
	Moves []Move

	// Fetches says that git brings what others have made, of which Moves do not tell.
	Fetches bool
}

// ByKernel says what the kernel holds of a command. The zero value: nothing.
type ByKernel struct {
	// Held says that the kernel holds the command at sandbox level 3: what it can do at most hangs on its profile. Text
	// then answers which commands there are, how dangerous they are, and which profile it gets, and nothing else. The
	// caller that runs the command sets it by Hold.
	Held bool

	// Kept says that what the command may discard is to be kept before it starts, so that it is not dangerous.
	Kept bool

	// Settled says that the profile of the command is settled before it is judged: a process reads it that runs
	// already, or a tool stands behind it that must change something. So it is never contained. Its tool sets it.
	Settled bool

	// Contained says that the command runs in the profile that changes nothing and reaches nothing, whatever it says.
	Contained bool
}

// Reason is Why without the number of the rule, which means nothing to readers without the table of rules.
func (a *Analysis) Reason() string {
	if rule, rest, ok := strings.Cut(a.Why, ": "); ok && len(rule) > 1 && rule[0] == 'R' && isDigit(rule[1]) {
		return rest
	}
	return a.Why
}

// A Part is one simple command, as rules match it.
type Part struct {
	Text string // as written, behind harmless assignments and wrappers: what a rule that allows must match
	// all that rules which deny or ask match: as written, without quotes, behind every assignment and wrapper
	Forms []string
	// commands that it may run besides, as those rules match them: words of programs that use them in unknown ways
	Perhaps []string
	// what it may be, as those rules match it, with Any for what only the shell knows; nil: all is known
	Open  []string
	Class Class // of this part alone
	Why   string
	Exact bool // no rule with a `*` allows it: computed words, poisoned environment, a wrapper that runs its words
	// Lead is how Text begins where its program runs the words behind it (`npx vitest`, `uv run pytest`): a rule with a
	// `*` allows the part only if it spells all of this before its first `*`. "": it needs not.
	Lead  string
	Inner bool // it stands in a substitution or in the text of a nested shell: rules that allow need not match it

	// Edits are the paths that it changes, if it is one of mkdir touch rm rmdir mv cp sed with literal words and does
	// nothing else; nil: it is not.
	Edits []string
}

// A FileUse is one file that a command is known to touch.
type FileUse struct {
	// as the shell would open it: absolute, or relative to the directory in which the command line starts; `~/x` is not
	// expanded
	Path  string
	Write bool
	// Own: git changes it, its own configuration, as its command says. Where the kernel holds the command, it keeps of
	// that what could run programs, so it is neither a question nor a reason to open the file.
	Own   bool
	InDir bool // only if the path above it is a directory: `cp a b` writes b, or b/a
	Deep  bool // if it is a directory, also what is below it: `grep -r x d`, `mv d e`

	// Perhaps: it is a word of a program that uses it in an unknown way. Write means nothing then.
	Perhaps bool

	// Guess: the text does not say which file it is, and names this one elsewhere. No such file is there where the
	// kernel holds the command.
	Guess bool
}

// maxOnDisk is how many files of a command are looked for on the disk.
const maxOnDisk = 200

// OnDisk returns those of Files that a caller looks for on the disk, to see where links lead. What is more counts by
// its spelling, and as outside the roots; nothing that a person answers opens it.
func (a *Analysis) OnDisk() []FileUse { return a.Files[:min(len(a.Files), maxOnDisk)] }

// NullDevice is a file that holds nothing, whatever a command writes to it.
const NullDevice = "/dev/null"

// Analyze reads a command with the Bash grammar; it never runs anything and looks at no disk. inside says whether an
// absolute path lies in a root; nil: none does. It never panics.
func Analyze(command string, inside func(path string) bool) Analysis {
	if inside == nil {
		inside = func(string) bool { return false }
	}
	s := newScript(command)
	a := s.takeApart(inside)
	a.Class, a.Why = s.prove(inside)
	a.harm = s.danger(inside)
	if a.why != "" {
		a.Class, a.Why = Dangerous, a.why
	}
	if a.Hidden == "" {
		a.Hidden = a.hidden
	}
	a.lookAtGit(s.found())
	return a
}

// lookAtGit notes where git starts, and whether it shows or changes files that the text does not name.
func (a *Analysis) lookAtGit(f *finding) {
	for i := range f.commands {
		f.commands[i].eachGit(func(call *gitCall) {
			a.GitShows, a.GitChanges = a.GitShows || call.shows(), a.GitChanges || call.changes()
			a.Moves = append(a.Moves, f.commands[i].movesOf(call)...)
			a.Fetches = a.Fetches || isOneOf(call.sub, "pull fetch")
		})
	}
	a.unsure(a.GitShows, false, "git shows files that the text does not name")
	a.unsure(false, a.GitChanges, "git changes files that the text does not name")
	reads := a.GitShows || slices.ContainsFunc(a.Parts, Part.readsGit)
	if !reads && !a.GitChanges {
		return
	}
	places, known := f.gitPlaces()
	if a.trees = places; !reads {
		return
	}
	if !known {
		a.Distrust("the directory in which it starts is unknown")
		return
	}
	a.Git = places
}

// Distrust takes git out of what is ReadOnly: rule R6, where nothing confines the programs that a repository's own
// configuration makes git start. why is half a sentence.
func (a *Analysis) Distrust(why string) {
	a.Git = nil
	a.worsen("R6: git: "+why, Part.readsGit)
}

// Hold notes that the kernel holds the command at sandbox level 3. What is dangerous only where nothing would hold it
// is not.
func (a *Analysis) Hold() {
	a.Held = true
	a.Files = slices.DeleteFunc(slices.Clone(a.Files), func(f FileUse) bool { return f.Guess })
	switch {
	case a.beyond != "":
		a.Class, a.Why = Dangerous, a.beyond
	case a.lost != "":
		a.Class, a.Why = Dangerous, "R7 D1: "+a.lost
	case a.Class == Dangerous:
		a.Class = Writes
	}
}

// Change adds files that the command changes as well, as git itself says: where one has a protected name, a person is
// asked about it as about one that the text names.
func (a *Analysis) Change(paths []string) {
	files := make([]FileUse, 0, len(paths)+len(a.Files))
	for _, path := range paths {
		files = append(files, FileUse{Path: path, Write: true})
	}
	a.Files = append(files, a.Files...)
}

// Losses are the places in which a command that is Held may discard content, where that alone makes it dangerous; nil:
// it is not, or something else does as well.
func (a *Analysis) Losses() []Loss {
	if !a.Held || a.beyond != "" || a.lost == "" {
		return nil
	}
	return a.losses
}

// Named are the files which a command changes or removes by their names, then those that it perhaps changes: words of
// a program that may be files, and the work trees in which it changes what its text does not name. What only they have
// is kept as far as it can be: unlike Losses they decide nothing.
func (a *Analysis) Named() (named []Loss) {
	var perhaps []Loss
	for _, f := range a.Files {
		switch l := (Loss{Path: f.Path, Named: true}); {
		case f.Perhaps:
			perhaps = append(perhaps, Loss{Path: f.Path, Perhaps: true})
		case f.Write && !f.Own && !slices.Contains(named, l):
			named = append(named, l)
		}
	}
	if a.GitChanges || a.UnsureWrites != "" {
		for _, at := range append(slices.Clip(a.trees), ".") {
			perhaps = append(perhaps, Loss{Path: at, Tree: true, Perhaps: true})
		}
	}
	named = named[:min(len(named), maxPerhaps)]
	return append(named, perhaps[:min(len(perhaps), maxPerhaps)]...)
}

// Keep notes what becomes of the content in all Losses: it is kept before the command starts, and then nothing is
// dangerous about it; or why it is not, a clause.
func (a *Analysis) Keep(why string) {
	switch {
	case len(a.Losses()) == 0:
	case why == "":
		a.Class, a.Kept = Writes, true
	default:
		a.Why = "R7 D1: " + a.lost + ", and " + why
	}
}

// Contain makes of a command that is Held one that runs in the profile which changes nothing and reaches nothing: it is
// ReadOnly by that. What it would change, it may still read.
func (a *Analysis) Contain() {
	if !a.Held {
		return
	}
	a.Contained, a.Class, a.Why = true, ReadOnly, ""
	a.Parts = slices.Clone(a.Parts)
	for i := range a.Parts {
		a.Parts[i].Class, a.Parts[i].Why = ReadOnly, ""
	}
	a.Files = slices.Clone(a.Files)
	for i := range a.Files {
		a.Files[i].Write = false
	}
	a.Removes, a.GitChanges, a.UnsureWrites, a.Opaque = nil, false, "", false
}

// NamesChange says whether the text names something that the command changes, so that it is pointless where nothing can
// be changed. What is made in a directory for temporary files does not count: each command has its own there.
func (a *Analysis) NamesChange() bool {
	if len(a.Removes) > 0 || a.GitChanges {
		return true
	}
	return slices.ContainsFunc(a.Files, func(f FileUse) bool {
		return f.Write && !f.Perhaps && f.Path != NullDevice && !temporary(f.Path)
	})
}

func temporary(path string) bool {
	return strings.HasPrefix(path, "/tmp/") || strings.HasPrefix(path, "/var/tmp/")
}

// Doubt takes everything out of what is ReadOnly: nothing is proved for a shell that is not bash. why is half a
// sentence.
func (a *Analysis) Doubt(why string) {
	a.Git = nil
	a.worsen(why, func(Part) bool { return true })
}

// Foreign says that the text is not for bash, so that nothing that was read of it holds: only a rule equal to the whole
// text allows it, and rules that deny or ask may not see all that it does. why is half a sentence.
func (a *Analysis) Foreign(why string) {
	a.Doubt(why)
	a.Unclear, a.Hidden, a.UnsureReads, a.UnsureWrites = true, why, why, why
	for i := range a.Parts { // Doubt has copied them
		a.Parts[i].Edits, a.Parts[i].Exact = nil, true
	}
}

// worsen takes parts and the whole out of what is ReadOnly. Others may hold the parts, so they are copied.
func (a *Analysis) worsen(why string, which func(Part) bool) {
	a.Parts = slices.Clone(a.Parts)
	for i, p := range a.Parts {
		if p.Class == ReadOnly && which(p) {
			a.Parts[i].Class, a.Parts[i].Why = Writes, why
		}
	}
	if a.Class == ReadOnly {
		a.Class, a.Why = Writes, why
	}
}

// readsGit says that a part may be a git command which is ReadOnly: its text may begin with a redirection.
func (p Part) readsGit() bool { return p.Class == ReadOnly && strings.Contains(p.Text, "git") }

// maxParts is how many sub-commands a command has at most that is ReadOnly (R1), or that anything but a person can
// allow, and maxCommand how many bytes (R0).
const (
	maxParts   = 50
	maxCommand = 10_000
)

// Overlong says why only a person can judge a command with that text; "": the parser can.
func (a *Analysis) Overlong(text string) string {
	switch {
	case len(a.Parts) > maxParts:
		return fmt.Sprintf("the command has %d sub-commands, more than %d", len(a.Parts), maxParts)
	case len(text) > maxCommand:
		return fmt.Sprintf("the command has %d bytes, more than %d", len(text), maxCommand)
	}
	return ""
}
