// Package wording has the texts that several tools share: refusals about paths, files and the Store, how names and
// counts are written, and how long an answer may be. The same fact has the same words in every tool. It turns errors of
// engines into refusals, and changes nothing.
package wording
