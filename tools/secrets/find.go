package secrets

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Secret is a place in a text that looks like a credential: its shape is unmistakable.
type Secret struct {
	Kind     string // github-token, private-key, ...
	Line     int    // from 1
	From, To int    // bytes of the text, of the secret alone
}

// Tail is what may be shown of the secret, to tell it apart: its last 4 bytes, if that is a small part of it.
func (s Secret) Tail(text string) string {
	if s.To-s.From < 16 || s.Kind == "private-key" || s.Kind == "url-password" {
		return ""
	}
	return text[s.To-4 : s.To]
}

// A secretShape is one form. re is tried where one of the literals stands, which is not behind a letter, a digit or `_`
// unless inner is set, on at most maxSecret bytes; its group 1 is the secret.
type secretShape struct {
	kind     string
	literals []string
	re       *regexp.Regexp
	inner    bool
	run      bool // no secret begins within the letters, digits, `_` and `-` of a failed one: it would fail as that did
}

// maxSecret is how many bytes behind a literal are looked at. What is longer is known by its beginning.
const maxSecret = 4096

// secretShapes are those of security.md 7.3. Where a token has no fixed length, it ends where its characters do.
var secretShapes = sync.OnceValue(func() []secretShape {
	shape := func(kind, re string, literals ...string) secretShape {
		return secretShape{kind: kind, literals: literals, re: regexp.MustCompile(`\A` + re)}
	}
	const end = `(?:[^0-9A-Za-z_-]|\z)`
	all := []secretShape{
		shape("aws-access-key", `((?:AKIA|ASIA)[0-9A-Z]{16})`+end, "AKIA", "ASIA"),
		shape("github-token", `(gh[oprsu]_[0-9A-Za-z]{36})`+end, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
		shape("github-token", `(github_pat_[0-9A-Za-z]{22}_[0-9A-Za-z]{59})`+end, "github_pat_"),
		shape("gitlab-token", `(gl(?:pat|dt|rt|ptt|oas)-[\w-]{20,}(?:\.[\w.]+)?)`, "glpat-", "gldt-", "glrt-", "glptt-",
			"gloas-"),
		shape("slack-token", `(xox[abeprs]-[0-9]{6,}-[0-9A-Za-z-]{10,})`, "xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-",
			"xoxs-"),
		shape("slack-webhook",
			`(hooks\.slack\.com/(?:services/T[0-9A-Z]{6,}/B[0-9A-Z]{6,}|`+
				`workflows/T[0-9A-Z]{6,}/A[0-9A-Z]{6,}/[0-9]+)/[0-9A-Za-z]{16,})`, "hooks.slack.com/"),
		shape("stripe-key", `([rs]k_live_[0-9A-Za-z]{24,})`+end, "sk_live_", "rk_live_"),
		shape("google-key", `(AIza[\w-]{35})`+end, "AIza"),
		shape("google-token", `(ya29\.[\w-]{40,})`, "ya29."),
		shape("openai-key", `(sk-(?:proj|svcacct)-[\w-]{20,}|sk-[0-9A-Za-z]{20}T3BlbkFJ[0-9A-Za-z]{20})`+end, "sk-"),
		shape("anthropic-key", `(sk-ant-[0-9a-z]+-[\w-]{20,})`, "sk-ant-"),
		shape("npm-token", `(npm_[0-9A-Za-z]{36})`+end, "npm_"),
		shape("pypi-token", `(pypi-AgEI[\w-]{50,})`, "pypi-AgEI"),
		shape("docker-token", `(dckr_pat_[\w-]{27,})`, "dckr_pat_"),
		shape("huggingface-token", `(hf_[0-9A-Za-z]{34})`+end, "hf_"),
		shape("sendgrid-key", `(SG\.[\w-]{22}\.[\w-]{43})`+end, "SG."),
		shape("digitalocean-token", `(dop_v1_[0-9a-f]{64})`+end, "dop_v1_"),
		shape("databricks-token", `(dapi[0-9a-f]{32})(?:-[0-9]+)?`+end, "dapi"),
		// {"alg" is where its first part begins
		shape("jwt", `(eyJhbGci[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})`, "eyJhbGci"),
		// also in a string
		shape("private-key",
			`(-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----(?:["',]*\s*\n|(?:\\r)?\\n)[\s>|"'+]*[0-9A-Za-z+/=:-])`,
			"-----BEGIN "),
		shape("codehand-token", `(ch[acdr]_[a-z2-7]{6,}_[\w-]{16,}|chi_[\w-]{40,})`, codehandSecrets...),
	}
	inner := []secretShape{
		shape("aws-secret-key",
			`(?i:aws_?|aws-)?(?i:secret[_-]?(?:access[_-]?)?key)["']?\s{0,4}[:=]\s{0,4}["']?`+
				`([0-9A-Za-z+/]{40})(?:[^0-9A-Za-z+/=]|\z)`,
			"secret_access_key", "SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey", "secret-access-key",
			"aws_secret_key", "AWS_SECRET_KEY"),
		shape("azure-key", `AccountKey=([0-9A-Za-z+/]{86}==)`, "AccountKey="),
		shape("url-password", `://[^\s/@:?#"'<>{}$%*]{0,100}:`+
			`((?:[^\s/@:?#"'<>{}$%*]|%[0-9A-Fa-f]{2}){3,200})@[0-9A-Za-z\[]`, "://"),
	}
	for _, s := range inner {
		s.inner = true
		all = append(all, s)
	}
	for i := range all {
		all[i].run = all[i].kind == "jwt" // its literal may stand in its first part, behind `-`
	}
	return all
})

// examplePasswords stand in documents where a password would, and so do stars and variables, which no url-password has.
var examplePasswords = []string{"password", "passwd", "pass", "pwd", "secret", "token", "changeme", "example", "xxx",
	"xxxx", "xxxxx", "yourpassword"}

// Find finds what looks like credentials, in the order of the text. One that stands within another is not told.
func Find(text string) []Secret { return findBy(text, (*regexp.Regexp).FindStringSubmatchIndex) }

// findBy is Secrets with match, which is FindStringSubmatchIndex or does as it does.
func findBy(text string, match func(*regexp.Regexp, string) []int) []Secret {
	var found []Secret
	for _, shape := range secretShapes() {
		for _, literal := range shape.literals {
			found = shape.find(found, text, literal, match)
		}
	}
	slices.SortFunc(found, func(a, b Secret) int { return cmp.Or(a.From-b.From, b.To-a.To) })
	kept, at, line := found[:0], 0, 1
	for _, s := range found {
		if len(kept) > 0 && s.From < kept[len(kept)-1].To {
			continue
		}
		line += strings.Count(text[at:s.From], "\n")
		at = s.From
		s.Line = line
		kept = append(kept, s)
	}
	return kept
}

func (s secretShape) find(found []Secret, text, literal string, match func(*regexp.Regexp, string) []int) []Secret {
	for at := 0; ; {
		i := strings.Index(text[at:], literal)
		if i < 0 {
			return found
		}
		at += i
		if s.inner || begins(text, at) {
			m := match(s.re, text[at:min(len(text), at+maxSecret)])
			if m != nil && (s.kind != "url-password" ||
				!slices.Contains(examplePasswords, strings.ToLower(text[at+m[2]:at+m[3]]))) {
				found = append(found, Secret{Kind: s.kind, From: at + m[2], To: at + m[3]})
				at += m[3]
				continue
			}
			if s.run {
				for at < len(text) && (wordByte(text[at]) || text[at] == '-') {
					at++
				}
				continue
			}
		}
		at += len(literal)
	}
}

// begins says whether a word may begin at a place of text: behind what is no part of one, behind an escape sequence
// that sets a colour, or behind the \n of a string.
func begins(text string, at int) bool {
	if at == 0 || !wordByte(text[at-1]) {
		return true
	}
	if at > 1 && text[at-2] == '\\' && strings.IndexByte("nrt", text[at-1]) >= 0 {
		return true
	}
	if text[at-1] != 'm' {
		return false
	}
	sequence := strings.TrimRight(text[max(0, at-16):at-1], "0123456789;")
	return strings.HasSuffix(sequence, "\x1b[")
}

func wordByte(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || b == '_'
}
