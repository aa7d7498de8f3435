// Package wording holds what the answers of several tools say in the same way: why a path, a file or the Store cannot
// be used, how names and counts are written, and how much room an answer has. The same fact has the same words in every
// tool. It turns errors of engines into refusals, and changes nothing.
package wording
