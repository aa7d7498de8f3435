package skills_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/skills"
)

// TestArgumentsAreNoCode puts hostile arguments into random commands and lets bash run those that are not refused: none may
// run the program that the arguments name, but where the command itself runs what it is given.
func TestArgumentsAreNoCode(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no bash: ", err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "bin", "pwn"), "#!/bin/sh\n: >\"$MARK\"\n")
	if err := os.Chmod(filepath.Join(dir, "bin", "pwn"), 0o755); err != nil {
		t.Fatal(err)
	}
	runs := 0
	// ran says whether a command runs pwn. Nothing of it is written outside of dir: the templates have no other absolute path.
	ran := func(command string) bool {
		runs++
		mark := filepath.Join(dir, fmt.Sprint("mark", runs))
		cmd := exec.CommandContext(t.Context(), bash, "-c", command)
		cmd.Dir = filepath.Join(dir, "bin")
		cmd.Env = []string{"PATH=" + cmd.Dir + ":/usr/bin:/bin", "HOME=" + dir, "MARK=" + mark, "LC_ALL=C.UTF-8"}
		_ = cmd.Run() // most are no bash at all
		_, err := os.Stat(mark)
		return err == nil
	}
	render := func(template, args string) (string, bool) {
		s := skills.Skill{Name: "x", Arguments: []string{"name"}, Dir: dir}
		r, err := skills.Render(s, "```!\n"+template+"\n```\n", skills.Arguments{Text: args, Project: filepath.Join(dir, "p"), Session: "s"})
		if err != nil || len(r) == 0 || !r[0].Command || r[0].Unsafe {
			return "", false
		}
		return r[0].Text, true
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same ones each time
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	executed := 0
	for range leaktest.Rounds(2000, 5000) {
		var template strings.Builder
		for range 1 + random.IntN(7) {
			template.WriteString(pick([][]string{codePieces, codePieces, codeHoles}[random.IntN(3)]))
		}
		template.WriteString(pick(codeHoles) + pick(codePieces))
		args := pick(codeArguments) + pick([]string{"", " ", " x ", "\t"}) + pick(codeArguments)
		command, ok := render(template.String(), args)
		if !ok {
			continue
		}
		executed++
		if !ran(command) {
			continue
		}
		if plain, ok := render(template.String(), "pwn pwn pwn pwn"); ok && ran(plain) {
			continue // the command runs what it is given
		}
		t.Errorf("%q with %q runs code: %q", template.String(), args, command)
	}
	if executed < leaktest.Rounds(400, 1000) {
		t.Errorf("only %d commands were run", executed)
	}
}

// Pieces of commands, what stands for arguments in them, and arguments. Nothing in them removes anything.
var (
	codePieces = []string{
		"echo ", "'", `"`, "$(", ")", "`", "{ ", "}", "<<EOF\n", "EOF\n", "<<'EOF'\n", "# it's\n", "$'", `$"`, `\`, " ", "\n", ";", "|", "&&", "cat ", "[[ ", " ]]",
		"((", "))", "$((", "${x:-", "<(", "case x in ", " esac", "for i in ", "; do ", " done", "eval ", "bash -c ", "=", "x=", "<<<", ">/dev/null ", "<", "! ", "@(", "+(",
		"printf %s ", "[", "]", "test -v ", "let ", "declare ", "export ", "a[", "]=1 ", "function ", "() ", "alias ",
	}
	codeHoles = []string{"$ARGUMENTS", "$0", "$1", "$name", "$ARGUMENTS[0]", `"$0"`, "'$0'", `"$ARGUMENTS"`, "${CODEHAND_PROJECT_DIR}"}

	codeArguments = []string{
		";pwn", "$(pwn)", "`pwn`", "' ;pwn; '", "\"\n pwn\n\"", "a\npwn", "x|pwn", "& pwn", "--opt=pwn", "=pwn", "%1", "+x", "@(pwn)", "-c pwn", "a=b", "x:pwn", "EOF", "a' 'b",
		"à", "\u00a0pwn", "\u2028pwn", "é;pwn", "${IFS}pwn", "<(pwn)", ">pwn", "a[$(pwn)]", "!!", "~/pwn", "*", "{pwn,}", "\\\npwn", "x\x01pwn", "x\r", "'EOF' pwn", "b,c", "1+x",
	}
)
