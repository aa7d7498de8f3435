// Package notebook reads Jupyter notebooks and changes one cell of them, and no byte outside of that cell.
//
// A notebook is JSON that several programs write, each in its own way: order of keys, indent, line ends, escapes. So
// nothing is decoded into values and written again. The bytes are checked once (check), then walked as spans (doc), and
// a change replaces one span. What is new takes its order of keys and its white space from the cells beside it.
//
// The file may be hostile: no step recurses, depth and counts are bounded, and texts and images of outputs are decoded
// only when they are asked for.
//
// It is pure: no disk, no clock, no random numbers, no goroutine. It knows no files and no tools. Its values never
// change, so all of it is safe for concurrent use, as long as the caller does not write to the content that it handed
// in.
package notebook
