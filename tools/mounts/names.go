package mounts

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"codehand/tools/results"
)

const (
	prefix = "mcp__"
	// longest is how many characters a name has at most: clients put mcp__codehand__ before it, and stop at 64.
	longest = 45
	// hashed is how many characters of a hash end a name that would be too long, or that of another tool.
	hashed = 8
)

// nameOf is how clients call a tool of a server.
func nameOf(server, own string) string {
	full := prefix + server + "__" + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, own)
	if len(full) > longest {
		return distinct(full, server, own)
	}
	return full
}

// ServerOf is the name of the server of a tool, by the name that clients call the tool by. ok: it is one of a server.
func ServerOf(name string) (server string, ok bool) {
	rest, mounted := strings.CutPrefix(name, prefix)
	server, _, ok = strings.Cut(rest, "__")
	return server, mounted && ok
}

// distinct is a name that no other tool of the server has.
func distinct(full, server, own string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + own))
	return full[:min(len(full), longest-hashed-1)] + "_" + hex.EncodeToString(sum[:])[:hashed]
}

// plain is foreign text as it may stand in a list of tools: without controls, and without what frames such lists.
func plain(text string, most int) string {
	text = strings.TrimSpace(results.Printed(text))
	for _, frame := range []string{"function", "/function", "system", "/system"} {
		text = replaceFold(text, "<"+frame, "&lt;"+frame)
	}
	return cut(text, most)
}

// replaceFold replaces old in any case.
func replaceFold(text, old, with string) string {
	lower := strings.ToLower(text)
	if len(lower) != len(text) || !strings.Contains(lower, old) {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(lower, old)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i] + with)
		text, lower = text[i+len(old):], lower[i+len(old):]
	}
}

// cut is the beginning of a text, of at most so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
