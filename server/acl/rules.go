package acl

// The rules in ACL SETUSER, user lines and the ACL file.

import (
	"errors"
	"slices"
	"strings"

	"github.com/limitkv/limitkv/server/command"
)

// The errors in a rule.
var (
	errUnknown      = errors.New("Unknown command or category name in ACL")
	errRule         = errors.New("Syntax error")
	errAfterAllKeys = errors.New("Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns")
	errAfterAllChan = errors.New("Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels")
	errNoPassword   = errors.New("The password you are trying to remove from the user does not exist")
	errHash         = errors.New("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")
	errDuplicate    = errors.New("Duplicate user found. A user can only be defined once in config files")
	errFirstArg     = errors.New("Allowing first-arg of a subcommand is not supported")
)

// hasSpaces tells whether a text has blanks or zero bytes, which are not allowed in names.
func hasSpaces(s string) bool { return strings.ContainsAny(s, " \t\n\v\f\r\x00") }

// apply changes rights by one rule. The caller must own r.
func (acl *Users) apply(r *rights, rule string) error {
	switch strings.ToLower(rule) {
	case "":
	case "on":
		r.on = true
	case "off":
		r.on = false
	case "skip-sanitize-payload":
		r.skipSanitize = true
	case "sanitize-payload":
		r.skipSanitize = false
	case "nopass":
		r.noPass, r.passwords = true, nil
	case "resetpass":
		r.noPass, r.passwords = false, nil
	case "clearselectors":
		r.selectors = r.selectors[:1]
	case "reset":
		root := acl.newSelector()
		*r = rights{selectors: []*selector{root}}
	default:
		switch rule[0] {
		case '>', '#', '<', '!':
			return r.password(rule)
		case '(':
			if strings.HasSuffix(rule, ")") {
				return acl.addSelector(r, rule[1:len(rule)-1])
			}
		}
		return acl.applySelector(r.selectors[0], rule)
	}
	return nil
}

func (r *rights) password(rule string) error {
	p := rule[1:]
	if rule[0] == '>' || rule[0] == '<' {
		p = hash([]byte(p))
	} else if len(p) != 64 || strings.Trim(p, "0123456789abcdef") != "" {
		return errHash
	}
	at := slices.Index(r.passwords, p)
	switch {
	case rule[0] == '>' || rule[0] == '#':
		if at < 0 {
			r.passwords = append(r.passwords, p)
		}
		r.noPass = false
	case at < 0:
		return errNoPassword
	default:
		r.passwords = slices.Delete(r.passwords, at, at+1)
	}
	return nil
}

func (acl *Users) addSelector(r *rights, rules string) error {
	s := acl.newSelector()
	for _, rule := range strings.Fields(rules) {
		if err := acl.applySelector(s, rule); err != nil {
			return err
		}
	}
	r.selectors = append(r.selectors, s)
	return nil
}

func (acl *Users) applySelector(s *selector, rule string) error {
	switch strings.ToLower(rule) {
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
		return nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
		return nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
		return nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
		return nil
	case "allcommands", "+@all":
		acl.everyCommand(s, true)
		return nil
	case "nocommands", "-@all":
		acl.everyCommand(s, false)
		return nil
	case "":
		return errRule
	}
	switch rule[0] {
	case '~', '%':
		return s.addKeys(rule)
	case '&':
		switch {
		case s.allChannels:
			return errAfterAllChan
		case hasSpaces(rule[1:]):
			return errRule
		case !slices.Contains(s.channels, rule[1:]):
			s.channels = append(s.channels, rule[1:])
		}
		return nil
	case '+', '-':
		allow := rule[0] == '+'
		switch {
		case strings.HasPrefix(rule[1:], "@"):
			return acl.category(s, rule[1:], allow)
		case allow && strings.Contains(rule, "|"):
			return acl.allowSub(s, rule[1:])
		}
		cmd := acl.commandNamed(rule[1:])
		if cmd == nil {
			return errUnknown
		}
		acl.permit(s, cmd, allow)
		s.note(cmd.FullName(), allow)
		return nil
	}
	return errRule
}

