package acl

// What a user may do: passwords, and selectors, each of which allows commands on keys and channels. A command is allowed if
// one selector allows all of it.

import (
	"maps"
	"slices"
	"strings"
)

// access is how a command may use the keys of a pattern.
type access uint8

const (
	read access = 1 << iota
	write
)

type rights struct {
	on, noPass, skipSanitize bool
	passwords                []string // hashes
	selectors                []*selector
}

// keyPattern is a pattern of keys.
type keyPattern struct {
	pattern string
	access  access
}

func (p keyPattern) String() string {
	switch p.access {
	case read:
		return "%R~" + p.pattern
	case write:
		return "%W~" + p.pattern
	}
	return "~" + p.pattern
}

type selector struct {
	allKeys, allChannels bool
	keys                 []keyPattern
	channels             []string

	// allCommands: no command was taken away again. future: commands of later versions are allowed too, since +@all was given.
	allCommands, future bool
	allowed             map[int]bool // by Command.Index; false is as missing
	// firstArgs are the first arguments with which a command is allowed although the command itself is not.
	firstArgs map[int][]string
	// rules are the rules since +@all or -@all.
	rules []string
}

func (s *selector) clone() *selector {
	d := *s
	d.keys, d.channels, d.rules = slices.Clone(s.keys), slices.Clone(s.channels), slices.Clone(s.rules)
	d.allowed, d.firstArgs = maps.Clone(s.allowed), maps.Clone(s.firstArgs)
	return &d
}

func (r *rights) clone() *rights {
	d := *r
	d.passwords = slices.Clone(r.passwords)
	d.selectors = make([]*selector, len(r.selectors))
	for i, s := range r.selectors {
		d.selectors[i] = s.clone()
	}
	return &d
}

// unrestricted tells whether a selector allows everything.
func (r *rights) unrestricted() bool {
	for _, s := range r.selectors {
		if s.allCommands && s.allKeys && s.allChannels {
			return true
		}
	}
	return false
}

// nothing returns the rights of a new user.
func (acl *Users) nothing() *rights { return &rights{selectors: []*selector{acl.newSelector()}} }

// everything returns the initial rights of the default user.
func (acl *Users) everything() *rights {
	s := acl.newSelector()
	s.allKeys, s.allChannels, s.allCommands, s.future = true, true, true, true
	return &rights{on: true, noPass: true, selectors: []*selector{s}}
}

func (acl *Users) newSelector() *selector {
	return &selector{
		allChannels: *acl.channels.Load() == "allchannels",
		allowed:     map[int]bool{}, firstArgs: map[int][]string{},
	}
}

// flags lists the flags as ACL GETUSER and LIST show them.
func (r *rights) flags() []string {
	flags := []string{"off", "sanitize-payload"}
	if r.on {
		flags[0] = "on"
	}
	if r.skipSanitize {
		flags[1] = "skip-sanitize-payload"
	}
	if r.noPass {
		flags = []string{flags[0], "nopass", flags[1]}
	}
	return flags
}

// describe formats the rights as rules.
func (r *rights) describe() string {
	words := r.flags()
	for _, p := range r.passwords {
		words = append(words, "#"+p)
	}
	for i, s := range r.selectors {
		text := s.describe()
		if i > 0 {
			text = "(" + text + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

func (s *selector) describe() string {
	var words []string
	if keys := s.describeKeys(); keys != "" {
		words = append(words, keys)
	}
	if !s.allChannels {
		words = append(words, "resetchannels")
	}
	if channels := s.describeChannels(); channels != "" {
		words = append(words, channels)
	}
	return strings.Join(append(words, s.describeCommands()), " ")
}

func (s *selector) describeKeys() string {
	if s.allKeys {
		return "~*"
	}
	words := make([]string, len(s.keys))
	for i, p := range s.keys {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}

func (s *selector) describeChannels() string {
	if s.allChannels {
		return "&*"
	}
	words := make([]string, len(s.channels))
	for i, p := range s.channels {
		words[i] = "&" + p
	}
	return strings.Join(words, " ")
}

func (s *selector) describeCommands() string {
	first := "-@all"
	if s.future {
		first = "+@all"
	}
	return strings.Join(append([]string{first}, s.rules...), " ")
}
