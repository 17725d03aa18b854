package config

// Parsing a file: first all its fields are checked, then the tree is built.

import (
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

type yamlRoot struct {
	Domain      string
	Descriptors []yamlDescriptor
}

type yamlDescriptor struct {
	Key, Value     string
	RateLimit      *yamlLimit `yaml:"rate_limit"`
	Descriptors    []yamlDescriptor
	ShadowMode     bool `yaml:"shadow_mode"`
	DetailedMetric bool `yaml:"detailed_metric"`
	ValueToMetric  bool `yaml:"value_to_metric"`
	ShareThreshold bool `yaml:"share_threshold"`
}

type yamlLimit struct {
	Unit            string
	RequestsPerUnit uint32 `yaml:"requests_per_unit"`
	Unlimited       bool
	Name            string
	Replaces        []struct{ Name string }
	Algorithm       string
	Burst           *uint32
}

// place is the allowed fields of a mapping, with the place of the value of each.
type place map[string]place

var (
	item       = place{"name": nil}
	rateLimit  = place{"unit": nil, "requests_per_unit": nil, "unlimited": nil, "name": nil, "replaces": item, "algorithm": nil, "burst": nil}
	descriptor = place{"key": nil, "value": nil, "rate_limit": rateLimit, "shadow_mode": nil, "detailed_metric": nil, "value_to_metric": nil, "share_threshold": nil}
	root       = place{"domain": nil, "descriptors": descriptor}
)

func init() { descriptor["descriptors"] = descriptor }

// known tells whether a field with this name exists anywhere. envoyproxy/ratelimit accepts a field in the wrong place and
// ignores it, so a file that works there must work here; it gets a warning.
func known(field string) bool {
	for _, p := range []place{root, descriptor, rateLimit, item} {
		if _, ok := p[field]; ok {
			return true
		}
	}
	return false
}

// parser reads one file.
type parser struct {
	name     string
	warnings []string
	limits   int
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{p.name}, args...)...)
}

func (p *parser) warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf("%s: "+format, append([]any{p.name}, args...)...))
}

// words checks the fields of a mapping and of all below it. The target of an alias is checked where it is written.
func (p *parser) words(n *yaml.Node, at place) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return p.words(n.Content[0], at)
	case yaml.SequenceNode:
		for _, c := range n.Content {
			if c.Kind != yaml.MappingNode && c.Kind != yaml.AliasNode {
				return p.fail("line %d: the list has something else than a mapping", c.Line)
			}
			if err := p.words(c, at); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := p.field(n.Content[i], n.Content[i+1], at); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *parser) field(key, value *yaml.Node, at place) error {
	if key.Tag == "!!merge" {
		return p.words(value, at)
	}
	if key.Kind != yaml.ScalarNode || key.Tag != "!!str" {
		return p.fail("line %d: a key is not of type string", key.Line)
	}
	below, here := at[key.Value]
	switch {
	case here:
	case key.Value == "quota_mode":
		return p.fail("line %d: quota_mode is not supported", key.Line)
	case known(key.Value):
		p.warn("line %d: '%s' has no effect here", key.Line, key.Value)
		below = nil
	default:
		return p.fail("line %d: unknown key '%s'", key.Line, key.Value)
	}
	return p.words(value, below)
}

// parse reads a file into the domains.
func (p *parser) parse(text []byte, domains map[string]*node, merge bool) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return p.fail("%w", err)
	}
	if doc.Kind == 0 {
		return p.fail("the file has no domain")
	}
	if err := p.words(&doc, root); err != nil {
		return err
	}
	var r yamlRoot
	if err := doc.Decode(&r); err != nil {
		return p.fail("%w", err)
	}
	if r.Domain == "" {
		return p.fail("the file has no domain")
	}
	top := domains[r.Domain]
	switch {
	case top == nil:
		top = newNode()
		domains[r.Domain] = top
	case !merge:
		return p.fail("duplicate domain '%s'", r.Domain)
	}
	return p.below(top, "", r.Domain, r.Descriptors)
}

// below adds descriptors below a node. path is the node's name in metrics, name that in errors.
func (p *parser) below(at *node, path, name string, list []yamlDescriptor) error {
	for i := range list {
		d := &list[i]
		if d.Key == "" {
			return p.fail("a descriptor under '%s' has no key", name)
		}
		to := newNode()
		to.label = d.Key
		if d.Value != "" {
			to.label += "_" + d.Value
		}
		name := name + "." + to.label
		if !at.add(d, to) {
			return p.fail("duplicate descriptor '%s'", name)
		}
		if d.ShareThreshold && !strings.Contains(d.Value, "*") {
			return p.fail("'%s': share_threshold is for values with a wildcard", name)
		}
		to.values, to.shared = d.ValueToMetric, d.ShareThreshold
		here := to.label
		if path != "" {
			here = path + "." + here
		}
		if d.RateLimit != nil {
			l, err := limitOf(d)
			if err != nil {
				return p.fail("'%s': %w", name, err)
			}
			l.path = here
			to.limit = l
			p.limits++
		} else if d.ShadowMode || d.DetailedMetric {
			p.warn("'%s': shadow_mode and detailed_metric have no effect without a rate_limit", name)
		}
		if err := p.below(to, here, name, d.Descriptors); err != nil {
			return err
		}
	}
	return nil
}

// add adds the node of a descriptor below another one. It reports false if the descriptor exists already.
func (n *node) add(d *yamlDescriptor, to *node) bool {
	p := pair{d.Key, d.Value}
	switch {
	case d.Value == "":
		if n.any[d.Key] != nil {
			return false
		}
		n.any[d.Key] = to
	case strings.Contains(d.Value, "*"):
		for _, w := range n.wild {
			if w.pair == p {
				return false
			}
		}
		n.wild = append(n.wild, wildcard{p, strings.Split(d.Value, "*"), to})
	default:
		if n.exact[p] != nil {
			return false
		}
		n.exact[p] = to
	}
	return true
}

// limitOf returns the limit of a descriptor.
func limitOf(d *yamlDescriptor) (*Limit, error) {
	y := d.RateLimit
	l := &Limit{
		Count: y.RequestsPerUnit, Unlimited: y.Unlimited, Shadow: d.ShadowMode, Name: y.Name, detailed: d.DetailedMetric,
	}
	unit, err := unitOf(y.Unit)
	switch {
	case y.Unlimited && err == nil:
		return nil, errors.New("should not specify a unit when unlimited")
	case y.Unlimited:
	case err != nil:
		return nil, err
	default:
		l.Unit = unit
	}
	for _, r := range y.Replaces {
		if r.Name == "" {
			return nil, errors.New("an entry of replaces has no name")
		}
		if r.Name == y.Name {
			return nil, errors.New("replaces has the name of the limit itself")
		}
		l.Replaces = append(l.Replaces, r.Name)
	}
	if y.Algorithm != "" {
		a, ok := algorithms[strings.ToLower(y.Algorithm)]
		if !ok {
			return nil, fmt.Errorf("unknown algorithm %q, it can be fixed, gcra, log or window", y.Algorithm)
		}
		l.Algorithm = a
	}
	l.Burst = l.Count
	if y.Burst != nil {
		if l.Algorithm != GCRA {
			return nil, errors.New("burst is for the algorithm gcra")
		}
		if *y.Burst == 0 {
			return nil, errors.New("burst has to be at least 1")
		}
		l.Burst = *y.Burst
	}
	l.Rule = l.rule()
	return l, nil
}
