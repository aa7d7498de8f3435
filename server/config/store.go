package config

import (
	"errors"
	"strings"
	"time"

	"codehand/server/nodes"
	"codehand/server/state"
)

// Cluster is this process as one of several that share the Store.
type Cluster struct {
	Node     string // its name, for good; "": it is alone
	Capacity int    // principals that it takes at most

	Workspaces string // local: each machine has those of its principals; shared: all machines have all
	SharedDir  string // absolute; only with shared
}

// The values of Cluster.Workspaces.
const (
	workspacesLocal  = "local"
	workspacesShared = "shared"
)

// Volume is the directory on a volume that all machines share, for what must be there when a principal moves; "": there
// is none.
func (c Cluster) Volume() string {
	if c.Workspaces != workspacesShared {
		return ""
	}
	return c.SharedDir
}

// clusterTable is the part of the table of serve about several machines.
func clusterTable(c *Config) []setting {
	return []setting{
		{"cluster.node", "name of this machine among several that share a store in NATS, the same after each start; " +
			"empty: it has the store alone", operatorOnly, term{&c.Cluster.Node, readNode}},
		{"cluster.capacity", "most callers whose workspaces are on this machine", operatorOnly,
			number{&c.Cluster.Capacity, 1, 1_000_000, false}},
		{"cluster.workspaces", "local: each machine has the workspaces of its callers; shared: all machines have the " +
			"same roots, on a shared volume, and callers move when their machine dies", operatorOnly,
			choice{&c.Cluster.Workspaces, []string{workspacesLocal, workspacesShared}}},
		{"cluster.shared_dir", "with shared workspaces: directory on the shared volume, outside of all roots, for " +
			"the journals of changes and for answers that clients may ask for again", operatorOnly,
			term{&c.Cluster.SharedDir, absolute}},
	}
}

// readNode refuses what cannot be the name of a node.
func readNode(s string, _ input) (string, error) {
	if s == "" {
		return "", nil
	}
	return s, nodes.CheckName(s)
}

// clusterTogether says what settings of several machines lack.
func clusterTogether(c Cluster, wrong func(key, format string, args ...any)) {
	switch shared := c.Workspaces == workspacesShared; {
	case shared && c.Node == "":
		wrong("cluster.workspaces", "shared needs cluster.node: one machine alone shares nothing")
	case shared && c.SharedDir == "":
		wrong("cluster.workspaces", "shared needs cluster.shared_dir, a directory on the shared volume")
	case !shared && c.SharedDir != "":
		wrong("cluster.shared_dir", "counts only with cluster.workspaces = \"shared\"")
	}
}

// storeTable is the part of the table of serve that says where the state is kept.
func storeTable(c *Config) []setting {
	return []setting{
		{"store.url", "where serve keeps sessions: embedded: (on disk), memory:, or nats://HOST:PORT (tls:// with TLS), " +
			"several servers with commas", operatorOnly, storeURL{&c.Store.URL}},
		{"store.max_bytes", "largest size of the store", operatorOnly, size{&c.Store.MaxBytes, mib, 1024 * gib}},
		{"store.sync", "longest time until a change of the store is synced to disk, or always", operatorOnly,
			period{&c.Store.Sync, 0, time.Hour, []word{{"always", 0}}}},

		{"store.nats.prefix", "what the names of streams in NATS begin with, so that several installations can share " +
			"servers", operatorOnly, term{&c.Store.NATS.Prefix, readNATSPrefix}},
		{"store.nats.creds_file", "file with the credentials for NATS, as nsc makes them", operatorOnly,
			term{&c.Store.NATS.CredsFile, absolute}},
		{"store.nats.nkey_file", "file with the seed of an nkey for NATS", operatorOnly,
			term{&c.Store.NATS.NKeyFile, absolute}},
		{"store.nats.user", "user of NATS; needs store.nats.password_file", operatorOnly,
			term{&c.Store.NATS.User, anyText}},
		{"store.nats.password_file", "file with the password of store.nats.user", operatorOnly,
			term{&c.Store.NATS.PasswordFile, absolute}},
		{"store.nats.ca_file",
			"file with the certificate authorities of the servers of NATS; empty: those of the system", operatorOnly,
			term{&c.Store.NATS.CAFile, absolute}},
		{"store.nats.cert_file", "file with the certificate that serve shows to NATS", operatorOnly,
			term{&c.Store.NATS.CertFile, absolute}},
		{"store.nats.key_file", "file with the key of store.nats.cert_file", operatorOnly,
			term{&c.Store.NATS.KeyFile, absolute}},
	}
}

// storeURL is the URL of a Store. It is never repeated in an error: it may hold a password.
type storeURL struct{ p *string }

func (v storeURL) set(in input) error {
	s, ok := in.raw.(string)
	if !ok {
		return errors.New("must be a text")
	}
	s = strings.TrimSpace(s)
	if err := state.CheckURL(s); err != nil {
		return err
	}
	*v.p = s
	return nil
}

func (v storeURL) text() string { return *v.p }

// readNATSPrefix refuses what cannot stand in a name of a stream.
func readNATSPrefix(s string, _ input) (string, error) {
	return s, state.CheckPrefix(s)
}

// anyText is any text on one line.
func anyText(s string, _ input) (string, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return "", errors.New("must be on one line")
	}
	return s, nil
}

// natsTogether says what settings of NATS lack, or exclude.
func natsTogether(n state.NATSOptions, wrong func(key, format string, args ...any)) {
	switch {
	case n.CredsFile != "" && (n.NKeyFile != "" || n.User != ""):
		wrong("store.nats.creds_file", "excludes store.nats.nkey_file and store.nats.user")
	case n.NKeyFile != "" && n.User != "":
		wrong("store.nats.nkey_file", "excludes store.nats.user")
	case n.User != "" && n.PasswordFile == "":
		wrong("store.nats.user", "needs store.nats.password_file")
	case n.User == "" && n.PasswordFile != "":
		wrong("store.nats.password_file", "needs store.nats.user")
	case n.CertFile != "" && n.KeyFile == "":
		wrong("store.nats.cert_file", "needs store.nats.key_file")
	case n.CertFile == "" && n.KeyFile != "":
		wrong("store.nats.key_file", "needs store.nats.cert_file")
	}
}

// StoreOptions are those of the Store of serve, but for its directory.
func (c Config) StoreOptions() state.Options {
	return state.Options{
		SessionLife: c.Session.TTL, MaxBytes: c.Store.MaxBytes, Sync: c.Store.Sync, NATS: c.Store.NATS,
		Nodes: c.Cluster.Node != "",
	}
}

// natsSecrets are the files with which whoever reads them can sign in to NATS.
func natsSecrets(n state.NATSOptions) []string {
	return []string{n.CredsFile, n.NKeyFile, n.PasswordFile, n.KeyFile}
}

// SecretsOfServe are files, some of them "", with which whoever reads them can be a caller, or serve itself.
func (c Config) SecretsOfServe() []string {
	return append([]string{c.Metrics.TokenFile, c.HTTP.TLSKey, c.TokenFile()}, natsSecrets(c.Store.NATS)...)
}
