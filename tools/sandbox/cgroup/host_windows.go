package cgroup

func (h *host) writable(string) bool { return false }

func (h *host) ownedByUser(string) bool { return false }
