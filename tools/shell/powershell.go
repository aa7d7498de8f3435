package shell

import (
	"os"
	"strings"
)

// Files of a command in PowerShell: the text, and what is around it.
const wrapSuffix, textSuffix = ".ps1", ".text.ps1"

// utf8Mark begins a file that Windows PowerShell is to read as UTF-8.
const utf8Mark = "\ufeff"

// powershellCommand returns the arguments of the PowerShell that runs text. The text stands in a file of its own, so
// line numbers in messages are right; another one around it loads the operator's file, makes output UTF-8 without
// colors, and reports the directory at the end, also after exit. The exit code is that of the last statement: 0, that
// of the program that failed, or 1.
func (s script) powershellCommand(text, base string) (args, env []string, err error) {
	inside := utf8Mark + text + "\n$CodehandOK = $?\n"
	if err := os.WriteFile(base+textSuffix, []byte(inside), 0o600); err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(base+wrapSuffix, []byte(utf8Mark+s.around(base)), 0o600); err != nil {
		return nil, nil, err
	}
	// The policy is about scripts from the Internet; both files are ours.
	return []string{"-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File",
		base + wrapSuffix}, nil, nil
}

// around is the script that runs the text of a command.
func (s script) around(base string) string {
	lines := []string{
		"$ProgressPreference = 'SilentlyContinue'",
		"try { [Console]::OutputEncoding = $OutputEncoding = New-Object System.Text.UTF8Encoding $false } catch {}",
		"if ($PSStyle) { $PSStyle.OutputRendering = 'PlainText' }",
		"$CodehandOK = $true",
	}
	if s.init != "" {
		lines = append(lines, ". "+powershellQuote(s.init))
	}
	lines = append(lines,
		"try { . "+powershellQuote(base+textSuffix)+" } finally {",
		"  try { [IO.File]::WriteAllText("+powershellQuote(base+cwdSuffix)+
			", (Get-Location -PSProvider FileSystem).ProviderPath + \"`n\") } catch {}",
		"}",
		"if ($CodehandOK) { exit 0 }",
		"if ($LASTEXITCODE) { exit $LASTEXITCODE }",
		"exit 1",
	)
	return strings.Join(lines, "\n") + "\n"
}

// powershellQuote makes one word of s. PowerShell takes typographic quotes for the plain one, too.
func powershellQuote(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("'\u2018\u2019\u201a\u201b", r) {
			b.WriteRune(r)
		}
		b.WriteRune(r)
	}
	return "'" + b.String() + "'"
}
