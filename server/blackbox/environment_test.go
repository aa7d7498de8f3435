package blackbox

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestEnvironment: on stdio commands find the agents and the display of the person who started the client, but not those
// that were proved to change nothing; and a command that fails says which variable it may have wanted.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	work, home := leaktest.Dir(t), leaktest.Dir(t)
	start := func(args ...string) *replaytest.Spawned {
		cmd := exec.Command(replaytest.Program(t), append([]string{"stdio", work}, args...)...)
		cmd.Dir = work
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home, "XDG_RUNTIME_DIR=/run/user/1",
			"SSH_AUTH_SOCK=/agent", "GPG_TTY=/dev/pts/1", "DISPLAY=:1", "WAYLAND_DISPLAY=wayland-1", "DBUS_SESSION_BUS_ADDRESS=unix:path=/bus",
			"GH_TOKEN=gh-secret", "AWS_PROFILE=work", "AWS_SECRET_ACCESS_KEY=aws-secret", "KUBECONFIG=/kube", "DOCKER_HOST=tcp://x", "XDG_SESSION_TOKEN=no"}
		return replaytest.Speak(t, cmd, "claude-code", false)
	}
	p := start()
	env := p.Must(t, "run_shell", `{"command":"env | sort; touch x"}`)
	for _, want := range []string{"XDG_RUNTIME_DIR=/run/user/1", "SSH_AUTH_SOCK=/agent", "GPG_TTY=/dev/pts/1", "AWS_PROFILE=work", "KUBECONFIG=/kube", "DOCKER_HOST=tcp://x", "XDG_STATE_HOME=" + home} {
		if !strings.Contains(env, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	for _, bad := range []string{"DISPLAY", "DBUS_", "GH_TOKEN", "AWS_SECRET", "XDG_SESSION_TOKEN"} {
		if strings.Contains(env, bad) {
			t.Errorf("%s came through", bad)
		}
	}
	if env := p.Must(t, "run_readonly", `{"command":"printenv"}`); strings.Contains(env, "/agent") || strings.Contains(env, "/bus") || strings.Contains(env, "wayland-1") {
		t.Errorf("a command that changes nothing reaches an agent:\n%s", env)
	}
	for command, want := range map[string]string{
		"no-such-program-at-all; gh pr create": `[gh may want GH_TOKEN, which commands do not get; the user can set shell.env_allow_secret = ["GH_TOKEN"]]`,
		"aws s3 ls && true":                    `[aws may want AWS_SECRET_ACCESS_KEY, which commands do not get; the user can set shell.env_allow_secret = ["AWS_SECRET_ACCESS_KEY"]]`,
	} {
		if text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command+" 2>/dev/null || false")); !strings.Contains(text, want) {
			t.Errorf("%s: %s", command, text)
		}
	}
	if text := p.Must(t, "run_shell", `{"command":"false"}`); strings.Contains(text, "may want") {
		t.Errorf("any command that fails: %s", text)
	}

	p = start("--shell-env-allow=AWS_PROFILE", "--shell-env-allow-secret=GH_TOKEN")
	env = p.Must(t, "run_shell", `{"command":"env; touch x"}`)
	if !strings.Contains(env, "GH_TOKEN=gh-secret\n") || !strings.Contains(env, "AWS_PROFILE=work\n") {
		t.Errorf("what the operator passes on is missing:\n%s", env)
	}
	if text := p.Must(t, "run_shell", `{"command":"gh pr list; false"}`); strings.Contains(text, "may want") {
		t.Errorf("nothing is withheld from gh: %s", text)
	}
}