func (acl *Users) everyCommand(s *selector, allow bool) {
	s.allCommands, s.future = allow, allow
	clear(s.allowed)
	clear(s.firstArgs)
	s.rules = nil
}

func (s *selector) addKeys(rule string) error {
	if s.allKeys {
		return errAfterAllKeys
	}
	p := keyPattern{pattern: rule[1:], access: read | write}
	if rule[0] == '%' {
		p.access = 0
		i := 1
	letters:
		for ; i < len(rule); i++ {
			switch c := rule[i] &^ 0x20; {
			case c == 'R' && p.access&read == 0:
				p.access |= read
			case c == 'W' && p.access&write == 0:
				p.access |= write
			case rule[i] == '~':
				i++
				break letters
			default:
				return errRule
			}
		}
		if p.access == 0 {
			return errRule
		}
		p.pattern = rule[i:]
	}
	if hasSpaces(p.pattern) {
		return errRule
	}
	for i := range s.keys {
		if s.keys[i].pattern == p.pattern {
			s.keys[i].access |= p.access
			return nil
		}
	}
	s.keys = append(s.keys, p)
	return nil
}

// permit allows or forbids a command with its subcommands.
func (acl *Users) permit(s *selector, cmd *command.Command, allow bool) {
	if s.allCommands && !allow { // switch from allCommands to the list of allowed commands
		for _, c := range acl.s.Table.All() {
			s.allowed[c.Index()] = true
		}
		s.allCommands = false
	}
	s.bit(cmd, allow)
	delete(s.firstArgs, cmd.Index())
	for _, sub := range cmd.Sub {
		s.bit(sub, allow)
	}
}

func (s *selector) bit(cmd *command.Command, allow bool) {
	if allow {
		s.allowed[cmd.Index()] = true
	} else {
		delete(s.allowed, cmd.Index())
	}
}

// allowSub is +command|sub: it allows a subcommand, or, if the command has none, a first argument.
func (acl *Users) allowSub(s *selector, name string) error {
	at := strings.LastIndexByte(name, '|')
	cmd, sub := acl.commandNamed(name[:at]), name[at+1:]
	switch {
	case cmd == nil:
		return errUnknown
	case cmd.Parent() != nil:
		return errFirstArg
	case sub == "":
		return errRule
	case cmd.HasSub():
		if cmd = acl.commandNamed(name); cmd == nil {
			return errUnknown
		}
		acl.permit(s, cmd, true)
	default:
		acl.s.Logf('w', "allowing a command with one first argument alone is deprecated (+%s)", name)
		list := s.firstArgs[cmd.Index()]
		if !slices.ContainsFunc(list, func(a string) bool { return strings.EqualFold(a, sub) }) {
			s.firstArgs[cmd.Index()] = append(slices.Clip(list), sub)
		}
	}
	s.note(name, true)
	return nil
}

func (acl *Users) category(s *selector, name string, allow bool) error {
	category := strings.ToLower(name[1:])
	if !slices.Contains(command.ACLCategories, category) {
		return errUnknown
	}
	s.note(name, allow)
	for _, cmd := range acl.s.Table.All() {
		if slices.Contains(cmd.Categories(), category) {
			acl.permit(s, cmd, allow)
		}
	}
	return nil
}

// note appends a rule to the selector's list. It removes rules that the new one replaces: those of the same name or of its
// subcommands.
func (s *selector) note(name string, allow bool) {
	name = strings.ToLower(name)
	s.rules = slices.DeleteFunc(s.rules, func(rule string) bool {
		return rule[1:] == name || strings.HasPrefix(rule[1:], name+"|")
	})
	sign := "-"
	if allow {
		sign = "+"
	}
	s.rules = append(s.rules, sign+name)
}

// merge joins the words of a selector, from ( to ). If one is not closed, unmatched is the word where it begins, else -1.
func merge(words []string) (rules []string, unmatched int) {
	open := -1
	for i, w := range words {
		switch {
		case open >= 0:
			rules[len(rules)-1] += " " + w
		default:
			rules = append(rules, w)
			if strings.HasPrefix(w, "(") && !strings.HasSuffix(w, ")") {
				open = i
			}
			continue
		}
		if strings.HasSuffix(w, ")") {
			open = -1
		}
	}
	return rules, open
}
