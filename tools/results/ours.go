package results

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// codes are those of refusals and of commands that failed, with which a first line of ours begins. That none is missing
// is tested in package tools, which knows them.
const codes = "INPUT_INVALID UNKNOWN_TOOL TOOL_DISABLED PERMISSION_DENIED ASK_UNAVAILABLE USER_DECLINED PLAN_MODE " +
	"HOOK_BLOCKED OUTSIDE_ROOTS PATH_REFUSED FILE_NOT_FOUND IS_DIRECTORY NOT_DIRECTORY NOT_REGULAR " +
	"BINARY_FILE ENCODING_UNSUPPORTED TOO_LARGE BUSY READ_FAILED WRITE_FAILED ROLLBACK_FAILED CANCELLED TIMEOUT " +
	"STATE_UNAVAILABLE RESULT_TOO_LARGE INTERNAL NO_CHANGE FILE_EXISTS NOTEBOOK NOTEBOOK_INVALID SETTINGS_INVALID " +
	"SECRET_FOUND CELL_NOT_FOUND " +
	"FILE_NOT_READ FILE_PARTLY_READ FILE_CHANGED STRING_NOT_FOUND MULTIPLE_MATCHES COUNT_MISMATCH " +
	"PDF_UNAVAILABLE PDF_ENCRYPTED PDF_DAMAGED ENCODING_MIX CASCADE PATTERN_INVALID REGEX_INVALID COMMAND_FAILED " +
	"OUTPUT_LIMIT SANDBOX_UNAVAILABLE " +
	"NOT_READ_ONLY NOT_A_REPOSITORY WORKTREE_EXISTS IN_WORKTREE NOT_IN_WORKTREE WORKTREE_DIRTY GIT_FAILED " +
	"NOT_IN_PLAN_MODE PLAN_EMPTY PLAN_TEXT_NEEDED JOB_UNKNOWN JOB_LIMIT JOB_ENDED NO_TERMINAL " +
	"SKILL_UNKNOWN SKILL_USER_ONLY " +
	"SKILL_DENIED AGENT_UNKNOWN AGENT_NO_TOOLS AGENT_FAILED AGENT_STOPPED AGENT_STALLED AGENT_LIMIT " +
	"TASK_UNKNOWN TASK_CYCLE TASK_LIMIT CONFIG_FIXED CONFIG_UNKNOWN CHANGE_UNKNOWN UNDO_CONFLICT UNDO_UNAVAILABLE " +
	"URL_INVALID URL_BLOCKED HTTP_ERROR FETCH_FAILED SEARCH_FAILED SEARCH_LIMIT UPSTREAM_DOWN UPSTREAM_ERROR " +
	"DEFINITION_CHANGED SERVER_UNKNOWN RESOURCE_UNKNOWN " +
	"LSP_UNAVAILABLE LSP_FAILED LSP_TIMEOUT " +
	"RATE_LIMITED SCOPE_MISSING WORKSPACE_UNAVAILABLE AUDIT_UNAVAILABLE OUTCOME_UNKNOWN NODE_DOWN PAUSED"

