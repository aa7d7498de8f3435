package config

import (
	"fmt"
	"os"
	"strings"

	"codehand/tools/permission"
)

// Handle says whether s has the form of an explicit session handle: 8 to 64 of [A-Za-z0-9._-].
func Handle(s string) bool {
	return len(s) >= 8 && len(s) <= 64 && strings.Trim(s, idRunes) == ""
}

// Conversation says whether s has the form of a client's own id of a conversation: 1 to 128 of [A-Za-z0-9._:-].
func Conversation(s string) bool {
	return len(s) >= 1 && len(s) <= 128 && strings.Trim(s, idRunes+":") == ""
}

// idRunes are compared by hand: a regular expression with a count of 128 costs a noticeable part of the start.
const idRunes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// session reads what the environment says about the conversation on stdio. A handle was chosen by the operator, so a
// bad one is a mistake; a client's own id that does not fit is left out.
func (l *loader) session() {
	if handle := l.env["CODEHAND_SESSION"]; handle != "" {
		if !Handle(handle) {
			l.problems.add("CODEHAND_SESSION", "must be 8-64 characters of [A-Za-z0-9._-]")
		}
		l.config.StdioHandle = handle
	}
	for _, name := range []string{"CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID"} {
		id := l.env[name]
		switch {
		case id == "" || l.config.StdioProcessID != "":
		case Conversation(id):
			l.config.StdioProcessID = id
		default:
			l.warnings = append(l.warnings, Warning{Origin: name, Text: "is not a session id; ignored"})
		}
	}
}

// together checks what depends on more than one setting. It runs before the project files: what they narrow is made to
// fit, so that a repository cannot keep the server from starting.
func (l *loader) together() {
	c := &l.config
	if sh := c.Shell; sh.DefaultTimeoutMS > sh.MaxTimeoutMS {
		l.problems.add(c.origins["shell.default_timeout_ms"],
			fmt.Sprintf("shell.default_timeout_ms: %d is more than shell.max_timeout_ms, %d", sh.DefaultTimeoutMS,
				sh.MaxTimeoutMS))
	}
	if len(c.Protocol.Versions) == 0 {
		l.problems.add(c.origins["protocol.versions"], "protocol.versions: name at least one version")
	}
	if key, wrong := c.checkNetwork(); wrong != "" {
		l.problems.add(c.origins[key], key+": "+wrong)
	}
	if key, wrong := c.checkWebSearch(); wrong != "" {
		l.problems.add(c.origins[key], key+": "+wrong)
	}
	l.serveTogether()
}

// bypass refuses the mode that never asks where it would cover the whole machine.
func (l *loader) bypass() {
	c := &l.config
	if c.Permissions.Mode == permission.Bypass && os.Geteuid() == 0 && !l.inContainer() {
		l.problems.add(c.origins["permissions.mode"],
			"permissions.mode: bypassPermissions is refused for root outside a container")
	}
}

// inContainer looks for the marks that container engines leave.
func (l *loader) inContainer() bool {
	if l.env["container"] != "" || l.env["KUBERNETES_SERVICE_HOST"] != "" {
		return true
	}
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Lstat(mark); err == nil {
			return true
		}
	}
	return false
}
