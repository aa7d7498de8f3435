// Package guarded knows files by their names: those whose change a person must allow, since they decide what other
// programs do, and those that hold keys and passwords.
//
// It compares names as the most careless file system would, and never looks at the disk.
package guarded