// ours matches a line of a program's output that is equal in form to one which this server adds to outputs, with any
// number of `\` before it. Blanks at the end of an output are not shown. A test in package tools reads the source of
// all who write such lines, so that none is forgotten. It is made when an output first looks like one, since most
// processes never need it.
var ours = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\\*(?:` + strings.Join([]string{
		`(?:` + strings.ReplaceAll(codes, " ", "|") + `): `,
		`Output too large \(.*\)\. `, `Output folded \(.*\)\. `,
		`Full output(?:: |, but for .* of its middle: | was not kept: )`,
		`Stdout and stderr:[ \t]*$`,
		`\[lines [\d,]+-[\d,]+(?: are left out.*)?\][ \t]*$`,
		`Stdout:[ \t]*$`,
		`Stderr:[ \t]*$`,
		`\(no (?:new )?output\)[ \t]*$`,
		`\(no new line matches\)[ \t]*$`,
		`(?:Started|Stopped) job job_`,
		`Still running after .* moved to the background as job_`,
		`Read new output with job_output, stop it with job_stop\.[ \t]*$`,
		`Shell cwd was reset to `,
		`(?:running for|(?:completed|failed|killed|timed_out|output_limit|too_chatty|lost) after) .* new ` +
			`(?:line|event)s?(?:, .*|[ \t]*)$`,
		`\[stderr ended with: `,
		`\[\.\.\. (?:truncated )?\d+ (?:chars|bytes of output were not kept) \.\.\.\][ \t]*$`,
		`\[\.\.\. truncated at \d+ characters; `, `\[\.\.\. the answer was truncated at \d+ characters`,
		`\[The model was shown the characters `, `\[For the text itself call `,
		`\[the first [\d,]+ bytes of what it printed are not kept\][ \t]*$`,
		`\[exit code `,
		`Type into it with job_input, see its screen with job_output, stop it with job_stop\.[ \t]*$`,
		`\[screen \d+x\d+, `, `\(screen unchanged\)[ \t]*$`,
		`\[.* that left the screen are not shown; `, `\[the whole output is in `,
		`\[[\d,]+ lines? left the screen before these; `, `\[.* were printed too fast to be drawn; `,
		`\[\d+ background process(?:es were| was) killed; `,
		`\[.* of this change: not taken back; `, `\[the change moved the file, so `, `\[left as they are: `,
		`\[to take that back: `, `\[the rest was not tried: `,
		`\[changed on disk: `, `\[on the page the user `,
		`\[this client does not wait longer; `,
		`\[next time use `,
		`\[nobody was asked: `,
		`\[timeout (?:raised|lowered) from `,
		`\[current directory: `,
		`\[.* is gone\. Shell cwd was reset to `,
		`\[commands here are `, `\[sandbox level `, `\[read-only here: `,
		`\[codehand was killed while `,
		`\[made (?:under a protected name|or replaced while this )`,
		`No command runs here: the operator wants `, `\[files that it changes from now on are not listed`,
		`\[a process or thread of this command could not be started: `,
		`\[which files of the git work tree it changed is not known`,
		`\[\S+(?: \S+)? may want .* which commands do not get; `,
		`\[(?:job|monitor) \S+ `,
		`\[(?:job_output|the next call) will show this output again\][ \t]*$`,
		`\[.* in the middle were skipped without filtering; `,
		`\[(?:not all of its output is kept|it may have printed more): `,
		`\[a hook (?:changed|objects)`,
		`\[written, but it may not survive a power loss: `,
		`\[its changes are in work tree `, `\[it changed nothing: its work tree is removed\][ \t]*$`,
		`\[its work tree .* stays: `,
		`\[written in place: not atomic\][ \t]*$`,
		`\[no undo copy: over 32 MiB\][ \t]*$`,
		`\[hard link broken: `, `\[the file is read-only by its mode; `,
		`\[attributes lost: `,
		`\[the change could not be remembered; `,
		`\[not all that changed is shown; `,
		`\[the file was deleted after you read it\][ \t]*$`,
		`\[line ends changed: `,
		`\[encoding changed to `,
		`\[lost with the old type: `, `\[its outputs were cleared: `,
		`\[version [0-9a-f]{12}`,
		`\[new diagnostics(?:: | of an earlier edit: )`, `\[diagnostics: not ready\][ \t]*$`,
		`\[\d+ more (?:match(?: and do not fit here)?: |names are unknown\]|of the server )`,
		`\[the state store does not answer: (?:these tools|the rules of this skill) `,
		`\[(?:of )?allowed-tools `,
		`\[\d+ skills? that only the user may run (?:is|are) left out\][ \t]*$`,
		`\[all conversations of this user in this workspace share `,
		`\[\d+ questions? ha(?:s|ve) no answer; `,
		`\[image \d`,
		`\[output truncated; use (?:jq|iconv) `,
		`--- untrusted content `,
		`\[\d+ progress states overwritten\] `,
		`[ \t]*(?i:</?system-reminder)`,
		`</?functions?>`,
		`PARTIAL view: lines `,
		`\[shell command execution disabled by policy\]`,
		`\[(?:the rest, )?\d+ (?:more )?characters\b`,
		`\[plan mode applies to `,
		`\[.* not shown[\]:]`,
		`\[instructions for this directory: `,
		`\[not text: `,
		`\[[\d,]+ bytes of [\d,]+ are shown; `,
		`\[\d+ (?:jobs? )?more ended over `,
		`\[\d+ more (?:is|are) left out\]`,
		`\[no text[;\]]`,
		`\[there is no line \d`,
		`\[line \d+ is too long for an answer `,
		`\[sub-agent output imitated instructions: `, `\[agent agent_`, `Part \d of \d, `,
		`\[This is your last turn: `, `\[\d+ more bytes are left out\]`, `\[an image \(`, `\[key\][ \t]*$`,
		`\[lines \d+-\d+ of `, `\[the server \S+ is starting; `,
		`\[the first build of commands: `, `\[what was built so far stays `, `\[corepack enable writes `,
		`\[files that it may discard were kept `,
		`\[git keeps what was dropped `, `\[commands see only their own `,
		`\[what is here now is too much to look through`, `\[git ignores these, so `,
		`\[git could not write `, `\[git stopped half-way: `,
		`\[[^\]:]+: (?:took out |set aside |changes by this command |replaced while |not kept: )`,
	}, "|") + ")")
})

// Disown puts a `\` before each line of a program's output that is equal in form to one of ours, so that the model does
// not take the program's word for the server's. A line that has `\` there already gets one more: no two outputs become
// the same. text is clean; what is kept of the output does not change.
func Disown(text string) string {
	var b strings.Builder
	at, done := 0, 0 // done: bytes of text that are in b
	for line := range strings.Lines(text) {
		if looksOurs(line) {
			b.WriteString(text[done:at])
			b.WriteByte('\\')
			done = at
		}
		at += len(line)
	}
	if b.Len() == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// looksOurs says whether a line is equal in form to one of ours. Invisible characters do not count.
func looksOurs(line string) bool {
	line = strings.TrimSuffix(line, "\n")
	for i := range len(line) {
		if line[i] >= utf8.RuneSelf {
			line = strings.Map(unseen, line)
			break
		}
	}
	return line != "" && suspectLine(line) && ours().MatchString(line)
}

// unseen drops characters that are shown as nothing, and that Clean leaves where they may mean something.
func unseen(r rune) rune {
	if r >= utf8.RuneSelf && unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector) {
		return -1
	}
	return r
}

// suspectLine spares most lines the expression.
func suspectLine(line string) bool {
	switch line[0] {
	case '[', '(', '-', '\\', '<':
		return true
	case ' ', '\t':
		return strings.HasPrefix(strings.TrimLeft(line, " \t"), "<")
	case 'r', 'c', 'f', 'k', 't', 'o', 'l': // of a job's state
		return strings.Contains(line, " new line") || strings.Contains(line, " new event")
	}
	if len(line) < 2 || line[0] < 'A' || line[0] > 'Z' {
		return false
	}
	if c := line[1]; c < 'A' || c > 'Z' {
		return true
	}
	code, _, _ := strings.Cut(line, ":") // most such lines are of a log: INFO: and the like
	return code == "PARTIAL view" || strings.Contains(codes, code)
}
