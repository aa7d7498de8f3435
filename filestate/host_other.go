//go:build !linux

package filestate

func identifyHost() host { return host{} }
