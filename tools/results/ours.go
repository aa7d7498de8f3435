package results

import (
	"regexp"
	"strings"
	"sync"
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
	"NOT_READ_ONLY NOT_IN_PLAN_MODE PLAN_EMPTY PLAN_TEXT_NEEDED JOB_UNKNOWN JOB_LIMIT SKILL_UNKNOWN SKILL_USER_ONLY " +
	"SKILL_DENIED " +
	"TASK_UNKNOWN TASK_CYCLE TASK_LIMIT CONFIG_FIXED CONFIG_UNKNOWN CHANGE_UNKNOWN UNDO_CONFLICT UNDO_UNAVAILABLE " +
	"RATE_LIMITED SCOPE_MISSING WORKSPACE_UNAVAILABLE AUDIT_UNAVAILABLE"

// ours matches a line of a program's output that is equal in form to one which this server adds to outputs, with any
// number of `\` before it: the first lines of tools.md 5, 8, 23 and 25, the notes of 8, 9, 11, 13, 23, 25 and 26, and
// the frame of 27. Blanks at the end of an output are not shown. It is made when an output first looks like one, since
// most processes never need it.
var ours = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\\*(?:` + strings.Join([]string{
		`(?:` + strings.ReplaceAll(codes, " ", "|") + `): `,
		`Output too large \(.*\)\. `,
		`Full output(?:: | was not kept: )`,
		`Stdout and stderr:[ \t]*$`,
		`\[lines [\d,]+-[\d,]+(?: are left out.*)?\][ \t]*$`,
		`Stdout:[ \t]*$`,
		`Stderr:[ \t]*$`,
		`\(no (?:new )?output\)[ \t]*$`,
		`\(no new line matches\)[ \t]*$`,
		`Started job job_`,
		`Still running after .* moved to the background as job_`,
		`Read new output with job_output, stop it with job_stop\.[ \t]*$`,
		`Shell cwd was reset to `,
		`(?:running for|(?:completed|failed|killed|timed_out|output_limit|too_chatty|lost) after) .* new lines?[ \t]*$`,
		`\[\.\.\. (?:truncated )?\d+ (?:chars|bytes of output were not kept) \.\.\.\][ \t]*$`,
		`\[exit code `,
		`\[\d+ background process(?:es were| was) killed; `,
		`\[changed on disk: `,
		`\[this client does not wait longer; `,
		`\[next time use `,
		`\[nobody was asked: `,
		`\[timeout (?:raised|lowered) from `,
		`\[.* is gone\. Shell cwd was reset to `,
		`\[sandbox level `,
		`\[\S+(?: \S+)? may want .* which commands do not get; `,
		`\[(?:job|monitor) \S+ `,
		`\[(?:job_output|the next call) will show this output again\][ \t]*$`,
		`\[.* in the middle were skipped without filtering; `,
		`\[(?:not all of its output is kept|it may have printed more): `,
		`\[a hook (?:changed|objects)`,
		`\[written, but it may not survive a power loss: `,
		`\[written in place: not atomic\][ \t]*$`,
		`\[no undo copy: over 32 MiB\][ \t]*$`,
		`\[hard link broken: `,
		`\[attributes lost: `,
		`\[the change could not be remembered; `,
		`\[not all that changed is shown; `,
		`\[the file was deleted after you read it\][ \t]*$`,
		`\[line ends changed: `,
		`\[encoding changed to `,
		`\[lost with the old type: `,
		`\[version [0-9a-f]{12}`,
		`\[to take that back, undo change `,
		`\[\d+ more (?:match(?: and do not fit here)?: |names are unknown\])`,
		`\[the state store does not answer: (?:these tools|the rules of this skill) `,
		`\[(?:of )?allowed-tools `,
		`\[\d+ skills? that only the user may run (?:is|are) left out\][ \t]*$`,
		`\[all conversations of this user in this workspace share `,
		`\[\d+ questions? ha(?:s|ve) no answer; `,
		`\[image \d`,
		`\[output truncated; use (?:jq|iconv) `,
		`--- untrusted content `,
	}, "|") + ")")
})

// Disown puts a `\` before each line of a program's output that is equal in form to one of ours, so that nobody takes
// the program's word for the server's. A line that has `\` there already gets one more: no two outputs become the same.
// text is clean; what is kept of the output does not change.
func Disown(text string) string {
	var b strings.Builder
	at, done := 0, 0 // done: bytes of text that are in b
	for line := range strings.Lines(text) {
		if suspectLine(line) && ours().MatchString(strings.TrimSuffix(line, "\n")) {
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

// suspectLine spares most lines the expression.
func suspectLine(line string) bool {
	switch c := line[0]; c {
	case '[', '(', '-', '\\':
		return true
	case 'r', 'c', 'f', 'k', 't', 'o', 'l': // of a job's state
		return strings.Contains(line, " new line")
	default:
		return 'A' <= c && c <= 'Z'
	}
}
