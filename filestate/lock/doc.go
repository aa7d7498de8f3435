// Package lock lets one writer at a file: in this process in the order of asking, and between processes by lock files
// in one directory. It knows files by keys only, opens none of them, and keeps nobody out who does not ask.
package lock
