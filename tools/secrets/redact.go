package secrets

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// masked stands where something was that may be a secret.
const masked = "[masked]"

// maxRedacted is how many bytes of a text are looked at: what the audit and the journal show of one is far shorter, and
// the expressions can take microseconds a byte.
const maxRedacted = 1 << 10

// A mask is one way in which a secret shows itself.
type mask struct {
	hints []string // one of them, in lower case, is in every text that re matches; nil: look always
	re    *regexp.Regexp
	with  string // in its place; $1 is what stays
}

// codehandSecrets begin what opens codehand itself: static tokens, access tokens, refresh tokens, authorization codes,
// and invitations.
var codehandSecrets = []string{"chd_", "cha_", "chr_", "chc_", "chi_"}

// shapes are secrets that can be told by their form alone, in a text of any kind.
var shapes = sync.OnceValue(func() []mask {
	shape := func(kind, re string, hints ...string) mask {
		return mask{hints, regexp.MustCompile(re), "[masked " + kind + "]"}
	}
	return []mask{
		// First, because it may hold any of the others; without its end it holds all that follows.
		shape("private-key", `(?s)-----BEGIN [A-Z ]*PRIVATE KEY.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
			"private key"),
		shape("codehand-token", `\b(?:ch[acdr]_[a-z2-7]{6,}_[\w-]{16,}|chi_[\w-]{40,})`, codehandSecrets...),
		shape("aws-key-id", `\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`, "akia", "asia"),
		shape("github-token", `\bgh[oprsu]_[0-9A-Za-z]{36,}|\bgithub_pat_\w{22,}`, "ghp_", "gho_", "ghu_", "ghs_",
			"ghr_", "github_pat_"),
		shape("gitlab-token", `\bgl(?:pat|dt|rt|ptt|oas)-[\w.-]{20,}`, "glpat-", "gldt-", "glrt-", "glptt-", "gloas-"),
		shape("slack-token", `\bxox[abeprs]-[0-9A-Za-z-]{10,}`, "xox"),
		shape("slack-webhook", `\bhooks\.slack\.com/\S+`, "hooks.slack.com/"),
		shape("stripe-key", `\b[rs]k_live_[0-9A-Za-z]{16,}`, "k_live_"),
		shape("google-key", `\bAIza[\w-]{35}|\bya29\.[\w-]{20,}`, "aiza", "ya29."),
		shape("api-key", `\bsk-[\w-]{20,}`, "sk-"), // OpenAI's and Anthropic's
		shape("npm-token", `\bnpm_[0-9A-Za-z]{36}`, "npm_"),
		shape("pypi-token", `\bpypi-[\w-]{16,}`, "pypi-"),
		shape("docker-token", `\bdckr_pat_[\w-]{20,}`, "dckr_pat_"),
		shape("huggingface-token", `\bhf_[0-9A-Za-z]{30,}`, "hf_"),
		shape("sendgrid-key", `\bSG\.[\w-]{16,}\.[\w-]{16,}`, "sg."),
		shape("digitalocean-token", `\bdo[opr]_v1_[0-9a-f]{32,}`, "_v1_"),
		shape("databricks-token", `\bdapi[0-9a-f]{32}`, "dapi"),
		shape("jwt", `\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?`, "eyj"),
		{[]string{"accountkey="}, regexp.MustCompile(`(?i)(AccountKey=)[\w+/=-]+`), "${1}" + masked},
		{[]string{"://"}, regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/@"']*:[^\s/@"']+@`), "${1}" + masked + "@"},
	}
})

