// Package cgroup gives each command a control group (cgroup v2) of its own, in which the kernel counts memory and
// processes. It works where the operator or systemd delegated a part of the tree to this process, and changes nothing
// elsewhere. Only files are read and written, so it compiles everywhere and finds nothing on other systems than Linux.
//
// A group belongs to one command. The server makes it, sets its limits and moves the waiting helper into it before the
// helper learns what to start, so every process of the command begins inside. The limits follow from what the caller
// passes; package sandbox proves with real processes that they hold before any report says so.
package cgroup
