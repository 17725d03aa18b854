// Package config, internal to the gateway, reads the configuration of envoyproxy/ratelimit,
// unchanged, and finds in it the limit that a descriptor of a request is to be counted by.
//
// This file is what was read: a tree for each domain, a level for each entry of a descriptor. On each level an entry goes to
// the value that was written out, else to the first wildcard that matches, else to the key alone. A descriptor has the limit
// of the place where its last entry ends, if there is one there.
package config

import (
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Unit is what requests are counted per.
type Unit = rls.RateLimitResponse_RateLimit_Unit

// Config is all domains. It never changes.
type Config struct {
	domains map[string]*node
	// Warnings are what the files say without effect, each with its place.
	Warnings []string
	// Files and Limits are how many were read.
	Files, Limits int
}

// Domains is how many domains there are.
func (c *Config) Domains() int { return len(c.domains) }

// Limit is a rate_limit of the configuration, or of a request that brings its own.
type Limit struct {
	// Count is requests_per_unit; 0 refuses everything.
	Count uint32
	Unit  Unit
	// Unlimited is counted by metrics alone.
	Unlimited bool
	// Shadow is counted and refuses nothing.
	Shadow bool
	// Name is what Replaces of other limits refers to.
	Name     string
	Replaces []string
	// Algorithm is how it is counted, Burst the most that GCRA grants at once.
	Algorithm Algorithm
	Burst     uint32
	// Rule is the rule of a limiter, word by word; nil if nothing is to be counted.
	Rule []string

	path     string // as metrics call it, without the domain
	detailed bool   // metrics have the values of the request
}

// Capacity is the most that can ever be taken at once.
func (l *Limit) Capacity() uint64 {
	if l.Algorithm == GCRA {
		return uint64(l.Burst)
	}
	return uint64(l.Count)
}

// pair is a key with a value.
type pair struct{ key, value string }

// wildcard is a value with asterisks, cut at them.
type wildcard struct {
	pair
	parts []string
	to    *node
}

// node is a place in a domain: what stands below it, and its limit.
type node struct {
	exact  map[pair]*node
	wild   []wildcard // in the order of the file
	any    map[string]*node
	limit  *Limit
	label  string // the key, and the value if it was written out
	values bool   // value_to_metric
	shared bool   // share_threshold
}

func newNode() *node { return &node{exact: map[pair]*node{}, any: map[string]*node{}} }

// Found is the limit of a descriptor.
type Found struct {
	*Limit
	// Metric is what metrics call it, without the domain.
	Metric string
	// Shared has, by entry, the wildcard that all values share one counter of, "" for an entry that is counted by its
	// value. nil if no entry shares.
	Shared []string
}

// Find finds the limit of a descriptor. Limit is nil if it has none.
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

// next is the place below that an entry leads to, and the wildcard that it matched.
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

// matches tells whether a value is the parts in their order, with anything between them.
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

// metric is the name of a limit in metrics where values of the request are a part of it.
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

// keysOf names a limit that a request brings: by its keys, since values may be without number.
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
