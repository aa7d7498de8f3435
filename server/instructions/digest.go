package instructions

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"codehand/server/toolset"
	"codehand/tools/tool"
)

// Digest is the SHA-256, in hex, of what every client of a release is told before it calls anything: the entries of
// tools/list, if nothing is switched off and no back-end is configured, each on a line and without the marks in _meta
// that one client reads, and the instructions but for what they say of the directories and the mode of a session. It
// depends on nothing else, so a list that differs was changed by the operator's settings, or by tampering.
func Digest(tools []tool.Tool) (string, error) {
	sum := sha256.New()
	plain := slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool { return t.Spec.Backed })
	for _, d := range (toolset.Lists{}).Offer(plain, true).Tools {
		b, err := d.JSON()
		if err != nil {
			return "", err
		}
		sum.Write(b)
		sum.Write([]byte{'\n'})
	}
	sum.Write([]byte(fullAdvice(tools)))
	return hex.EncodeToString(sum.Sum(nil)), nil
}
