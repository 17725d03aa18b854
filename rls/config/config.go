// Package config, internal to the gateway, reads the configuration of envoyproxy/ratelimit, unchanged, and finds the limit for
// a descriptor of a request.
//
// The result is a tree for each domain, with a level for each entry of a descriptor. On each level an entry leads to the node
// with its exact value, else to the first wildcard that matches, else to the node for its key alone. A descriptor has the
// limit of the node where its last entry ends, if that has one.
package config

import (
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Unit is the time unit of a limit.
type Unit = rls.RateLimitResponse_RateLimit_Unit

// Config is all domains. It never changes.
type Config struct {
	domains map[string]*node
	// Warnings are settings without effect, each with its place in a file.
	Warnings []string
	// Files and Limits are the numbers of files and limits read.
	Files, Limits int
}

// Domains is the number of domains.
func (c *Config) Domains() int { return len(c.domains) }

// Limit is a rate_limit of the configuration, or one that a request contains.
type Limit struct {
	// Count is requests_per_unit; 0 refuses everything.
	Count uint32
	Unit  Unit
	// Unlimited: the limit is counted in metrics only.
	Unlimited bool
	// Shadow: the limit is counted and never refuses.
	Shadow bool
	// Name is the name that other limits can have in Replaces.
	Name     string
	Replaces []string
	// Algorithm is how the limit is counted, Burst the most that GCRA grants at once.
	Algorithm Algorithm
	Burst     uint32
	// Rule is the rule of a limiter, as separate arguments; nil if nothing is counted.
	Rule []string

	path     string // the name in metrics, without the domain
	detailed bool   // the name in metrics contains the request's values
}

// Capacity is the most that can be taken at once.
func (l *Limit) Capacity() uint64 {
	if l.Algorithm == GCRA {
		return uint64(l.Burst)
	}
	return uint64(l.Count)
}

// pair is a key with a value.
type pair struct{ key, value string }

// wildcard is a value with asterisks, split at them.
type wildcard struct {
	pair
	parts []string
	to    *node
}

// node is a node of a domain's tree, with its children and its limit.
type node struct {
	exact  map[pair]*node
	wild   []wildcard // in the order of the file
	any    map[string]*node
	limit  *Limit
	label  string // the key, and the value if the configuration has one
	values bool   // value_to_metric
	shared bool   // share_threshold
}

func newNode() *node { return &node{exact: map[pair]*node{}, any: map[string]*node{}} }

// Found is the limit found for a descriptor.
type Found struct {
	*Limit
	// Metric is its name in metrics, without the domain.
	Metric string
	// Shared has, for each entry, the wildcard whose values share one counter, or "" if each value has its own. It is nil if
	// no entry shares.
	Shared []string
}

// Find finds the limit for a descriptor. Limit is nil if there is none.
func (c *Config) Find(domain string, d *ratelimit.RateLimitDescriptor) (f Found) {
	at := c.domains[domain]
	if at == nil {
		return f
	}
	if o := d.GetLimit(); o != nil {
		l := &Limit{Count: o.GetRequestsPerUnit(), Unit: Unit(o.GetUnit())}
		l.Rule = l.rule()
		return Found{Limit: l, Metric: keysOf(d)}
	}
	entries := d.GetEntries()
	values := false
	for i, e := range entries {
		next, w := at.next(e.GetKey(), e.GetValue())
		if next == nil {
			return Found{}
		}
		if w != nil && next.shared {
			if f.Shared == nil {
				f.Shared = make([]string, len(entries))
			}
			f.Shared[i] = w.value
		}
		values = values || next.values
		at = next
	}
	if at.limit == nil || len(entries) == 0 {
		return Found{}
	}
	f.Limit, f.Metric = at.limit, at.limit.path
	if at.limit.detailed || values {
		f.Metric = metric(c.domains[domain], entries, f)
	}
	return f
}

// next returns the child that an entry leads to, and the wildcard that it matched.
func (n *node) next(key, value string) (*node, *wildcard) {
	if to := n.exact[pair{key, value}]; to != nil {
		return to, nil
	}
	for i := range n.wild {
		if w := &n.wild[i]; w.key == key && w.matches(value) {
			return w.to, w
		}
	}
	return n.any[key], nil
}

// matches tells whether a value consists of the parts in order, with anything between them.
func (w *wildcard) matches(value string) bool {
	last := len(w.parts) - 1
	rest, ok := strings.CutPrefix(value, w.parts[0])
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, w.parts[last]); !ok {
		return false
	}
	for _, part := range w.parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return true
}

// metric returns a limit's name in metrics if the request's values are part of it.
func metric(at *node, entries []*ratelimit.RateLimitDescriptor_Entry, f Found) string {
	var b strings.Builder
	for i, e := range entries {
		if i > 0 {
			b.WriteByte('.')
		}
		at, _ = at.next(e.GetKey(), e.GetValue())
		if e.GetValue() != "" && (f.detailed || at.values) && (f.Shared == nil || f.Shared[i] == "") {
			b.WriteString(e.GetKey() + "_" + e.GetValue())
		} else {
			b.WriteString(at.label)
		}
	}
	return b.String()
}

// keysOf names a limit that a request contains: by its keys, since the number of values is unlimited.
func keysOf(d *ratelimit.RateLimitDescriptor) string {
	var b strings.Builder
	for i, e := range d.GetEntries() {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(e.GetKey())
	}
	return b.String()
}
