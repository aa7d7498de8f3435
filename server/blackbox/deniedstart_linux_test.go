package blackbox

import (
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// A session's directory became one of which a rule lets nothing be read. Each command was refused, also the one that
// would leave it.
func TestDeniedStart(t *testing.T) {
	t.Parallel()
	p := profile(t, []string{"a"}, nil, nil, "--permissions-deny=Read(/late/**)")
	p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "d=late; mkdir $d && cd $d"))
	said := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "uname"))
	if !strings.Contains(said, "begin in "+p.in("a/late")+", and Read(/late/**), flag --permissions-deny denies") ||
		!strings.HasSuffix(said, "begins in "+p.root+". Make the call again, with paths from there.") {
		t.Error(said)
	}
	text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "ls; pwd"))
	if !strings.Contains(text, "late\n"+p.root) {
		t.Errorf("then it says %s", text)
	}
}
