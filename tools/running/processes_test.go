package running

import (
	"testing"

	"codehand/tools/bash"
	"codehand/tools/confine"
	"codehand/tools/sandbox"
	"codehand/tools/tool"
)

// A failed download hid behind a pipe: `pip download six 2>&1 | tail -3` ends with 0 and prints nothing on stderr.
func TestUnfetched(t *testing.T) {
	t.Parallel()
	const said = "NewConnectionError: [Errno -3] Temporary failure in name resolution"
	for command, want := range map[string]bool{
		"pip download six 2>&1 | tail -3": true, "npm ci || true": true, "grep -r resolution logs": false,
		"cargo install x 2>&1 | tail -1": true, "rustup default stable 2>&1 | tail -1": true,
	} {
		a := bash.Analyze(command, func(string) bool { return true })
		closed := &sandbox.Profile{Sockets: true, Network: sandbox.NetworkOff}
		o := Outcome{Env: tool.Env{Analysis: &a}, Confined: confine.Command{Level: sandbox.LevelFull, Profile: closed}}
		if got := o.unfetched(said); (got != "") != want || o.unfetched("done") != "" {
			t.Errorf("%s: %q, want a line: %v", command, got, want)
		}
		const cut = "    at fetch (/usr/lib/node_modules/corepack/dist/lib/corepack.cjs:22089:11)\n"
		a = bash.Analyze("corepack prepare pnpm@9 2>&1 | tail -1", func(string) bool { return true })
		if got := o.unmet(cut, false); got != o.Confined.NoNetwork() {
			t.Errorf("corepack without a network: %q", got)
		}
		a = bash.Analyze(command, func(string) bool { return true })
		closed.Network = sandbox.NetworkOn
		if got := o.unfetched(said); got != "" {
			t.Errorf("%s: %q with a network", command, got)
		}
	}
}

// A model looked for its dev server with pkill and lsof, which met nothing, and took it for ended.
func TestUnmetProcesses(t *testing.T) {
	t.Parallel()
	const cut = "    at async _Cli.run (/usr/lib/node_modules/corepack/dist/lib/corepack.cjs:21215:18)\n"
	for _, c := range []struct {
		command, said string
		failed        bool
		want          string
	}{
		{"pkill -f vite", "", true, ownProcesses},
		{"killall node", "node: no process found", true, ownProcesses},
		{"lsof -i :3000", "", true, ownProcesses},
		{"ss -ltnp | grep 3000", "Cannot open netlink socket: Operation not permitted", true, ownProcesses},
		{"ps aux | grep vite", "", true, ownProcesses},
		{"kill $(lsof -t -i:3000)", "kill: usage: kill [-s sigspec | -n signum | -sigspec] pid", true, ownProcesses},
		{"lsof -ti:3000 | xargs kill", "Usage:\n kill [options] <pid> [...]", true, ownProcesses},
		{"kill 4242", "bash: line 1: kill: (4242) - No such process", true, ownProcesses},
		{"kill $(pgrep vite) 2>/dev/null; true", "", false, ownProcesses},
		{"pkill node || true", "", false, ownProcesses},
		{"pkill sleep", "", false, ""}, // it met one of its own
		{"ps aux", "PID TTY TIME CMD", false, ""},
		{"kill 4242", "", false, ""},
		{"kill 1", "bash: line 1: kill: (1) - Operation not permitted", true, ""},
		{"make check", "", true, ""},
		{"corepack enable", "Internal Error: EROFS: read-only file system, symlink '../lib/dist/pnpm.js' -> '/usr/bin/pnpm'", true, ownShims},
		{"corepack enable; echo", "Internal Error: EACCES: permission denied, unlink '/usr/bin/yarn'\n", false, ownShims},
		{"corepack pnpm -v", "9.1.0", false, ""},
		{"corepack enable pnpm 2>&1 | tail -2", cut, false, ownShims},
		{"corepack enable --install-directory d 2>&1 | tail -2", cut, false, ""},
		{"corepack prepare pnpm@9 2>&1 | tail -2", cut, false, ""},
		{"echo pkill; false", "pkill", true, ""},
	} {
		a := bash.Analyze(c.command, func(string) bool { return true })
		o := Outcome{
			Env:      tool.Env{Analysis: &a},
			Confined: confine.Command{Level: sandbox.LevelFull, Profile: &sandbox.Profile{}},
		}
		if got := o.unmet(c.said, c.failed); got != c.want {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
		o.Confined.Level = sandbox.LevelKernel
		if got := o.unmet(c.said, c.failed); got != "" {
			t.Errorf("%s: %q where it sees all processes", c.command, got)
		}
	}
}
