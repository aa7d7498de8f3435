package state

import "strings"

// natsNames are the names of what belongs to one Store in NATS.
type natsNames struct{ prefix string }

// bucket is the stream of a family; tools for key-value buckets of NATS can read it.
func (n natsNames) bucket(family string) string { return "KV_" + n.prefix + "_" + family }

// subject is where the value of a key is published.
func (n natsNames) subject(key string) string {
	f, rest, _ := strings.Cut(key, ".")
	if rest == "" {
		return "$KV." + n.prefix + "_" + f
	}
	return "$KV." + n.prefix + "_" + f + "." + rest
}

// keyOf is the key whose value is published at a subject of a family.
func (n natsNames) keyOf(family, subject string) string {
	return family + strings.TrimPrefix(subject, "$KV."+n.prefix+"_"+family)
}

// goneSubject is where a delete of a key is told, while it happens: NATS tells a delete to no consumer.
func (n natsNames) goneSubject(key string) string { return n.prefix + ".gone." + key }

// output is the stream of the streams of a family.
func (n natsNames) output(family string) string { return strings.ToUpper(n.prefix + "_" + family) }

func (n natsNames) outputSubject(name string) string { return n.prefix + ".out." + name }
