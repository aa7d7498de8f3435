// Package lock lets one writer at a time change a file: within this process in the order of asking, between processes
// by lock files in one directory. It knows files by keys only and opens none of them. The locks are advisory: a program
// that does not ask is not kept out.
package lock