// labels are secrets that can be told by what stands before them, and contents. They would mask too much of a path.
var labels = sync.OnceValue(func() []mask {
	const (
		value = `(?:"(?:\\.|[^"\\])*(?:"|$)|'[^']*(?:'|$)|[^\s;&|"')]+)`
		named = `pass(?:w(?:or)?d|phrase|code)?|pwd|secret|token|` +
			`api[_-]?key|access[_-]?key|private[_-]?key|credentials?|auth`
	)
	names := []string{"pass", "pwd", "secret", "token", "key", "credential", "auth"}
	label := func(re string, hints ...string) mask { return mask{hints, regexp.MustCompile(re), "${1}" + masked} }
	return []mask{
		// What is given to a program on its standard input is contents.
		{[]string{"<<"}, regexp.MustCompile(`(?s)(<<-?\s*["'\\]?[A-Za-z_]\w*[^\n]*)\n.*`), "${1} [contents masked]"},
		label(`(<<<\s*)`+value, "<<<"),
		label(`(?i)((?:\bauthorization|\bcookie|\bx-[\w-]*(?:key|token|auth|secret)[\w-]*)["']?\s*[:=]\s*)[^"'\r\n]+`,
			"authorization", "cookie", "x-"),
		label(`(?i)(\b(?:bearer|basic)\s+)[\w.~+/=-]{6,}`, "bearer", "basic"),
		label(`(?i)(\b[a-z][a-z0-9+.-]*://[^\s?"']*\?)[^\s"'|>]+`, "://"),
		label(`(?i)((?:^|\s)--?[\w-]*(?:`+named+`)[\w-]*(?:=|\s+))`+value, names...),
		label(`(?i)([\w.-]*(?:`+named+`)[\w.-]*["']?\s*[:=]\s*)`+value, names...),
		label(`((?:^|\s)(?:-u\s*|--user[=\s]\s*)["']?[^\s:"']+:)[^\s"']+`, "-u"),
		label(`(\bsshpass\s+-p\s*)`+value, "sshpass"),
		label(`(\b(?:mysql|mariadb)[\w-]*\b[^|;&\n]*?\s-p)[^\s;&|]+`, "mysql", "mariadb"),
		label(`((?:^|[\s;&|(])[A-Z_][A-Z0-9_]*=)`+value, "="), // the environment
	}
})

// opaque finds words that may be random.
var opaque = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\w+=-]{24,}|\b[\w+/]{40}\b`) })

// RedactPath masks what has the form of a secret, whatever stands around it.
func RedactPath(text string) string { return apply(shapes(), text) }

// Redact masks all that may be a secret in a command or a pattern: secrets by their form and by their name, values of
// environment variables, query strings, contents, and words that look random. It would rather hide too much: the
// digest of the arguments says which call it was. Of a long text it returns the beginning.
func Redact(text string) string {
	if len(text) > maxRedacted {
		// A secret that is cut in two would not be known any more, so the last word goes whole.
		text = text[:maxRedacted]
		text = text[:strings.LastIndexAny(text, " \t\n")+1] + "…"
	}
	text = apply(labels(), apply(shapes(), text))
	return opaque().ReplaceAllStringFunc(text, func(word string) string {
		if random(word) {
			return masked
		}
		return word
	})
}

func apply(masks []mask, text string) string {
	low := strings.ToLower(text)
	for _, m := range masks {
		if m.hints == nil || slices.ContainsFunc(m.hints, func(h string) bool { return strings.Contains(low, h) }) {
			text = m.re.ReplaceAllString(text, m.with)
		}
	}
	return text
}

// random guesses whether a word was made by chance: its characters change their kind more often than in a name, or it
// is of hex digits and no object of git.
func random(word string) bool {
	const upper, lower, digit, other = 0, 1, 2, 3
	var count [4]int
	hex, changes, last := 0, 0, other
	for i, c := range []byte(word) {
		kind := other
		switch {
		case '0' <= c && c <= '9':
			kind = digit
			hex++
		case 'a' <= c && c <= 'z':
			kind = lower
		case 'A' <= c && c <= 'Z':
			kind = upper
		}
		if 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' {
			hex++
		}
		if i > 0 && kind != last {
			changes++
		}
		count[kind]++
		last = kind
	}
	switch {
	case hex == len(word) && count[digit] > 0:
		return len(word) >= 32 && len(word) != 40
	case count[upper] < 2 || count[lower] < 2 || count[digit] < 1:
		return false
	case strings.Contains(word, "/"):
		return count[upper] >= 6 && 3*changes >= len(word)
	}
	return 5*changes >= 2*len(word)
}
